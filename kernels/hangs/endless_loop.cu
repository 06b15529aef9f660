#include "../warploom.cuh"

// Half of 0 is 0: from there it never comes to 1.
extern "C" __global__ void no_way_out(unsigned* out, unsigned start) {
    unsigned n = start;
    while (n != 1) {
        n = n / 2;
        asm volatile("" : "+r"(n));
    }
    out[threadIdx.x] = n;
}

// Counts its turns, which ends nothing.
extern "C" __global__ void counting(volatile unsigned* flag, unsigned* out) {
    unsigned turns = 0;
    while (*flag == 0) ++turns;
    out[threadIdx.x] = turns;
}

// Looks at the flag every 500 cycles, by the clock.
extern "C" __global__ void by_the_clock(volatile unsigned* flag, unsigned* out) {
    while (*flag == 0) {
        unsigned start, now;
        asm volatile("mov.u32 %0, %%clock;" : "=r"(start));
        do {
            asm volatile("mov.u32 %0, %%clock;" : "=r"(now));
        } while (now - start < 500);
    }
    out[threadIdx.x] = 1;
}
