// Breadth-first search, one launch per level, until a flag says that no vertex was added.
#include "check.h"

#include <queue>
#include <vector>

__global__ void level(const int* first, const int* edges, int* depth, int vertices, int now, int* changed) {
    int v = blockIdx.x * blockDim.x + threadIdx.x;
    if (v >= vertices || depth[v] != now) return;
    for (int e = first[v]; e < first[v + 1]; e++) {
        int to = edges[e];
        if (depth[to] < 0) {
            depth[to] = now + 1;
            *changed = 1;
        }
    }
}

int main(int count, char** words) {
    int vertices = count > 1 ? atoi(words[1]) : 2000;
    const int degree = 4;
    std::vector<int> first(vertices + 1), edges, expected(vertices, -1);
    unsigned random = 12345;
    for (int v = 0; v < vertices; v++) {
        first[v] = edges.size();
        for (int e = 0; e < degree; e++) {
            random = random * 1664525 + 1013904223;
            // Most edges are short, so that there are several levels.
            edges.push_back((v + 1 + (random >> 16) % 50) % vertices);
        }
    }
    first[vertices] = edges.size();
    std::queue<int> queue({0});
    expected[0] = 0;
    for (; !queue.empty(); queue.pop())
        for (int v = queue.front(), e = first[v]; e < first[v + 1]; e++)
            if (expected[edges[e]] < 0) expected[edges[e]] = expected[v] + 1, queue.push(edges[e]);

    int *d_first, *d_edges, *d_depth, *d_changed;
    CHECK(cudaMalloc(&d_first, first.size() * sizeof(int)));
    CHECK(cudaMalloc(&d_edges, edges.size() * sizeof(int)));
    CHECK(cudaMalloc(&d_depth, vertices * sizeof(int)));
    CHECK(cudaMalloc(&d_changed, sizeof(int)));
    CHECK(cudaMemcpy(d_first, first.data(), first.size() * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_edges, edges.data(), edges.size() * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(d_depth, 0xff, vertices * sizeof(int)));
    CHECK(cudaMemset(d_depth, 0, sizeof(int)));
    int levels = 0;
    for (int changed = 1; changed; levels++) {
        CHECK(cudaMemset(d_changed, 0, sizeof(int)));
        level<<<(vertices + 255) / 256, 256>>>(d_first, d_edges, d_depth, vertices, levels, d_changed);
        CHECK(cudaMemcpy(&changed, d_changed, sizeof(int), cudaMemcpyDeviceToHost));
    }
    std::vector<int> depth(vertices);
    CHECK(cudaMemcpy(depth.data(), d_depth, vertices * sizeof(int), cudaMemcpyDeviceToHost));
    REQUIRE(depth == expected);
    printf("%d vertices, %d launches\n", vertices, levels);
    return passed();
}
