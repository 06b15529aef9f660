"""Triton kernels without PyTorch: an addition and a softmax. Arrays are allocated by the driver's API."""

import ctypes

import numpy as np
import triton
import triton.language as tl
from triton.runtime import driver

cuda = ctypes.CDLL("libcuda.so.1")


def check(code):
    assert code == 0, f"CUDA error {code}"


class DeviceArray:
    """What Triton asks of an array: its address and the type of its elements."""

    def __init__(self, host):
        self.host, self.dtype = host, str(host.dtype)
        self.address, self.bytes = ctypes.c_uint64(), ctypes.c_size_t(host.nbytes)
        check(cuda.cuMemAlloc_v2(ctypes.byref(self.address), self.bytes))
        check(cuda.cuMemcpyHtoD_v2(self.address, ctypes.c_void_p(host.ctypes.data), self.bytes))

    def data_ptr(self):
        return self.address.value

    def read(self):
        check(cuda.cuMemcpyDtoH_v2(ctypes.c_void_p(self.host.ctypes.data), self.address, self.bytes))
        return self.host


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < n
    tl.store(out + i, tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)


@triton.jit
def softmax(out, x, stride, n, BLOCK: tl.constexpr):
    row, column = tl.program_id(0), tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + column, mask=column < n, other=-float("inf"))
    e = tl.exp(v - tl.max(v, axis=0))
    tl.store(out + row * stride + column, e / tl.sum(e, axis=0), mask=column < n)


driver.active.get_current_device()
context = ctypes.c_void_p()
check(cuda.cuInit(0))
check(cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0))
check(cuda.cuCtxSetCurrent(context))

random = np.random.default_rng(1)
x, y = random.random((2, 5000), np.float32)
out = DeviceArray(np.zeros_like(x))
add[(triton.cdiv(x.size, 1024),)](DeviceArray(x), DeviceArray(y), out, x.size, BLOCK=1024)
assert np.allclose(out.read(), x + y)

rows = random.random((16, 300), np.float32)
out = DeviceArray(np.zeros_like(rows))
softmax[(16,)](out, DeviceArray(rows), 300, 300, BLOCK=512)
e = np.exp(rows - rows.max(1, keepdims=True))
assert np.allclose(out.read(), e / e.sum(1, keepdims=True), atol=1e-6)
print("passed")
