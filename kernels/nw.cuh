// What the Needleman-Wunsch kernels share: the problem, its tiles, and the choice of the best of three.
#pragma once
#include "warploom.cuh"

const unsigned TILE = 31;        // cells per side of a tile
const unsigned SIDE = TILE + 1;  // plus the row above and the column to the left

// scores[r][c] = max(scores[r-1][c-1] + gains[r-1][c-1], scores[r-1][c] - penalty, scores[r][c-1] - penalty).
// `scores` has (rows+1)(columns+1) cells; its first row and column are given. `gains` is the score of aligning two letters.
struct Problem {
    const int* gains;
    int* scores;
    unsigned rows, columns;
    int penalty;
};

// The parameters of every kernel, and the problem built from them.
#define PROBLEM const int *gains, int *scores, unsigned rows, unsigned columns, int penalty
#define THE_PROBLEM (Problem{gains, scores, rows, columns, penalty})

// A tile of a problem: rows 1 to `rows` and columns 1 to `columns`. Tiles at the far ends of the problem are smaller.
struct Tile {
    unsigned rows, columns;
    unsigned pitch;     // from a row of scores to the next
    const int* gains;   // of cell (1, 1)
    unsigned gains_pitch;
    int* scores;        // of cell (0, 0), the corner of the known border

    __device__ __forceinline__ Tile(const Problem& p, unsigned tile_row, unsigned tile_column, unsigned size = TILE) {
        unsigned row0 = tile_row * size, column0 = tile_column * size;
        rows = min(size, p.rows - row0);
        columns = min(size, p.columns - column0);
        pitch = p.columns + 1;
        gains_pitch = p.columns;
        gains = p.gains + (size_t)row0 * p.columns + column0;
        scores = p.scores + (size_t)row0 * pitch + column0;
    }
    __device__ __forceinline__ int* score(unsigned r, unsigned c) const { return scores + (size_t)r * pitch + c; }
    __device__ __forceinline__ int gain(unsigned r, unsigned c) const {
        return gains[(size_t)(r - 1) * gains_pitch + (c - 1)];
    }
};

// A comparison and a selection, as in the ICS'15 paper's listings; today's compilers would use one instruction.
static __device__ __forceinline__ int larger(int a, int b) {
    int best;
    asm("{ .reg .pred p; setp.ge.s32 p, %1, %2; selp.s32 %0, %1, %2, p; }" : "=r"(best) : "r"(a), "r"(b));
    return best;
}

static __device__ __forceinline__ int best(int corner, int north, int west, int gain, int penalty) {
    return larger(larger(north, west) - penalty, corner + gain);
}

// The two kernels of a version that is launched once per anti-diagonal of tiles: first diagonals that begin in the first
// column, from tile row `first` upwards, then those that begin in the last row, from tile column `first` on.
#define BOTH_HALVES(name, threads, size, fill)                                                       \
    extern "C" __global__ void __launch_bounds__(threads) name##_grow(PROBLEM, unsigned first) {     \
        fill(THE_PROBLEM, first - blockIdx.x, blockIdx.x);                                           \
    }                                                                                                \
    extern "C" __global__ void __launch_bounds__(threads) name##_shrink(PROBLEM, unsigned first) {   \
        fill(THE_PROBLEM, (rows + (size) - 1) / (size) - 1 - blockIdx.x, first + blockIdx.x);        \
    }
