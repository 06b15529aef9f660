// Needleman-Wunsch scores as a dataflow of threads, one per cell, that synchronize with the lock bits of shared memory
// (ICS'15, section 6). A block has a thread for each cell of a tile and its border; a launch is an anti-diagonal of tiles.
// The loops are in the paper's critical-section form: the western neighbour is a lane of the same warp, so a thread with
// both tokens must fire inside the loop. They are written as instructions, in the order of Listing 15.
// Flags: -mllvm -disable-block-placement
#include "lock_bits.cuh"
#include "nw.cuh"

// One channel per cell for all its consumers: a consumer puts the token back. A cell's word is its channel, so a tile has
// as many lock bits as words. The corner is older than north and west, so it needs no token.
template <unsigned WIDTH>
static __device__ __forceinline__ void fill_shared(const Problem& p, unsigned tile_row, unsigned tile_column) {
    __shared__ volatile int score[WIDTH][WIDTH];
    Tile tile(p, tile_row, tile_column, WIDTH - 1);
    unsigned x = threadIdx.x, y = threadIdx.y;
    bool known = x == 0 || y == 0, inside = y <= tile.rows && x <= tile.columns;
    bool actor = inside && !known;
    unsigned own = shared_address(&score[y][x]);

    int gain = actor ? tile.gain(y, x) : 0;
    if (inside && known) score[y][x] = *tile.score(y, x);
    if (actor) lock(own);
    __syncthreads();

    if (!actor) return;
    int result;
    asm volatile(
        "{\n\t"
        ".reg .pred west_sync, north_sync, ready, more;\n\t"
        ".reg .b32 west, north, corner, gap;\n\t"
        "setp.ne.u32 west_sync, %1, %1;\n\t"
        "setp.ne.u32 north_sync, %1, %1;\n"
        "TURN:\n\t"
        "@!west_sync wl.ldslk.shared.b32 west|west_sync, [%1+-4];\n\t"
        "@west_sync wl.stsul.shared.b32 [%1+-4], west;\n\t"
        "@!north_sync wl.ldslk.shared.b32 north|north_sync, [%1+%4];\n\t"
        "@north_sync wl.stsul.shared.b32 [%1+%4], north;\n\t"
        "and.pred ready, north_sync, west_sync;\n\t"
        "@ready ld.volatile.shared.b32 corner, [%1+%5];\n\t"
        "@ready setp.ge.s32 more, north, west;\n\t"
        "@ready add.s32 corner, corner, %2;\n\t"
        "@ready selp.b32 gap, north, west, more;\n\t"
        "@ready sub.s32 gap, gap, %3;\n\t"
        "@ready setp.ge.s32 more, gap, corner;\n\t"
        "@ready selp.b32 %0, gap, corner, more;\n\t"
        "@ready wl.stsul.shared.b32 [%1], %0;\n\t"
        "@!ready bra TURN;\n\t"
        "}"
        : "=&r"(result)
        : "r"(own), "r"(gain), "r"(p.penalty), "n"(-4 * (int)WIDTH), "n"(-4 * (int)WIDTH - 4)
        : "memory");
    *tile.score(y, x) = result;
}

// One channel per consumer of a cell: a consumer keeps the token. Three lock bits and three words per cell: for the
// eastern, the southern and the south-eastern neighbour, each in its own array.
template <unsigned WIDTH>
static __device__ __forceinline__ void fill_private(const Problem& p, unsigned tile_row, unsigned tile_column) {
    const int CHANNEL = 4 * WIDTH * WIDTH;  // bytes from one channel of a cell to its next
    __shared__ volatile int channels[3][WIDTH][WIDTH];
    Tile tile(p, tile_row, tile_column, WIDTH - 1);
    unsigned x = threadIdx.x, y = threadIdx.y;
    bool known = x == 0 || y == 0, inside = y <= tile.rows && x <= tile.columns;
    bool actor = inside && !known;
    unsigned own = shared_address(&channels[0][y][x]);
    int* score = tile.score(y, x);

    int gain = actor ? tile.gain(y, x) : 0;
    if (inside && known) channels[0][y][x] = channels[1][y][x] = channels[2][y][x] = *score;
    if (actor) {
        lock(own);
        lock(own + CHANNEL);
        lock(own + 2 * CHANNEL);
    }
    __syncthreads();

    if (actor) {
        int result;
        asm volatile(
            "{\n\t"
            ".reg .pred west_sync, north_sync, corner_sync, ready, more;\n\t"
            ".reg .b32 west, north, corner, gap;\n\t"
            "setp.ne.u32 west_sync, %1, %1;\n\t"
            "setp.ne.u32 north_sync, %1, %1;\n\t"
            "setp.ne.u32 corner_sync, %1, %1;\n"
            "TURN:\n\t"
            "@!west_sync wl.ldslk.shared.b32 west|west_sync, [%1+-4];\n\t"
            "@!north_sync wl.ldslk.shared.b32 north|north_sync, [%1+%4];\n\t"
            "@!corner_sync wl.ldslk.shared.b32 corner|corner_sync, [%1+%5];\n\t"
            "and.pred ready, north_sync, west_sync;\n\t"
            "and.pred ready, ready, corner_sync;\n\t"
            "@ready setp.ge.s32 more, north, west;\n\t"
            "@ready add.s32 corner, corner, %2;\n\t"
            "@ready selp.b32 gap, north, west, more;\n\t"
            "@ready sub.s32 gap, gap, %3;\n\t"
            "@ready setp.ge.s32 more, gap, corner;\n\t"
            "@ready selp.b32 %0, gap, corner, more;\n\t"
            "@ready wl.stsul.shared.b32 [%1], %0;\n\t"
            "@ready wl.stsul.shared.b32 [%1+%6], %0;\n\t"
            "@ready wl.stsul.shared.b32 [%1+%7], %0;\n\t"
            "@!ready bra TURN;\n\t"
            "}"
            : "=&r"(result)
            : "r"(own), "r"(gain), "r"(p.penalty), "n"(CHANNEL - 4 * (int)WIDTH), "n"(2 * CHANNEL - 4 * (int)WIDTH - 4),
              "n"(CHANNEL), "n"(2 * CHANNEL)
            : "memory");
        *score = result;
    }
    // The tokens were not put back. The next block on this SM needs free bits, so this one must free those of its border.
    __syncthreads();
    if (inside) {
        put(own, 0);
        put(own + CHANNEL, 0);
        put(own + 2 * CHANNEL, 0);
    }
}

BOTH_HALVES(nw_tiny, 1024, 31, fill_shared<32>)
BOTH_HALVES(nw_tiny15, 256, 15, fill_shared<16>)
BOTH_HALVES(nw_private, 1024, 31, fill_private<32>)
BOTH_HALVES(nw_private15, 256, 15, fill_private<16>)
