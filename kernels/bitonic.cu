// Each block sorts its own segment, ascending, in dynamic shared memory.
#include "warploom.cuh"

extern __shared__ unsigned keys[];

extern "C" __global__ void bitonic(unsigned* data, unsigned n_per_block) {
    unsigned* segment = data + (size_t)blockIdx.x * n_per_block;
    unsigned t = threadIdx.x;
    keys[t] = segment[t];
    keys[t + blockDim.x] = segment[t + blockDim.x];

    for (unsigned run = 2; run <= n_per_block; run *= 2) {
        for (unsigned gap = run / 2; gap > 0; gap /= 2) {
            __syncthreads();
            unsigned low = 2 * t - (t & (gap - 1)), high = low + gap;
            bool ascending = (low & run) == 0;
            unsigned a = keys[low], b = keys[high];
            if ((a > b) == ascending) {
                keys[low] = b;
                keys[high] = a;
            }
        }
    }
    __syncthreads();
    segment[t] = keys[t];
    segment[t + blockDim.x] = keys[t + blockDim.x];
}
