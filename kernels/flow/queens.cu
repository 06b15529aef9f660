// Placements of n queens that do not attack each other: a Cilk program, and a flattened one to compare it with.
#include "channel.cuh"

// Attacked columns, and diagonals as they meet the next row.
struct Board {
    unsigned columns, left, right;
};

WL_FN unsigned open_columns(const Board& board, unsigned n) {
    return ~(board.columns | board.left | board.right) & ((1u << n) - 1);
}
WL_FN Board place(const Board& board, unsigned column) {
    return Board{board.columns | column, (board.left | column) << 1, (board.right | column) >> 1};
}

// Counts the placements in the rows that are left, in one lane.
WL_FN unsigned solve(Board board, unsigned n, unsigned rows) {
    Board boards[16];
    unsigned open[16], depth = 0, found = 0;
    if (rows == 0) return 1;
    boards[0] = board;
    open[0] = open_columns(board, n);
    for (;;) {
        const unsigned columns = open[depth];
        if (!columns) {
            if (depth == 0) return found;
            depth--;
            continue;
        }
        const unsigned column = columns & -columns;
        open[depth] = columns ^ column;
        if (depth + 1 == rows) {
            found++;
            continue;
        }
        const Board next = place(boards[depth], column);
        depth++;
        boards[depth] = next;
        open[depth] = open_columns(next, n);
    }
}

struct Queens {
    unsigned* result;
    Board board;
    unsigned row;
};

// What each child found, and where the sum goes.
struct Counts {
    unsigned* result;
    unsigned children;
    unsigned unused;
    unsigned counts[16];
};
constexpr unsigned FIRST_COUNT = 4;

// A task for each column of the next row that is not attacked; the last rows are one task.
extern "C" __global__ void queens(Work work, Channel* counts, unsigned n, unsigned serial_rows) {
    if (!has_work(work)) return;
    const unsigned source = deq(work);
    const Queens task = read<Queens>(work.source, source);
    const unsigned rows = n - task.row, open = open_columns(task.board, n), children = __popc(open);
    if (rows <= serial_rows) {
        *task.result = solve(task.board, n, rows);
    } else if (!open) {
        *task.result = 0;
    } else {
        Channel* after = counts + work.level;
        Channel* deeper = work.source + 1;
        put(after, 1, [&](unsigned sum) {
            write(after, sum, task.result);
            *word_of(after, sum, 2) = children;
        }, [&](unsigned sum) {
            put(deeper, children, [&](unsigned at) {
                unsigned columns = open;
                for (unsigned i = 0; columns; i++) {
                    const unsigned column = columns & -columns;
                    columns ^= column;
                    unsigned* result = word_of(after, sum, FIRST_COUNT + i);
                    write(deeper, at + i, Queens{result, place(task.board, column), task.row + 1});
                }
            });
        });
    }
    tfree(work, source);
}

extern "C" __global__ void queens_sum(Work work) {
    if (!has_work(work)) return;
    const unsigned source = deq(work);
    unsigned* result = read<unsigned*>(work.source, source);
    const unsigned children = *word_of(work.source, source, 2);
    unsigned sum = 0;
    for (unsigned i = 0; i < children; i++) sum += *word_of(work.source, source, FIRST_COUNT + i);
    *result = sum;
    tfree(work, source);
}

// The recursion flattened: the host has placed the first queens in every way; a thread counts the rest of one board with a
// stack in shared memory, and a block adds up.
constexpr unsigned FLAT_THREADS = 128;

extern "C" __global__ void queens_flat(const Board* boards, unsigned count, unsigned n, unsigned rows, unsigned* results) {
    __shared__ unsigned columns[16][FLAT_THREADS], left[16][FLAT_THREADS], right[16][FLAT_THREADS];
    __shared__ unsigned open[16][FLAT_THREADS];
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
