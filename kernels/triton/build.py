"""Triton kernels with matrix products and reductions, compiled to the PTX files of this folder:

    TRITON_DISABLE_LINE_INFO=1 python3 build.py   (PyPI triton==3.9.0; needs no GPU)

Each is compiled for sm_80 (`mma`, `cp.async`) and for sm_90 (`wgmma`, bulk copies). The first lines of a file say how
many threads and how much dynamic shared memory it needs. After the arguments come two more pointers, global scratch
memory (only `matmul_tma` needs it) and that of a profiler.
"""

from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def softmax(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + i, mask=i < columns, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row * columns + i, e / tl.sum(e, axis=0), mask=i < columns)


@triton.jit
def layernorm(x, y, weight, bias, columns, epsilon, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    inside = i < columns
    v = tl.load(x + row * columns + i, mask=inside, other=0.0)
    mean = tl.sum(v, axis=0) / columns
    away = tl.where(inside, v - mean, 0.0)
    scale = tl.rsqrt(tl.sum(away * away, axis=0) / columns + epsilon)
    w = tl.load(weight + i, mask=inside, other=0.0)
    b = tl.load(bias + i, mask=inside, other=0.0)
    tl.store(y + row * columns + i, away * scale * w + b, mask=inside)


@triton.jit
def matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for first in range(0, K, BK):
        ks = first + k
        x = tl.load(a + m[:, None] * K + ks[None, :], mask=(m[:, None] < M) & (ks[None, :] < K), other=0.0)
        y = tl.load(b + ks[:, None] * N + n[None, :], mask=(ks[:, None] < K) & (n[None, :] < N), other=0.0)
        total = tl.dot(x, y, total)
    tl.store(c + m[:, None] * N + n[None, :], total, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def matmul_tma(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    """The kernel makes its own tensor maps, in scratch memory."""
    left = tl.make_tensor_descriptor(a, [M, K], [K, 1], [BM, BK])
    right = tl.make_tensor_descriptor(b, [K, N], [N, 1], [BK, BN])
    out = tl.make_tensor_descriptor(c, [M, N], [N, 1], [BM, BN])
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), tl.float32)
    for first in range(0, K, BK):
        total = tl.dot(left.load([m, first]), right.load([first, n]), total)
    out.store([m, n], total)


@triton.jit
def attention(q, k, v, out, scale, length, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    """One block of queries of one head, causal, with the softmax computed along the way."""
    first, head = tl.program_id(0) * BM, tl.program_id(1)
    base = head * length * D
    m, n, d = first + tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, D)
    query = tl.load(q + base + m[:, None] * D + d[None, :], mask=m[:, None] < length, other=0.0)
    most = tl.full((BM,), -float("inf"), tl.float32)
    whole = tl.zeros((BM,), tl.float32)
    total = tl.zeros((BM, D), tl.float32)
    for start in range(0, tl.minimum(first + BM, length), BN):
        at = start + n
        key = tl.load(k + base + at[None, :] * D + d[:, None], mask=at[None, :] < length, other=0.0)
        score = tl.dot(query, key) * scale
        score = tl.where((at[None, :] < length) & (at[None, :] <= m[:, None]), score, -float("inf"))
        now = tl.maximum(most, tl.max(score, axis=1))
        shrink = tl.exp2(most - now)
        p = tl.exp2(score - now[:, None])
        whole = whole * shrink + tl.sum(p, axis=1)
        value = tl.load(v + base + at[:, None] * D + d[None, :], mask=at[:, None] < length, other=0.0)
        total = tl.dot(p.to(value.dtype), value, total * shrink[:, None])
        most = now
    result = (total / whole[:, None]).to(out.dtype.element_ty)
    tl.store(out + base + m[:, None] * D + d[None, :], result, mask=m[:, None] < length)


PRODUCT = {"a": "*fp16", "b": "*fp16", "c": "*fp32", "M": "i32", "N": "i32", "K": "i32"}
# Kernel, types, constants, how many arguments are multiples of 16, stages of the pipeline, targets.
KERNELS = [
    (softmax, {"x": "*fp32", "y": "*fp32", "columns": "i32"}, {"BLOCK": 256}, 0, 1, (80, 90)),
    (layernorm, {"x": "*fp32", "y": "*fp32", "weight": "*fp32", "bias": "*fp32", "columns": "i32", "epsilon": "fp32"},
     {"BLOCK": 512}, 0, 1, (80, 90)),
    (matmul, PRODUCT, {"BM": 64, "BN": 64, "BK": 32}, 6, 3, (80, 90)),
    (matmul_tma, PRODUCT, {"BM": 64, "BN": 64, "BK": 64}, 6, 3, (90,)),
    (attention, {"q": "*fp16", "k": "*fp16", "v": "*fp16", "out": "*fp16", "scale": "fp32", "length": "i32"},
     {"BM": 64, "BN": 32, "D": 64}, 4, 2, (80, 90)),
]
WARPS = 4

for function, types, constants, aligned, stages, targets in KERNELS:
    for target in targets:
        source = ASTSource(
            fn=function,
            signature={**types, **{name: "constexpr" for name in constants}},
            constexprs=constants,
            attrs={(at,): [["tt.divisibility", 16]] for at in range(aligned)},
        )
        options = {"ptx_version": 87, "num_warps": WARPS, "num_stages": stages}
        compiled = triton.compile(source, target=GPUTarget("cuda", target, 32), options=options)
        data = compiled.metadata
        name = function.__name__
        scratch = f", {data.global_scratch_size} bytes of scratch memory per CTA" if data.global_scratch_size else ""
        head = f"// Triton {triton.__version__}, sm_{target}, {constants}, {stages} stages: kernels/triton/build.py\n"
        head += f"// {32 * WARPS} threads, {data.shared} bytes of dynamic shared memory{scratch}\n"
        Path(__file__).with_name(f"{name}_sm{target}.ptx").write_text(head + compiled.asm["ptx"].lstrip())
