// Needleman-Wunsch scores as a dataflow of warps with few lock bits. ICS'15 names two limits of one thread per cell: the
// lock bits, all of which a tile of 31x31 cells takes, and that lanes of one warp that wait for each other run one after
// another, "unless a perfect pipeline can be formed". Here is one: a lane has a row of the tile, a warp has 4, 8 or 16
// columns. Lane r is r steps behind lane 0, so its northern input was computed one step before, in lockstep. Only the
// first column of a warp waits, for another warp: 256, 128 or 64 bits per tile, so several tiles fit on an SM.
// Flags: -mllvm -disable-block-placement
#include "lock_bits.cuh"
#include "nw.cuh"

template <unsigned CELLS>
struct Pipe {
    static const unsigned WARPS = SIDE / CELLS;
    // token[w][r]: the cell of row r in the last column before block w, with its lock bit; row 0 is above the tile. Those of
    // block 0 are the column to the left of the tile and are never locked.
    volatile int token[WARPS][SIDE];
    // The row above the tile, then its cells: first the gain of aligning their letters, then their scores. Lanes one step
    // apart access different banks.
    volatile int cell[SIDE + 1][SIDE];
};

// The state of a lane; addresses are those of shared memory.
struct Lane {
    int column, end;         // within the block, at the first step and after the last; negative: not begun yet
    unsigned columns;        // number of cells, 0 if the tile has no such row
    int takes_at, gives_at;  // the columns at which it takes and gives a token, or NEVER
    unsigned token, next_token, cell;
    int west, corner;
};
const int NEVER = -0x40000000;

// All steps of a warp. Values are loaded as early as possible: a step begins by requesting the token that a lane needs in
// the next step, and ends with the loads for the next step's computation.
static __device__ __forceinline__ void run(const Lane& lane, int penalty) {
    asm volatile(
        "{\n\t"
        ".reg .pred active, takes, gives, got, more, again;\n\t"
        ".reg .b32 column, cell, west, corner, north, gain, up, beside;\n\t"
        "mov.b32 column, %0;\n\t"
        "mov.b32 cell, %1;\n\t"
        "mov.b32 west, %2;\n\t"
        "mov.b32 corner, %3;\n\t"
        "setp.eq.s32 got, column, column;\n\t"
        "setp.lt.u32 active, column, %4;\n"
        "STEP:\n\t"
        "setp.eq.s32 takes, column, %5;\n\t"
        "setp.eq.s32 gives, column, %6;\n\t"
        "@takes wl.ldslk.shared.b32 west|got, [%7];\n\t"
        "add.s32 column, column, 1;\n\t"
        "@active add.s32 beside, corner, gain;\n\t"
        "@active sub.s32 west, west, %8;\n\t"
        "@active sub.s32 up, north, %8;\n\t"
        "@active mov.b32 corner, north;\n\t"
        "setp.lt.s32 again, column, %9;\n\t"
        "setp.ge.s32 more, west, beside;\n\t"
        "selp.b32 beside, west, beside, more;\n\t"
        "setp.ge.s32 more, up, beside;\n\t"
        "@active selp.b32 west, up, beside, more;\n\t"
        "@active st.volatile.shared.b32 [cell], west;\n\t"
        "@gives wl.stsul.shared.b32 [%10], west;\n\t"
        "@active add.u32 cell, cell, 4;\n\t"
        "setp.lt.u32 active, column, %4;\n\t"
        "@active ld.volatile.shared.b32 north, [cell+-128];\n\t"
        "@active ld.volatile.shared.b32 gain, [cell];\n\t"
        "@!got bra WAIT;\n"
        "THERE:\n\t"
        "@takes wl.stsul.shared.b32 [%7], west;\n\t"
        "@takes ld.volatile.shared.b32 corner, [%7+-4];\n\t"
        "@again bra STEP;\n\t"
        "bra.uni DONE;\n"
        "WAIT:\n\t"
        "wl.ldslk.shared.b32 west|got, [%7];\n\t"
        "@!got bra WAIT;\n\t"
        "bra.uni THERE;\n"
        "DONE:\n\t"
        "}"
        :
        : "r"(lane.column), "r"(lane.cell), "r"(lane.west), "r"(lane.corner), "r"(lane.columns), "r"(lane.takes_at),
          "r"(lane.gives_at), "r"(lane.token), "r"(penalty), "r"(lane.end), "r"(lane.next_token)
        : "memory");
}

// All threads call `wait` before they read anything that other blocks write.
template <unsigned CELLS, class Wait>
static __device__ __forceinline__ void fill_pipe(Pipe<CELLS>& s, const Problem& p, unsigned tile_row,
                                                 unsigned tile_column, const Wait& wait) {
    const unsigned WARPS = Pipe<CELLS>::WARPS;
    Tile tile(p, tile_row, tile_column);
    unsigned x = threadIdx.x, y = threadIdx.y, before = y * CELLS;  // `before`: columns before the block

    // The warps share the rows of the tile, several rows at a time: first their loads, then the stores, because storing a
    // loaded value at once would stall the loads behind it. More at a time would not fit the instruction cache. A tile with
    // fewer rows repeats its last one.
    const unsigned AHEAD = 4;
    unsigned last_row = tile.rows - 1, last_column = tile.columns - 1;
#pragma unroll 1
    for (unsigned first = y; first < SIDE; first += AHEAD * WARPS) {
        int ahead[AHEAD];
#pragma unroll
        for (unsigned i = 0; i < AHEAD; ++i)
            ahead[i] = tile.gain(min(first + i * WARPS, last_row) + 1, min(x, last_column) + 1);
#pragma unroll
        for (unsigned i = 0; i < AHEAD; ++i) s.cell[first + i * WARPS + 1][x] = ahead[i];
    }
    wait();
    if (y == 0 && x <= tile.columns) {
        int known = *(volatile int*)tile.score(0, x);
        if (x != 0) s.cell[0][x - 1] = known;
        if (x % CELLS == 0) s.token[x / CELLS][0] = known;
    }
    if (y == WARPS - 1 && 0 < x && x <= tile.rows) s.token[0][x] = *(volatile int*)tile.score(x, 0);
    unsigned columns = before < tile.columns ? min(CELLS, tile.columns - before) : 0;
    bool has_row = x < tile.rows, has_next = before + CELLS < tile.columns && has_row;
    unsigned next_token = shared_address(&s.token[0][x + 1]) + 4 * SIDE * (y + 1);
    if (has_next) lock(next_token);
    __syncthreads();

    if (columns != 0) {
        Lane lane;
        lane.column = -1 - (int)x;
        lane.end = lane.column + (int)(tile.rows + columns);
        lane.columns = has_row ? columns : 0;
        lane.takes_at = y != 0 && has_row ? -1 : NEVER;
        lane.gives_at = has_next ? (int)CELLS - 1 : NEVER;
        lane.token = next_token - 4 * SIDE;
        lane.next_token = next_token;
        lane.cell = shared_address(&s.cell[x + 1][before]);
        lane.west = y == 0 && has_row ? s.token[0][x + 1] : 0;
        lane.corner = y == 0 ? s.token[0][x] : 0;
        run(lane, p.penalty);
    }
    __syncthreads();
    if (x < tile.columns)
#pragma unroll 1
        for (unsigned first = y; first < SIDE; first += AHEAD * WARPS) {
            int done[AHEAD];
#pragma unroll
            for (unsigned i = 0; i < AHEAD; ++i) done[i] = s.cell[min(first + i * WARPS, last_row) + 1][x];
#pragma unroll
            for (unsigned i = 0; i < AHEAD; ++i) *tile.score(min(first + i * WARPS, last_row) + 1, x + 1) = done[i];
        }
}

struct NoWait {
    __device__ __forceinline__ void operator()() const {}
};

template <unsigned CELLS>
static __device__ __forceinline__ void fill(const Problem& p, unsigned tile_row, unsigned tile_column) {
    __shared__ Pipe<CELLS> pipe;
    fill_pipe(pipe, p, tile_row, tile_column, NoWait());
}

BOTH_HALVES(nw_pipe4, 256, TILE, fill<4>)
BOTH_HALVES(nw_pipe8, 128, TILE, fill<8>)
BOTH_HALVES(nw_pipe16, 64, TILE, fill<16>)

// Waits for the tiles to the west and to the north.
struct WaitForTiles {
    volatile unsigned* finished;
    unsigned row, column, tile_columns;
    __device__ __forceinline__ void operator()() const {
        if (threadIdx.x == 0 && threadIdx.y == 0) {
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

// The whole problem in one launch. Blocks take tiles in the order of `order` (row << 16 | column), in which a tile comes
// after those it depends on. So the blocks with those tiles are already running, whichever blocks are resident.
template <unsigned CELLS>
static __device__ __forceinline__ void flow(const Problem& p, const unsigned* order, unsigned tiles, unsigned* next,
                                            unsigned* finished) {
    __shared__ Pipe<CELLS> pipe;
    __shared__ unsigned ticket;
    unsigned tile_columns = (p.columns + TILE - 1) / TILE;
    bool first = threadIdx.x == 0 && threadIdx.y == 0;
    for (;;) {
        if (first) ticket = atomicAdd(next, 1);
        __syncthreads();
        unsigned taken = ticket;
        if (taken >= tiles) return;
        unsigned row = order[taken] >> 16, column = order[taken] & 0xffff;
        fill_pipe(pipe, p, row, column, WaitForTiles{finished, row, column, tile_columns});
        __threadfence();
        __syncthreads();
        if (first) *(volatile unsigned*)&finished[row * tile_columns + column] = 1;
    }
}

#define GRID(cells, threads)                                                                              \
    extern "C" __global__ void __launch_bounds__(threads)                                                 \
    nw_grid##cells(PROBLEM, const unsigned* order, unsigned tiles, unsigned* next, unsigned* finished) {  \
        flow<cells>(THE_PROBLEM, order, tiles, next, finished);                                           \
    }

GRID(4, 256)
GRID(8, 128)
GRID(16, 64)
