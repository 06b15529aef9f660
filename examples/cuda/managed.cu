// Memory that host and device share: managed, a managed variable, pinned and mapped, and the host's own, registered.
#include "check.h"

__managed__ int launches = 40;

__global__ void twice(int* data, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] *= 2;
    if (i == 0) launches++;
}

struct List {
    int value;
    List* next;
};

// Pointers inside of managed memory mean the same on both sides.
__global__ void sum(const List* list, int* out) {
    int total = 0;
    for (; list; list = list->next) total += list->value;
    *out = total;
}

int main() {
    const int n = 1000;
    REQUIRE(launches == 40);
    int* managed;
    CHECK(cudaMallocManaged(&managed, n * sizeof(int)));
    for (int i = 0; i < n; i++) managed[i] = i;
    twice<<<4, 256>>>(managed, n);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < n; i++) REQUIRE(managed[i] == 2 * i);
    managed[7] = -1;
    twice<<<4, 256>>>(managed, n);
    CHECK(cudaDeviceSynchronize());
    REQUIRE(managed[7] == -2 && managed[8] == 32);
    REQUIRE(launches == 42);

    List* list;
    CHECK(cudaMallocManaged(&list, 10 * sizeof(List)));
    for (int i = 0; i < 10; i++) list[i] = {i, i < 9 ? &list[i + 1] : nullptr};
    sum<<<1, 1>>>(list, managed);
    CHECK(cudaDeviceSynchronize());
    REQUIRE(managed[0] == 45);

    int *pinned, *mapped;
    CHECK(cudaHostAlloc(&pinned, n * sizeof(int), cudaHostAllocMapped));
    CHECK(cudaHostGetDevicePointer(&mapped, pinned, 0));
    for (int i = 0; i < n; i++) pinned[i] = 3;
    twice<<<4, 256>>>(mapped, n);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < n; i++) REQUIRE(pinned[i] == 6);

    int* own = (int*)malloc(n * sizeof(int));
    for (int i = 0; i < n; i++) own[i] = 5;
    CHECK(cudaHostRegister(own, n * sizeof(int), cudaHostRegisterMapped));
    CHECK(cudaHostGetDevicePointer(&mapped, own, 0));
    twice<<<4, 256>>>(mapped, n);
    CHECK(cudaDeviceSynchronize());
    for (int i = 0; i < n; i++) REQUIRE(own[i] == 10);
    CHECK(cudaHostUnregister(own));

    cudaPointerAttributes about;
    CHECK(cudaPointerGetAttributes(&about, managed + 5));
    REQUIRE(about.type == cudaMemoryTypeManaged);
    CHECK(cudaPointerGetAttributes(&about, pinned));
    REQUIRE(about.type == cudaMemoryTypeHost);
    CHECK(cudaFreeHost(pinned));
    CHECK(cudaFree(managed));
    return passed();
}
