// Thrust and CUB: a sort, a reduction, and a scan with temporary memory.
#include "check.h"

#include <algorithm>
#include <cub/device/device_scan.cuh>
#include <thrust/device_vector.h>
#include <thrust/host_vector.h>
#include <thrust/reduce.h>
#include <thrust/sort.h>
#include <vector>

int main(int count, char** words) {
    int n = count > 1 ? atoi(words[1]) : 1000;
    thrust::host_vector<int> host(n);
    unsigned random = 1;
    for (int i = 0; i < n; i++) host[i] = (random = random * 1664525 + 1013904223) >> 20;
    thrust::device_vector<int> device = host;
    long long sum = thrust::reduce(device.begin(), device.end(), 0LL);
    thrust::sort(device.begin(), device.end());
    std::vector<int> expected(host.begin(), host.end()), sorted(n);
    long long expected_sum = 0;
    for (int value : expected) expected_sum += value;
    REQUIRE(sum == expected_sum);
    std::sort(expected.begin(), expected.end());
    thrust::copy(device.begin(), device.end(), sorted.begin());
    REQUIRE(sorted == expected);

    thrust::device_vector<int> sums(n);
    size_t bytes = 0;
    CHECK(cub::DeviceScan::InclusiveSum(nullptr, bytes, device.data().get(), sums.data().get(), n));
    void* temporary;
    CHECK(cudaMalloc(&temporary, bytes));
    CHECK(cub::DeviceScan::InclusiveSum(temporary, bytes, device.data().get(), sums.data().get(), n));
    CHECK(cudaDeviceSynchronize());
    REQUIRE(sums[n - 1] == (int)expected_sum && sums[0] == expected[0]);
    printf("%d numbers, sum %lld\n", n, sum);
    return passed();
}
