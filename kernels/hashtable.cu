// Insertion into a chained hash table with one spin lock per bucket.
// Flags: -mllvm -disable-block-placement
#include "warploom.cuh"

// An entry of the table: its key, and the index of the next entry in the same bucket, or ~0.
struct Entry {
    unsigned key, next;
};

// Entry i of `pool` gets keys[i]. heads[b] is the index of bucket b's first entry, initially ~0; locks[b] is 0 when free.
extern "C" __global__ void hashtable_insert(const unsigned* keys, unsigned count, Entry* pool, unsigned* heads,
                                            unsigned* locks, unsigned buckets) {
#pragma unroll 1
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        unsigned key = keys[i], bucket = key % buckets;
        pool[i].key = key;
        // Threads of other SMs change it, so a cached value would be stale.
        volatile unsigned* head = &heads[bucket];
        unsigned done = 0;
        while (!done) {
            if (atomicCAS(&locks[bucket], 0, 1) == 0) {
                __threadfence();
                pool[i].next = *head;
                *head = i;
                done = 1;
                __threadfence();
                atomicExch(&locks[bucket], 0);
            }
            // Hides the flag's value: otherwise the compiler would move the section behind the loop. Also marks the spin loop.
            asm volatile(".pragma \"warploom.sib\";" : "+r"(done));
        }
    }
}
