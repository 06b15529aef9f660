// Textures and surfaces: filters, edges, layers and volumes, linear memory and rows, and an image that a kernel writes.
#include "check.h"

#include <cmath>
#include <vector>

__global__ void sample(cudaTextureObject_t texture, const float2* at, float* out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = tex2D<float>(texture, at[i].x, at[i].y);
}

// The mean of four neighbours, through the texture cache.
__global__ void blur(cudaTextureObject_t from, cudaSurfaceObject_t to, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float sum = tex2D<float>(from, x - 0.5f, y + 0.5f) + tex2D<float>(from, x + 1.5f, y + 0.5f) +
                tex2D<float>(from, x + 0.5f, y - 0.5f) + tex2D<float>(from, x + 0.5f, y + 1.5f);
    surf2Dwrite(sum / 4, to, x * (int)sizeof(float), y);
}

__global__ void kinds(cudaTextureObject_t bytes, cudaTextureObject_t rows, cudaTextureObject_t volume,
                      cudaTextureObject_t layers, cudaTextureObject_t square, float* out) {
    out[0] = tex1Dfetch<uchar4>(bytes, 1).z;
    out[1] = tex1Dfetch<uchar4>(bytes, 1000).z;
    out[2] = tex2D<float>(rows, 0.25f, 0.75f);
    out[3] = tex3D<float>(volume, 1, 1, 1);
    out[4] = tex2DLayered<float>(layers, 1.5f, 0.5f, 2);
    float4 four = tex2Dgather<float4>(square, 1, 1);
    out[5] = four.x + 10 * four.y + 100 * four.z + 1000 * four.w;
}

static cudaTextureObject_t make_texture(const cudaResourceDesc& resource, cudaTextureAddressMode mode,
                                        cudaTextureFilterMode filter, bool normalized) {
    cudaTextureDesc desc = {};
    for (auto& each : desc.addressMode) each = mode;
    desc.filterMode = filter;
    desc.normalizedCoords = normalized;
    cudaTextureObject_t object;
    CHECK(cudaCreateTextureObject(&object, &resource, &desc, nullptr));
    cudaTextureDesc back;
    CHECK(cudaGetTextureObjectTextureDesc(&back, object));
    REQUIRE(back.filterMode == filter && back.addressMode[1] == mode);
    return object;
}

static cudaResourceDesc of(cudaArray_t array) {
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeArray;
    resource.res.array.array = array;
    return resource;
}

int main() {
    const int width = 33, height = 17;
    std::vector<float> image(width * height);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) image[y * width + x] = 8 * x + 512 * y;
    auto floats = cudaCreateChannelDesc<float>();
    cudaArray_t array, blurred;
    CHECK(cudaMallocArray(&array, &floats, width, height));
    CHECK(cudaMallocArray(&blurred, &floats, width, height, cudaArraySurfaceLoadStore));
    CHECK(cudaMemcpy2DToArray(array, 0, 0, image.data(), width * sizeof(float), width * sizeof(float), height,
                              cudaMemcpyHostToDevice));
    cudaExtent extent;
    unsigned flags;
    cudaChannelFormatDesc desc;
    CHECK(cudaArrayGetInfo(&desc, &extent, &flags, blurred));
    REQUIRE(extent.width == width && extent.height == height && desc.x == 32 && flags == cudaArraySurfaceLoadStore);

    // Coordinates whose fractions have eight bits, so that a linear filter is exact.
    std::vector<float2> places;
    for (int i = 0; i < 200; i++)
        places.push_back(make_float2((i * 37 % (width * 8)) / 8.0f, (i * 53 % (height * 8)) / 8.0f));
    float2* at;
    float* out;
    CHECK(cudaMalloc(&at, places.size() * sizeof(float2)));
    CHECK(cudaMalloc(&out, places.size() * sizeof(float)));
    CHECK(cudaMemcpy(at, places.data(), places.size() * sizeof(float2), cudaMemcpyHostToDevice));
    std::vector<float> found(places.size());
    auto point = make_texture(of(array), cudaAddressModeClamp, cudaFilterModePoint, false);
    sample<<<2, 128>>>(point, at, out, places.size());
    CHECK(cudaMemcpy(found.data(), out, found.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < places.size(); i++)
        REQUIRE(found[i] == image[(int)places[i].y * width + (int)places[i].x]);
    auto linear = make_texture(of(array), cudaAddressModeClamp, cudaFilterModeLinear, false);
    sample<<<2, 128>>>(linear, at, out, places.size());
    CHECK(cudaMemcpy(found.data(), out, found.size() * sizeof(float), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < places.size(); i++) {
        // The image is a plane, and a plane is what a filter makes of it, but for its edges.
        float x = fminf(fmaxf(places[i].x - 0.5f, 0), width - 1), y = fminf(fmaxf(places[i].y - 0.5f, 0), height - 1);
        REQUIRE(fabsf(found[i] - (8 * x + 512 * y)) <= 2 + 1e-3f);
    }

    cudaResourceDesc surface = of(blurred);
    cudaSurfaceObject_t target;
    CHECK(cudaCreateSurfaceObject(&target, &surface));
    blur<<<dim3(3, 2), dim3(16, 16)>>>(point, target, width, height);
    std::vector<float> back(width * height);
    CHECK(cudaMemcpy2DFromArray(back.data(), width * sizeof(float), blurred, 0, 0, width * sizeof(float), height,
                                cudaMemcpyDeviceToHost));
    for (int y = 1; y < height - 1; y++)
        for (int x = 1; x < width - 1; x++) REQUIRE(back[y * width + x] == image[y * width + x]);
    REQUIRE(back[0] == (8 + 512) / 4.0f);

    std::vector<unsigned char> bytes = {1, 2, 3, 4, 5, 6, 7, 8};
    unsigned char* linear_memory;
    CHECK(cudaMalloc(&linear_memory, bytes.size()));
    CHECK(cudaMemcpy(linear_memory, bytes.data(), bytes.size(), cudaMemcpyHostToDevice));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = linear_memory;
    resource.res.linear.desc = cudaCreateChannelDesc<uchar4>();
    resource.res.linear.sizeInBytes = bytes.size();
    auto of_bytes = make_texture(resource, cudaAddressModeClamp, cudaFilterModePoint, false);

    float* rows;
    size_t pitch;
    CHECK(cudaMallocPitch(&rows, &pitch, 4 * sizeof(float), 4));
    CHECK(cudaMemcpy2D(rows, pitch, image.data(), width * sizeof(float), 4 * sizeof(float), 4, cudaMemcpyHostToDevice));
    resource = {};
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D.devPtr = rows;
    resource.res.pitch2D.desc = floats;
    resource.res.pitch2D.width = resource.res.pitch2D.height = 4;
    resource.res.pitch2D.pitchInBytes = pitch;
    auto of_rows = make_texture(resource, cudaAddressModeWrap, cudaFilterModeLinear, true);

    std::vector<float> cells(2 * 2 * 4);
    for (size_t i = 0; i < cells.size(); i++) cells[i] = i;
    cudaMemcpy3DParms copy = {};
    copy.srcPtr = make_cudaPitchedPtr(cells.data(), 2 * sizeof(float), 2, 2);
    copy.kind = cudaMemcpyHostToDevice;
    cudaArray_t volume, layers;
    CHECK(cudaMalloc3DArray(&volume, &floats, make_cudaExtent(2, 2, 2)));
    copy.dstArray = volume;
    copy.extent = make_cudaExtent(2, 2, 2);
    CHECK(cudaMemcpy3D(&copy));
    CHECK(cudaMalloc3DArray(&layers, &floats, make_cudaExtent(2, 2, 4), cudaArrayLayered));
    copy.dstArray = layers;
    copy.extent = make_cudaExtent(2, 2, 4);
    CHECK(cudaMemcpy3D(&copy));
    auto of_volume = make_texture(of(volume), cudaAddressModeClamp, cudaFilterModeLinear, false);
    auto of_layers = make_texture(of(layers), cudaAddressModeClamp, cudaFilterModePoint, false);
    cudaArray_t square;
    CHECK(cudaMallocArray(&square, &floats, 2, 2, cudaArrayTextureGather));
    CHECK(cudaMemcpy2DToArray(square, 0, 0, cells.data() + 1, 2 * sizeof(float), 2 * sizeof(float), 2,
                              cudaMemcpyHostToDevice));
    auto of_square = make_texture(of(square), cudaAddressModeClamp, cudaFilterModePoint, false);
    kinds<<<1, 1>>>(of_bytes, of_rows, of_volume, of_layers, of_square, out);
    CHECK(cudaMemcpy(found.data(), out, 6 * sizeof(float), cudaMemcpyDeviceToHost));
    // Beyond the ends of linear memory is 0. A quarter of four texels lies between the first and the second.
    const float expected[] = {7, 0, 4 + 512 * 2.5f, 3.5f, 9, 3 + 10 * 4 + 100 * 2 + 1000 * 1};
    for (int i = 0; i < 6; i++) {
        if (found[i] != expected[i]) printf("%d: %g, not %g\n", i, found[i], expected[i]);
        REQUIRE(found[i] == expected[i]);
    }

    for (auto each : {point, linear, of_bytes, of_rows, of_volume, of_layers, of_square})
        CHECK(cudaDestroyTextureObject(each));
    CHECK(cudaDestroySurfaceObject(target));
    for (auto each : {array, blurred, volume, layers, square}) CHECK(cudaFreeArray(each));
    // A copy beyond the array, and an array that is gone.
    REQUIRE(cudaMallocArray(&array, &floats, 4, 4) == cudaSuccess);
    REQUIRE(cudaMemcpy2DToArray(array, 8, 0, image.data(), 16, 16, 4, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    CHECK(cudaFreeArray(array));
    return passed();
}
