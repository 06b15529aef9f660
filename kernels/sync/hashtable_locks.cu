// Insertion into a chained hash table as in hashtable.cu, but with locks for high contention, and with none (HT).
// Chains are right when the launch ends. A kernel that also reads them while others insert needs acquire loads.
// Flags: -mllvm -disable-block-placement
#include "../warploom.cuh"

struct Entry {
    unsigned key, next;
};

const unsigned NONE = ~0u;

// An upper bound of the time from one thread's turn to the next one's, in ns: what a waiting thread can sleep for each
// thread ahead of it.
const unsigned TURN = 256;

static __device__ __forceinline__ void sleep(unsigned ns) { asm volatile("nanosleep.u32 %0;" ::"r"(ns)); }

// Inside the critical section: entries `first` to `last` are already a chain.
static __device__ __forceinline__ void push(Entry* pool, volatile unsigned* head, unsigned first, unsigned last) {
    __threadfence();
    pool[last].next = *head;
    *head = first;
    __threadfence();
}

// A ticket lock: threads go in the order in which they came. One atomic each; then they poll with plain loads, less
// often the longer their turn is away. `longest` bounds a sleep.
struct Tickets {
    unsigned next, serving;
};

extern "C" __global__ void hashtable_insert_ticket(const unsigned* keys, unsigned count, Entry* pool, unsigned* heads,
                                                   Tickets* locks, unsigned buckets, unsigned longest) {
#pragma unroll 1
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        unsigned key = keys[i], bucket = key % buckets;
        pool[i].key = key;
        volatile unsigned* serving = &locks[bucket].serving;
        unsigned mine = atomicAdd(&locks[bucket].next, 1), done = 0;
        while (!done) {
            unsigned ahead = mine - *serving;
            if (ahead == 0) {
                push(pool, &heads[bucket], i, i);
                done = 1;
                *serving = mine + 1;
            } else if (ahead > 1) {
                sleep(min((ahead - 1) * TURN, longest));
            }
            asm volatile(".pragma \"warploom.sib\";" : "+r"(done));
        }
    }
}

// A queue lock (Mellor-Crummey and Scott): a thread polls a word of its own until its predecessor writes it. Entry i's
// thread has node i. tails[b] is the last node of lock b's queue, or NONE.
struct Node {
    unsigned waits, next;
};

extern "C" __global__ void hashtable_insert_queue(const unsigned* keys, unsigned count, Entry* pool, unsigned* heads,
                                                  unsigned* tails, Node* nodes, unsigned buckets) {
#pragma unroll 1
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        unsigned key = keys[i], bucket = key % buckets;
        pool[i].key = key;
        volatile Node* mine = &nodes[i];
        mine->next = NONE;
        mine->waits = 1;
        __threadfence();
        unsigned before = atomicExch(&tails[bucket], i), done = 0;
        if (before == NONE)
            mine->waits = 0;
        else
            ((volatile Node*)nodes)[before].next = i;
        while (!done) {
            if (mine->waits == 0) {
                push(pool, &heads[bucket], i, i);
                if (atomicCAS(&tails[bucket], i, NONE) != i) {
                    unsigned after;
                    // The next thread is in the queue, and about to say which one it is.
                    while ((after = mine->next) == NONE) asm volatile(".pragma \"warploom.sib\";");
                    ((volatile Node*)nodes)[after].waits = 0;
                }
                done = 1;
            }
            asm volatile(".pragma \"warploom.sib\";" : "+r"(done));
        }
    }
}

// Lanes whose bucket is the same, and the entries of the first and the last of them. Links their entries into a chain
// whose end is still open. Lanes that are here together can be in different rounds of their loops, so they tell each
// other their entries.
struct Peers {
    unsigned first, last;
    bool leads;
};

static __device__ __forceinline__ unsigned entry_of(unsigned lane, unsigned i, unsigned lanes) {
    unsigned entry;
    asm volatile("shfl.sync.idx.b32 %0, %1, %2, 31, %3;" : "=r"(entry) : "r"(i), "r"(lane), "r"(lanes));
    return entry;
}

static __device__ __forceinline__ Peers chained(Entry* pool, unsigned i, unsigned bucket) {
    unsigned peers, lane, lanes;
    asm volatile("activemask.b32 %0;" : "=r"(lanes));
    asm volatile("match.any.sync.b32 %0, %1, %2;" : "=r"(peers) : "r"(bucket), "r"(lanes));
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    unsigned above = peers & (NONE << lane) & ~(1u << lane);
    unsigned next = entry_of(above != 0 ? __ffs(above) - 1 : lane, i, lanes);
    unsigned last = entry_of(31 - __clz(peers), i, lanes);
    if (above != 0) pool[i].next = next;
    __threadfence();
    asm volatile("bar.warp.sync %0;" ::"r"(peers) : "memory");
    return Peers{i, last, lane == __ffs(peers) - 1};
}

// Lanes that want the same lock insert as one: the first of them takes it for all. For warps of 32 lanes.
extern "C" __global__ void hashtable_insert_warp(const unsigned* keys, unsigned count, Entry* pool, unsigned* heads,
                                                 unsigned* locks, unsigned buckets, unsigned longest) {
#pragma unroll 1
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        unsigned key = keys[i], bucket = key % buckets, time = min(TURN, longest);
        pool[i].key = key;
        Peers peers = chained(pool, i, bucket);
        unsigned done = !peers.leads;
        while (!done) {
            if (atomicCAS(&locks[bucket], 0, 1) == 0) {
                push(pool, &heads[bucket], peers.first, peers.last);
                done = 1;
                atomicExch(&locks[bucket], 0);
            } else {
                sleep(time);
                time = min(2 * time, longest);
            }
            asm volatile(".pragma \"warploom.sib\";" : "+r"(done));
        }
    }
}

// Without a lock: one exchange makes an entry the head of its chain and tells which one it was before.
extern "C" __global__ void hashtable_insert_exchange(const unsigned* keys, unsigned count, Entry* pool,
                                                     unsigned* heads, unsigned buckets) {
#pragma unroll 1
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        unsigned key = keys[i], bucket = key % buckets;
        pool[i].key = key;
        __threadfence();
        pool[i].next = atomicExch(&heads[bucket], i);
    }
}
