// The CUDA C++ vocabulary these kernels use, for any of three compilers.
//
// nvcc and NVRTC bring their own definitions, so for them this header adds next to nothing. clang is
// called with -nocudainc -nocudalib, which leaves it with the language and the __nvvm_* builtins
// only: everything else is spelled out here.
#ifndef WARPLOOM_CUH
#define WARPLOOM_CUH

#if defined(__CUDACC_RTC__) || defined(__NVCC__)
#define WL_FN static __device__ __forceinline__
#endif

#if defined(__CUDACC_RTC__)

#ifndef assert
#define assert(condition) \
    ((condition) ? (void)0 : __assertfail(#condition, __FILE__, __LINE__, __func__, sizeof(char)))
#endif

#elif defined(__NVCC__)

#include <cassert>
#include <cstdio>

#else  // clang alone

#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __host__ __attribute__((host))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#define __noinline__ __attribute__((noinline))
#define __forceinline__ inline __attribute__((always_inline))
// Without debug data, so that line tables name the calling line.
#define WL_FN static __device__ __forceinline__ __attribute__((nodebug))

typedef __SIZE_TYPE__ size_t;

struct uint3 { unsigned x, y, z; };
struct __attribute__((aligned(16))) float4 { float x, y, z, w; };
WL_FN float4 make_float4(float x, float y, float z, float w) { return float4{x, y, z, w}; }

// Geometry. Each name is a value, as in CUDA; the unused components vanish at -O1 and above.
WL_FN uint3 wl_thread_index() {
    return uint3{(unsigned)__nvvm_read_ptx_sreg_tid_x(), (unsigned)__nvvm_read_ptx_sreg_tid_y(),
                 (unsigned)__nvvm_read_ptx_sreg_tid_z()};
}
WL_FN uint3 wl_block_index() {
    return uint3{(unsigned)__nvvm_read_ptx_sreg_ctaid_x(), (unsigned)__nvvm_read_ptx_sreg_ctaid_y(),
                 (unsigned)__nvvm_read_ptx_sreg_ctaid_z()};
}
WL_FN uint3 wl_block_size() {
    return uint3{(unsigned)__nvvm_read_ptx_sreg_ntid_x(), (unsigned)__nvvm_read_ptx_sreg_ntid_y(),
                 (unsigned)__nvvm_read_ptx_sreg_ntid_z()};
}
WL_FN uint3 wl_grid_size() {
    return uint3{(unsigned)__nvvm_read_ptx_sreg_nctaid_x(), (unsigned)__nvvm_read_ptx_sreg_nctaid_y(),
                 (unsigned)__nvvm_read_ptx_sreg_nctaid_z()};
}
#define threadIdx (wl_thread_index())
#define blockIdx (wl_block_index())
#define blockDim (wl_block_size())
#define gridDim (wl_grid_size())

// Barriers and fences. __syncthreads() is a clang builtin already.
WL_FN int __syncthreads_or(int p) { return __nvvm_bar0_or(p); }
WL_FN void __threadfence_block() { __nvvm_membar_cta(); }
WL_FN void __threadfence() { __nvvm_membar_gl(); }
WL_FN void __threadfence_system() { __nvvm_membar_sys(); }

// Shuffles and votes. WL_BEFORE_PTX60 selects the forms without a member mask, the only ones before
// PTX 6.0. The last shuffle operand packs the segment mask (0: whole warp) with the clamp lane.
#ifdef WL_BEFORE_PTX60
WL_FN void __syncwarp(unsigned = ~0u) {}
WL_FN unsigned __shfl_down_sync(unsigned, unsigned v, unsigned d) { return __nvvm_shfl_down_i32(v, d, 0x1f); }
WL_FN unsigned __shfl_up_sync(unsigned, unsigned v, unsigned d) { return __nvvm_shfl_up_i32(v, d, 0); }
WL_FN unsigned __shfl_xor_sync(unsigned, unsigned v, unsigned m) { return __nvvm_shfl_bfly_i32(v, m, 0x1f); }
WL_FN unsigned __shfl_sync(unsigned, unsigned v, unsigned l) { return __nvvm_shfl_idx_i32(v, l, 0x1f); }
WL_FN unsigned __ballot_sync(unsigned, int p) {
    unsigned r;
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %1, 0; vote.ballot.b32 %0, p; }" : "=r"(r) : "r"(p));
    return r;
}
WL_FN int __any_sync(unsigned m, int p) { return __ballot_sync(m, p) != 0; }
WL_FN int __all_sync(unsigned, int p) {
    int r;
    asm volatile("{ .reg .pred p, q; setp.ne.s32 p, %1, 0; vote.all.pred q, p; selp.b32 %0, 1, 0, q; }"
                 : "=r"(r)
                 : "r"(p));
    return r;
}
#else
WL_FN void __syncwarp(unsigned m = ~0u) { __nvvm_bar_warp_sync(m); }
WL_FN unsigned __shfl_down_sync(unsigned m, unsigned v, unsigned d) { return __nvvm_shfl_sync_down_i32(m, v, d, 0x1f); }
WL_FN unsigned __shfl_up_sync(unsigned m, unsigned v, unsigned d) { return __nvvm_shfl_sync_up_i32(m, v, d, 0); }
WL_FN unsigned __shfl_xor_sync(unsigned m, unsigned v, unsigned x) { return __nvvm_shfl_sync_bfly_i32(m, v, x, 0x1f); }
WL_FN unsigned __shfl_sync(unsigned m, unsigned v, unsigned l) { return __nvvm_shfl_sync_idx_i32(m, v, l, 0x1f); }
WL_FN unsigned __ballot_sync(unsigned m, int p) { return __nvvm_vote_ballot_sync(m, p != 0); }
WL_FN int __any_sync(unsigned m, int p) { return __nvvm_vote_any_sync(m, p != 0); }
WL_FN int __all_sync(unsigned m, int p) { return __nvvm_vote_all_sync(m, p != 0); }
#endif
#if __CUDA_ARCH__ >= 700
WL_FN unsigned __match_any_sync(unsigned m, unsigned v) { return __nvvm_match_any_sync_i32(m, v); }
#endif

// Atomics on global, shared or generic addresses.
WL_FN unsigned atomicAdd(unsigned* p, unsigned v) { return __nvvm_atom_add_gen_i((int*)p, v); }
WL_FN unsigned atomicExch(unsigned* p, unsigned v) { return __nvvm_atom_xchg_gen_i((int*)p, v); }
WL_FN unsigned atomicMin(unsigned* p, unsigned v) { return __nvvm_atom_min_gen_ui(p, v); }
WL_FN unsigned atomicMax(unsigned* p, unsigned v) { return __nvvm_atom_max_gen_ui(p, v); }
WL_FN unsigned atomicCAS(unsigned* p, unsigned expected, unsigned v) {
    return __nvvm_atom_cas_gen_i((int*)p, expected, v);
}

// Integer operations.
WL_FN unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
WL_FN unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
WL_FN int min(int a, int b) { return a < b ? a : b; }
WL_FN int max(int a, int b) { return a > b ? a : b; }
WL_FN int __popc(unsigned v) { return __builtin_popcount(v); }
WL_FN int __popcll(unsigned long long v) { return __builtin_popcountll(v); }
WL_FN int __clz(int v) { return v ? __builtin_clz(v) : 32; }
WL_FN int __ffs(int x) { return __builtin_ffs(x); }
WL_FN int __clzll(long long v) { return v ? __builtin_clzll(v) : 64; }
WL_FN unsigned __brev(unsigned v) { return __builtin_bitreverse32(v); }
WL_FN unsigned __umulhi(unsigned a, unsigned b) { return __nvvm_mulhi_ui(a, b); }
WL_FN unsigned long long __umul64hi(unsigned long long a, unsigned long long b) { return __nvvm_mulhi_ull(a, b); }
WL_FN unsigned __byte_perm(unsigned a, unsigned b, unsigned s) { return __nvvm_prmt(a, b, s); }
WL_FN unsigned __funnelshift_l(unsigned lo, unsigned hi, unsigned s) {
    unsigned r;
    asm("shf.l.wrap.b32 %0, %1, %2, %3;" : "=r"(r) : "r"(lo), "r"(hi), "r"(s));
    return r;
}

// Floating point, with the rounding in the name; rsqrtf is the hardware's approximation.
WL_FN float rsqrtf(float v) { return __nvvm_rsqrt_approx_f(v); }
WL_FN float __fmaf_rn(float a, float b, float c) { return __nvvm_fma_rn_f(a, b, c); }
WL_FN double __fma_rn(double a, double b, double c) { return __nvvm_fma_rn_d(a, b, c); }
WL_FN double __dadd_rn(double a, double b) { return __nvvm_add_rn_d(a, b); }
WL_FN double __dmul_rn(double a, double b) { return __nvvm_mul_rn_d(a, b); }
WL_FN double __ddiv_rn(double a, double b) { return __nvvm_div_rn_d(a, b); }
WL_FN double __dsqrt_rn(double v) { return __nvvm_sqrt_rn_d(v); }

// clang turns a device printf into a call of vprintf with the packed arguments.
extern "C" __device__ int printf(const char* format, ...);
extern "C" __device__ __attribute__((noreturn)) void __assertfail(const char* message, const char* file,
                                                                  unsigned line, const char* function,
                                                                  size_t char_size);
#define assert(condition) \
    ((condition) ? (void)0 : __assertfail(#condition, __FILE__, __LINE__, __func__, sizeof(char)))

#endif

// Half precision by its bits: no compiler needs a half type for these.
static __device__ __forceinline__ unsigned short wl_half_from_float(float v) {
    unsigned short r;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r) : "f"(v));
    return r;
}
#if __CUDA_ARCH__ >= 530
static __device__ __forceinline__ unsigned short wl_half_fma(unsigned short a, unsigned short b, unsigned short c) {
    unsigned short r;
    asm("{ fma.rn.f16 %0, %1, %2, %3; }" : "=h"(r) : "h"(a), "h"(b), "h"(c));
    return r;
}
static __device__ __forceinline__ unsigned wl_half2_fma(unsigned a, unsigned b, unsigned c) {
    unsigned r;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(r) : "r"(a), "r"(b), "r"(c));
    return r;
}
#endif

#endif  // WARPLOOM_CUH
