// What kernels print, and what becomes of one that fails an assertion. `output assert` fails it.
#include "check.h"

#include <cassert>
#include <cstring>

__global__ void print(int limit) {
    if (threadIdx.x % 8 == 0) printf("thread %d of %s: %.2f\n", threadIdx.x, "print", threadIdx.x * 0.25);
    assert(threadIdx.x < limit);
}

int main(int count, char** words) {
    puts("before the launch");
    print<<<1, 32>>>(100);
    puts("after the launch, before the device is waited for");
    CHECK(cudaDeviceSynchronize());
    if (count > 1 && !strcmp(words[1], "assert")) {
        print<<<1, 32>>>(20);
        cudaError_t error = cudaDeviceSynchronize();
        printf("%s: %s\n", cudaGetErrorName(error), cudaGetErrorString(error));
        REQUIRE(error == cudaErrorAssert);
        // The error stays: the device is of no use any more.
        REQUIRE(cudaGetLastError() == cudaErrorAssert && cudaGetLastError() == cudaErrorAssert);
        void* memory;
        REQUIRE(cudaMalloc(&memory, 4) == cudaErrorAssert);
    }
    return passed();
}
