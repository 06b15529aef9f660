// Variables of the device that the host reads and writes: constants, globals, by copy and by address.
#include "check.h"

__constant__ int weights[4];
__constant__ float scale = 0.5f;
__device__ int counter = 5;
__device__ double table[8];

__global__ void weigh(int* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        out[i] = weights[i % 4] * 10 + (int)(scale * 8);
        atomicAdd(&counter, 1);
    }
    if (i < 8) table[i] = i * 1.5;
}

int main() {
    const int n = 64;
    int *out, host[n], set[4] = {3, 1, 4, 1};
    CHECK(cudaMalloc(&out, sizeof host));
    CHECK(cudaMemcpyToSymbol(weights, set, sizeof set));
    weigh<<<1, n>>>(out, n);
    CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) REQUIRE(host[i] == set[i % 4] * 10 + 4);

    // A part of a constant, and a second launch that must see it.
    int nine = 9;
    float two = 2;
    CHECK(cudaMemcpyToSymbol(weights, &nine, sizeof nine, 2 * sizeof(int)));
    CHECK(cudaMemcpyToSymbol(scale, &two, sizeof two));
    weigh<<<1, n>>>(out, n);
    CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++) REQUIRE(host[i] == (i % 4 == 2 ? 9 : set[i % 4]) * 10 + 16);

    int back[4], count;
    CHECK(cudaMemcpyFromSymbol(back, weights, sizeof back));
    REQUIRE(back[0] == 3 && back[2] == 9);
    CHECK(cudaMemcpyFromSymbol(&count, counter, sizeof count));
    REQUIRE(count == 5 + 2 * n);

    void* address;
    size_t bytes;
    double values[8];
    CHECK(cudaGetSymbolAddress(&address, table));
    CHECK(cudaGetSymbolSize(&bytes, table));
    REQUIRE(bytes == sizeof values);
    CHECK(cudaMemcpy(values, address, bytes, cudaMemcpyDeviceToHost));
    REQUIRE(values[7] == 10.5);
    REQUIRE(cudaMemcpyToSymbol(weights, set, sizeof set, 8) == cudaErrorInvalidValue);
    REQUIRE(cudaGetLastError() == cudaErrorInvalidValue && cudaGetLastError() == cudaSuccess);
    return passed();
}
