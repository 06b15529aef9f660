// A hash table of chains with one spin lock per bucket: all threads insert, and every key must be in its chain once.
#include "check.h"

#include <vector>

struct Node {
    unsigned key;
    int next;
};

__global__ void insert(const unsigned* keys, int n, Node* nodes, int* heads, int* locks, int buckets) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned bucket = keys[i] * 2654435761u % buckets;
    nodes[i].key = keys[i];
    bool done = false;
    while (!done) {
        if (atomicCAS(&locks[bucket], 0, 1) == 0) {
            __threadfence();
            nodes[i].next = heads[bucket];
            ((volatile int*)heads)[bucket] = i;
            __threadfence();
            atomicExch(&locks[bucket], 0);
            done = true;
        }
    }
}

int main(int count, char** words) {
    int n = count > 1 ? atoi(words[1]) : 2000, buckets = count > 2 ? atoi(words[2]) : 64;
    std::vector<unsigned> keys(n);
    for (int i = 0; i < n; i++) keys[i] = i * 3 + 1;
    unsigned* d_keys;
    Node* d_nodes;
    int *d_heads, *d_locks;
    CHECK(cudaMalloc(&d_keys, n * sizeof(unsigned)));
    CHECK(cudaMalloc(&d_nodes, n * sizeof(Node)));
    CHECK(cudaMalloc(&d_heads, buckets * sizeof(int)));
    CHECK(cudaMalloc(&d_locks, buckets * sizeof(int)));
    CHECK(cudaMemcpy(d_keys, keys.data(), n * sizeof(unsigned), cudaMemcpyHostToDevice));
    CHECK(cudaMemset(d_heads, 0xff, buckets * sizeof(int)));
    CHECK(cudaMemset(d_locks, 0, buckets * sizeof(int)));
    insert<<<(n + 127) / 128, 128>>>(d_keys, n, d_nodes, d_heads, d_locks, buckets);
    CHECK(cudaDeviceSynchronize());
    std::vector<Node> nodes(n);
    std::vector<int> heads(buckets);
    CHECK(cudaMemcpy(nodes.data(), d_nodes, n * sizeof(Node), cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(heads.data(), d_heads, buckets * sizeof(int), cudaMemcpyDeviceToHost));
    int found = 0;
    std::vector<bool> seen(n);
    for (int bucket = 0; bucket < buckets; bucket++)
        for (int at = heads[bucket]; at >= 0; at = nodes[at].next, found++) {
            REQUIRE(at < n && !seen[at]);
            REQUIRE(nodes[at].key * 2654435761u % buckets == (unsigned)bucket);
            seen[at] = true;
        }
    REQUIRE(found == n);
    printf("%d keys in %d buckets\n", found, buckets);
    return passed();
}
