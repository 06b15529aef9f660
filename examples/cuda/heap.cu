// The heap of kernels: each thread builds a list with malloc, adds it up and frees it; blocks are used again.
#include "check.h"

struct Link {
    Link *next;
    int value;
};

__global__ void lists(int *sums, int length, int rounds) {
    int me = blockIdx.x * blockDim.x + threadIdx.x;
    int sum = 0;
    for (int round = 0; round < rounds; round++) {
        Link *first = nullptr;
        for (int i = 0; i < length; i++) {
            Link *link = (Link *)malloc(sizeof(Link));
            if (!link) {
                sums[me] = -1;
                return;
            }
            link->next = first, link->value = me + i;
            first = link;
        }
        while (first) {
            Link *link = first;
            first = link->next;
            sum += link->value;
            free(link);
        }
    }
    sums[me] = sum;
}

__global__ void too_much(int *failed, size_t bytes) { *failed = malloc(bytes) == nullptr; }

__global__ void keeps(int **place) {
    *place = new int[4];
    for (int i = 0; i < 4; i++) (*place)[i] = i * i;
}

__global__ void uses(int **place, int *sum) {
    for (int i = 0; i < 4; i++) *sum += (*place)[i];
    delete[] *place;
}

int main() {
    const int threads = 256, length = 5, rounds = 12;
    int *sums, **kept;
    size_t limit = 0;
    CHECK(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 128 << 10));
    CHECK(cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize));
    CHECK(cudaMallocManaged(&sums, threads * sizeof(int)));
    CHECK(cudaMalloc(&kept, sizeof(int *)));
    // Without free, 256 * 5 * 12 blocks of 32 bytes would need 491,520 bytes: blocks must come back.
    lists<<<2, threads / 2>>>(sums, length, rounds);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < threads; i++)
        if (sums[i] != rounds * (length * i + 10)) return printf("list %d: %d\n", i, sums[i]), 1;
    // A real GPU makes a heap of 4 MB at least.
    too_much<<<1, 1>>>(sums, 1 << 30);
    keeps<<<1, 1>>>(kept);
    CHECK(cudaDeviceSynchronize());
    if (sums[0] != 1) return printf("more than the heap has\n"), 2;
    uses<<<1, 1>>>(kept, sums);
    CHECK(cudaDeviceSynchronize());
    if (sums[0] != 1 + 14) return printf("a block that was kept: %d\n", sums[0]), 3;
    return passed();
}
