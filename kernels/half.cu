// y = a * x + y in half precision, one value or a packed pair per thread.
#include "warploom.cuh"

#if __CUDA_ARCH__ >= 530
extern "C" __global__ void halfaxpy(const unsigned short* x, unsigned short* y, float a, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = wl_half_fma(wl_half_from_float(a), x[i], y[i]);
}

extern "C" __global__ void half2axpy(const unsigned* x, unsigned* y, unsigned a2, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = wl_half2_fma(a2, x[i], y[i]);
}

// y = (x * x + 1 as halves), widened to float and halved: registers declared inside an asm block.
extern "C" __global__ void halfwiden(const unsigned short* x, float* y, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float r;
    asm("{\n\t"
        ".reg .f16 square, one;\n\t"
        ".reg .f32 wide;\n\t"
        "mov.b16 one, 0x3C00;\n\t"
        "mul.rn.f16 square, %1, %1;\n\t"
        "add.rn.f16 square, square, one;\n\t"
        "cvt.f32.f16 wide, square;\n\t"
        "mul.rn.f32 %0, wide, 0f3F000000;\n\t"
        "}"
        : "=f"(r)
        : "h"(x[i]));
    y[i] = r;
}
#endif
