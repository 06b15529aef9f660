// Needleman-Wunsch alignment scores: a block of one warp fills a tile, a launch an anti-diagonal of tiles.
// Flags: -mllvm -disable-block-placement
#include "warploom.cuh"

const unsigned TILE = 31;        // cells of a tile's side
const unsigned SIDE = TILE + 1;  // with the row above or the column to the left: the threads of a block

// scores[r][c] = max(scores[r-1][c-1] + reference[r-1][c-1], scores[r-1][c] - penalty, scores[r][c-1] - penalty) for the
// cells of a tile. `scores` has (n+1)^2 cells, of which the first row and column are given, `reference` n^2. The last tile
// of a row or a column may be smaller.
static __device__ __forceinline__ void fill_tile(const int* reference, int* scores, unsigned n, int penalty,
                                                 unsigned tile_row, unsigned tile_column) {
    __shared__ int score[SIDE][SIDE];
    __shared__ int gain[TILE][SIDE];
    unsigned t = threadIdx.x, row0 = tile_row * TILE, column0 = tile_column * TILE;
    unsigned rows = min(TILE, n - row0), columns = min(TILE, n - column0);
    int* corner = scores + (size_t)row0 * (n + 1) + column0;

    if (t <= columns) score[0][t] = corner[t];
    if (0 < t && t <= rows) score[t][0] = corner[(size_t)t * (n + 1)];
    if (t < columns)
        for (unsigned r = 0; r < rows; ++r) gain[r][t] = reference[(size_t)(row0 + r) * n + column0 + t];
    __syncthreads();

    // Thread t has row t of the tile; in step s, its cell of anti-diagonal s.
    for (unsigned s = 0; s < rows + columns - 1; ++s) {
        unsigned c = s - t;  // where t > s it wraps, and is no column
        if (t < rows && c < columns)
            score[t + 1][c + 1] = max(score[t][c] + gain[t][c], max(score[t][c + 1], score[t + 1][c]) - penalty);
        __syncthreads();
    }

    if (t < columns)
        for (unsigned r = 1; r <= rows; ++r) corner[(size_t)r * (n + 1) + t + 1] = score[r][t + 1];
}

// The anti-diagonals of tiles from the upper left corner to the longest: launches of 1, 2, 3 ... blocks.
extern "C" __global__ void __launch_bounds__(32)
nw_grow(const int* reference, int* scores, unsigned n, int penalty) {
    fill_tile(reference, scores, n, penalty, gridDim.x - 1 - blockIdx.x, blockIdx.x);
}

// The other ones, to the lower right corner: launches of ... 3, 2, 1 blocks.
extern "C" __global__ void __launch_bounds__(32)
nw_shrink(const int* reference, int* scores, unsigned n, int penalty) {
    unsigned tiles = (n + TILE - 1) / TILE;
    fill_tile(reference, scores, n, penalty, tiles - 1 - blockIdx.x, tiles - gridDim.x + blockIdx.x);
}
