#include "../warploom.cuh"

extern "C" __global__ void naive_lock(unsigned* lock, volatile unsigned* count) {
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    *count = *count + 1;
    __threadfence();
    atomicExch(lock, 0);
}
