// Barriers in shared memory (mbarrier), as primitives: `warploom work primitives`. Any GPU since Ampere has them.
// Target: sm_80 71
#include "../primitives.cuh"

// ---- mbarrier: a 64-bit word that counts arrivals and has phases. ----

static __device__ __forceinline__ void mbarrier_init(unsigned long long* barrier, unsigned arrivals) {
    asm volatile("{ .reg .u64 a; cvta.to.shared.u64 a, %0; mbarrier.init.shared.b64 [a], %1; }"
                 ::"l"(barrier), "r"(arrivals) : "memory");
}

// Arrives and goes on. What the thread wrote before is seen by those who wait.
static __device__ __forceinline__ void mbarrier_arrive(unsigned long long* barrier) {
    asm volatile("{ .reg .b64 state; .reg .u64 a; cvta.to.shared.u64 a, %0; mbarrier.arrive.shared.b64 state, [a]; }"
                 ::"l"(barrier) : "memory");
}

// Waits for the end of an even (0) or an odd (1) phase.
static __device__ __forceinline__ void mbarrier_wait(unsigned long long* barrier, unsigned parity) {
    unsigned ended;
    do {
        asm volatile("{ .reg .pred p; .reg .u64 a; cvta.to.shared.u64 a, %1;\n"
                     "mbarrier.test_wait.parity.shared.b64 p, [a], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(ended) : "l"(barrier), "r"(parity) : "memory");
    } while (!ended);
}

// ---- Two warps send a value back and forth (primitives.cuh). ----

struct MbarrierPair {
    volatile unsigned* words;
    unsigned long long* barriers;
    unsigned parity;
    __device__ void hold(unsigned) {}
    __device__ void give(unsigned way, unsigned value) {
        words[32 * way + threadIdx.x % 32] = value;
        mbarrier_arrive(&barriers[way]);
    }
    __device__ unsigned take(unsigned way) {
        mbarrier_wait(&barriers[way], parity);
        parity ^= 1;
        return words[32 * way + threadIdx.x % 32];
    }
    __device__ void finish(unsigned) {}
};

extern "C" __global__ void mbarrier_pair(unsigned* out, unsigned* cycles, unsigned rounds) {
    __shared__ unsigned words[64];
    __shared__ unsigned long long barriers[2];
    if (threadIdx.x < 2) mbarrier_init(&barriers[threadIdx.x], 32);
    __syncthreads();
    to_and_fro(MbarrierPair{words, barriers, 0}, out, cycles, rounds);
}

// ---- All threads of a block meet. out[t] = rounds. ----

extern "C" __global__ void mbarrier_block(unsigned* out, unsigned* cycles, unsigned rounds) {
    __shared__ unsigned long long barrier;
    if (threadIdx.x == 0) mbarrier_init(&barrier, blockDim.x);
    __syncthreads();
    unsigned start = now(), passed = 0;
    for (unsigned i = 0; i < rounds; ++i) {
        mbarrier_arrive(&barrier);
        mbarrier_wait(&barrier, i & 1);
        ++passed;
    }
    cycles[threadIdx.x] = now() - start;
    out[threadIdx.x] = passed;
}
