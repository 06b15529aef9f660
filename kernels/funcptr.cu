// Indirect calls: each thread picks its operation from a table of device functions.
#include "warploom.cuh"

typedef int (*Operation)(int value, int index);

__device__ __noinline__ int add_index(int value, int index) { return value + index; }
__device__ __noinline__ int negate(int value, int) { return -value; }
__device__ __noinline__ int times_three(int value, int) { return 3 * value; }
__device__ __noinline__ int collatz_steps(int value, int) {
    unsigned v = (unsigned)value % 1000 + 1;
    int steps = 0;
    for (; v != 1; ++steps) v = v % 2 ? 3 * v + 1 : v / 2;
    return steps;
}

__device__ Operation operations[4] = {add_index, negate, times_three, collatz_steps};

extern "C" __global__ void funcptr(const int* in, int* out, const unsigned* which, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = operations[which[i] % 4](in[i], (int)i);
}
