// Formatted output and assertions.
#include "warploom.cuh"

extern "C" __global__ void hello(unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const char* parity = i % 2 ? "odd" : "even";
    if (i == 0) printf("hello, 100%% plain\n");
    printf("thread %d of %u: hex %x, half %f, %s, letter %c\n", (int)i, n, i * 0x9e3779b9u, i * 0.5, parity,
           'a' + (int)(i % 26));
    printf("big %llu, quarter %5.2f, [%-6d] [%06u] %lld\n", i * 10000000000ull, i * 0.25, (int)i, i,
           -(long long)i);
}

extern "C" __global__ void checked(const int* in, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) assert(in[i] >= 0);
}
