"""One launch."""

import os
import tempfile

import numpy as np

from ._command import WarploomError, call

# NumPy's types and the command's.
_TYPES = {
    "int8": "s8", "int16": "s16", "int32": "s32", "int64": "s64",
    "uint8": "u8", "uint16": "u16", "uint32": "u32", "uint64": "u64",
    "float16": "f16", "float32": "f32", "float64": "f64",
}


class Result(dict):
    """The launch's report, by the names of `warploom run --json`.

    `buffers` has, for each argument that was an array, a new array with its content after the launch, and None for the
    others. The arrays that were passed are not changed.
    """

    def __init__(self, report, buffers):
        super().__init__(report)
        self.buffers = buffers


def run(
    file, *, grid=None, block=None, args=(), params=None, entry=None, chip=None, sched=None, set=None, model=None,
    options=(),
):
    """Launches a kernel of a PTX file, a SASS listing, or a CUDA file (`.cu`), which nvcc or else clang compiles; or
    executes a plan of several launches (`.toml`), with values of its parameters in `params`.

    `grid` and `block` are numbers or tuples. Each of `args` is a NumPy array, which becomes a buffer; a NumPy scalar,
    whose type is the argument's; a Python number, which takes the type of the kernel's parameter; or a text as
    `warploom run --arg` takes it. `set` has values of the chip by their keys, and `options` more words for the command.
    """
    with tempfile.TemporaryDirectory(prefix="warploom-") as folder:
        file = os.fspath(file)
        command = ["run", file, *(f"{name}={_text(value)}" for name, value in (params or {}).items())]
        if grid is not None:
            command += ["--grid", _extent(grid)]
        for name, value in [("entry", entry), ("chip", chip), ("sched", sched), ("model", model)]:
            if value is not None:
                command += [f"--{name}", value]
        if block is not None:
            command += ["--block", _extent(block)]
        for key, value in (set or {}).items():
            command += ["--set", f"{key}={_text(value)}"]
        arrays = {}
        types = None
        for at, value in enumerate(args):
            if isinstance(value, np.ndarray):
                arrays[at] = value
                path = os.path.join(folder, str(at))
                np.ascontiguousarray(value).astype(value.dtype.newbyteorder("<"), copy=False).tofile(path)
                command += ["--arg", f"buf:{_type(value.dtype)}:{value.size}=@{path}", "--save", f"{at}={path}"]
                continue
            if isinstance(value, (bool, int, float)) and not isinstance(value, np.generic):
                types = types or _parameter_types(file, entry)
                if at >= len(types):
                    raise WarploomError(f"the kernel has {len(types)} parameters, {len(args)} arguments are given")
                value = f"{types[at]}:{_text(value)}"
            elif isinstance(value, np.generic):
                value = f"{_type(value.dtype)}:{_text(value.item())}"
            command += ["--arg", value]
        report = call([*command, *options])
        buffers = [None] * len(args)
        for at, array in arrays.items():
            data = np.fromfile(os.path.join(folder, str(at)), dtype=array.dtype.newbyteorder("<"))
            buffers[at] = data.astype(array.dtype, copy=False).reshape(array.shape)
        return Result(report, buffers)


def _extent(value):
    return ",".join(map(str, value)) if isinstance(value, (tuple, list)) else str(value)


def _text(value):
    return str(value).lower() if isinstance(value, bool) else repr(value) if isinstance(value, float) else str(value)


def _type(dtype):
    try:
        return _TYPES[dtype.name]
    except KeyError:
        known = ", ".join(_TYPES)
        raise WarploomError(f"no kernel has arguments of type {dtype}", help=[f"there are {known}"]) from None


def _parameter_types(file, entry):
    [checked] = call(["check", file])["files"]
    for error in checked["errors"]:
        raise WarploomError(error["message"], error["kind"], error["help"])
    kernels = checked["kernels"]
    plain = lambda kernel: kernel["signature"].split("(")[0]
    chosen = [kernel for kernel in kernels if entry in (None, kernel["name"], plain(kernel))]
    if len(chosen) != 1:
        names = ", ".join(kernel["name"] for kernel in kernels)
        raise WarploomError(f"`{file}` has the kernels {names}", help=["choose one with entry="])
    return [parameter["type"] for parameter in chosen[0]["params"]]
