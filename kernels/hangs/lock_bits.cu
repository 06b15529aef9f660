#include "../warploom.cuh"

// Without debug data, where the compiler allows it, so that line tables name the calling line.
#ifndef WL_FN
#define WL_FN static __device__ __forceinline__
#endif

// Takes the lock bit of a word of shared memory if it is free: LDSLK.
WL_FN bool take(unsigned* word, unsigned* value) {
    unsigned taken, loaded;
    asm volatile("{ .reg .pred p; wl.ldslk.b32 %0|p, [%2]; selp.u32 %1, 1, 0, p; }"
                 : "=r"(loaded), "=r"(taken) : "l"(word) : "memory");
    *value = loaded;
    return taken != 0;
}

// Takes the bit without checking that it was free.
WL_FN void take_surely(unsigned* word) {
    asm volatile("wl.ldslk.b32 _, [%0];" ::"l"(word) : "memory");
}

// Waits for the bit.
WL_FN unsigned wait_for(unsigned* word) {
    unsigned value;
    while (!take(word, &value)) {
    }
    return value;
}

// Stores a value and frees the bit: STSUL.
WL_FN void put(unsigned* word, unsigned value) {
    asm volatile("wl.stsul.b32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}

// Lane 0 has the bit and is to free it, but waits for lane 1 of its own warp, which waits for the bit.
extern "C" __global__ void token_in_a_warp(unsigned* out) {
    __shared__ unsigned token[1];
    if (threadIdx.x == 0) take_surely(&token[0]);
    __syncthreads();
    if (threadIdx.x == 1) {
        unsigned value = wait_for(&token[0]);
        put(&token[0], value);
        out[0] = value;
    }
    if (threadIdx.x == 0) put(&token[0], 7);
}

// The token is put before any lane of the warp waits for it.
extern "C" __global__ void token_put_first(unsigned* out) {
    __shared__ unsigned token[1];
    if (threadIdx.x == 0) take_surely(&token[0]);
    __syncthreads();
    if (threadIdx.x == 0) put(&token[0], 7);
    if (threadIdx.x == 1) {
        unsigned value = wait_for(&token[0]);
        put(&token[0], value);
        out[0] = value;
    }
}

// The section inside the loop: the lane with the bit frees it before the others continue.
extern "C" __global__ void section_in_the_loop(unsigned* out) {
    __shared__ unsigned count[1];
    if (threadIdx.x == 0) count[0] = 0;
    __syncthreads();
    unsigned done = 0, value;
    while (!done) {
        if (take(&count[0], &value)) {
            put(&count[0], value + 1);
            done = 1;
        }
        // Hide that the lane with the bit leaves: otherwise the compiler would move the section behind the loop.
        asm volatile("" : "+r"(done));
    }
    __syncthreads();
    out[threadIdx.x] = count[0];
}

extern "C" __global__ void shared_naive_lock(unsigned* out) {
    __shared__ unsigned lock, count;
    if (threadIdx.x == 0) lock = count = 0;
    __syncthreads();
    while (atomicCAS(&lock, 0, 1) != 0) {
    }
    *(volatile unsigned*)&count = count + 1;
    atomicExch(&lock, 0);
    out[0] = count;
}

// Words 4096 bytes apart have one bit.
extern "C" __global__ void both_words(unsigned* out, unsigned apart) {
    __shared__ unsigned words[2048];
    unsigned first = wait_for(&words[threadIdx.x]);
    unsigned second = wait_for(&words[threadIdx.x + apart]);
    put(&words[threadIdx.x], first);
    put(&words[threadIdx.x + apart], second);
    out[threadIdx.x] = first + second + 1;
}

// Warp 0 waits at the barrier with the bits that warp 1 wants before it comes there.
extern "C" __global__ void alias_and_barrier(unsigned* out, unsigned apart) {
    __shared__ unsigned words[2048];
    unsigned* own = &words[threadIdx.x % 32 + threadIdx.x / 32 * apart];
    wait_for(own);
    __syncthreads();
    put(own, threadIdx.x);
    out[threadIdx.x] = *own;
}

// Warp 1 is to wait for what warp 0 puts, but nothing keeps it from being the first.
extern "C" __global__ void taken_too_late(unsigned* out, bool barrier) {
    __shared__ unsigned words[32];
    unsigned lane = threadIdx.x % 32;
    if (threadIdx.x < 32) {
        for (int i = 0; i < 100; ++i) asm volatile("");
        take_surely(&words[lane]);
    }
    if (barrier) __syncthreads();
    if (threadIdx.x < 32) {
        put(&words[lane], lane + 1);
    } else {
        unsigned value = wait_for(&words[lane]);
        for (int i = 0; i < 200; ++i) asm volatile("");
        put(&words[lane], value);
        out[lane] = value;
    }
}

// Whoever finds nothing to do leaves with the bit.
extern "C" __global__ void never_freed(unsigned* out, unsigned todo) {
    __shared__ unsigned work[1];
    if (threadIdx.x % 32 != 0) return;
    unsigned value = wait_for(&work[0]);
    if (value >= todo) return;
    put(&work[0], value + 1);
    out[0] = value + 1;
}
