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

// Counts its turns: each is different from all before.
extern "C" __global__ void counting(volatile unsigned* flag, unsigned* out) {
    unsigned turns = 0;
    while (*flag == 0) ++turns;
    out[threadIdx.x] = turns;
}
