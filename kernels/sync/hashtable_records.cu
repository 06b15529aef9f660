// Insertion into a chained hash table of records that 64-bit pointers link, with one spin lock per bucket and without
// any lock (HT as a program for the host would lay it out).
// Flags: -mllvm -disable-block-placement
#include "../warploom.cuh"

typedef unsigned long long u64;

struct Record {
    unsigned key;
    u64 value;
    Record* next;
};

// The low 64 bits of a * b, from multiplications of 32 bits, as the machine has no wider ones.
static __device__ __forceinline__ u64 product_low(u64 a, u64 b) {
    unsigned a0 = (unsigned)a, a1 = (unsigned)(a >> 32), b0 = (unsigned)b, b1 = (unsigned)(b >> 32);
    return (u64)a0 * b0 + ((u64)(a0 * b1 + a1 * b0) << 32);
}

// The high 64 bits.
static __device__ __forceinline__ u64 product_high(u64 a, u64 b) {
    unsigned a0 = (unsigned)a, a1 = (unsigned)(a >> 32), b0 = (unsigned)b, b1 = (unsigned)(b >> 32);
    u64 middle = (u64)a1 * b0 + ((u64)a0 * b0 >> 32);
    u64 other = (u64)a0 * b1 + (unsigned)middle;
    return (u64)a1 * b1 + (middle >> 32) + (other >> 32);
}

// a % b for b > 0. No GPU has an instruction for this: a compiler calls such a routine, which PTX hides in one
// instruction. The routine is spelled out because a profiler of the real machine counts what is inside.
static __device__ __forceinline__ u64 remainder(u64 a, u64 b) {
    // A little less than 2^64 / b: the scale is smaller than 2^64 by more than the errors of float add up to.
    float reciprocal;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(reciprocal) : "f"((float)b));
    u64 inverse = (u64)(reciprocal * 0x1.ffffep63f);
    // Each step of Newton's method doubles the number of right bits.
    inverse += product_high(inverse, 0 - product_low(b, inverse));
    inverse += product_high(inverse, 0 - product_low(b, inverse));
    u64 rest = a - product_low(product_high(a, inverse), b);
    if (rest >= b) rest -= b;
    if (rest >= b) rest -= b;
    return rest;
}

// Record i of `pool` gets keys[i] and values[i]. heads[b] is bucket b's first record, initially null; locks[b] is 0 when
// free.
extern "C" __global__ void hashtable_records(const unsigned* keys, const u64* values, unsigned count, Record* pool,
                                             Record** heads, unsigned* locks, u64 buckets) {
#pragma unroll 1
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        unsigned key = keys[i];
        u64 bucket = remainder(key, buckets);
        Record* record = &pool[i];
        record->key = key;
        record->value = values[i];
        Record* volatile* head = &heads[bucket];
        unsigned done = 0;
        while (!done) {
            if (atomicCAS(&locks[bucket], 0, 1) == 0) {
                __threadfence();
                record->next = *head;
                *head = record;
                done = 1;
                __threadfence();
                atomicExch(&locks[bucket], 0);
            }
            asm volatile(".pragma \"warploom.sib\";" : "+r"(done));
        }
    }
}

// The insertion without its lock: concurrent insertions into one bucket lose records.
extern "C" __global__ void hashtable_records_unlocked(const unsigned* keys, const u64* values, unsigned count,
                                                      Record* pool, Record** heads, u64 buckets) {
#pragma unroll 1
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        unsigned key = keys[i];
        u64 bucket = remainder(key, buckets);
        Record* record = &pool[i];
        record->key = key;
        record->value = values[i];
        Record* volatile* head = &heads[bucket];
        record->next = *head;
        *head = record;
    }
}
