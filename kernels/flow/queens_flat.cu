// Counts the placements of n queens without tasks.
#include "queens.cuh"

// The recursion flattened: the host has placed the first queens in all ways. Each thread counts the completions of one
// board with a stack in shared memory, and a block adds them up.
constexpr unsigned FLAT_THREADS = 128, FLAT_ROWS = 15;

extern "C" __global__ void queens_flat(const Board* boards, unsigned count, unsigned n, unsigned rows, unsigned* results) {
    __shared__ unsigned columns[FLAT_ROWS][FLAT_THREADS], left[FLAT_ROWS][FLAT_THREADS];
    __shared__ unsigned right[FLAT_ROWS][FLAT_THREADS], open[FLAT_ROWS][FLAT_THREADS];
    __shared__ unsigned sums[FLAT_THREADS];
    const unsigned thread = threadIdx.x, mine = blockIdx.x * FLAT_THREADS + thread;
    unsigned found = 0;
    if (mine < count) {
        const Board first = boards[mine];
        columns[0][thread] = first.columns;
        left[0][thread] = first.left;
        right[0][thread] = first.right;
        open[0][thread] = open_columns(first, n);
        int depth = 0;
        while (depth >= 0) {
            const unsigned there = open[depth][thread];
            if (!there) {
                depth--;
                continue;
            }
            const unsigned column = there & -there;
            open[depth][thread] = there ^ column;
            if (depth + 1 == (int)rows) {
                found++;
                continue;
            }
            const Board board{columns[depth][thread], left[depth][thread], right[depth][thread]};
            const Board next = place(board, column);
            depth++;
            columns[depth][thread] = next.columns;
            left[depth][thread] = next.left;
            right[depth][thread] = next.right;
            open[depth][thread] = open_columns(next, n);
        }
    }
    sums[thread] = found;
    for (unsigned half = FLAT_THREADS / 2; half; half /= 2) {
        __syncthreads();
        if (thread < half) sums[thread] += sums[thread + half];
    }
    if (thread == 0) results[blockIdx.x] = sums[0];
}
