// One level of a breadth-first search over a graph in compressed rows.
#include "warploom.cuh"

const unsigned UNSEEN = 0xffffffffu;

extern "C" __global__ void bfs(const unsigned* row, const unsigned* col, unsigned* level, unsigned depth,
                               unsigned* changed, unsigned n) {
    unsigned v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= n || level[v] != depth) return;
    for (unsigned e = row[v]; e < row[v + 1]; ++e) {
        unsigned w = col[e];
        if (level[w] == UNSEEN) {
            level[w] = depth + 1;
            *changed = 1;
        }
    }
}
