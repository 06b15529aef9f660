// What the kernels of primitives.cu and tinylocks.cu share.
#pragma once
#include "warploom.cuh"
#include "tinylock.cuh"

static __device__ __forceinline__ unsigned now() {
    unsigned cycles;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(cycles)::"memory");
    return cycles;
}

// ---- Two warps send a value back and forth, adding one each time. out[t] = 2 * rounds, by warp 0. ----

// `Pair` is a channel in both directions, built on one of the primitives. The giving side calls `hold` before the barrier,
// the taking side calls `finish` at the end.
template <class Pair>
static __device__ __forceinline__ void to_and_fro(Pair pair, unsigned* out, unsigned* cycles, unsigned rounds) {
    unsigned warp = threadIdx.x / 32, value = 0;
    pair.hold(warp);
    __syncthreads();
    unsigned start = now();
    if (warp == 0) {
        for (unsigned i = 0; i < rounds; ++i) {
            pair.give(0, value + 1);
            value = pair.take(1);
        }
        cycles[threadIdx.x] = now() - start;
        out[threadIdx.x] = value;
    } else {
        for (unsigned i = 0; i < rounds; ++i) pair.give(1, pair.take(0) + 1);
    }
    pair.finish(1 - warp);
}
