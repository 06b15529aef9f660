// Recursive matrix product: each matrix is split into four, down to 16x16 tiles, whose products are added atomically.
#pragma once
#include "channel.cuh"

// Offsets of three submatrices, and their number of rows.
struct Product {
    unsigned a, b, c, size;
};

constexpr unsigned TILE = 16;

WL_FN void add(float* to, float value) { asm volatile("red.global.add.f32 [%0], %1;" ::"l"(to), "f"(value) : "memory"); }

// Eight products of half the size.
WL_FN void split(const Work& work, const Product& task, unsigned row) {
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
