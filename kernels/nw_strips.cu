// Needleman-Wunsch alignment scores as a dataflow of threads that each have several cells, one above the other, and one lock
// bit: a tile of 31x31 cells takes 512, 256, 128 or 64 bits instead of 1024, and as many threads, so that several tiles
// fit on an SM. Either a launch is an anti-diagonal of tiles, or one launch has them all, as a dataflow between blocks.
// Flags: -mllvm -disable-block-placement
#include "lock_bits.cuh"
#include "nw.cuh"

// Tries to get the tokens of the cells to the west and to the north, as far as they are not there yet, and puts back what it
// got. Both loads are under way before the first is waited for. Bit 0 of the result: west is there; bit 1: north.
static __device__ __forceinline__ unsigned poll(unsigned own, unsigned there, int* west, int* north) {
    asm volatile(
        "{\n\t"
        ".reg .pred no_west, no_north, west_got, north_got;\n\t"
        ".reg .b32 bit;\n\t"
        "and.b32 bit, %0, 1;\n\t"
        "setp.eq.u32 no_west, bit, 0;\n\t"
        "setp.lt.u32 no_north, %0, 2;\n\t"
        "setp.ne.u32 west_got, %0, %0;\n\t"
        "setp.ne.u32 north_got, %0, %0;\n\t"
        "@no_west wl.ldslk.shared.b32 %1|west_got, [%3+-4];\n\t"
        "@no_north wl.ldslk.shared.b32 %2|north_got, [%3+-128];\n\t"
        "@west_got wl.stsul.shared.b32 [%3+-4], %1;\n\t"
        "@west_got add.u32 %0, %0, 1;\n\t"
        "@north_got wl.stsul.shared.b32 [%3+-128], %2;\n\t"
        "@north_got add.u32 %0, %0, 2;\n\t"
        "}"
        : "+r"(there), "+r"(*west), "+r"(*north)
        : "r"(own)
        : "memory");
    return there;
}

// The host sizes a block's shared memory such that the lock bits of `token` do not overlap on an SM; row 0, the cells above
// the tile, is never locked.
template <unsigned ROWS>
struct Strips {
    static const unsigned COUNT = SIDE / ROWS;
    volatile int token[COUNT + 1][SIDE];   // the last cell of each thread, behind the row above the tile
    volatile int cell[COUNT][ROWS][SIDE];  // what aligning the letters of a cell earns, until it has its score; the last
                                           // row of a strip keeps that, as its score is a token
};

// `wait` is called by one thread before anything that other blocks write is read.
template <unsigned ROWS, class Wait>
static __device__ __forceinline__ void fill_strips(Strips<ROWS>& s, const Problem& p, unsigned tile_row,
                                                   unsigned tile_column, const Wait& wait) {
    Tile tile(p, tile_row, tile_column);
    unsigned x = threadIdx.x, y = threadIdx.y, above = y * ROWS;
    bool inside = above < tile.rows && x <= tile.columns, actor = inside && x != 0;
    unsigned own = shared_address(&s.token[y + 1][x]);

    // The last thread's strip may end below the tile: it computes cells that nobody looks at.
    if (actor) {
        int gain[ROWS];
#pragma unroll
        for (unsigned i = 0; i < ROWS; ++i) gain[i] = tile.gain(min(above + i + 1, tile.rows), x);
#pragma unroll
        for (unsigned i = 0; i < ROWS; ++i) s.cell[y][i][x] = gain[i];
    }
    wait(x == 0 && y == 0);
    if (y == 0 && x <= tile.columns) s.token[0][x] = *(volatile int*)tile.score(0, x);
    if (inside && x == 0) {
        int left[ROWS];
#pragma unroll
        for (unsigned i = 0; i < ROWS; ++i)
            left[i] = *(volatile int*)tile.score(min(above + i + 1, tile.rows), 0);
#pragma unroll
        for (unsigned i = 0; i + 1 < ROWS; ++i) s.cell[y][i][0] = left[i];
        s.token[y + 1][0] = left[ROWS - 1];
    }
    if (actor) lock(own);
    __syncthreads();
    if (!actor) return;

    // What is known from the start needs no token.
    unsigned there = (x == 1) | (y == 0) << 1, done = 0;
    int west = s.token[y + 1][x - 1], north = s.token[y][x];
    while (!done) {
        there = poll(own, there, &west, &north);
        if (there == 3) {
            // Everything but the way down the strip is done for all cells beside each other.
            int corner = s.token[y][x - 1], before[ROWS], beside[ROWS];
#pragma unroll
            for (unsigned i = 0; i + 1 < ROWS; ++i) before[i] = s.cell[y][i][x - 1];
            before[ROWS - 1] = west;
#pragma unroll
            for (unsigned i = 0; i < ROWS; ++i) beside[i] = s.cell[y][i][x];
#pragma unroll
            for (unsigned i = ROWS - 1; i > 0; --i) beside[i] += before[i - 1];
            beside[0] += corner;
#pragma unroll
            for (unsigned i = 0; i < ROWS; ++i) before[i] -= p.penalty;
            // One instruction, and not `larger`: nothing comes between its two, and a warp would wait for the first.
#pragma unroll
            for (unsigned i = 0; i < ROWS; ++i) asm volatile("max.s32 %0, %0, %1;" : "+r"(beside[i]) : "r"(before[i]));
            int up = north;
#pragma unroll
            for (unsigned i = 0; i < ROWS; ++i) {
                up = larger(up - p.penalty, beside[i]);
                if (i + 1 < ROWS) s.cell[y][i][x] = up;
            }
            put(own, up);
            done = 1;
        }
        // The compiler must not know that whoever fires leaves: it would move this behind the loop, where lanes of one
        // warp wait for each other.
        asm volatile("" : "+r"(done));
    }
    int* below = tile.score(above + 1, x);
#pragma unroll
    for (unsigned i = 0; i < ROWS; ++i)
        if (above + i < tile.rows) below[(size_t)i * tile.pitch] = i + 1 < ROWS ? s.cell[y][i][x] : s.token[y + 1][x];
}

struct NoWait {
    __device__ __forceinline__ void operator()(bool) const {}
};

template <unsigned ROWS>
static __device__ __forceinline__ void fill(const Problem& p, unsigned tile_row, unsigned tile_column) {
    __shared__ Strips<ROWS> strips;
    fill_strips(strips, p, tile_row, tile_column, NoWait());
}

BOTH_HALVES(nw_strips2, 512, TILE, fill<2>)
BOTH_HALVES(nw_strips4, 256, TILE, fill<4>)
BOTH_HALVES(nw_strips8, 128, TILE, fill<8>)
BOTH_HALVES(nw_strips16, 64, TILE, fill<16>)

// Waits for the tiles to the west and to the north.
struct WaitForTiles {
    volatile unsigned* finished;
    unsigned row, column, tile_columns;
    __device__ __forceinline__ void operator()(bool first) const {
        if (first) {
            volatile unsigned* own = finished + row * tile_columns + column;
            if (column != 0)
                while (own[-1] == 0) {
                }
            if (row != 0)
                while (*(own - tile_columns) == 0) {
                }
            __threadfence();
        }
        __syncthreads();
    }
};

// The whole problem in one launch. Blocks take tiles in the order of `order` (row << 16 | column), in which a tile comes after
// those it waits for: so whoever has those is at work, whichever blocks are resident.
template <unsigned ROWS>
static __device__ __forceinline__ void flow(const Problem& p, const unsigned* order, unsigned tiles, unsigned* next,
                                            unsigned* finished) {
    __shared__ Strips<ROWS> strips;
    __shared__ unsigned ticket;
    unsigned tile_columns = (p.columns + TILE - 1) / TILE;
    bool first = threadIdx.x == 0 && threadIdx.y == 0;
    for (;;) {
        if (first) ticket = atomicAdd(next, 1);
        __syncthreads();
        unsigned taken = ticket;
        if (taken >= tiles) return;
        unsigned row = order[taken] >> 16, column = order[taken] & 0xffff;
        fill_strips(strips, p, row, column, WaitForTiles{finished, row, column, tile_columns});
        __threadfence();
        __syncthreads();
        if (first) *(volatile unsigned*)&finished[row * tile_columns + column] = 1;
    }
}

#define GRID(rows_a_thread, threads)                                                                              \
    extern "C" __global__ void __launch_bounds__(threads)                                                         \
    nw_grid##rows_a_thread(PROBLEM, const unsigned* order, unsigned tiles, unsigned* next, unsigned* finished) {  \
        flow<rows_a_thread>(THE_PROBLEM, order, tiles, next, finished);                                           \
    }

GRID(2, 512)
GRID(4, 256)
GRID(8, 128)
GRID(16, 64)
