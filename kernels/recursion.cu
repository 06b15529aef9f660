// Real recursion: calls whose depth depends on the data.
#include "warploom.cuh"

__device__ __noinline__ unsigned fib_of(unsigned n) {
    return n < 2 ? n : fib_of(n - 1) + fib_of(n - 2);
}

__device__ __noinline__ unsigned ackermann_of(unsigned m, unsigned n) {
    if (m == 0) return n + 1;
    if (n == 0) return ackermann_of(m - 1, 1);
    return ackermann_of(m - 1, ackermann_of(m, n - 1));
}

extern "C" __global__ void fib(const unsigned* in, unsigned* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = fib_of(in[i]);
}

extern "C" __global__ void ackermann(const unsigned* m, const unsigned* k, unsigned* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = ackermann_of(m[i], k[i]);
}
