#include "../warploom.cuh"

// Block 0 waits for block 1, on another SM. Its loads stay in its L1, as plain loads do.
extern "C" __global__ void cached_flag(unsigned* flag, unsigned* out) {
    if (blockIdx.x == 0) {
        unsigned seen;
        do {
            asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(seen) : "l"(flag));
        } while (seen == 0);
        out[0] = seen;
    } else {
        for (int i = 0; i < 1000; ++i) asm volatile("");
        *(volatile unsigned*)flag = 1;
    }
}
