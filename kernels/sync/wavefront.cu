// Needleman-Wunsch scores in one launch: a warp fills a strip of rows, tile by tile from one side to the other, and waits
// at a flag for the strip before it (NW1, NW2).
// Flags: -mllvm -disable-block-placement
#include "../warploom.cuh"

const unsigned COLUMNS = 32;           // of a tile, which has one row per lane; at most the number of lanes
const unsigned PITCH = COLUMNS + 1;    // words between two rows in shared memory, so that a column spans all banks

// Waits for the other lanes of the warp, whose number in the block is `warp`.
static __device__ __forceinline__ void warp_barrier(unsigned warp, unsigned lanes) {
    asm volatile("bar.sync %0, %1;" ::"r"(warp), "r"(lanes) : "memory");
}

// `reference` has n rows of m columns, `scores` one more of both. FORWARD: row 0 and column 0 are given; with a = -1 the
// others become
//     scores[r][c] = max(scores[r+a][c+a] + reference[..], scores[r+a][c] - penalty, scores[r][c+a] - penalty);
// else row n and column m are given, and a = 1: the scores of suffixes. done[s] counts the finished columns of strip s,
// from the given column on. Dynamic shared memory per warp: (lanes + 1) * PITCH words.
template <bool FORWARD>
static __device__ __forceinline__ void fill(const int* reference, int* scores, unsigned n, unsigned m, int penalty,
                                            volatile unsigned* done, unsigned lanes) {
    extern __shared__ int tiles[];
    unsigned warp = threadIdx.x / lanes, lane = threadIdx.x % lanes, side = m + 1;
    unsigned strip = blockIdx.x * (blockDim.x / lanes) + warp, row0 = strip * lanes;
    if (row0 >= n) return;
    unsigned rows = min(lanes, n - row0);
    // The tile: the row before the strip, then the strip's rows, with the gains of pairs until they have a score.
    int* tile = tiles + warp * (lanes + 1) * PITCH;

    // Rows and columns are counted from the given ones; `down` and `right` lead to the next.
    long right = FORWARD ? 1 : -1, down = right * (long)side, gain_down = right * (long)m;
    int* corner_cell = scores + (FORWARD ? (size_t)row0 * side : (size_t)(n - row0) * side + m);
    const int* gains = reference + (FORWARD ? (size_t)row0 * m : (size_t)(n - 1 - row0) * m + m - 1);
    int left = 0, corner = 0;
    if (lane < rows) {
        left = corner_cell[(lane + 1) * down];
        corner = corner_cell[lane * down];
    }
#pragma unroll 1
    for (unsigned column0 = 0; column0 < m; column0 += COLUMNS) {
        unsigned columns = min(COLUMNS, m - column0);
        if (strip > 0) {
            unsigned finished;
            // All lanes poll, so none of them waits for another lane.
            do {
                finished = done[strip - 1];
                asm volatile(".pragma \"warploom.sib\";" : "+r"(finished));
            } while (finished < column0 + columns);
            __threadfence();
        }
        int* above = corner_cell + (column0 + lane + 1) * right;
        if (lane < columns) {
            // Written by another warp, so a cached value would be stale.
            tile[lane] = *(volatile int*)above;
#pragma unroll 1
            for (unsigned r = 0; r < rows; ++r) tile[(r + 1) * PITCH + lane] = gains[r * gain_down + (column0 + lane) * right];
        }
        warp_barrier(warp, lanes);
        // Lane t has row t; in step s it computes its cell of anti-diagonal s.
        int* cell = tile + lane * PITCH - lane;
#pragma unroll 1
        for (unsigned s = 0; s < rows + columns - 1; ++s, ++cell) {
            if (lane < rows && s - lane < columns) {
                int up = cell[0];
                left = max(corner + cell[PITCH], max(up, left) - penalty);
                corner = up;
                cell[PITCH] = left;
            }
            warp_barrier(warp, lanes);
        }
        if (lane < columns) {
#pragma unroll 1
            for (unsigned r = 1; r <= rows; ++r) above[r * down] = tile[r * PITCH + lane];
        }
        __threadfence();
        warp_barrier(warp, lanes);
        if (lane == 0) done[strip] = column0 + columns;
    }
}

// From the upper left to the lower right corner.
extern "C" __global__ void __launch_bounds__(512)
nw_forward(const int* reference, int* scores, unsigned n, unsigned m, int penalty, unsigned* done, unsigned lanes) {
    fill<true>(reference, scores, n, m, penalty, done, lanes);
}

// From the lower right corner back.
extern "C" __global__ void __launch_bounds__(512)
nw_backward(const int* reference, int* scores, unsigned n, unsigned m, int penalty, unsigned* done, unsigned lanes) {
    fill<false>(reference, scores, n, m, penalty, done, lanes);
}
