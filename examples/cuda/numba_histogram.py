"""Numba kernels: a histogram with atomics in shared and global memory, and a sum with warp shuffles."""

import numpy as np
from numba import cuda, float32, int32

BINS = 64


@cuda.jit
def histogram(values, bins):
    part = cuda.shared.array(BINS, int32)
    if cuda.threadIdx.x < BINS:
        part[cuda.threadIdx.x] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), values.size, cuda.gridsize(1)):
        cuda.atomic.add(part, values[i] % BINS, 1)
    cuda.syncthreads()
    if cuda.threadIdx.x < BINS:
        cuda.atomic.add(bins, cuda.threadIdx.x, part[cuda.threadIdx.x])


@cuda.jit
def total(values, out):
    i = cuda.grid(1)
    x = values[i] if i < values.size else float32(0)
    for distance in (16, 8, 4, 2, 1):
        x += cuda.shfl_down_sync(0xFFFFFFFF, x, distance)
    if cuda.laneid == 0:
        cuda.atomic.add(out, 0, x)


values = np.random.default_rng(1).integers(0, 1000, 5000).astype(np.int32)
bins = cuda.to_device(np.zeros(BINS, np.int32))
histogram[4, 128](cuda.to_device(values), bins)
assert (bins.copy_to_host() == np.bincount(values % BINS, minlength=BINS)).all()

ones = cuda.to_device(np.ones(1000, np.float32))
out = cuda.to_device(np.zeros(1, np.float32))
start, end = cuda.event(), cuda.event()
start.record()
total[8, 128](ones, out)
end.record()
end.synchronize()
assert out.copy_to_host()[0] == 1000
assert start.elapsed_time(end) > 0
print("passed")
