// Recursive matrix product: each matrix is split into four, down to 16x16 tiles, whose products are added atomically.
#include "channel.cuh"

// Offsets of three submatrices, and their number of rows.
struct Product {
    unsigned a, b, c, size;
};

constexpr unsigned TILE = 16;

WL_FN void add(float* to, float value) { asm volatile("red.global.add.f32 [%0], %1;" ::"l"(to), "f"(value) : "memory"); }

extern "C" __global__ void strassen(Work work, const float* a, const float* b, float* c, unsigned row) {
    if (!has_work(work)) return;
    const unsigned source = deq(work);
    const Product task = read<Product>(work.source, source);
    if (task.size <= TILE) {
        for (unsigned i = 0; i < TILE; i++) {
            for (unsigned j = 0; j < TILE; j += 4) {
                float sums[4] = {};
                for (unsigned k = 0; k < TILE; k++) {
                    const float x = a[task.a + i * row + k];
                    const float4 y = *(const float4*)&b[task.b + k * row + j];
                    sums[0] = __fmaf_rn(x, y.x, sums[0]);
                    sums[1] = __fmaf_rn(x, y.y, sums[1]);
                    sums[2] = __fmaf_rn(x, y.z, sums[2]);
                    sums[3] = __fmaf_rn(x, y.w, sums[3]);
                }
                for (unsigned m = 0; m < 4; m++) add(&c[task.c + i * row + j + m], sums[m]);
            }
        }
    } else {
        Channel* deeper = work.source + 1;
        const unsigned half = task.size / 2;
        put(deeper, 8, [&](unsigned at) {
            for (unsigned i = 0; i < 8; i++) {
                const unsigned k = i >> 2, down = (i >> 1 & 1) * half * row, right = (i & 1) * half;
                const unsigned a_part = task.a + down + k * half, b_part = task.b + k * half * row + right;
                write(deeper, at + i, Product{a_part, b_part, task.c + down + right, half});
            }
        });
    }
    tfree(work, source);
}
