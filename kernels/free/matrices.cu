// Matrices: blocked LU decomposition, Gaussian elimination, a layer of a neural network (back-propagation).
// Flags: -mllvm -disable-block-placement
#include "../warploom.cuh"

const unsigned B = 16;  // rows per block of the decomposition

// The block at (at, at): L below the diagonal, U on and above it. One block of B threads.
extern "C" __global__ void lud_diagonal(float* a, unsigned n, unsigned at) {
    __shared__ float block[B][B + 1];
    unsigned t = threadIdx.x;
    float* corner = a + at * n + at;
#pragma unroll 1
    for (unsigned r = 0; r < B; ++r) block[r][t] = corner[r * n + t];
    __syncthreads();
#pragma unroll 1
    for (unsigned k = 0; k < B; ++k) {
        if (t > k) {
            float factor = block[t][k] / block[k][k];
            block[t][k] = factor;
#pragma unroll 1
            for (unsigned c = k + 1; c < B; ++c) block[t][c] -= factor * block[k][c];
        }
        __syncthreads();
    }
#pragma unroll 1
    for (unsigned r = 0; r < B; ++r) corner[r * n + t] = block[r][t];
}

// The blocks to the right (even numbers) and below (odd numbers): B threads per block.
extern "C" __global__ void lud_perimeter(float* a, unsigned n, unsigned at) {
    __shared__ float diagonal[B][B + 1], block[B][B + 1];
    unsigned t = threadIdx.x, away = at + (blockIdx.x / 2 + 1) * B;
    bool below = blockIdx.x % 2;
    float* corner = below ? a + away * n + at : a + at * n + away;
#pragma unroll 1
    for (unsigned r = 0; r < B; ++r) {
        diagonal[r][t] = a[(at + r) * n + at + t];
        block[r][t] = corner[r * n + t];
    }
    __syncthreads();
    if (below) {
        // Row t: x U = row.
#pragma unroll 1
        for (unsigned c = 0; c < B; ++c) {
            float sum = block[t][c];
#pragma unroll 1
            for (unsigned k = 0; k < c; ++k) sum -= block[t][k] * diagonal[k][c];
            block[t][c] = sum / diagonal[c][c];
        }
    } else {
        // Column t: L x = column.
#pragma unroll 1
        for (unsigned r = 1; r < B; ++r) {
            float sum = block[r][t];
#pragma unroll 1
            for (unsigned k = 0; k < r; ++k) sum -= diagonal[r][k] * block[k][t];
            block[r][t] = sum;
        }
    }
    __syncthreads();
#pragma unroll 1
    for (unsigned r = 0; r < B; ++r) corner[r * n + t] = block[r][t];
}

// The rest of the matrix minus the product of the two: BxB threads per block.
extern "C" __global__ void lud_internal(float* a, unsigned n, unsigned at) {
    __shared__ float left[B][B], upper[B][B];
    unsigned x = threadIdx.x, y = threadIdx.y;
    unsigned row = at + (blockIdx.y + 1) * B + y, column = at + (blockIdx.x + 1) * B + x;
    left[y][x] = a[row * n + at + x];
    upper[y][x] = a[(at + y) * n + column];
    __syncthreads();
    float sum = 0;
#pragma unroll 1
    for (unsigned k = 0; k < B; ++k) sum += left[y][k] * upper[k][x];
    a[row * n + column] -= sum;
}

// factors[i] = a[i][k] / a[k][k] for the rows below k.
extern "C" __global__ void gaussian_factors(const float* a, float* factors, unsigned n, unsigned k) {
    unsigned i = k + 1 + blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) factors[i] = a[i * n + k] / a[k * n + k];
}

// Those rows and their right sides, minus the factor times row k.
extern "C" __global__ void gaussian_eliminate(float* a, float* right, const float* factors, unsigned n, unsigned k) {
    unsigned column = k + blockIdx.x * blockDim.x + threadIdx.x, i = k + 1 + blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= n || column >= n) return;
    float factor = factors[i];
    a[i * n + column] -= factor * a[k * n + column];
    if (column == k) right[i] -= factor * right[k];
}

// hidden[j] = 1 / (1 + exp(-sum of in[i] * weights[i][j])): one block per hidden unit. The block size must be a power of
// two, with as many words of dynamic shared memory.
extern "C" __global__ void backprop_forward(const float* in, const float* weights, float* hidden, unsigned inputs,
                                            unsigned units) {
    extern __shared__ float sums[];
    unsigned t = threadIdx.x, j = blockIdx.x;
    float sum = 0;
    // Counts iterations: loops that step by a power of two are covered by merge sort and heart wall.
    unsigned turns = (inputs + blockDim.x - 1 - t) / blockDim.x;
#pragma unroll 1
    for (unsigned turn = 0, i = t; turn < turns; ++turn, i += blockDim.x) sum += in[i] * weights[i * units + j];
    sums[t] = sum;
    __syncthreads();
#pragma unroll 1
    for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
        if (t < half) sums[t] += sums[t + half];
        __syncthreads();
    }
    if (t == 0) hidden[j] = 1.0f / (1.0f + __nvvm_ex2_approx_f(-1.44269504f * sums[0]));
}

// weights[i][j] += change and changes[i][j] = change, with change = rate * in[i] * deltas[j] + momentum * changes[i][j].
extern "C" __global__ void backprop_adjust(const float* in, const float* deltas, float* weights, float* changes,
                                           unsigned inputs, unsigned units, float rate, float momentum) {
    unsigned j = blockIdx.x * blockDim.x + threadIdx.x, i = blockIdx.y * blockDim.y + threadIdx.y;
    if (i >= inputs || j >= units) return;
    float change = rate * in[i] * deltas[j] + momentum * changes[i * units + j];
    weights[i * units + j] += change;
    changes[i * units + j] = change;
}
