// A dense switch over the integer instructions, and an indexed branch through a table of labels.
#include "warploom.cuh"

extern "C" __global__ void classify(const unsigned* in, unsigned* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned v = in[i], r;
    unsigned long long wide = (unsigned long long)v * 0x9e3779b97f4a7c15ull;
    switch (v % 16) {
        case 0: r = __popc(v); break;
        case 1: r = __clz((int)v); break;
        case 2: r = (v >> 5) & 0x7ff; break;
        case 3: r = min(v, 1000u) + max(i, 7u); break;
        case 4: r = (unsigned)min((int)v, -5); break;
        case 5: r = (unsigned)(((unsigned long long)v * i) >> 7); break;
        case 6: r = __umulhi(v, 0xdeadbeefu); break;
        case 7: r = __funnelshift_l(v, i, v % 37); break;
        case 8: r = __byte_perm(v, i, 0x2471); break;
        case 9: r = (unsigned)(wide / (i + 3)); break;
        case 10: r = (unsigned)(wide % 1000003); break;
        case 11: r = __brev(v) ^ (v >> 3); break;
        case 12: r = (unsigned)(__umul64hi(wide, wide) >> 11); break;
        case 13: r = __popcll(wide) * 100 + __clzll((long long)wide); break;
        case 14: r = (unsigned)((long long)(int)v >> 9) / 3; break;
        default: r = (unsigned)((signed char)v + (short)(v >> 8)); break;
    }
    out[i] = r;
}

#ifndef WL_BEFORE_PTX60
// The indexed branch written out, since not every compiler makes one from a switch.
extern "C" __global__ void jumptable(const unsigned* in, unsigned* out, unsigned n) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    unsigned v = in[i], r;
    asm volatile(
        "{\n\t"
        ".reg .b32 index;\n\t"
        "rem.u32 index, %1, 4;\n"
        "targets: .branchtargets plus_one, doubled, inverted, squared;\n\t"
        "brx.idx index, targets;\n"
        "plus_one:\n\t"
        "add.u32 %0, %1, 1;\n\t"
        "bra.uni done;\n"
        "doubled:\n\t"
        "shl.b32 %0, %1, 1;\n\t"
        "bra.uni done;\n"
        "inverted:\n\t"
        "not.b32 %0, %1;\n\t"
        "bra.uni done;\n"
        "squared:\n\t"
        "mul.lo.u32 %0, %1, %1;\n"
        "done:\n\t"
        "}"
        : "=r"(r)
        : "r"(v));
    out[i] = r;
}
#endif
