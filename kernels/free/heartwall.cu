// Tracks points of a wall from frame to frame: a block searches around its point for the patch that differs least from
// the point's template.
// Flags: -mllvm -disable-block-placement
#include "../warploom.cuh"

// places[p], (x, y), moves by at most `reach` in each direction. templates[p] has (2 radius + 1)^2 pixels, and the frame
// has a border of `reach + radius` that no point enters. The block size must be a power of two, by which the loops over
// pixels advance. Dynamic shared memory, in words: the square of the window's side, and twice the number of threads.
extern "C" __global__ void heartwall_track(const unsigned char* frame, unsigned width, unsigned height,
                                           const unsigned char* templates, unsigned* places, unsigned radius,
                                           unsigned reach) {
    extern __shared__ unsigned window[];
    unsigned patch = 2 * radius + 1, moves = 2 * reach + 1, side = patch + 2 * reach, t = threadIdx.x;
    unsigned *least = window + side * side, *best = least + blockDim.x;
    unsigned x = places[2 * blockIdx.x], y = places[2 * blockIdx.x + 1], margin = reach + radius;
    const unsigned char* corner = frame + (y - margin) * width + (x - margin);
#pragma unroll 1
    for (unsigned e = t; e < side * side; e += blockDim.x) window[e] = corner[e / side * width + e % side];
    __syncthreads();

    const unsigned char* wanted = templates + blockIdx.x * patch * patch;
    least[t] = ~0u;
    best[t] = 0;
#pragma unroll 1
    for (unsigned move = t; move < moves * moves; move += blockDim.x) {
        const unsigned* from = window + move / moves * side + move % moves;
        unsigned sum = 0;
#pragma unroll 1
        for (unsigned row = 0; row < patch; ++row)
#pragma unroll 1
            for (unsigned column = 0; column < patch; ++column) {
                int d = (int)from[row * side + column] - (int)wanted[row * patch + column];
                sum += d * d;
            }
        if (sum < least[t]) least[t] = sum, best[t] = move;
    }
    __syncthreads();
#pragma unroll 1
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (t < half) {
            unsigned a = least[t], b = least[t + half];
            if (b < a || (b == a && best[t + half] < best[t])) least[t] = b, best[t] = best[t + half];
        }
        __syncthreads();
    }
    if (t == 0) {
        unsigned new_x = x + best[0] % moves - reach, new_y = y + best[0] / moves - reach;
        places[2 * blockIdx.x] = min(max(new_x, margin), width - 1 - margin);
        places[2 * blockIdx.x + 1] = min(max(new_y, margin), height - 1 - margin);
    }
}
