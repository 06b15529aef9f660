#include "../warploom.cuh"

// Warp 0 takes lock 0, then lock 1; warp 1 the other way round.
extern "C" __global__ void two_locks(unsigned* locks, volatile unsigned* both) {
    if (threadIdx.x % 32 != 0) return;
    unsigned first = threadIdx.x / 32, second = 1 - first;
    while (atomicCAS(&locks[first], 0, 1) != 0) {
    }
    both[first] = 1;
    while (both[second] == 0) {
    }
    while (atomicCAS(&locks[second], 0, 1) != 0) {
    }
    atomicExch(&locks[second], 0);
    atomicExch(&locks[first], 0);
}

extern "C" __global__ void taken_twice(unsigned* lock) {
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    atomicExch(lock, 0);
}
