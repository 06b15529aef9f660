// What CUDA sources expect beyond warploom.cuh, for clang without CUDA's headers: overloads, vector types, and the
// declarations that a source's host code needs to be read. Host code is not compiled.
#ifndef WARPLOOM_PRELUDE
#define WARPLOOM_PRELUDE

#include "warploom.cuh"

#define __managed__ __attribute__((managed))
#define __align__(n) __attribute__((aligned(n)))
#define __grid_constant__
#define warpSize 32

// Vector types and dimensions.
#define WL_VECTOR(type, name, bytes)                                                              \
    struct name##1 { type x; };                                                                   \
    struct __attribute__((aligned(2 * bytes))) name##2 { type x, y; };                            \
    static __host__ __device__ inline name##2 make_##name##2(type x, type y) { return {x, y}; }
#define WL_VECTOR3(type, name)                                                                    \
    struct name##3 { type x, y, z; };                                                             \
    static __host__ __device__ inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; }
#define WL_VECTOR4(type, name)                                                                    \
    struct __attribute__((aligned(16))) name##4 { type x, y, z, w; };                             \
    static __host__ __device__ inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
WL_VECTOR(int, int, 4)
WL_VECTOR(unsigned, uint, 4)
WL_VECTOR(float, float, 4)
WL_VECTOR(double, double, 8)
WL_VECTOR3(int, int)
WL_VECTOR3(float, float)
WL_VECTOR4(int, int)
WL_VECTOR4(unsigned, uint)
#undef WL_VECTOR
#undef WL_VECTOR3
#undef WL_VECTOR4
struct dim3 {
    unsigned x, y, z;
    __host__ __device__ dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
    __host__ __device__ dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};

// Atomics of the other types.
typedef unsigned long long wl_u64;
WL_FN int atomicAdd(int* p, int v) { return __nvvm_atom_add_gen_i(p, v); }
WL_FN wl_u64 atomicAdd(wl_u64* p, wl_u64 v) { return __nvvm_atom_add_gen_ll((long long*)p, v); }
WL_FN float atomicAdd(float* p, float v) { return __nvvm_atom_add_gen_f(p, v); }
#if __CUDA_ARCH__ >= 600
WL_FN double atomicAdd(double* p, double v) { return __nvvm_atom_add_gen_d(p, v); }
#endif
WL_FN int atomicSub(int* p, int v) { return atomicAdd(p, -v); }
WL_FN unsigned atomicSub(unsigned* p, unsigned v) { return atomicAdd(p, -v); }
WL_FN int atomicExch(int* p, int v) { return __nvvm_atom_xchg_gen_i(p, v); }
WL_FN wl_u64 atomicExch(wl_u64* p, wl_u64 v) { return __nvvm_atom_xchg_gen_ll((long long*)p, v); }
WL_FN float atomicExch(float* p, float v) { return __builtin_bit_cast(float, atomicExch((int*)p, __builtin_bit_cast(int, v))); }
WL_FN int atomicCAS(int* p, int expected, int v) { return __nvvm_atom_cas_gen_i(p, expected, v); }
WL_FN wl_u64 atomicCAS(wl_u64* p, wl_u64 expected, wl_u64 v) { return __nvvm_atom_cas_gen_ll((long long*)p, expected, v); }
WL_FN int atomicMin(int* p, int v) { return __nvvm_atom_min_gen_i(p, v); }
WL_FN int atomicMax(int* p, int v) { return __nvvm_atom_max_gen_i(p, v); }
WL_FN wl_u64 atomicMin(wl_u64* p, wl_u64 v) { return __nvvm_atom_min_gen_ull(p, v); }
WL_FN wl_u64 atomicMax(wl_u64* p, wl_u64 v) { return __nvvm_atom_max_gen_ull(p, v); }
WL_FN int atomicAnd(int* p, int v) { return __nvvm_atom_and_gen_i(p, v); }
WL_FN int atomicOr(int* p, int v) { return __nvvm_atom_or_gen_i(p, v); }
WL_FN int atomicXor(int* p, int v) { return __nvvm_atom_xor_gen_i(p, v); }
WL_FN unsigned atomicAnd(unsigned* p, unsigned v) { return __nvvm_atom_and_gen_i((int*)p, v); }
WL_FN unsigned atomicOr(unsigned* p, unsigned v) { return __nvvm_atom_or_gen_i((int*)p, v); }
WL_FN unsigned atomicXor(unsigned* p, unsigned v) { return __nvvm_atom_xor_gen_i((int*)p, v); }
WL_FN unsigned atomicInc(unsigned* p, unsigned v) { return __nvvm_atom_inc_gen_ui(p, v); }
WL_FN unsigned atomicDec(unsigned* p, unsigned v) { return __nvvm_atom_dec_gen_ui(p, v); }

// Shuffles of the other types, and within a part of the warp.
#ifndef WL_BEFORE_PTX60
#define WL_SHUFFLE(name, builtin, clamp)                                                          \
    WL_FN int name(unsigned m, int v, unsigned s, int width = 32) {                               \
        return builtin(m, v, s, (32 - width) << 8 | clamp);                                       \
    }                                                                                             \
    WL_FN unsigned name(unsigned m, unsigned v, unsigned s, int width) {                          \
        return builtin(m, v, s, (32 - width) << 8 | clamp);                                       \
    }                                                                                             \
    WL_FN float name(unsigned m, float v, unsigned s, int width = 32) {                           \
        return __builtin_bit_cast(float, builtin(m, __builtin_bit_cast(int, v), s, (32 - width) << 8 | clamp)); \
    }
WL_SHUFFLE(__shfl_sync, __nvvm_shfl_sync_idx_i32, 0x1f)
WL_SHUFFLE(__shfl_down_sync, __nvvm_shfl_sync_down_i32, 0x1f)
WL_SHUFFLE(__shfl_up_sync, __nvvm_shfl_sync_up_i32, 0)
WL_SHUFFLE(__shfl_xor_sync, __nvvm_shfl_sync_bfly_i32, 0x1f)
#undef WL_SHUFFLE
WL_FN unsigned __activemask() {
    unsigned mask;
    asm volatile("activemask.b32 %0;" : "=r"(mask));
    return mask;
}
#endif
WL_FN int __syncthreads_and(int p) { return __nvvm_bar0_and(p); }
WL_FN int __syncthreads_count(int p) { return __nvvm_bar0_popc(p); }

// Time, loads, and bits of floats.
WL_FN long long clock64() { return __nvvm_read_ptx_sreg_clock64(); }
WL_FN int clock() { return __nvvm_read_ptx_sreg_clock(); }
#if __CUDA_ARCH__ >= 700
WL_FN void __nanosleep(unsigned ns) { asm volatile("nanosleep.u32 %0;" ::"r"(ns) : "memory"); }
#endif
template <typename T> WL_FN T __ldg(const T* p) { return *p; }
template <typename T> WL_FN T __ldcg(const T* p) { return *(const volatile T*)p; }
WL_FN float __int_as_float(int v) { return __builtin_bit_cast(float, v); }
WL_FN int __float_as_int(float v) { return __builtin_bit_cast(int, v); }
WL_FN float __uint_as_float(unsigned v) { return __builtin_bit_cast(float, v); }
WL_FN unsigned __float_as_uint(float v) { return __builtin_bit_cast(unsigned, v); }

// Functions that one instruction computes. The others are in CUDA's library, which only nvcc brings.
WL_FN float __expf(float v) { return __nvvm_ex2_approx_f(v * 1.4426950408889634f); }
WL_FN float __logf(float v) { return __nvvm_lg2_approx_f(v) * 0.6931471805599453f; }
WL_FN float __sinf(float v) { return __nvvm_sin_approx_f(v); }
WL_FN float __cosf(float v) { return __nvvm_cos_approx_f(v); }
WL_FN float __fdividef(float a, float b) { return __nvvm_div_approx_f(a, b); }
#define WL_MATH extern "C" __device__ inline __attribute__((always_inline, nodebug))
WL_MATH float sqrtf(float v) { return __nvvm_sqrt_rn_f(v); }
WL_MATH double sqrt(double v) { return __nvvm_sqrt_rn_d(v); }
WL_MATH float fabsf(float v) { return __builtin_fabsf(v); }
WL_MATH double fabs(double v) { return __builtin_fabs(v); }
WL_MATH float fminf(float a, float b) { return __nvvm_fmin_f(a, b); }
WL_MATH float fmaxf(float a, float b) { return __nvvm_fmax_f(a, b); }
WL_MATH float floorf(float v) { return __nvvm_floor_f(v); }
WL_MATH float ceilf(float v) { return __nvvm_ceil_f(v); }
WL_MATH float fmaf(float a, float b, float c) { return __nvvm_fma_rn_f(a, b, c); }
#undef WL_MATH

// Host code.
enum cudaError_t { cudaSuccess = 0 };
enum cudaMemcpyKind { cudaMemcpyHostToHost, cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault };
typedef struct CUstream_st* cudaStream_t;
typedef struct CUevent_st* cudaEvent_t;
extern "C" {
int cudaConfigureCall(dim3 grid, dim3 block, size_t shared = 0, cudaStream_t stream = 0);
unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, size_t shared = 0, cudaStream_t stream = 0);
cudaError_t cudaLaunchKernel(const void*, dim3, dim3, void**, size_t, cudaStream_t);
cudaError_t cudaFree(void*);
cudaError_t cudaFreeHost(void*);
cudaError_t cudaMemcpy(void*, const void*, size_t, cudaMemcpyKind);
cudaError_t cudaMemcpyAsync(void*, const void*, size_t, cudaMemcpyKind, cudaStream_t = 0);
cudaError_t cudaMemset(void*, int, size_t);
cudaError_t cudaMemsetAsync(void*, int, size_t, cudaStream_t = 0);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaDeviceReset();
cudaError_t cudaSetDevice(int);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();
const char* cudaGetErrorString(cudaError_t);
const char* cudaGetErrorName(cudaError_t);
cudaError_t cudaStreamCreate(cudaStream_t*);
cudaError_t cudaStreamDestroy(cudaStream_t);
cudaError_t cudaStreamSynchronize(cudaStream_t);
cudaError_t cudaEventCreate(cudaEvent_t*);
cudaError_t cudaEventDestroy(cudaEvent_t);
cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t = 0);
cudaError_t cudaEventSynchronize(cudaEvent_t);
cudaError_t cudaEventElapsedTime(float*, cudaEvent_t, cudaEvent_t);
}
template <typename T> cudaError_t cudaMalloc(T** pointer, size_t bytes);
template <typename T> cudaError_t cudaMallocHost(T** pointer, size_t bytes);
template <typename T> cudaError_t cudaMallocManaged(T** pointer, size_t bytes, unsigned flags = 1);

#endif
