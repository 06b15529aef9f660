// Insertion into a chained hash table as in hashtable.cu, but with a delay after each failure that doubles; and without
// any lock (HT).
// Flags: -mllvm -disable-block-placement
#include "../warploom.cuh"

struct Entry {
    unsigned key, next;
};

const unsigned FIRST_WAIT = 32;  // after the first failure

// Puts the warp to sleep for so many nanoseconds: it takes no issue slots.
struct Sleep {
    static __device__ __forceinline__ void wait(unsigned time) { asm volatile("nanosleep.u32 %0;" ::"r"(time)); }
};

// Polls the clock for so many cycles, as was necessary before nanosleep.
struct Loop {
    static __device__ __forceinline__ void wait(unsigned time) {
        unsigned begin, now;
        asm volatile("mov.u32 %0, %%clock;" : "=r"(begin));
        do asm volatile("mov.u32 %0, %%clock;" : "=r"(now));
        while (now - begin < time);
    }
};

// Like `hashtable_insert` of hashtable.cu. No delay is longer than `longest`.
template <class Delay>
static __device__ __forceinline__ void insert(const unsigned* keys, unsigned count, Entry* pool, unsigned* heads,
                                              unsigned* locks, unsigned buckets, unsigned longest) {
#pragma unroll 1
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        unsigned key = keys[i], bucket = key % buckets;
        pool[i].key = key;
        volatile unsigned* head = &heads[bucket];
        unsigned done = 0, time = min(FIRST_WAIT, longest);
        while (!done) {
            if (atomicCAS(&locks[bucket], 0, 1) == 0) {
                __threadfence();
                pool[i].next = *head;
                *head = i;
                done = 1;
                __threadfence();
                atomicExch(&locks[bucket], 0);
            } else {
                Delay::wait(time);
                time = min(2 * time, longest);
            }
            asm volatile(".pragma \"warploom.sib\";" : "+r"(done));
        }
    }
}

extern "C" __global__ void hashtable_insert_sleep(const unsigned* keys, unsigned count, Entry* pool, unsigned* heads,
                                                  unsigned* locks, unsigned buckets, unsigned longest) {
    insert<Sleep>(keys, count, pool, heads, locks, buckets, longest);
}

extern "C" __global__ void hashtable_insert_delay(const unsigned* keys, unsigned count, Entry* pool, unsigned* heads,
                                                  unsigned* locks, unsigned buckets, unsigned longest) {
    insert<Loop>(keys, count, pool, heads, locks, buckets, longest);
}

// The insertion without its lock: concurrent insertions into one bucket lose entries.
extern "C" __global__ void hashtable_insert_unlocked(const unsigned* keys, unsigned count, Entry* pool, unsigned* heads,
                                                     unsigned buckets) {
#pragma unroll 1
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        unsigned key = keys[i], bucket = key % buckets;
        pool[i].key = key;
        volatile unsigned* head = &heads[bucket];
        pool[i].next = *head;
        *head = i;
    }
}
