// A producer and a consumer in two streams, ordered by events; and how long copies and kernels take, by events.
#include "check.h"

__global__ void produce(int* data, int n, int round) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] = i * round;
}

__global__ void consume(const int* data, int* sum, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(sum, data[i]);
}

__global__ void spin(long long cycles) {
    long long start = clock64();
    while (clock64() - start < cycles) {
    }
}

int main() {
    const int n = 4096, rounds = 3;
    int *data, *sum, *host;
    CHECK(cudaMalloc(&data, n * sizeof(int)));
    CHECK(cudaMalloc(&sum, sizeof(int)));
    CHECK(cudaMallocHost(&host, sizeof(int)));
    CHECK(cudaMemset(sum, 0, sizeof(int)));
    cudaStream_t producer, consumer;
    cudaEvent_t produced, consumed, start, end;
    CHECK(cudaStreamCreate(&producer));
    CHECK(cudaStreamCreateWithFlags(&consumer, cudaStreamNonBlocking));
    CHECK(cudaEventCreateWithFlags(&produced, cudaEventDisableTiming));
    CHECK(cudaEventCreateWithFlags(&consumed, cudaEventDisableTiming));
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&end));
    CHECK(cudaDeviceSynchronize());
    long long expected = 0;
    for (int round = 1; round <= rounds; round++) {
        if (round > 1) CHECK(cudaStreamWaitEvent(producer, consumed, 0));
        produce<<<n / 256, 256, 0, producer>>>(data, n, round);
        CHECK(cudaEventRecord(produced, producer));
        CHECK(cudaStreamWaitEvent(consumer, produced, 0));
        consume<<<n / 256, 256, 0, consumer>>>(data, sum, n);
        CHECK(cudaEventRecord(consumed, consumer));
        expected += (long long)n * (n - 1) / 2 * round;
    }
    CHECK(cudaMemcpyAsync(host, sum, sizeof(int), cudaMemcpyDeviceToHost, consumer));
    CHECK(cudaStreamSynchronize(consumer));
    REQUIRE(*host == (int)expected);

    // The first launch of a kernel loads it.
    spin<<<1, 1, 0, producer>>>(0);
    CHECK(cudaStreamSynchronize(producer));
    float short_ms, long_ms;
    for (int times = 1; times <= 2; times++) {
        CHECK(cudaEventRecord(start, producer));
        spin<<<1, 1, 0, producer>>>(times * 20000);
        CHECK(cudaEventRecord(end, producer));
        CHECK(cudaEventSynchronize(end));
        CHECK(cudaEventElapsedTime(times == 1 ? &short_ms : &long_ms, start, end));
    }
    REQUIRE(short_ms > 0 && long_ms > short_ms);
    CHECK(cudaEventQuery(end));
    CHECK(cudaStreamQuery(producer));
    REQUIRE(cudaStreamDestroy(producer) == cudaSuccess && cudaStreamDestroy(consumer) == cudaSuccess);
    return passed();
}
