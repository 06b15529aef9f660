"""GPU kernels and sweeps on Warploom's simulator, with NumPy arrays and data frames.

`run` launches one kernel; `sweep` executes many runs and keeps their results on disk. Both call the command `warploom`:
on the path, or where the environment variable `WARPLOOM` says.
"""

from ._command import WarploomError
from ._run import Result, run
from ._sweep import Plot, Sweep, sweep

__all__ = ["Plot", "Result", "Sweep", "WarploomError", "run", "sweep"]
