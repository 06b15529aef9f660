// Two kernels that need each other's result: the sum of all elements, then each as its share of the sum in per cent.
// The .ptx is what clang 19 makes of it for sm_70: `warploom run shares.toml file=shares.cu` compiles it anew.
__global__ void total(const unsigned* data, unsigned* sum, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) atomicAdd(sum, data[i]);
}

__global__ void shares(unsigned* data, const unsigned* sum, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) data[i] = 100 * data[i] / *sum;
}
