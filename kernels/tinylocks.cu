// One kernel per primitive of tinylock.cuh on lock bits, with a checkable result and the cycles it took:
// `warploom work primitives`. The others are in primitives.cu.
// Flags: -mllvm -disable-block-placement -fno-unroll-loops
#include "primitives.cuh"

// ---- One thread per lock, no contention: the cost of taking and releasing. out[t] = rounds. ----

extern "C" __global__ void tiny_alone(unsigned* out, unsigned* cycles, unsigned rounds) {
    __shared__ unsigned words[32];
    unsigned t = threadIdx.x, *word = &words[t];
    *word = 0;
    unsigned start = now();
    for (unsigned i = 0; i < rounds; ++i) tl_put(word, tl_get(word) + 1);
    cycles[t] = now() - start;
    tl_waitlock(word);
    out[t] = *word;
    tl_unlock(word);
}

// ---- Two warps send a value back and forth (primitives.cuh). ----

struct TinyPair {
    unsigned* words;
    __device__ void hold(unsigned way) { tl_lock(&words[32 * way + threadIdx.x % 32]); }
    __device__ void give(unsigned way, unsigned value) { tl_put(&words[32 * way + threadIdx.x % 32], value); }
    __device__ unsigned take(unsigned way) { return tl_get(&words[32 * way + threadIdx.x % 32]); }
    __device__ void finish(unsigned way) { tl_unlock(&words[32 * way + threadIdx.x % 32]); }
};

// The lock bit is that of lane 0's word.
struct VotePair {
    volatile unsigned* words;
    __device__ unsigned* bit(unsigned way) { return (unsigned*)&words[32 * way]; }
    __device__ void hold(unsigned way) { tl_lock(bit(way)); }
    __device__ void give(unsigned way, unsigned value) {
        words[32 * way + threadIdx.x % 32] = value;
        tl_warp_put(bit(way), value);
    }
    __device__ unsigned take(unsigned way) {
        tl_warp_waitlock(bit(way));
        return words[32 * way + threadIdx.x % 32];
    }
    __device__ void finish(unsigned way) { tl_warp_put(bit(way), 0); }
};

extern "C" __global__ void tiny_pair(unsigned* out, unsigned* cycles, unsigned rounds) {
    __shared__ unsigned words[64];
    to_and_fro(TinyPair{words}, out, cycles, rounds);
}

extern "C" __global__ void vote_pair(unsigned* out, unsigned* cycles, unsigned rounds) {
    __shared__ unsigned words[64];
    to_and_fro(VotePair{words}, out, cycles, rounds);
}

// ---- One warp sends; up to 7 others receive and answer. out[t] = 1 + 2 + … + rounds; warp 0 sums all answers. ----

// Warp 0 sends 1, 2, 3 … and waits for all answers before the next. The answers use the many-to-one form.
template <bool SHARED>
static __device__ __forceinline__ void send_to_all(unsigned* out, unsigned* cycles, unsigned rounds) {
    __shared__ unsigned there[8 * 32], back[8 * 32];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, consumers = blockDim.x / 32 - 1;
    // A shared channel has two words, used alternately: the producer retakes one while the consumers use the other.
    if (warp == 0) {
        if (SHARED) {
            tl_lock(&there[lane]);
            tl_lock(&there[32 + lane]);
        } else {
            for (unsigned c = 0; c < consumers; ++c) tl_lock(&there[32 * c + lane]);
        }
    } else {
        tl_lock(&back[32 * (warp - 1) + lane]);
    }
    __syncthreads();
    unsigned start = now(), sum = 0;
    if (warp == 0) {
        for (unsigned i = 1; i <= rounds; ++i) {
            if (SHARED) {
                tl_put(&there[32 * (i % 2) + lane], i);
            } else {
                tl_put_each(&there[lane], consumers, 32, i);
            }
            sum += tl_get_each(&back[lane], consumers, 32);
            if (SHARED) tl_waitlock(&there[32 * (i % 2) + lane]);
        }
        cycles[threadIdx.x] = now() - start;
    } else {
        for (unsigned i = 1; i <= rounds; ++i) {
            unsigned value = SHARED ? tl_read(&there[32 * (i % 2) + lane]) : tl_get(&there[32 * (warp - 1) + lane]);
            sum += value;
            tl_put(&back[32 * (warp - 1) + lane], value);
        }
    }
    __syncthreads();
    if (warp == 0) {
        for (unsigned c = 0; c < (SHARED ? 2 : consumers); ++c) tl_unlock(&there[32 * c + lane]);
        for (unsigned c = 0; c < consumers; ++c) tl_unlock(&back[32 * c + lane]);
    }
    out[threadIdx.x] = sum;
}

extern "C" __global__ void tiny_shared_channel(unsigned* out, unsigned* cycles, unsigned rounds) {
    send_to_all<true>(out, cycles, rounds);
}

extern "C" __global__ void tiny_private_channels(unsigned* out, unsigned* cycles, unsigned rounds) {
    send_to_all<false>(out, cycles, rounds);
}

// ---- All threads of a block in one critical section, `rounds` times each. out[t] = rounds * threads. ----

extern "C" __global__ void tiny_section(unsigned* out, unsigned* cycles, unsigned rounds) {
    __shared__ unsigned count;
    if (threadIdx.x == 0) count = 0;
    __syncthreads();
    unsigned start = now();
    for (unsigned i = 0; i < rounds; ++i) tl_section(&count, [](unsigned value) { return value + 1; });
    __syncthreads();
    cycles[threadIdx.x] = now() - start;
    out[threadIdx.x] = count;
}
