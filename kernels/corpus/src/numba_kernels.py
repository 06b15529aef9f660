"""Numba kernels, compiled to PTX and printed for build.py."""

import numba
from importlib.metadata import version
from numba import cuda, float32, float64, types, uint32, uint8


def vecadd(a, b, c, n):
    i = cuda.grid(1)
    if i < n:
        c[i] = a[i] + b[i]


def reduce(values, out, n):
    partial = cuda.shared.array(256, uint32)
    t = cuda.threadIdx.x
    total = uint32(0)
    i = cuda.grid(1)
    while i < n:
        total += values[i]
        i += cuda.gridsize(1)
    partial[t] = total
    cuda.syncthreads()
    reach = 128
    while reach > 0:
        if t < reach:
            partial[t] += partial[t + reach]
        cuda.syncthreads()
        reach //= 2
    if t == 0:
        cuda.atomic.add(out, 0, partial[0])


def histogram(values, bins, n):
    i = cuda.grid(1)
    while i < n:
        cuda.atomic.add(bins, values[i], 1)
        i += cuda.gridsize(1)


def mandelbrot(counts, width, height, limit):
    x, y = cuda.grid(2)
    if x < width and y < height:
        cr = float64(x) / width * 3.0 - 2.0
        ci = float64(y) / height * 2.0 - 1.0
        zr = 0.0
        zi = 0.0
        k = 0
        while k < limit and zr * zr + zi * zi <= 4.0:
            zr, zi = zr * zr - zi * zi + cr, 2.0 * zr * zi + ci
            k += 1
        counts[y, x] = k


def localsort(values, out, n):
    i = cuda.grid(1)
    if i < n:
        mine = cuda.local.array(8, float32)
        for k in range(8):
            v = values[i, k]
            at = k
            while at > 0 and mine[at - 1] > v:
                mine[at] = mine[at - 1]
                at -= 1
            mine[at] = v
        for k in range(8):
            out[i, k] = mine[k]


def array(element, dimensions=1):
    return types.Array(element, dimensions, "C")


KERNELS = [
    (vecadd, (array(float32), array(float32), array(float32), uint32)),
    (reduce, (array(uint32), array(uint32), uint32)),
    (histogram, (array(uint8), array(uint32), uint32)),
    (mandelbrot, (array(uint32, 2), uint32, uint32, uint32)),
    (localsort, (array(float32, 2), array(float32, 2), uint32)),
]

compiler = f"numba-cuda {version('numba-cuda')}, numba {numba.__version__}, NVVM {version('nvidia-nvvm')}"
for function, signature in KERNELS:
    ptx, _ = cuda.compile_ptx(function, signature, cc=(9, 0), abi="numba")
    print(f"%% {function.__name__} {compiler}|compute_90|cuda.compile_ptx({function.__name__}, ..., cc=(9, 0))")
    print(ptx)
