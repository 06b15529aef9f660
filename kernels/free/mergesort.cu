// Merge sort.
// Flags: -mllvm -disable-block-placement
#include "../warploom.cuh"

const unsigned TILE = 1024;  // keys that a block sorts

// bounds[0] = the smallest key, bounds[1] = the largest; initially ~0 and 0. The number of threads must be a power of two:
// a loop whose counter advances by a power of two, with nothing in its lower bits.
extern "C" __global__ void mergesort_bounds(const unsigned* keys, unsigned count, unsigned* bounds) {
    unsigned low = ~0u, high = 0;
#pragma unroll 1
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        low = min(low, keys[i]);
        high = max(high, keys[i]);
    }
    atomicMin(&bounds[0], low);
    atomicMax(&bounds[1], high);
}

// Sorts each tile of keys by merging in shared memory.
extern "C" __global__ void mergesort_tiles(unsigned* keys, unsigned count) {
    __shared__ unsigned tile[2][TILE];
    unsigned first = blockIdx.x * TILE, size = min(TILE, count - first), from = 0;
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < size; i += blockDim.x) tile[0][i] = keys[first + i];
    __syncthreads();
#pragma unroll 1
    for (unsigned width = 1; width < size; width *= 2) {
#pragma unroll 1
        for (unsigned i = threadIdx.x; i < size; i += blockDim.x) {
            // Its rank is its rank in its own run plus its rank among the keys of the other run.
            unsigned key = tile[from][i], pair = i & ~(2 * width - 1), right = i & width;
            unsigned low = min(right ? pair : pair + width, size), high = min(right ? pair + width : pair + 2 * width, size);
            unsigned other = low;
#pragma unroll 1
            while (low < high) {
                unsigned middle = (low + high) / 2, there = tile[from][middle];
                // Of equal keys, those of the left run come first.
                if (there < key || (right && there == key)) low = middle + 1;
                else high = middle;
            }
            unsigned place = pair + (i & (width - 1)) + low - other;
            tile[1 - from][place] = key;
        }
        from = 1 - from;
        __syncthreads();
    }
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < size; i += blockDim.x) keys[first + i] = tile[from][i];
}

// Merges sorted runs of `width` keys, a power of two, in pairs.
extern "C" __global__ void mergesort_merge(const unsigned* keys, unsigned* merged, unsigned count, unsigned width) {
#pragma unroll 1
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        unsigned key = keys[i], pair = i & ~(2 * width - 1), right = i & width;
        unsigned low = min(right ? pair : pair + width, count), high = min(right ? pair + width : pair + 2 * width, count);
        unsigned other = low;
#pragma unroll 1
        while (low < high) {
            unsigned middle = low + (high - low) / 2, there = keys[middle];
            if (there < key || (right && there == key)) low = middle + 1;
            else high = middle;
        }
        merged[pair + (i & (width - 1)) + low - other] = key;
    }
}
