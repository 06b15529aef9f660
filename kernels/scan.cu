// Inclusive prefix sums of each block's 256 elements, and each block's total.
#include "warploom.cuh"

const unsigned BLOCK = 256;

extern "C" __global__ void __launch_bounds__(256)
scan(const unsigned* in, unsigned* out, unsigned* block_sums, unsigned n) {
    __shared__ unsigned sums[2][BLOCK];
    unsigned t = threadIdx.x, i = blockIdx.x * BLOCK + t, side = 0;

    sums[side][t] = i < n ? in[i] : 0;
    __syncthreads();
    for (unsigned reach = 1; reach < BLOCK; reach *= 2) {
        unsigned v = sums[side][t];
        if (t >= reach) v += sums[side][t - reach];
        side ^= 1;
        sums[side][t] = v;
        __syncthreads();
    }
    if (i < n) out[i] = sums[side][t];
    if (t == BLOCK - 1) block_sums[blockIdx.x] = sums[side][t];
}
