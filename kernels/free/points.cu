// Points and centers: k-means, the gain of a new center (stream cluster), nearest neighbours.
// Flags: -mllvm -disable-block-placement
#include "../warploom.cuh"

// by_feature[f][i] = by_point[i][f].
extern "C" __global__ void kmeans_invert(const float* by_point, float* by_feature, unsigned points, unsigned features) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= points) return;
#pragma unroll 1
    for (unsigned f = 0; f < features; ++f) by_feature[f * points + i] = by_point[i * features + f];
}

// nearest[i] = the center with the smallest squared distance to point i, the first of equals.
extern "C" __global__ void kmeans_assign(const float* by_feature, const float* centers, unsigned points,
                                         unsigned features, unsigned clusters, unsigned* nearest) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= points) return;
    unsigned best = 0;
    float least = 3.4e38f;
#pragma unroll 1
    for (unsigned c = 0; c < clusters; ++c) {
        float sum = 0;
#pragma unroll 1
        for (unsigned f = 0; f < features; ++f) {
            float d = by_feature[f * points + i] - centers[c * features + f];
            sum = __fmaf_rn(d, d, sum);
        }
        if (sum < least) least = sum, best = c;
    }
    nearest[i] = best;
}

// saved[i] = how much nearer point i is to point `candidate` than costs[i], or 0; joins[i] = whether it is nearer.
extern "C" __global__ void streamcluster_gain(const float* by_feature, const float* costs, unsigned points,
                                              unsigned features, unsigned candidate, float* saved, unsigned* joins) {
    extern __shared__ float center[];
#pragma unroll 1
    for (unsigned f = threadIdx.x; f < features; f += blockDim.x) center[f] = by_feature[f * points + candidate];
    __syncthreads();
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= points) return;
    float sum = 0;
#pragma unroll 1
    for (unsigned f = 0; f < features; ++f) {
        float d = by_feature[f * points + i] - center[f];
        sum = __fmaf_rn(d, d, sum);
    }
    saved[i] = sum < costs[i] ? costs[i] - sum : 0;
    joins[i] = sum < costs[i];
}

// distances[i] = the distance from record i, (x, y), to a place.
extern "C" __global__ void nn_distances(const float* records, float* distances, unsigned count, float x, float y) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float dx = records[2 * i] - x, dy = records[2 * i + 1] - y;
    distances[i] = __nvvm_sqrt_rn_f(__fmaf_rn(dx, dx, dy * dy));
}
