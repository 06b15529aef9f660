// Grids: heat (hot spot), speckle (SRAD), cheapest paths (path finder).
// Flags: -mllvm -disable-block-placement
#include "../warploom.cuh"

const unsigned SIDE = 16;  // of a block
const unsigned SPAN = 256; // columns per block of path finder

// One step: each cell moves by `rate` towards its neighbours and is heated by its power. An edge is its own neighbour.
extern "C" __global__ void hotspot_step(const float* from, const float* power, float* to, unsigned n, float rate) {
    __shared__ float tile[SIDE + 2][SIDE + 2];
    unsigned x = blockIdx.x * SIDE + threadIdx.x, y = blockIdx.y * SIDE + threadIdx.y;
    unsigned cx = min(x, n - 1), cy = min(y, n - 1), tx = threadIdx.x + 1, ty = threadIdx.y + 1;
    tile[ty][tx] = from[cy * n + cx];
    if (tx == 1) tile[ty][0] = from[cy * n + (cx ? cx - 1 : 0)];
    if (tx == SIDE) tile[ty][SIDE + 1] = from[cy * n + min(cx + 1, n - 1)];
    if (ty == 1) tile[0][tx] = from[(cy ? cy - 1 : 0) * n + cx];
    if (ty == SIDE) tile[SIDE + 1][tx] = from[min(cy + 1, n - 1) * n + cx];
    __syncthreads();
    if (x < n && y < n) {
        float here = tile[ty][tx];
        float left = tile[ty][tx - 1], up = tile[ty - 1][tx];
        float right = x + 1 < n ? tile[ty][tx + 1] : here, down = y + 1 < n ? tile[ty + 1][tx] : here;
        to[y * n + x] = here + rate * (left + right + up + down - 4.0f * here) + power[y * n + x];
    }
}

// How much each cell diffuses: little where the image changes much compared to `noise`.
extern "C" __global__ void srad_coefficients(const float* image, float* spread, unsigned n, float noise) {
    unsigned x = blockIdx.x * SIDE + threadIdx.x, y = blockIdx.y * SIDE + threadIdx.y;
    if (x >= n || y >= n) return;
    float here = image[y * n + x];
    float west = image[y * n + (x ? x - 1 : 0)] - here, east = image[y * n + min(x + 1, n - 1)] - here;
    float north = image[(y ? y - 1 : 0) * n + x] - here, south = image[min(y + 1, n - 1) * n + x] - here;
    float gradient = (west * west + east * east + north * north + south * south) / (here * here);
    float laplace = (west + east + north + south) / here;
    float q = (0.5f * gradient - 0.0625f * laplace * laplace) / ((1.0f + 0.25f * laplace) * (1.0f + 0.25f * laplace));
    float c = 1.0f / (1.0f + (q - noise) / (noise * (1.0f + noise)));
    spread[y * n + x] = c < 0.0f ? 0.0f : c > 1.0f ? 1.0f : c;
}

// Each cell moves towards its neighbours according to their diffusion.
extern "C" __global__ void srad_update(const float* image, const float* spread, float* updated, unsigned n, float rate) {
    unsigned x = blockIdx.x * SIDE + threadIdx.x, y = blockIdx.y * SIDE + threadIdx.y;
    if (x >= n || y >= n) return;
    unsigned at = y * n + x, right = y * n + min(x + 1, n - 1), down = min(y + 1, n - 1) * n + x;
    float here = image[at];
    float west = image[y * n + (x ? x - 1 : 0)] - here, east = image[right] - here;
    float north = image[(y ? y - 1 : 0) * n + x] - here, south = image[down] - here;
    float sum = spread[at] * (west + north) + spread[right] * east + spread[down] * south;
    updated[at] = here + 0.25f * rate * sum;
}

// `rows` more rows of the cheapest paths down: cost[c] = weights[r][c] + min(cost[c-1], cost[c], cost[c+1]). A block's
// outer columns become unknown, one per row, so blocks overlap by `rows` on either side.
extern "C" __global__ void pathfinder_rows(const unsigned* weights, const unsigned* from, unsigned* to, unsigned columns,
                                           unsigned first_row, unsigned rows) {
    __shared__ unsigned cost[2][SPAN];
    unsigned t = threadIdx.x, own = SPAN - 2 * rows;
    int column = (int)(blockIdx.x * own + t) - (int)rows;
    bool inside = column >= 0 && column < (int)columns;
    cost[0][t] = inside ? from[column] : ~0u;
    __syncthreads();
#pragma unroll 1
    for (unsigned r = 0; r < rows; ++r) {
        unsigned best = cost[r % 2][t];
        if (t > 0) best = min(best, cost[r % 2][t - 1]);
        if (t < SPAN - 1) best = min(best, cost[r % 2][t + 1]);
        cost[1 - r % 2][t] = inside ? best + weights[(first_row + r) * columns + column] : ~0u;
        __syncthreads();
    }
    if (inside && t >= rows && t < SPAN - rows) to[column] = cost[rows % 2][t];
}
