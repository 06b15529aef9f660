"""The tutorial's kernels from Python: python examples/tutorial/transfers.py"""

import pathlib

import numpy as np
import warploom

kernels = pathlib.Path(__file__).with_name("transfers.ptx")
balance = np.full(64, 100, dtype=np.uint32)
locks = np.zeros(64, dtype=np.uint32)

for entry in ["one_lock", "ordered", "atomics"]:
    result = warploom.run(kernels, entry=entry, grid=4, block=64, args=[balance, locks, 64])
    assert np.array_equal(result.buffers[0], balance)
    print(entry, result["cycles"], "cycles,", result["locks"]["failed_inter"], "inter-warp lock failures")
