// A cooperative launch: all CTAs wait for each other between the steps of a stencil.
#include "check.h"

#include <cooperative_groups.h>
#include <vector>

namespace cg = cooperative_groups;

__global__ void smooth(int* from, int* to, int n, int steps) {
    cg::grid_group grid = cg::this_grid();
    for (int step = 0; step < steps; step++) {
        for (int i = grid.thread_rank(); i < n; i += grid.size()) {
            int left = i > 0 ? from[i - 1] : 0, right = i + 1 < n ? from[i + 1] : 0;
            to[i] = (left + from[i] + right) % 1000;
        }
        grid.sync();
        int* other = from;
        from = to;
        to = other;
    }
}

int main() {
    int n = 3000, steps = 4, per_sm = 0, supported = 0;
    CHECK(cudaDeviceGetAttribute(&supported, cudaDevAttrCooperativeLaunch, 0));
    REQUIRE(supported);
    cudaDeviceProp about;
    CHECK(cudaGetDeviceProperties(&about, 0));
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&per_sm, smooth, 128, 0));
    REQUIRE(per_sm > 0);
    std::vector<int> host(n), other(n), result(n);
    for (int i = 0; i < n; i++) host[i] = i % 17;
    int *from, *to;
    CHECK(cudaMalloc(&from, n * sizeof(int)));
    CHECK(cudaMalloc(&to, n * sizeof(int)));
    CHECK(cudaMemcpy(from, host.data(), n * sizeof(int), cudaMemcpyHostToDevice));
    void* arguments[] = {&from, &to, &n, &steps};
    CHECK(cudaLaunchCooperativeKernel((const void*)smooth, 8, 128, arguments));
    CHECK(cudaMemcpy(result.data(), from, n * sizeof(int), cudaMemcpyDeviceToHost));
    for (int step = 0; step < steps; step++) {
        for (int i = 0; i < n; i++)
            other[i] = ((i > 0 ? host[i - 1] : 0) + host[i] + (i + 1 < n ? host[i + 1] : 0)) % 1000;
        host.swap(other);
    }
    REQUIRE(result == host);
    // More CTAs than are resident at once could wait for each other without end.
    int ctas = per_sm * about.multiProcessorCount + 1;
    REQUIRE(cudaLaunchCooperativeKernel((const void*)smooth, ctas, 128, arguments) == cudaErrorCooperativeLaunchTooLarge);
    REQUIRE(cudaGetLastError() == cudaErrorCooperativeLaunchTooLarge);
    return passed();
}
