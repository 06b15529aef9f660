// Sums of an array in three ways: a tree in shared memory, shuffles inside of warps, and atomics alone.
#include "check.h"

__global__ void tree(const unsigned* data, unsigned* sums, int n) {
    extern __shared__ unsigned part[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    part[threadIdx.x] = i < n ? data[i] : 0;
    __syncthreads();
    for (int half = blockDim.x / 2; half > 0; half /= 2) {
        if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = part[0];
}

__global__ void shuffles(const unsigned* data, unsigned* sum, int n) {
    unsigned mine = 0;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) mine += data[i];
    for (int step = 16; step > 0; step /= 2) mine += __shfl_down_sync(0xffffffff, mine, step);
    if (threadIdx.x % 32 == 0) atomicAdd(sum, mine);
}

__global__ void atomics(const unsigned* data, unsigned* sum, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(sum, data[i]);
}

int main(int count, char** words) {
    int n = count > 1 ? atoi(words[1]) : 10000;
    const int block = 256, grid = (n + block - 1) / block;
    unsigned* host = new unsigned[n];
    unsigned expected = 0;
    for (int i = 0; i < n; i++) expected += host[i] = i * 7 % 13;
    unsigned *data, *sums;
    CHECK(cudaMalloc(&data, n * sizeof(unsigned)));
    CHECK(cudaMalloc(&sums, grid * sizeof(unsigned)));
    CHECK(cudaMemcpy(data, host, n * sizeof(unsigned), cudaMemcpyHostToDevice));

    tree<<<grid, block, block * sizeof(unsigned)>>>(data, sums, n);
    CHECK(cudaGetLastError());
    unsigned* parts = new unsigned[grid];
    CHECK(cudaMemcpy(parts, sums, grid * sizeof(unsigned), cudaMemcpyDeviceToHost));
    unsigned sum = 0;
    for (int i = 0; i < grid; i++) sum += parts[i];
    REQUIRE(sum == expected);

    void (*kernels[])(const unsigned*, unsigned*, int) = {shuffles, atomics};
    for (auto kernel : kernels) {
        CHECK(cudaMemset(sums, 0, sizeof(unsigned)));
        kernel<<<grid, block>>>(data, sums, n);
        CHECK(cudaMemcpy(&sum, sums, sizeof sum, cudaMemcpyDeviceToHost));
        REQUIRE(sum == expected);
    }
    printf("%d numbers, sum %u\n", n, sum);
    CHECK(cudaFree(data));
    CHECK(cudaFree(sums));
    return passed();
}
