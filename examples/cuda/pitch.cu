// Rows and planes with gaps: pitched memory, copies and fills of parts of it.
#include "check.h"

#include <vector>

__global__ void transpose(const char* from, size_t from_pitch, char* to, size_t to_pitch, int width, int rows) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= rows) return;
    ((int*)(to + x * to_pitch))[y] = ((const int*)(from + y * from_pitch))[x];
}

int main() {
    const int width = 50, rows = 30;
    std::vector<int> host(width * rows), back(width * rows, -1);
    for (int i = 0; i < width * rows; i++) host[i] = i;
    char *from, *to;
    size_t from_pitch, to_pitch;
    CHECK(cudaMallocPitch(&from, &from_pitch, width * sizeof(int), rows));
    CHECK(cudaMallocPitch(&to, &to_pitch, rows * sizeof(int), width));
    REQUIRE(from_pitch >= width * sizeof(int) && from_pitch % 256 == 0);
    CHECK(cudaMemcpy2D(from, from_pitch, host.data(), width * sizeof(int), width * sizeof(int), rows,
                       cudaMemcpyHostToDevice));
    transpose<<<dim3((width + 15) / 16, (rows + 15) / 16), dim3(16, 16)>>>(from, from_pitch, to, to_pitch, width, rows);
    CHECK(cudaMemcpy2D(back.data(), rows * sizeof(int), to, to_pitch, rows * sizeof(int), width,
                       cudaMemcpyDeviceToHost));
    for (int y = 0; y < rows; y++)
        for (int x = 0; x < width; x++) REQUIRE(back[x * rows + y] == host[y * width + x]);
    CHECK(cudaMemset2D(to, to_pitch, 0, 8, width));
    CHECK(cudaMemcpyAsync(back.data(), to, rows * sizeof(int), cudaMemcpyDefault, 0));
    CHECK(cudaStreamSynchronize(0));
    REQUIRE(back[0] == 0 && back[1] == 0 && back[2] == 2 * width);

    cudaPitchedPtr volume;
    cudaExtent extent = make_cudaExtent(40, 5, 3);
    CHECK(cudaMalloc3D(&volume, extent));
    CHECK(cudaMemset3D(volume, 7, extent));
    std::vector<unsigned char> bytes(40 * 5 * 3);
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = volume;
    copy.dstPtr = make_cudaPitchedPtr(bytes.data(), 40, 40, 5);
    copy.extent = extent;
    copy.kind = cudaMemcpyDeviceToHost;
    CHECK(cudaMemcpy3D(&copy));
    for (unsigned char byte : bytes) REQUIRE(byte == 7);
    REQUIRE(cudaMemcpy2D(from, 16, host.data(), 400, 200, 2, cudaMemcpyHostToDevice) == cudaErrorInvalidPitchValue);
    return passed();
}
