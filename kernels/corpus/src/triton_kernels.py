"""Triton kernels, compiled to PTX and printed for build.py. One program uses 4 warps, 128 threads."""

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def vecadd(a, b, c, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(c + i, tl.load(a + i, mask=inside) + tl.load(b + i, mask=inside), mask=inside)


@triton.jit
def softmax(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + i, mask=i < columns, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(y + row * columns + i, e / tl.sum(e, axis=0), mask=i < columns)


@triton.jit
def rowsum(x, y, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, columns, BLOCK):
        i = first + tl.arange(0, BLOCK)
        total += tl.load(x + row * columns + i, mask=i < columns, other=0.0)
    tl.store(y + row, tl.sum(total, axis=0))


@triton.jit
def collatz(x, y, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + i, mask=i < n, other=1)
    steps = tl.zeros((BLOCK,), tl.int32)
    for _ in range(64):
        alive = v > 1
        v = tl.where(alive, tl.where(v % 2 == 1, 3 * v + 1, v // 2), v)
        steps += alive.to(tl.int32)
    tl.atomic_max(y + i, steps, mask=i < n)


def signature(**types):
    return {**types, "BLOCK": "constexpr"}


KERNELS = [
    (vecadd, signature(a="*fp32", b="*fp32", c="*fp32", n="i32"), 256),
    (softmax, signature(x="*fp32", y="*fp32", columns="i32"), 256),
    (rowsum, signature(x="*fp32", y="*fp32", columns="i32"), 128),
    (collatz, signature(x="*u32", y="*i32", n="i32"), 128),
]

for function, types, block in KERNELS:
    source = ASTSource(fn=function, signature=types, constexprs={"BLOCK": block})
    compiled = triton.compile(source, target=GPUTarget("cuda", 90, 32), options={"ptx_version": 90, "num_warps": 4})
    name = function.__name__
    print(f"%% {name} Triton {triton.__version__}|sm_90|triton.compile({name}, BLOCK={block}, ptx_version=90, num_warps=4)")
    print(compiled.asm["ptx"])
