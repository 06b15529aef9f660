// Each thread sorts 16 values in a private array; its indices are dynamic, so it lives in local memory.
#include "warploom.cuh"

const unsigned LENGTH = 16;

extern "C" __global__ void localarray(const int* in, int* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    const int* source = in + (size_t)i * LENGTH;
    int* target = out + (size_t)i * LENGTH;

    int sorted[LENGTH];
    for (unsigned k = 0; k < LENGTH; ++k) {
        int v = source[k];
        unsigned at = k;
        while (at > 0 && sorted[at - 1] > v) {
            sorted[at] = sorted[at - 1];
            --at;
        }
        sorted[at] = v;
    }
    for (unsigned k = 0; k < LENGTH; ++k) target[k] = sorted[k];
}
