// Three patterns of waiting for another thread, each with different demands on the scheduler.
#include "warploom.cuh"

// Safe on any SIMT machine: the lock is released in the iteration that took it.
extern "C" __global__ void spinlock_inc(unsigned* lock, unsigned* counter, unsigned rounds) {
#pragma unroll 1
    for (unsigned r = 0; r < rounds; ++r) {
        unsigned done = 0;
        while (!done) {
            if (atomicCAS(lock, 0, 1) == 0) {
                __threadfence();
                *(volatile unsigned*)counter = *(volatile unsigned*)counter + 1;
                __threadfence();
                atomicExch(lock, 0);
                done = 1;
            }
            // Hides the flag's value: otherwise the compiler would move the section behind the loop.
            asm volatile("" : "+r"(done));
        }
    }
}

// Needs lanes of a warp to progress independently: the winner leaves the loop before it releases the lock.
extern "C" __global__ void naivelock(unsigned* lock, unsigned* counter) {
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    __threadfence();
    *(volatile unsigned*)counter = *(volatile unsigned*)counter + 1;
    __threadfence();
    atomicExch(lock, 0);
}

// Needs the first and the last block to be resident at the same time.
extern "C" __global__ void crosscta(unsigned* flag, unsigned* out) {
    if (threadIdx.x != 0) return;
    unsigned last = gridDim.x - 1;
    volatile unsigned* shared_out = out;
    if (blockIdx.x == 0) {
        while (*(volatile unsigned*)flag == 0) {
        }
        __threadfence();
        shared_out[0] = shared_out[last] + 1;
    } else {
        shared_out[blockIdx.x] = 1000 + blockIdx.x;
        __threadfence();
        if (blockIdx.x == last) *(volatile unsigned*)flag = 1;
    }
}
