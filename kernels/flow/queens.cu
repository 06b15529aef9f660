// Counts the placements of n queens that do not attack each other: a Cilk program.
// Forms: steps
#include "queens.cuh"

// Counts the placements in the remaining rows, in one lane. Keeps one word per row: the columns still to be tried and
// the queen's column; boards are undone. `right` is kept 16 bits higher, so that nothing is shifted out.
WL_FN unsigned solve(Board board, unsigned n, unsigned rows) {
    unsigned kept[16], depth = 0, found = 0;
    unsigned columns = board.columns, left = board.left, right = board.right << 16;
    const unsigned all = (1u << n) - 1;
    unsigned open = ~(columns | left | right >> 16) & all;
    for (;;) {
        if (open) {
            const unsigned column = open & -open;
            open ^= column;
            if (depth + 1 == rows) {
                found++;
                continue;
            }
            kept[depth++] = open | column << 16;
            columns |= column;
            left = (left | column) << 1;
            right = (right | column << 16) >> 1;
            open = ~(columns | left | right >> 16) & all;
        } else {
            if (!depth) return found;
            const unsigned row = kept[--depth], column = row >> 16;
            open = row & 0xffff;
            columns ^= column;
            left = left >> 1 & ~column;
            right = right << 1 & ~(column << 16);
        }
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

// Spawns a task for each column of the next row that is not attacked; the last rows are one task.
FLOW_KERNEL queens(Work work, Channel* counts, unsigned n, unsigned serial_rows) {
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

FLOW_KERNEL queens_sum(Work work) {
    if (!has_work(work)) return;
    const unsigned source = deq(work);
    unsigned* result = read<unsigned*>(work.source, source);
    const unsigned children = *word_of(work.source, source, 2);
    unsigned sum = 0;
    for (unsigned i = 0; i < children; i++) sum += *word_of(work.source, source, FIRST_COUNT + i);
    *result = sum;
    tfree(work, source);
}

FLOW_MAIN(queens, queens_sum)
