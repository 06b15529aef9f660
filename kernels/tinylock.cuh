// Synchronization for kernel writers: tiny locks on the lock bits of Fermi's shared memory (ICS'15), and alternatives.
// Include it after warploom.cuh (clang) or alone (nvcc); it needs no library. `docs/synchronization.md` says when to use
// which, with measured costs; `primitives.cu` has a kernel for each.
//
// The tl_* functions are Warploom's wl.ldslk and wl.stsul (docs/ptx.md) and run on chips with lock bits. All words of
// shared memory whose addresses agree in bits 2 to 11 share a lock bit, so at most 1024 words per SM can be locked at the
// same time. All bits are free when a kernel begins. The other functions run anywhere.
#pragma once

#ifndef TL_FN
#ifdef __clang__
// Without debug data, so that line tables name the calling line.
#define TL_FN static __device__ __attribute__((always_inline, nodebug)) inline
#else
#define TL_FN static __device__ __forceinline__
#endif
#endif

// ---- Tiny locks (Listing 4): no memory, no register, one instruction. ----

// Lock: takes the bit without checking that it was free. For bits that no other thread can hold: a producer's own, before
// the barrier that begins the phase. 1 instruction.
TL_FN void tl_lock(unsigned* word) { asm volatile("wl.ldslk.b32 _, [%0];" ::"l"(word) : "memory"); }

// Waitlock: returns when it has the bit. Must not be used by lanes of one warp that want the same bit, nor for a bit that
// a lane of the same warp is to free: those need tl_section. 2 instructions per iteration.
TL_FN void tl_waitlock(unsigned* word) {
    asm volatile("{ .reg .pred got;\n"
                 "AGAIN: wl.ldslk.b32 _|got, [%0];\n"
                 "@!got bra AGAIN; }" ::"l"(word) : "memory");
}

// One attempt: returns whether it got the bit, and loads the word.
TL_FN bool tl_try(unsigned* word, unsigned* value) {
    unsigned got, loaded;
    asm volatile("{ .reg .pred p; wl.ldslk.b32 %0|p, [%2]; selp.u32 %1, 1, 0, p; }"
                 : "=r"(loaded), "=r"(got) : "l"(word) : "memory");
    *value = loaded;
    return got != 0;
}

// Unlock: frees the bit and stores 0 in the word. The bit cannot be freed without a store. 1 instruction.
TL_FN void tl_unlock(unsigned* word) { asm volatile("wl.stsul.b32 [%0], 0;" ::"l"(word) : "memory"); }

// ---- Producer and consumer in different warps (Listing 6): the word is the channel; its bit is taken while empty. ----
// The producer must take the bit (tl_lock) before the barrier after which consumers may look.

// The producer stores a value and frees the bit with the same store. 1 instruction.
TL_FN void tl_put(unsigned* word, unsigned value) {
    asm volatile("wl.stsul.b32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}

// One to one: waits for the value and keeps the bit, so the channel is empty again until the next tl_put. The load that
// finds the bit free also brings the value. 2 instructions per iteration.
TL_FN unsigned tl_get(unsigned* word) {
    unsigned value;
    asm volatile("{ .reg .pred got;\n"
                 "AGAIN: wl.ldslk.b32 %0|got, [%1];\n"
                 "@!got bra AGAIN; }" : "=r"(value) : "l"(word) : "memory");
    return value;
}

// One to many through one channel: waits for the value and puts it back for the others. Needs few bits, but consumers
// that arrive at the same time wait for each other. 3 instructions.
TL_FN unsigned tl_read(unsigned* word) {
    unsigned value = tl_get(word);
    tl_put(word, value);
    return value;
}

// One to many through separate channels, `stride` words apart: consumers do not contend. One bit per consumer.
TL_FN void tl_put_each(unsigned* words, unsigned count, unsigned stride, unsigned value) {
    for (unsigned i = 0; i < count; ++i) tl_put(words + i * stride, value);
}

// Many to one: waits for all producers, each with its own channel, and returns the sum of their values.
TL_FN unsigned tl_get_each(unsigned* words, unsigned count, unsigned stride) {
    unsigned sum = 0;
    for (unsigned i = 0; i < count; ++i) sum += tl_get(words + i * stride);
    return sum;
}

// ---- Lanes of one warp (Listing 8): the lane that gets the bit frees it inside the loop. ----

// Runs `section` on the word's value while holding the bit, and stores its result. Safe for any threads, including
// lanes of one warp on one bit, which then run one after another.
template <class Section>
TL_FN void tl_section(unsigned* word, Section section) {
    unsigned done = 0, value;
    while (!done) {
        if (tl_try(word, &value)) {
            tl_put(word, section(value));
            done = 1;
        }
        // Hide that the lane with the bit leaves: otherwise the compiler would move the section behind the loop.
        asm volatile("" : "+r"(done));
    }
}

// ---- One bit per warp, by a vote (Listing 9): `word` is the same for all 32 lanes. ----

// Waits until one of the lanes has the bit. All lanes continue together. 3 instructions per iteration.
TL_FN void tl_warp_waitlock(unsigned* word) {
    asm volatile("{ .reg .pred got, any;\n"
                 "AGAIN: wl.ldslk.b32 _|got, [%0];\n"
                 "vote.sync.any.pred any, got, -1;\n"
                 "@!any bra AGAIN; }" ::"l"(word) : "memory");
}

// Lane 0 frees the bit for all lanes, after their earlier stores. 3 instructions. tl_lock takes the bit.
TL_FN void tl_warp_put(unsigned* word, unsigned value) {
    asm volatile("{ .reg .pred first; .reg .b32 lane;\n"
                 "mov.u32 lane, %%laneid;\n"
                 "setp.eq.u32 first, lane, 0;\n"
                 "@first wl.stsul.b32 [%0], %1; }" ::"l"(word), "r"(value) : "memory");
}

// ---- Baselines. ----

// A spin lock in a word of memory, 0 when free (Listing 2). In shared memory of a chip with lock bits an iteration takes 7
// instructions and a release 4. Not for lanes of one warp on one lock.
TL_FN void spin_lock(unsigned* mutex) {
    while (atomicCAS(mutex, 0, 1) != 0) {
    }
}
TL_FN void spin_unlock(unsigned* mutex) { atomicExch(mutex, 0); }

// The critical-section form of the spin lock (Listing 7), safe for any threads.
template <class Section>
TL_FN void spin_section(unsigned* mutex, Section section) {
    unsigned done = 0;
    while (!done) {
        if (atomicCAS(mutex, 0, 1) == 0) {
            section();
            __threadfence_block();
            atomicExch(mutex, 0);
            done = 1;
        }
        asm volatile("" : "+r"(done));
    }
}

// A spin lock that lane 0 takes and releases for its warp: one word per warp, at the price of a branch around each call.
// If threads are scheduled independently, the other lanes must wait for lane 0.
TL_FN void warp_spin_lock(unsigned* mutex) {
    if (threadIdx.x % 32 == 0) spin_lock(mutex);
    __syncwarp();
}
TL_FN void warp_spin_unlock(unsigned* mutex) {
    __syncwarp();
    if (threadIdx.x % 32 == 0) spin_unlock(mutex);
}

// Named barriers (Listing 12), 16 per block: the consumer syncs, the producer arrives and continues. `threads` counts
// both and must be a multiple of 32. 1 instruction each.
TL_FN void barrier_sync(unsigned id, unsigned threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
TL_FN void barrier_arrive(unsigned id, unsigned threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// ---- Barriers of a whole grid (Xiao and Feng): every block must be resident. `turn` is 1, 2, 3 … for the first, second,
// third barrier of a launch; all words must be zero before the launch. ----

TL_FN unsigned grid_read(const unsigned* word) { return *(const volatile unsigned*)word; }

// Simple: all blocks add to one counter. `count` is one word.
TL_FN void grid_simple(unsigned* count, unsigned turn) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(count, 1);
        while (grid_read(count) < turn * gridDim.x) {
        }
        __threadfence();
    }
    __syncthreads();
}

// Tree: each group of blocks has its own counter, 32 words apart, and the last block of a group adds to the root, which
// is the first word. Needs 32 * (1 + ceil(blocks / group)) words.
TL_FN void grid_tree(unsigned* counts, unsigned group, unsigned turn) {
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned groups = (gridDim.x + group - 1) / group, mine = blockIdx.x / group;
        unsigned size = mine + 1 < groups ? group : gridDim.x - mine * group;
        __threadfence();
        if (atomicAdd(&counts[32 * (1 + mine)], 1) + 1 == turn * size) {
            __threadfence();
            atomicAdd(&counts[0], 1);
        }
        while (grid_read(&counts[0]) < turn * groups) {
        }
        __threadfence();
    }
    __syncthreads();
}

// Lock-free: every block writes its own word; block 0 polls them all, one thread per block, and answers. Two words per
// block, no atomics. If block 0 has fewer threads than the grid has blocks, each thread handles several.
TL_FN void grid_lock_free(unsigned* come, unsigned* go, unsigned turn) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        *(volatile unsigned*)&come[blockIdx.x] = turn;
    }
    if (blockIdx.x == 0) {
        for (unsigned b = threadIdx.x; b < gridDim.x; b += blockDim.x)
            while (grid_read(&come[b]) < turn) {
            }
        __syncthreads();
        for (unsigned b = threadIdx.x; b < gridDim.x; b += blockDim.x) *(volatile unsigned*)&go[b] = turn;
    }
    if (threadIdx.x == 0) {
        while (grid_read(&go[blockIdx.x]) < turn) {
        }
        __threadfence();
    }
    __syncthreads();
}
