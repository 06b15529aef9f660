// Needleman-Wunsch alignment scores in one launch: a warp fills a strip of rows from one side to the other, one step
// behind the strip before it, and waits for it at a flag (NW1, NW2).
// Flags: -mllvm -disable-block-placement
#include "../warploom.cuh"

const unsigned MAX_THREADS = 512;  // of a block; a barrier a warp, of which there are 16
const unsigned CHUNK = 16;         // columns between two looks at the flag

// Waits for the other lanes of the warp, whose number in the block is `warp`.
static __device__ __forceinline__ void warp_barrier(unsigned warp, unsigned lanes) {
    asm volatile("bar.sync %0, %1;" ::"r"(warp), "r"(lanes) : "memory");
}

// `scores` has (n+1)^2 cells, `reference` n^2. FORWARD: row 0 and column 0 are given, and with a = -1 the others become
//     scores[r][c] = max(scores[r+a][c+a] + reference[..], scores[r+a][c] - penalty, scores[r][c+a] - penalty);
// else row n and column n are given, and a = 1: the scores of the ends of the sequences. done[s] counts the finished columns
// of strip s, the first one being that at the given row.
template <bool FORWARD>
static __device__ __forceinline__ void fill(const int* reference, int* scores, unsigned n, int penalty,
                                            volatile unsigned* done, unsigned lanes) {
    __shared__ int row[2][MAX_THREADS];  // each lane's newest score, of even and of odd steps
    unsigned warp = threadIdx.x / lanes, lane = threadIdx.x % lanes, side = n + 1;
    unsigned strip = blockIdx.x * (blockDim.x / lanes) + warp;
    if (strip * lanes >= n) return;
    unsigned rows = min(lanes, n - strip * lanes);
    unsigned r = strip * lanes + lane;  // counted from the given row on
    bool mine = lane < rows;

    // Cell (r, c) of the count is at `base + c * step`; the given column is just before c = 0.
    size_t at_row = FORWARD ? r + 1 : n - 1 - r;
    size_t above_row = FORWARD ? r : n - r;
    long step = FORWARD ? 1 : -1;
    int* cell = scores + at_row * side + (FORWARD ? 1 : n - 1);
    // Another warp's: a cached value would be an old one.
    volatile int* above = scores + above_row * side + (FORWARD ? 1 : n - 1);
    const int* gain = reference + (FORWARD ? (size_t)r * n : (size_t)(n - 1 - r) * n + n - 1);

    int left = 0, corner = 0;
    if (mine) left = cell[-step], corner = above[-step];
    unsigned finished = 0;  // columns that the strip before this one has finished
#pragma unroll 1
    for (unsigned s = 0; s < n + rows - 1; ++s) {
        if (strip > 0 && s < n && s >= finished) {
            unsigned wanted = min(s + CHUNK, n);
            // All lanes look, so none of them waits for another.
            do {
                finished = done[strip - 1];
                asm volatile("// spin" : "+r"(finished));
            } while (finished < wanted);
            __threadfence();
        }
        unsigned c = s - lane;  // where lane > s it wraps, and is no column
        if (mine && c < n) {
            int up;
            if (lane == 0) {
                up = above[c * step];
                // Keeps two loads of two memories from becoming one of any.
                asm volatile("" : "+r"(up));
            } else {
                up = row[(s + 1) % 2][threadIdx.x - 1];
            }
            int score = max(corner + gain[c * step], max(up, left) - penalty);
            corner = up;
            left = score;
            row[s % 2][threadIdx.x] = score;
            cell[c * step] = score;
        }
        warp_barrier(warp, lanes);
        if (lane == rows - 1 && c < n && ((c + 1) % CHUNK == 0 || c + 1 == n)) {
            __threadfence();
            done[strip] = c + 1;
        }
    }
}

// From the upper left corner to the lower right one.
extern "C" __global__ void __launch_bounds__(512)
nw_forward(const int* reference, int* scores, unsigned n, int penalty, unsigned* done, unsigned lanes) {
    fill<true>(reference, scores, n, penalty, done, lanes);
}

// Back from the lower right corner.
extern "C" __global__ void __launch_bounds__(512)
nw_backward(const int* reference, int* scores, unsigned n, int penalty, unsigned* done, unsigned lanes) {
    fill<false>(reference, scores, n, penalty, done, lanes);
}
