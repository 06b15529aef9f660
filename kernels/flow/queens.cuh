// A board of queens, filled row by row.
#pragma once
#include "channel.cuh"

// Attacked columns, and the diagonals as they hit the next row.
struct Board {
    unsigned columns, left, right;
};

WL_FN unsigned open_columns(const Board& board, unsigned n) {
    return ~(board.columns | board.left | board.right) & ((1u << n) - 1);
}
WL_FN Board place(const Board& board, unsigned column) {
    return Board{board.columns | column, (board.left | column) << 1, (board.right | column) >> 1};
}
