#include "../warploom.cuh"

extern "C" __global__ void never_set(volatile unsigned* flag, unsigned* out) {
    while (*flag == 0) {
    }
    out[threadIdx.x] = 1;
}

extern "C" __global__ void sleeping(volatile unsigned* flag, unsigned* out) {
    while (*flag < 2) asm volatile("nanosleep.u32 500;");
    out[threadIdx.x] = 1;
}

// Whoever finds the list empty returns without releasing the lock.
extern "C" __global__ void not_released(unsigned* lock, volatile unsigned* length) {
    if (threadIdx.x % 32 != 0) return;
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    if (*length == 0) return;
    *length = *length - 1;
    __threadfence();
    atomicExch(lock, 0);
}

// A lock in shared memory that the first thread takes for good.
extern "C" __global__ void shared_lock(unsigned* out) {
    __shared__ unsigned lock;
    if (threadIdx.x == 0) {
        lock = 0;
        while (atomicCAS(&lock, 0, 1) != 0) {
        }
    }
    __syncthreads();
    if (threadIdx.x == 0 || threadIdx.x % 32 != 0) return;
    while (atomicCAS(&lock, 0, 1) != 0) {
    }
    out[threadIdx.x / 32] = 1;
}
