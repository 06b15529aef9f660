// Votes, matches and the other shuffles: six words per thread.
#include "warploom.cuh"

extern "C" __global__ void warpops(const unsigned* in, unsigned* out) {
    const unsigned everyone = 0xffffffffu;
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32;
    unsigned v = in[i];
    unsigned* mine = out + 6 * (size_t)i;
    mine[0] = __ballot_sync(everyone, v & 1);
    mine[1] = __any_sync(everyone, v > 1000) * 2 + __all_sync(everyone, v < 2000);
    mine[2] = __shfl_up_sync(everyone, v, 3);
    mine[3] = __shfl_xor_sync(everyone, v, 5);
    mine[4] = __shfl_sync(everyone, v, (lane * 7 + 1) % 32);
#if __CUDA_ARCH__ >= 700
    mine[5] = __match_any_sync(everyone, v % 4);
#else
    unsigned same = 0;
    for (unsigned k = 0; k < 4; ++k) {
        unsigned peers = __ballot_sync(everyone, v % 4 == k);
        if (v % 4 == k) same = peers;
    }
    mine[5] = same;
#endif
}
