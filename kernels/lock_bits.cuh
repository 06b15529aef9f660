// The lock bits of shared memory (ICS'15) as device functions. Addresses are those of shared memory itself.
#pragma once
#include "warploom.cuh"

static __device__ __forceinline__ unsigned shared_address(const volatile void* pointer) {
    unsigned address;
    asm("{ .reg .u64 a; cvta.to.shared.u64 a, %1; cvt.u32.u64 %0, a; }" : "=r"(address) : "l"(pointer));
    return address;
}

// Takes a word's bit without checking that it was free: for a bit that no other thread can want yet.
static __device__ __forceinline__ void lock(unsigned word) {
    asm volatile("wl.ldslk.shared.b32 _, [%0];" ::"r"(word) : "memory");
}

// Stores a value and frees the bit.
static __device__ __forceinline__ void put(unsigned word, int value) {
    asm volatile("wl.stsul.shared.b32 [%0], %1;" ::"r"(word), "r"(value) : "memory");
}
