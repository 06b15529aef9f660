// Needleman-Wunsch scores, data-parallel: a block of one warp fills a tile, a launch fills an anti-diagonal of tiles.
// Flags: -mllvm -disable-block-placement
#include "nw.cuh"

static __device__ __forceinline__ void fill(const Problem& p, unsigned tile_row, unsigned tile_column) {
    __shared__ int score[SIDE][SIDE];
    __shared__ int gain[SIDE][SIDE];
    Tile tile(p, tile_row, tile_column);
    unsigned t = threadIdx.x;

    if (t <= tile.columns) score[0][t] = *tile.score(0, t);
    if (0 < t && t <= tile.rows) score[t][0] = *tile.score(t, 0);
    // Several loads, then their stores: storing a loaded value at once would stall the loads behind it.
    const unsigned AHEAD = 8;
#pragma unroll 1
    for (unsigned r = 0; r < tile.rows; r += AHEAD) {
        int ahead[AHEAD];
#pragma unroll
        for (unsigned i = 0; i < AHEAD; ++i)
            ahead[i] = tile.gain(min(r + i + 1, tile.rows), min(t + 1, tile.columns));
#pragma unroll
        for (unsigned i = 0; i < AHEAD; ++i) gain[r + i][t] = ahead[i];
    }
    __syncthreads();

    // Thread t has row t of the tile; in step s it computes its cell of anti-diagonal s.
#pragma unroll 1
    for (unsigned s = 0; s < tile.rows + tile.columns - 1; ++s) {
        unsigned c = s - t;  // wraps if t > s, and is then no column
        if (t < tile.rows && c < tile.columns)
            score[t + 1][c + 1] = best(score[t][c], score[t][c + 1], score[t + 1][c], gain[t][c], p.penalty);
        __syncthreads();
    }

    if (t < tile.columns)
        for (unsigned r = 1; r <= tile.rows; ++r) *tile.score(r, t + 1) = score[r][t + 1];
}

BOTH_HALVES(nw, 32, TILE, fill)
