// What the runtime tells of the device, which must agree however it is asked.
#include "check.h"

__global__ void large(int* out) {
    extern __shared__ int part[];
    part[threadIdx.x] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = part[blockDim.x - 1 - threadIdx.x];
}

int attribute(cudaDeviceAttr which) {
    int value = -1;
    CHECK(cudaDeviceGetAttribute(&value, which, 0));
    return value;
}

int main() {
    int devices = 0, device = -1;
    CHECK(cudaGetDeviceCount(&devices));
    CHECK(cudaGetDevice(&device));
    REQUIRE(devices >= 1 && device == 0);
    cudaDeviceProp about;
    CHECK(cudaGetDeviceProperties(&about, 0));
    REQUIRE(about.multiProcessorCount == attribute(cudaDevAttrMultiProcessorCount));
    REQUIRE(about.major == attribute(cudaDevAttrComputeCapabilityMajor));
    REQUIRE(about.warpSize == attribute(cudaDevAttrWarpSize));
    REQUIRE(about.maxThreadsPerBlock == attribute(cudaDevAttrMaxThreadsPerBlock));
    REQUIRE(about.maxGridSize[1] == attribute(cudaDevAttrMaxGridDimY));
    REQUIRE((int)about.sharedMemPerBlock == attribute(cudaDevAttrMaxSharedMemoryPerBlock));
    REQUIRE((int)about.sharedMemPerBlockOptin == attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin));
    REQUIRE(about.regsPerMultiprocessor == attribute(cudaDevAttrMaxRegistersPerMultiprocessor));
    REQUIRE(about.maxThreadsPerMultiProcessor == attribute(cudaDevAttrMaxThreadsPerMultiProcessor));
    REQUIRE(about.cooperativeLaunch == attribute(cudaDevAttrCooperativeLaunch));
    size_t free_bytes, total, before;
    CHECK(cudaMemGetInfo(&before, &total));
    REQUIRE(total == about.totalGlobalMem || before <= about.totalGlobalMem);
    int* out;
    CHECK(cudaMalloc(&out, 64 << 20));
    CHECK(cudaMemGetInfo(&free_bytes, &total));
    REQUIRE(free_bytes < before);

    cudaFuncAttributes function;
    CHECK(cudaFuncGetAttributes(&function, large));
    REQUIRE(function.numRegs > 0 && function.maxThreadsPerBlock > 0 && function.sharedSizeBytes == 0);
    int more = (int)about.sharedMemPerBlock + 1024;
    if (about.sharedMemPerBlockOptin >= (size_t)more) {
        large<<<1, 128, more>>>(out);
        REQUIRE(cudaGetLastError() != cudaSuccess);
        CHECK(cudaFuncSetAttribute(large, cudaFuncAttributeMaxDynamicSharedMemorySize, more));
        large<<<1, 128, more>>>(out);
        CHECK(cudaDeviceSynchronize());
    }
    int first;
    large<<<1, 128, 512>>>(out);
    CHECK(cudaMemcpy(&first, out, sizeof first, cudaMemcpyDeviceToHost));
    REQUIRE(first == 127);
    return passed();
}
