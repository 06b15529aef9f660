// Mistakes, and the errors that a program expects for them. `errors address`, `errors align` and `errors hang` make a
// kernel fail.
#include "check.h"

#include <cstring>

__global__ void store(int* to, int at) { to[at] = 1; }

// Waits for a word that nobody writes. A GPU without a watchdog would run it for ever.
__global__ void never(volatile int* flag) {
    while (*flag == 0) {
    }
}

// What a launch that no GPU could run leaves behind: by the manual the first one, by CUDA 13.0 on an H200 the other.
static bool refused(cudaError_t error) {
    return error == cudaErrorInvalidConfiguration || error == cudaErrorInvalidValue;
}

int main(int count, char** words) {
    int* memory;
    CHECK(cudaMalloc(&memory, 1024));
    CHECK(cudaMemset(memory, 0, 1024));
    store<<<1, 2000>>>(memory, 0);
    REQUIRE(refused(cudaPeekAtLastError()));
    REQUIRE(refused(cudaGetLastError()) && cudaGetLastError() == cudaSuccess);
    store<<<0, 32>>>(memory, 0);
    REQUIRE(refused(cudaGetLastError()));
    char host[16];
    REQUIRE(cudaMemcpy(host, (char*)memory + 1020, 16, cudaMemcpyDeviceToHost) == cudaErrorInvalidValue);
    REQUIRE(cudaFree((char*)memory + 8) == cudaErrorInvalidValue);
    REQUIRE(cudaSetDevice(99) == cudaErrorInvalidDevice);
    REQUIRE(cudaGetLastError() == cudaErrorInvalidDevice);
    REQUIRE(!strcmp(cudaGetErrorName(cudaErrorIllegalAddress), "cudaErrorIllegalAddress"));
    // Nothing of that harms the device.
    store<<<1, 1>>>(memory, 3);
    CHECK(cudaDeviceSynchronize());
    const char* how = count > 1 ? words[1] : "";
    cudaError_t expected = cudaSuccess;
    if (!strcmp(how, "address")) {
        store<<<1, 1>>>(memory, 1 << 28);
        expected = cudaErrorIllegalAddress;
    } else if (!strcmp(how, "align")) {
        store<<<1, 1>>>((int*)((char*)memory + 2), 0);
        expected = cudaErrorMisalignedAddress;
    } else if (!strcmp(how, "hang")) {
        never<<<1, 32>>>(memory);
        expected = cudaErrorLaunchTimeout;
    }
    cudaError_t error = cudaDeviceSynchronize();
    printf("%s\n", cudaGetErrorName(error));
    REQUIRE(error == expected);
    if (error != cudaSuccess) REQUIRE(cudaFree(memory) == expected);
    return passed();
}
