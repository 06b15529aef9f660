// Module-scope data: initialised arrays, constants, strings, addresses of other data.
#include "warploom.cuh"

__device__ unsigned table[3][4] = {{1, 2, 3, 4}, {10, 20, 30, 40}, {100, 200, 300, 400}};
__device__ unsigned short sparse[16] = {7, 0, 9};
__device__ unsigned char bytes[64] = {3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5};
__device__ unsigned zeroed[8];
__device__ float floats[3] = {0.5f, -2.25f, 1e10f};
__device__ double doubles[2] = {0.1, -3.0};
__device__ long long wide[2] = {-1, 0x123456789abcdefll};

__constant__ unsigned primes[10] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29};
__constant__ signed char offsets[3][2] = {{-1, 1}, {2, -2}, {-128, 127}};

__device__ char text[] = "Warp\tloom \"42\"";

struct Node {
    unsigned value;
    Node* next;
};
__device__ Node third = {33, 0};
__device__ Node second = {22, &third};
__device__ Node first = {11, &second};

__device__ unsigned* rows[3] = {&table[2][0], &table[0][1], &zeroed[5]};
__device__ const char* names[2] = {"alpha", "beta"};

extern "C" __global__ void globals(unsigned* out) {
    if (blockIdx.x != 0 || threadIdx.x != 0) return;
    unsigned at = 0;
    for (unsigned r = 0; r < 3; ++r)
        for (unsigned c = 0; c < 4; ++c) out[at++] = table[r][c];
    for (unsigned k = 0; k < 16; ++k) out[at++] = sparse[k];
    for (unsigned k = 0; k < 64; ++k) out[at++] = bytes[k];
    for (unsigned k = 0; k < 8; ++k) out[at++] = zeroed[k];
    for (unsigned k = 0; k < 3; ++k) out[at++] = (unsigned)(floats[k] * 4.0f < 1e9f ? (int)(floats[k] * 4.0f) : 77);
    for (unsigned k = 0; k < 2; ++k) out[at++] = (unsigned)(int)__dmul_rn(doubles[k], 1000.0);
    for (unsigned k = 0; k < 2; ++k) {
        out[at++] = (unsigned)wide[k];
        out[at++] = (unsigned)(wide[k] >> 32);
    }
    for (unsigned k = 0; k < 10; ++k) out[at++] = primes[k];
    for (unsigned r = 0; r < 3; ++r)
        for (unsigned c = 0; c < 2; ++c) out[at++] = (unsigned)(int)offsets[r][c];
    for (unsigned k = 0; k < sizeof(text); ++k) out[at++] = (unsigned char)text[k];
    out[at++] = first.next->value;
    out[at++] = first.next->next->value;
    for (unsigned k = 0; k < 3; ++k) out[at++] = *rows[k];
    for (unsigned k = 0; k < 2; ++k)
        for (const char* c = names[k]; *c; ++c) out[at++] = (unsigned char)*c;
    out[at++] = 0xffffffffu;
}
