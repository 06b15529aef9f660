// Needleman-Wunsch scores as a dataflow of threads, one per cell, that synchronize with atomic spin locks (ICS'15,
// Listing 14). A block of 32x32 threads fills a tile and its border; a launch fills an anti-diagonal of tiles.
// Flags: -mllvm -disable-block-placement
#include "nw.cuh"

static __device__ __forceinline__ void fill(const Problem& p, unsigned tile_row, unsigned tile_column) {
    __shared__ volatile int score[SIDE][SIDE];
    __shared__ unsigned mutex[SIDE][SIDE];
    Tile tile(p, tile_row, tile_column);
    unsigned x = threadIdx.x, y = threadIdx.y;
    bool known = x == 0 || y == 0, inside = y <= tile.rows && x <= tile.columns;
    bool actor = inside && !known;

    // A known cell's mutex is free from the start. Before the barrier no other thread uses a thread's own mutex.
    mutex[y][x] = 0;
    int gain = actor ? tile.gain(y, x) : 0;
    if (inside && known) score[y][x] = *tile.score(y, x);
    if (actor)
        while (atomicCAS(&mutex[y][x], 0, 1) != 0) {
        }
    __syncthreads();

    if (!actor) return;
    int north = 0, west = 0;
    unsigned north_sync = 0, west_sync = 0, finished = 0;
    while (!finished) {
        if (!north_sync && atomicExch(&mutex[y - 1][x], 1) == 0) {
            north = score[y - 1][x];
            north_sync = 1;
            atomicExch(&mutex[y - 1][x], 0);
        }
        if (!west_sync && atomicExch(&mutex[y][x - 1], 1) == 0) {
            west = score[y][x - 1];
            west_sync = 1;
            atomicExch(&mutex[y][x - 1], 0);
        }
        finished = north_sync & west_sync;
        if (finished) {
            score[y][x] = best(score[y - 1][x - 1], north, west, gain, p.penalty);
            atomicExch(&mutex[y][x], 0);
        }
        // Hide that a thread that fires leaves the loop: otherwise the compiler would move this code behind the loop, where
        // lanes of one warp wait for each other.
        asm volatile("" : "+r"(finished));
    }
    *tile.score(y, x) = score[y][x];
}

BOTH_HALVES(nw_atomic, 1024, TILE, fill)
