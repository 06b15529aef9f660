// A kernel for every primitive of tinylock.cuh, with a result that can be checked and the cycles it took: `warploom work primitives`.
// Flags: -mllvm -disable-block-placement -fno-unroll-loops
#include "warploom.cuh"
#include "tinylock.cuh"

static __device__ __forceinline__ unsigned now() {
    unsigned cycles;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(cycles)::"memory");
    return cycles;
}

// ---- One thread on each lock, nobody else: what taking and releasing costs. out[t] = rounds. ----

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

extern "C" __global__ void spin_alone(unsigned* out, unsigned* cycles, unsigned rounds) {
    __shared__ unsigned words[32], mutexes[32];
    unsigned t = threadIdx.x;
    volatile unsigned* word = &words[t];
    *word = mutexes[t] = 0;
    unsigned start = now();
    for (unsigned i = 0; i < rounds; ++i) {
        spin_lock(&mutexes[t]);
        *word = *word + 1;
        spin_unlock(&mutexes[t]);
    }
    cycles[t] = now() - start;
    out[t] = *word;
}

// ---- Two warps send a value to and fro, one more each time. out[t] = 2 * rounds, by warp 0. ----

// Both directions of a channel, as one of the schemes makes it. The side that gives calls `hold` before the barrier, the one that
// takes `finish` in the end.
struct TinyPair {
    unsigned* words;
    __device__ void hold(unsigned way) { tl_lock(&words[32 * way + threadIdx.x % 32]); }
    __device__ void give(unsigned way, unsigned value) { tl_put(&words[32 * way + threadIdx.x % 32], value); }
    __device__ unsigned take(unsigned way) { return tl_get(&words[32 * way + threadIdx.x % 32]); }
    __device__ void finish(unsigned way) { tl_unlock(&words[32 * way + threadIdx.x % 32]); }
};

struct SpinPair {
    volatile unsigned* words;
    unsigned* mutexes;
    __device__ void hold(unsigned way) { spin_lock(&mutexes[32 * way + threadIdx.x % 32]); }
    __device__ void give(unsigned way, unsigned value) {
        words[32 * way + threadIdx.x % 32] = value;
        spin_unlock(&mutexes[32 * way + threadIdx.x % 32]);
    }
    __device__ unsigned take(unsigned way) {
        spin_lock(&mutexes[32 * way + threadIdx.x % 32]);
        return words[32 * way + threadIdx.x % 32];
    }
    __device__ void finish(unsigned) {}
};

struct WarpSpinPair {
    volatile unsigned* words;
    unsigned* mutexes;
    __device__ void hold(unsigned way) { warp_spin_lock(&mutexes[way]); }
    __device__ void give(unsigned way, unsigned value) {
        words[32 * way + threadIdx.x % 32] = value;
        __syncwarp();
        warp_spin_unlock(&mutexes[way]);
    }
    __device__ unsigned take(unsigned way) {
        warp_spin_lock(&mutexes[way]);
        __syncwarp();
        return words[32 * way + threadIdx.x % 32];
    }
    __device__ void finish(unsigned) {}
};

// The bit of a word that lane 0 has for itself: its own value.
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

struct BarrierPair {
    volatile unsigned* words;
    __device__ void hold(unsigned) {}
    __device__ void give(unsigned way, unsigned value) {
        words[32 * way + threadIdx.x % 32] = value;
        barrier_arrive(1 + way, 64);
    }
    __device__ unsigned take(unsigned way) {
        barrier_sync(1 + way, 64);
        return words[32 * way + threadIdx.x % 32];
    }
    __device__ void finish(unsigned) {}
};

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

extern "C" __global__ void tiny_pair(unsigned* out, unsigned* cycles, unsigned rounds) {
    __shared__ unsigned words[64];
    to_and_fro(TinyPair{words}, out, cycles, rounds);
}

extern "C" __global__ void spin_pair(unsigned* out, unsigned* cycles, unsigned rounds) {
    __shared__ unsigned words[64], mutexes[64];
    mutexes[threadIdx.x] = 0;
    __syncthreads();
    to_and_fro(SpinPair{words, mutexes}, out, cycles, rounds);
}

extern "C" __global__ void warp_spin_pair(unsigned* out, unsigned* cycles, unsigned rounds) {
    __shared__ unsigned words[64], mutexes[2];
    if (threadIdx.x < 2) mutexes[threadIdx.x] = 0;
    __syncthreads();
    to_and_fro(WarpSpinPair{words, mutexes}, out, cycles, rounds);
}

extern "C" __global__ void vote_pair(unsigned* out, unsigned* cycles, unsigned rounds) {
    __shared__ unsigned words[64];
    to_and_fro(VotePair{words}, out, cycles, rounds);
}

extern "C" __global__ void barrier_pair(unsigned* out, unsigned* cycles, unsigned rounds) {
    __shared__ unsigned words[64];
    to_and_fro(BarrierPair{words}, out, cycles, rounds);
}

// ---- One warp sends, the others, 7 at most, receive and answer. out[t] = 1 + 2 + … + rounds, for warp 0 that of all answers. ----

// Warp 0 sends 1, 2, 3 … and waits for all answers before the next. The answers are the many-to-one form.
template <bool SHARED>
static __device__ __forceinline__ void send_to_all(unsigned* out, unsigned* cycles, unsigned rounds) {
    __shared__ unsigned there[8 * 32], back[8 * 32];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, consumers = blockDim.x / 32 - 1;
    // A shared channel has two words, used in turn: the producer takes the other one again while nobody looks at it.
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

extern "C" __global__ void spin_section(unsigned* out, unsigned* cycles, unsigned rounds) {
    __shared__ unsigned mutex, word;
    volatile unsigned* count = &word;
    if (threadIdx.x == 0) mutex = *count = 0;
    __syncthreads();
    unsigned start = now();
    for (unsigned i = 0; i < rounds; ++i) spin_section(&mutex, [=] { *count = *count + 1; });
    __syncthreads();
    cycles[threadIdx.x] = now() - start;
    out[threadIdx.x] = *count;
}

// ---- The barrier of a block. out[t] = rounds. ----

extern "C" __global__ void block_barrier(unsigned* out, unsigned* cycles, unsigned rounds) {
    unsigned start = now(), passed = 0;
    for (unsigned i = 0; i < rounds; ++i) {
        __syncthreads();
        ++passed;
    }
    cycles[threadIdx.x] = now() - start;
    out[threadIdx.x] = passed;
}

// ---- Barriers of the grid. Each turn a block writes a word and reads its neighbour's of the turn before: out[b] = rounds if none was early
// or late. `words` is zero: what the barrier needs, then a word a block from 8192 on. ----

template <class Barrier>
static __device__ __forceinline__ void all_blocks(Barrier barrier, unsigned* out, unsigned* cycles, unsigned rounds,
                                                  unsigned* words) {
    volatile unsigned* said = words + 8192;
    unsigned right = 0, start = now();
    for (unsigned turn = 1; turn <= rounds; ++turn) {
        if (threadIdx.x == 0) said[blockIdx.x] = turn;
        barrier(2 * turn - 1);
        if (threadIdx.x == 0) right += said[(blockIdx.x + 1) % gridDim.x] == turn;
        barrier(2 * turn);
    }
    if (threadIdx.x == 0) {
        cycles[blockIdx.x] = now() - start;
        out[blockIdx.x] = right;
    }
}

extern "C" __global__ void grid_simple(unsigned* out, unsigned* cycles, unsigned rounds, unsigned* words) {
    all_blocks([=](unsigned turn) { grid_simple(words, turn); }, out, cycles, rounds, words);
}

extern "C" __global__ void grid_tree(unsigned* out, unsigned* cycles, unsigned rounds, unsigned* words) {
    all_blocks([=](unsigned turn) { grid_tree(words, 4, turn); }, out, cycles, rounds, words);
}

extern "C" __global__ void grid_lock_free(unsigned* out, unsigned* cycles, unsigned rounds, unsigned* words) {
    all_blocks([=](unsigned turn) { grid_lock_free(words, words + 4096, turn); }, out, cycles, rounds, words);
}
