// Double precision: fused multiply-add, division, square root, comparisons and conversions.
// Every rounding step is spelled out, so the result is the same bits on any correct machine.
#include "warploom.cuh"

extern "C" __global__ void dpoly(const double* x, double* y, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double v = x[i];
    double p = __fma_rn(__fma_rn(__fma_rn(0.25, v, -1.5), v, 3.0), v, -0.125);
    double q = __ddiv_rn(p, __fma_rn(v, v, 1.0));
    double r = q < 0.0 ? -__dsqrt_rn(-q) : __dsqrt_rn(q);
    if (v > 2.0) r = __dadd_rn(r, (double)(int)v);
    if (v < -2.0) r = __dadd_rn(r, (double)(float)q);
    if (v != v) r = -1.0;
    y[i] = __dadd_rn(r, __dmul_rn((double)(unsigned long long)i, 0.5));
}
