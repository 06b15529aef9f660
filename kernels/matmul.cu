// c = a * b for square row-major matrices, one 16x16 tile per block.
#include "warploom.cuh"

const unsigned TILE = 16;

extern "C" __global__ void matmul(const float* a, const float* b, float* c, unsigned n) {
    __shared__ float tile_a[TILE][TILE];
    __shared__ float tile_b[TILE][TILE];
    unsigned x = threadIdx.x, y = threadIdx.y;
    unsigned row = blockIdx.y * TILE + y, column = blockIdx.x * TILE + x;

    float sum = 0.0f;
    for (unsigned k0 = 0; k0 < n; k0 += TILE) {
        tile_a[y][x] = a[row * n + k0 + x];
        tile_b[y][x] = b[(k0 + y) * n + column];
        __syncthreads();
        for (unsigned k = 0; k < TILE; ++k) sum = __fmaf_rn(tile_a[y][k], tile_b[k][x], sum);
        __syncthreads();
    }
    c[row * n + column] = sum;
}
