#!/usr/bin/env python3
"""Regenerates the PTX corpus: every folder here but handwritten/.

    build.py            all groups whose compiler is found
    build.py NAME...    only those groups (the folder names)
    build.py --check    only run ptxas over what is there

A compiler that is missing is named and skipped; nothing is installed. Compilers are found through these
variables (see README.md for the packages):

    CLANG19, CLANG22    default clang-19, clang-22
    NVRTC118, NVRTC129, NVRTC130   path of libnvrtc.so.*
    CUDA13              folder that holds bin/nvcc and bin/ptxas
    NUMBA_PYTHON, TRITON_PYTHON    an interpreter that can import numba.cuda, triton
    RUSTC, RUST_SRC     a rustc with the nvptx64 back end, and its library/ folder
"""

import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CORPUS = Path(__file__).resolve().parent
KERNELS = CORPUS.parent
SOURCES = sorted(p.stem for p in KERNELS.glob("*.cu"))
NEEDS_SM53 = {"half"}
SIMPLE = ["vecadd", "matmul", "reduce", "recursion", "localarray", "funcptr", "switch", "printf", "dpoly"]
LINES = ["vecadd", "reduce", "recursion", "localarray", "printf"]
DEBUG = ["vecadd", "reduce", "recursion", "localarray", "funcptr"]


class Missing(Exception):
    """The compiler of a group is not on this machine."""


def tool(variable, default=None):
    path = os.environ.get(variable, default)
    if not path or not (shutil.which(path) or Path(path).exists()):
        raise Missing(f"set {variable}")
    return path


def run(command, **options):
    done = subprocess.run(command, capture_output=True, text=True, **options)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}\n{done.stderr}")
    return done.stdout


def without_paths(text):
    """The PTX without this machine's folders: in plain text, and in the bytes of the debug sections."""
    private = [str(p) for p in (KERNELS, CORPUS, Path.home(), Path(tempfile.gettempdir()))]
    if "CUDA13" in os.environ:
        text = text.replace(f"{os.environ['CUDA13']}/bin/..//", "cuda/")
    text = re.sub(r'"[^"]*/site-packages/', '"', text)
    for folder in private:
        text = text.replace(f"{folder}/", "")

    numbers = [(line.start(1) + n.start(), n[0])
               for line in re.finditer(r"^\s*\.b8\s+([\d, ]+)", text, re.M)
               for n in re.finditer(r"\d+", line[1])]
    data = bytes(int(n) & 255 for _, n in numbers)
    pieces, done = [], 0
    for folder in private:
        at = data.find(folder.encode())
        while at >= 0:
            # Same length, so that the offsets within the section stay right.
            data = data[:at] + b".".ljust(len(folder), b"/") + data[at + len(folder):]
            at = data.find(folder.encode())
    for (at, old), value in zip(numbers, data):
        if int(old) & 255 != value:
            pieces += [text[done:at], str(value)]
            done = at + len(old)
    return "".join(pieces) + text[done:]


def write(group, name, compiler, target, command, source, ptx):
    """One corpus file: four comment lines, then the compiler's text without this machine's paths."""
    folder = CORPUS / group
    folder.mkdir(exist_ok=True)
    head = f"// Compiler: {compiler}\n// Target:   {target}\n// Command:  {command}\n// Source:   kernels/{source}\n"
    (folder / f"{name}.ptx").write_text(head + without_paths(ptx.rstrip("\0").rstrip()) + "\n")


def sources(sm, names=SOURCES):
    return [n for n in names if sm >= 53 or n not in NEEDS_SM53]


def clang(group, variable, default, sm, flags, names=SOURCES):
    compiler = tool(variable, default)
    version = "clang " + re.search(r"version ([\d.]+)", run([compiler, "--version"]))[1]
    for name in sources(sm, names):
        arguments = ["-x", "cuda", "--cuda-device-only", "-nocudainc", "-nocudalib", f"--cuda-gpu-arch=sm_{sm}",
                     *flags.split(), "-S", "-o", "-", f"{name}.cu"]
        ptx = run([compiler, *arguments], cwd=KERNELS)
        write(group, name, version, f"sm_{sm}", " ".join([default, *arguments]), f"{name}.cu", ptx)


def nvrtc(group, variable, sm, flags="", names=SOURCES):
    path = Path(tool(variable))
    for builtins in path.parent.glob("libnvrtc-builtins.so*"):
        ctypes.CDLL(builtins, mode=ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
    os.chdir(KERNELS)
    options = [f"--gpu-architecture=compute_{sm}", "-I.", *flags.split()]
    for name in sources(sm, names):
        text = (KERNELS / f"{name}.cu").read_bytes()
        program, size = ctypes.c_void_p(), ctypes.c_size_t()
        library.nvrtcCreateProgram(ctypes.byref(program), text, f"{name}.cu".encode(), 0, None, None)
        array = (ctypes.c_char_p * len(options))(*[o.encode() for o in options])
        failed = library.nvrtcCompileProgram(program, len(options), array)
        kind = "ProgramLog" if failed else "PTX"
        getattr(library, f"nvrtcGet{kind}Size")(program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        getattr(library, f"nvrtcGet{kind}")(program, buffer)
        result = buffer.value.decode()
        if failed:
            raise RuntimeError(f"{group}/{name}: {result}")
        version = "NVRTC " + re.search(r"V([\d.]+)", result)[1]
        write(group, name, version, f"compute_{sm}", f"nvrtcCompileProgram {' '.join(options)}", f"{name}.cu", result)


def nvcc(group, sm, flags="", names=SOURCES):
    home = Path(tool("CUDA13"))
    compiler = home / "bin" / "nvcc"
    version = "nvcc " + re.search(r"V([\d.]+)", run([compiler, "--version"]))[1]
    for name in sources(sm, names):
        with tempfile.TemporaryDirectory() as scratch:
            out = Path(scratch) / f"{name}.ptx"
            arguments = ["-ptx", f"-arch=compute_{sm}", *flags.split(), f"{name}.cu"]
            run([compiler, *arguments, "-o", out], cwd=KERNELS, env={**os.environ, "CUDA_HOME": str(home)})
            write(group, name, version, f"compute_{sm}", " ".join(["nvcc", *arguments]), f"{name}.cu", out.read_text())


def python(group, variable, script):
    """Runs a script that prints, for each kernel, a line '%% name compiler|target|command' and then its PTX."""
    interpreter = tool(variable)
    output = run([interpreter, script], cwd=CORPUS / "src")
    for part in output.split("%% ")[1:]:
        head, ptx = part.split("\n", 1)
        name, rest = head.split(" ", 1)
        compiler, target, command = rest.split("|")
        write(group, name, compiler, target, command, f"corpus/src/{script}", ptx)


def rustc(group, sm, version):
    compiler, library = tool("RUSTC"), Path(tool("RUST_SRC"))
    environment = {**os.environ, "RUSTC_BOOTSTRAP": "1"}
    banner = run([compiler, "--version"]).split()[1]
    target = ["--target", "nvptx64-nvidia-cuda", "-C", f"target-cpu=sm_{sm}", "-C", f"target-feature=+ptx{version}"]
    with tempfile.TemporaryDirectory() as scratch:
        core = library / "core" / "src" / "lib.rs"
        built = Path(scratch) / "libcore.rlib"
        run([compiler, *target, "--edition=2024", "--crate-type=rlib", "--crate-name=core", "-Copt-level=3",
             "-Cpanic=abort", "--cap-lints=allow", "-Zforce-unstable-if-unmarked", "-o", built, core], env=environment)
        stub = Path(scratch) / "compiler_builtins.rs"
        stub.write_text("#![feature(compiler_builtins)]#![compiler_builtins]#![no_std]")
        run([compiler, *target, "--edition=2024", "--crate-type=rlib", "--crate-name=compiler_builtins", "-Copt-level=3",
             "--extern", f"core={built}", "-L", scratch, "-Zforce-unstable-if-unmarked", "--cap-lints=allow",
             "-o", Path(scratch) / "libcompiler_builtins.rlib", stub], env=environment)
        for source in sorted((CORPUS / "src").glob("*.rs")):
            out = Path(scratch) / "out.s"
            flags = ["-O", "--edition=2021", "--crate-type=lib", "-Ccodegen-units=1", "--emit=asm"]
            run([compiler, *target, *flags, "-L", scratch, "-o", out, source.name], env=environment, cwd=source.parent)
            write(group, source.stem, f"rustc {banner}", f"sm_{sm}", " ".join(["rustc", *target, *flags, source.name]),
                  f"corpus/src/{source.name}", out.read_text())


GROUPS = {
    "clang19-sm_35": lambda g: clang(g, "CLANG19", "clang-19", 35, "-DWL_BEFORE_PTX60 -O2"),
    "clang19-sm_52": lambda g: clang(g, "CLANG19", "clang-19", 52, "--cuda-feature=+ptx60 -O2"),
    "clang19-sm_70": lambda g: clang(g, "CLANG19", "clang-19", 70, "--cuda-feature=+ptx70 -O3"),
    "clang19-sm_70-fast": lambda g: clang(g, "CLANG19", "clang-19", 70,
                                          "--cuda-feature=+ptx70 -O3 -ffast-math -fgpu-flush-denormals-to-zero",
                                          ["vecadd", "matmul", "nbody", "dpoly"]),
    "clang19-sm_70-O0": lambda g: clang(g, "CLANG19", "clang-19", 70, "--cuda-feature=+ptx63 -O0", SIMPLE),
    "clang19-sm_70-g": lambda g: clang(g, "CLANG19", "clang-19", 70,
                                       "--cuda-feature=+ptx63 -O0 -g -fdebug-compilation-dir=.", DEBUG),
    "clang19-sm_70-lines": lambda g: clang(g, "CLANG19", "clang-19", 70,
                                           "--cuda-feature=+ptx63 -O2 -gline-tables-only -fdebug-compilation-dir=.",
                                           LINES),
    "clang19-sm_90": lambda g: clang(g, "CLANG19", "clang-19", 90, "--cuda-feature=+ptx80 -O2"),
    "clang22-sm_50": lambda g: clang(g, "CLANG22", "clang-22", 50, "-DWL_BEFORE_PTX60 -O2"),
    "clang22-sm_75": lambda g: clang(g, "CLANG22", "clang-22", 75, "--cuda-feature=+ptx64 -O2"),
    "clang22-sm_90": lambda g: clang(g, "CLANG22", "clang-22", 90, "--cuda-feature=+ptx90 -O2"),
    "nvrtc11.8-sm_35": lambda g: nvrtc(g, "NVRTC118", 35),
    "nvrtc11.8-sm_70": lambda g: nvrtc(g, "NVRTC118", 70),
    "nvrtc12.9-sm_50": lambda g: nvrtc(g, "NVRTC129", 50),
    "nvrtc12.9-sm_90": lambda g: nvrtc(g, "NVRTC129", 90),
    "nvrtc12.9-sm_90-lineinfo": lambda g: nvrtc(g, "NVRTC129", 90, "-lineinfo", LINES),
    "nvrtc12.9-sm_90-G": lambda g: nvrtc(g, "NVRTC129", 90, "-G", DEBUG),
    "nvrtc13.0-sm_90": lambda g: nvrtc(g, "NVRTC130", 90),
    "nvcc13.0-sm_90": lambda g: nvcc(g, 90),
    "nvcc13.0-sm_90-lineinfo": lambda g: nvcc(g, 90, "-lineinfo", LINES),
    "nvcc13.0-sm_90-G": lambda g: nvcc(g, 90, "-G", DEBUG),
    "nvcc13.0-sm_90-rdc": lambda g: nvcc(g, 90, "-rdc=true --use_fast_math", ["nbody", "funcptr", "globals", "recursion"]),
    "numba0.30-sm_90": lambda g: python(g, "NUMBA_PYTHON", "numba_kernels.py"),
    "triton3.9-sm_90": lambda g: python(g, "TRITON_PYTHON", "triton_kernels.py"),
    "rustc1.96-sm_70": lambda g: rustc(g, 70, 63),
}


def check():
    """Asks ptxas about each file: on its own target where ptxas knows it, else on the oldest it knows."""
    ptxas = Path(tool("CUDA13")) / "bin" / "ptxas"
    accepted, narrow, refused = 0, 0, []
    for path in sorted(KERNELS.glob("*.ptx")) + sorted(CORPUS.glob("*/*.ptx")):
        number, suffix = re.search(r"^\s*\.target\s+sm_(\d+)(a?)", path.read_text(), re.M).groups()
        target = f"sm_{max(int(number), 75)}{suffix}"
        relocatable = ["-c"] if "rdc" in path.parent.name or path.stem == "gather" else []
        done = subprocess.run([ptxas, f"-arch={target}", *relocatable, "-o", os.devnull, path],
                              capture_output=True, text=True)
        if done.returncode == 0:
            accepted += 1
        elif "32-Bit compilation is no longer supported" in done.stderr and " error " not in done.stderr:
            narrow += 1  # Reported after parsing and type checking: the text itself is in order.
        else:
            refused.append(f"{path.relative_to(KERNELS)}: {done.stderr.strip().splitlines()[0]}")
    print(f"ptxas accepts {accepted} files, finds {narrow} more in order but 32-bit, refuses {len(refused)}")
    for line in refused:
        print(" ", line.replace(f"{KERNELS}/", ""))
    return 1 if refused else 0


def main(arguments):
    if arguments == ["--check"]:
        return check()
    for group in arguments or GROUPS:
        try:
            GROUPS[group](group)
            print(f"{group}: {len(list((CORPUS / group).glob('*.ptx')))} files")
        except Missing as reason:
            print(f"{group}: skipped, {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
