// C = A * B^T with the tensor cores of Hopper: one warp copies tiles by TMA, two warp groups multiply them by wgmma, and
// mbarriers keep them in step.
//
//   tensor_matmul [SIZE]
//
// A and B are SIZE x SIZE halves in rows along K, C is single precision. The elements are small integers, so that the
// result is exact. Prints the time of a launch.
#include <cuda.h>
#include <cuda_fp16.h>

#include <cstdlib>
#include <vector>

#include "check.h"

constexpr int tile_rows = 128, tile_columns = 256, tile_k = 64, stages = 4;
constexpr int half_bytes = 2;
constexpr int a_bytes = tile_rows * tile_k * half_bytes;
constexpr int b_bytes = tile_columns * tile_k * half_bytes;
constexpr int shared_bytes = 1024 + stages * (a_bytes + b_bytes) + 2 * stages * 8;
constexpr int accumulators = tile_columns / 2;

__device__ unsigned shared_address(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

__device__ void wait(unsigned long long* barrier, unsigned parity) {
    asm volatile(
        "{ .reg .pred done;\n"
        "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
        "@!done bra again; }" ::"r"(shared_address(barrier)),
        "r"(parity)
        : "memory");
}

__device__ void arrive(unsigned long long* barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
}

__device__ void copy_tile(void* to, const CUtensorMap* map, int k, int row, unsigned long long* barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
            shared_address(to)),
        "l"(map), "r"(k), "r"(row), "r"(shared_address(barrier))
        : "memory");
}

// A tile of rows of 128 bytes, swizzled by 128 bytes: eight rows take 1024 bytes.
__device__ unsigned long long descriptor(const void* tile) {
    const unsigned long long address = (shared_address(tile) & 0x3ffff) >> 4;
    return address | 1ull << 16 | (1024ull >> 4) << 32 | 1ull << 62;
}

#define D4(at) "+f"(d[at]), "+f"(d[at + 1]), "+f"(d[at + 2]), "+f"(d[at + 3])
#define D16(at) D4(at), D4(at + 4), D4(at + 8), D4(at + 12)

// 64 rows of A times 256 columns of B, over 16 of K.
__device__ void multiply(float (&d)[accumulators], unsigned long long a, unsigned long long b, int add) {
    asm volatile(
        "{ .reg .pred p; setp.ne.b32 p, %130, 0;\n"
        "wgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {"
        "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
        "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
        "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
        "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
        "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
        "%128, %129, p, 1, 1, 0, 0; }"
        : D16(0), D16(16), D16(32), D16(48), D16(64), D16(80), D16(96), D16(112)
        : "l"(a), "l"(b), "r"(add));
}

__global__ void __launch_bounds__(384, 1)
    matmul(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b, float* c, int size) {
    extern __shared__ unsigned char memory[];
    // The swizzle's pattern repeats every 1024 bytes.
    unsigned char* tiles = memory + (1024 - shared_address(memory) % 1024) % 1024;
    auto* full = reinterpret_cast<unsigned long long*>(tiles + stages * (a_bytes + b_bytes));
    auto* empty = full + stages;
    const int group = threadIdx.x / 128, steps = size / tile_k;
    const int row = blockIdx.y * tile_rows, column = blockIdx.x * tile_columns;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < stages; stage++) {
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(shared_address(&full[stage])) : "memory");
            asm volatile("mbarrier.init.shared::cta.b64 [%0], 2;" ::"r"(shared_address(&empty[stage])) : "memory");
        }
        asm volatile("fence.proxy.async;" ::: "memory");
    }
    __syncthreads();
    if (group == 0) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
        if (threadIdx.x == 0) {
            for (int step = 0; step < steps; step++) {
                const int stage = step % stages;
                unsigned char* tile = tiles + stage * (a_bytes + b_bytes);
                // The first time around, stages are empty.
                wait(&empty[stage], (step / stages + 1) % 2);
                asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                                 shared_address(&full[stage])),
                             "r"(a_bytes + b_bytes)
                             : "memory");
                copy_tile(tile, &a, step * tile_k, row, &full[stage]);
                copy_tile(tile + a_bytes, &b, step * tile_k, column, &full[stage]);
            }
        }
        return;
    }
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    float d[accumulators];
    for (float& sum : d) sum = 0;
    for (int step = 0; step < steps; step++) {
        const int stage = step % stages;
        const unsigned char* tile = tiles + stage * (a_bytes + b_bytes);
        const unsigned long long left = descriptor(tile + (group - 1) * 64 * tile_k * half_bytes);
        const unsigned long long right = descriptor(tile + a_bytes);
        wait(&full[stage], step / stages % 2);
        asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
        // 16 of K are 32 bytes further.
        for (int k = 0; k < tile_k / 16; k++) multiply(d, left + 2 * k, right + 2 * k, 1);
        asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
        if (threadIdx.x % 128 == 0) arrive(&empty[stage]);
    }
    const int lane = threadIdx.x % 32, warp = threadIdx.x % 128 / 32;
    float* first = c + (size_t)(row + (group - 1) * 64 + warp * 16 + lane / 4) * size + column + lane % 4 * 2;
    for (int eight = 0; eight < tile_columns / 8; eight++) {
        for (int lower = 0; lower < 2; lower++) {
            const float2 pair = {d[eight * 4 + lower * 2], d[eight * 4 + lower * 2 + 1]};
            *reinterpret_cast<float2*>(first + (size_t)lower * 8 * size + eight * 8) = pair;
        }
    }
}

static CUtensorMap tensor_map(void* matrix, int size, int rows) {
    void* encode = nullptr;
    cudaDriverEntryPointQueryResult found;
#if CUDART_VERSION >= 12050
    CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &encode, 12000, cudaEnableDefault, &found));
#else
    CHECK(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &encode, cudaEnableDefault, &found));
#endif
    REQUIRE(found == cudaDriverEntryPointSuccess);
    CUtensorMap map;
    const cuuint64_t extent[] = {(cuuint64_t)size, (cuuint64_t)size}, stride[] = {(cuuint64_t)size * half_bytes};
    const cuuint32_t box[] = {tile_k, (cuuint32_t)rows}, step[] = {1, 1};
    REQUIRE(reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(encode)(
                &map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, matrix, extent, stride, box, step,
                CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS);
    return map;
}

int main(int argc, char** argv) {
    const int size = argc > 1 ? atoi(argv[1]) : 256;
    REQUIRE(size > 0 && size % tile_columns == 0);
    const size_t count = (size_t)size * size;
    const auto left = [](int row, int k) { return (row * 7 + k * 3) % 5 - 2; };
    const auto right = [](int column, int k) { return (column * 3 + k * 5) % 7 - 3; };
    std::vector<__half> a(count), b(count);
    for (int row = 0; row < size; row++) {
        for (int k = 0; k < size; k++) {
            a[(size_t)row * size + k] = __float2half((float)left(row, k));
            b[(size_t)row * size + k] = __float2half((float)right(row, k));
        }
    }
    __half *a_device, *b_device;
    float* c_device;
    CHECK(cudaMalloc(&a_device, count * half_bytes));
    CHECK(cudaMalloc(&b_device, count * half_bytes));
    CHECK(cudaMalloc(&c_device, count * sizeof(float)));
    CHECK(cudaMemcpy(a_device, a.data(), count * half_bytes, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(b_device, b.data(), count * half_bytes, cudaMemcpyHostToDevice));
    CHECK(cudaFuncSetAttribute(matmul, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes));
    const CUtensorMap a_map = tensor_map(a_device, size, tile_rows), b_map = tensor_map(b_device, size, tile_columns);
    const dim3 grid(size / tile_columns, size / tile_rows);
    cudaEvent_t start, end;
    CHECK(cudaEventCreate(&start));
    CHECK(cudaEventCreate(&end));
    // The second launch is timed: the first one loads the kernel.
    for (int launch = 0; launch < 2; launch++) {
        CHECK(cudaEventRecord(start));
        matmul<<<grid, 384, shared_bytes>>>(a_map, b_map, c_device, size);
        CHECK(cudaEventRecord(end));
    }
    CHECK(cudaGetLastError());
    CHECK(cudaEventSynchronize(end));
    float ms;
    CHECK(cudaEventElapsedTime(&ms, start, end));
    std::vector<float> c(count);
    CHECK(cudaMemcpy(c.data(), c_device, count * sizeof(float), cudaMemcpyDeviceToHost));
    // Elements repeat every 35 rows and columns.
    for (int row = 0; row < size; row++) {
        for (int column = 0; column < size; column += row < 35 ? 1 : 37) {
            int sum = 0;
            for (int k = 0; k < size; k++) sum += left(row, k) * right(column, k);
            REQUIRE(c[(size_t)row * size + column] == (float)sum);
        }
    }
    printf("%d x %d x %d: %.1f us\n", size, size, size, ms * 1000);
    return passed();
}
