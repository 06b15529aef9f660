// A semaphore without permits: whoever fails gives back what it took, and memory changes for ever.
#include "../warploom.cuh"

extern "C" __global__ void semaphore(unsigned* permits, unsigned* out) {
    if (threadIdx.x % 32 != 0) return;
    while ((int)atomicAdd(permits, -1u) <= 0) atomicAdd(permits, 1u);
    out[blockIdx.x] = 1;
}
