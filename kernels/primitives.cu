// One kernel per primitive of tinylock.cuh that runs on any GPU, with a checkable result and the cycles it took:
// `warploom work primitives`. Those on lock bits are in tinylocks.cu.
// Flags: -mllvm -disable-block-placement -fno-unroll-loops
#include "primitives.cuh"

// ---- One thread per lock, no contention: the cost of taking and releasing. out[t] = rounds. ----

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

// ---- Two warps send a value back and forth (primitives.cuh). ----

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
        warp_spin_unlock(&mutexes[way]);
    }
    __device__ unsigned take(unsigned way) {
        warp_spin_lock(&mutexes[way]);
        return words[32 * way + threadIdx.x % 32];
    }
    __device__ void finish(unsigned) {}
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

extern "C" __global__ void barrier_pair(unsigned* out, unsigned* cycles, unsigned rounds) {
    __shared__ unsigned words[64];
    to_and_fro(BarrierPair{words}, out, cycles, rounds);
}

// ---- All threads of a block in one critical section, `rounds` times each. out[t] = rounds * threads. ----

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

// ---- Barriers of the grid. In each turn a block writes a word and reads its neighbour's of the turn before: out[b] =
// rounds if none was early or late. `words` is zero: the barrier's words, then one word per block from 8192 on. ----

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
