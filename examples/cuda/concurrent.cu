// Kernels of several streams on the chip at the same time: one that waits for another, one that the host feeds round by
// round, two that share it, and chunks that are copied, computed and copied back in streams of their own.
#include "check.h"

__global__ void consume(volatile int* flags, volatile int* data, int* sum, int rounds) {
    for (int round = 0; round < rounds; round++) {
        while (flags[round] == 0) {
        }
        __threadfence();
        *sum += data[round];
    }
}

__global__ void produce(volatile int* flags, volatile int* data, int rounds) {
    for (int round = 0; round < rounds; round++) {
        data[round] = 10 + round;
        __threadfence();
        flags[round] = 1;
    }
}

__global__ void spin(long long cycles) {
    long long start = clock64();
    while (clock64() - start < cycles) {
    }
}

__global__ void triple(int* data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] *= 3;
}

static float elapsed(int streams, cudaStream_t* stream, long long cycles) {
    cudaEvent_t start, end;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&end));
    CHECK(cudaEventRecord(start));
    for (int i = 0; i < streams; i++) spin<<<2, 64, 0, stream[i]>>>(cycles);
    CHECK(cudaEventRecord(end));
    CHECK(cudaEventSynchronize(end));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, end));
    CHECK(cudaEventDestroy(start));
    CHECK(cudaEventDestroy(end));
    return ms;
}

int main() {
    const int rounds = 4, streams = 4, chunk = 1024;
    cudaStream_t stream[streams];
    for (int i = 0; i < streams; i++) CHECK(cudaStreamCreate(&stream[i]));

    // Kernels are loaded with their first launch, which a kernel that waits would hold up.
    int *flags, *data, *sum, host;
    CHECK(cudaMalloc(&flags, rounds * sizeof(int)));
    CHECK(cudaMalloc(&data, rounds * sizeof(int)));
    CHECK(cudaMalloc(&sum, sizeof(int)));
    CHECK(cudaMemset(flags, 0, rounds * sizeof(int)));
    CHECK(cudaMemset(sum, 0, sizeof(int)));
    consume<<<1, 1>>>(flags, data, sum, 0);
    produce<<<1, 1>>>(flags, data, 0);
    spin<<<1, 1>>>(0);
    CHECK(cudaDeviceSynchronize());

    // The one that waits comes first.
    consume<<<1, 1, 0, stream[0]>>>(flags, data, sum, rounds);
    produce<<<1, 1, 0, stream[1]>>>(flags, data, rounds);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(&host, sum, sizeof(int), cudaMemcpyDeviceToHost));
    REQUIRE(host == 10 + 11 + 12 + 13);

    // The host waits for each round before it asks for the next, while the consumer runs.
    CHECK(cudaMemset(flags, 0, rounds * sizeof(int)));
    CHECK(cudaMemset(sum, 0, sizeof(int)));
    consume<<<1, 1, 0, stream[0]>>>(flags, data, sum, rounds);
    for (int round = 0; round < rounds; round++) {
        int last = 0;
        produce<<<1, 1, 0, stream[1]>>>(flags + round, data + round, 1);
        CHECK(cudaStreamSynchronize(stream[1]));
        CHECK(cudaMemcpyAsync(&last, data + round, sizeof(int), cudaMemcpyDeviceToHost, stream[1]));
        CHECK(cudaStreamSynchronize(stream[1]));
        REQUIRE(last == 10);
    }
    CHECK(cudaStreamSynchronize(stream[0]));
    CHECK(cudaMemcpy(&host, sum, sizeof(int), cudaMemcpyDeviceToHost));
    REQUIRE(host == 40);

    // Small kernels share the chip.
    float one = elapsed(1, stream, 100000), all = elapsed(streams, stream, 100000);
    REQUIRE(one > 0 && all < 2 * one);

    // Chunks overlap, and each stream keeps its order.
    int *pinned, *device;
    CHECK(cudaMallocHost(&pinned, streams * chunk * sizeof(int)));
    CHECK(cudaMalloc(&device, streams * chunk * sizeof(int)));
    for (int i = 0; i < streams * chunk; i++) pinned[i] = i;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < streams; i++) {
            int *from = pinned + i * chunk, *to = device + i * chunk;
            size_t bytes = chunk * sizeof(int);
            CHECK(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream[i]));
            triple<<<chunk / 256, 256, 0, stream[i]>>>(to, chunk);
            CHECK(cudaMemcpyAsync(from, to, bytes, cudaMemcpyDeviceToHost, stream[i]));
        }
    }
    for (int i = 0; i < streams; i++) CHECK(cudaStreamSynchronize(stream[i]));
    for (int i = 0; i < streams * chunk; i++) REQUIRE(pinned[i] == 9 * i);
    for (int i = 0; i < streams; i++) CHECK(cudaStreamDestroy(stream[i]));
    return passed();
}
