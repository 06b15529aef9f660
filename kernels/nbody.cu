// Gravitational acceleration on each body; positions are staged in shared memory, one block of bodies at a time.
#include "warploom.cuh"

const unsigned MAX_BLOCK = 256;

extern "C" __global__ void __launch_bounds__(256) nbody(const float4* pos, float4* acc, unsigned n, float eps2) {
    __shared__ float4 tile[MAX_BLOCK];
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    float4 me = i < n ? pos[i] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    float ax = 0.0f, ay = 0.0f, az = 0.0f;

    for (unsigned first = 0; first < n; first += blockDim.x) {
        unsigned j = first + threadIdx.x;
        tile[threadIdx.x] = j < n ? pos[j] : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        __syncthreads();
        for (unsigned k = 0; k < blockDim.x; ++k) {
            float4 other = tile[k];
            float dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
            float r2 = __fmaf_rn(dx, dx, __fmaf_rn(dy, dy, __fmaf_rn(dz, dz, eps2)));
            float inverse = rsqrtf(r2);
            float pull = other.w * inverse * inverse * inverse;
            ax = __fmaf_rn(dx, pull, ax);
            ay = __fmaf_rn(dy, pull, ay);
            az = __fmaf_rn(dz, pull, az);
        }
        __syncthreads();
    }
    if (i < n) acc[i] = make_float4(ax, ay, az, 0.0f);
}
