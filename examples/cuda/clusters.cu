// Thread-block clusters by a launch's attributes: each CTA reads the shared memory of the next one of its cluster.
#include "check.h"

#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__global__ void pass_on(int* out) {
    __shared__ int mine;
    auto cluster = cg::this_cluster();
    if (threadIdx.x == 0) mine = 100 + blockIdx.x;
    cluster.sync();
    int next = (cluster.block_rank() + 1) % cluster.num_blocks();
    if (threadIdx.x == 0) out[blockIdx.x] = *cluster.map_shared_rank(&mine, next);
    // A CTA must not end while others use its shared memory.
    cluster.sync();
}

int main() {
    const int ctas = 8, of_cluster = 4;
    int* out;
    CHECK(cudaMallocManaged(&out, ctas * sizeof(int)));
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = of_cluster;
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = ctas;
    config.blockDim = 64;
    config.attrs = &attribute;
    config.numAttrs = 1;
    CHECK(cudaLaunchKernelEx(&config, pass_on, out));
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < ctas; i++) REQUIRE(out[i] == 100 + i / of_cluster * of_cluster + (i + 1) % of_cluster);
    // Clusters that do not divide the grid.
    attribute.val.clusterDim.x = 3;
    REQUIRE(cudaLaunchKernelEx(&config, pass_on, out) != cudaSuccess);
    return passed();
}
