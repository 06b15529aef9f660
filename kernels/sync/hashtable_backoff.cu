// Insertion into a chained hash table, one spin lock a bucket, with a wait after each failure that doubles (HT).
// Flags: -mllvm -disable-block-placement
#include "../warploom.cuh"

struct Entry {
    unsigned key, next;
};

const unsigned FIRST_NS = 32;  // the wait after the first failure

// As `hashtable_insert` of hashtable.cu. No wait is longer than `longest_ns`.
extern "C" __global__ void hashtable_insert_backoff(const unsigned* keys, unsigned count, Entry* pool,
                                                    unsigned* heads, unsigned* locks, unsigned buckets,
                                                    unsigned longest_ns) {
#pragma unroll 1
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        unsigned key = keys[i], bucket = key % buckets;
        pool[i].key = key;
        volatile unsigned* head = &heads[bucket];
        unsigned done = 0, wait_ns = min(FIRST_NS, longest_ns);
        while (!done) {
            if (atomicCAS(&locks[bucket], 0, 1) == 0) {
                __threadfence();
                pool[i].next = *head;
                *head = i;
                done = 1;
                __threadfence();
                atomicExch(&locks[bucket], 0);
            } else {
                asm volatile("nanosleep.u32 %0;" ::"r"(wait_ns));
                wait_ns = min(2 * wait_ns, longest_ns);
            }
            asm volatile(".pragma \"warploom.sib\";" : "+r"(done));
        }
    }
}
