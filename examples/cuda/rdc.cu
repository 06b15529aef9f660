// A kernel that calls a function and uses a variable of another file (rdc_other.cu), linked by nvcc -rdc=true.
#include "check.h"

extern __device__ int offset;
__device__ int other(int x);

__global__ void call(int* out) { out[threadIdx.x] = other(threadIdx.x) + offset; }

void set_offset(int value);

int main() {
    int *out, host[32];
    CHECK(cudaMalloc(&out, sizeof host));
    set_offset(100);
    call<<<1, 32>>>(out);
    CHECK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
    for (int i = 0; i < 32; i++) REQUIRE(host[i] == i * i + 1 + 100);
    return passed();
}
