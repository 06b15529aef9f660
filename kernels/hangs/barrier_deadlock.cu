#include "../warploom.cuh"

// Four warps are counted, one of them leaves.
extern "C" __global__ void left_early(unsigned* out) {
    if (threadIdx.x / 32 == 3) return;
    asm volatile("bar.sync 1, 128;" ::: "memory");
    out[threadIdx.x] = 1;
}

// Each half of the block waits at a barrier that is to count both.
extern "C" __global__ void two_barriers(unsigned* out) {
    if (threadIdx.x < 64)
        asm volatile("bar.sync 1, 128;" ::: "memory");
    else
        asm volatile("bar.sync 2, 128;" ::: "memory");
    out[threadIdx.x] = 1;
}

// The lanes of warp 0 part ways: on a SIMT stack the warp comes twice, but warp 1 only once.
extern "C" __global__ void divergent(unsigned* out) {
    if (threadIdx.x < 16)
        asm volatile("bar.sync 1, 64;" ::: "memory");
    else
        asm volatile("bar.sync 1, 64;" ::: "memory");
    out[threadIdx.x] = 1;
}

// Thread 0 waits at the second barrier with the lock that thread 32 wants before it comes there.
extern "C" __global__ void lock_and_barrier(unsigned* lock) {
    if (threadIdx.x == 0)
        while (atomicCAS(lock, 0, 1) != 0) {
        }
    __syncthreads();
    if (threadIdx.x == 32)
        while (atomicCAS(lock, 0, 1) != 0) {
        }
    __syncthreads();
    if (threadIdx.x == 0) atomicExch(lock, 0);
}
