// Sum of n values: registers, then shuffles within each warp, then shared memory, then one atomic.
#include "warploom.cuh"

__device__ __forceinline__ unsigned warp_sum(unsigned v) {
    for (unsigned step = 16; step > 0; step /= 2) v += __shfl_down_sync(0xffffffffu, v, step);
    return v;
}

extern "C" __global__ void reduce(const unsigned* in, unsigned* out, unsigned n) {
    __shared__ unsigned partial[32];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;

    unsigned sum = 0;
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += in[i];

    sum = warp_sum(sum);
    if (lane == 0) partial[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        sum = warp_sum(lane < warps ? partial[lane] : 0);
        if (lane == 0) atomicAdd(out, sum);
    }
}
