#!/bin/sh
# Builds the programs of this folder with nvcc.
#
#   examples/cuda/build.sh [FOLDER [static|shared]]
#
# FOLDER (default: target/cuda) gets the programs; `shared` links them with the shared runtime, as `static`, nvcc's own
# default, does not. NVCC names the compiler; else it is `nvcc`. NVCCFLAGS are more options for it. Without CUDA, one
# comes from PyPI:
#
#   python3 -m venv v && v/bin/pip install nvidia-cuda-nvcc nvidia-cuda-runtime nvidia-cuda-crt nvidia-nvvm \
#       nvidia-cuda-cccl
#   NVCC=$(echo v/lib/python3*/site-packages/nvidia/cu13/bin/nvcc) examples/cuda/build.sh
set -eu

here=$(cd "$(dirname "$0")" && pwd)
out=${1:-target/cuda}
runtime=${2:-static}
nvcc=${NVCC:-nvcc}
# PTX that every chip of the last years runs, and no machine code: the simulator would not use it.
arch=${ARCH:-compute_75}
mkdir -p "$out"

# The wheels have their libraries in lib, not lib64, and the shared one under its full name only.
lib=$(dirname "$(dirname "$(command -v "$nvcc")")")/lib
links=
if [ "$runtime" = shared ] && [ ! -e "$lib/libcudart.so" ] && [ -e "$lib/libcudart.so.13" ]; then
    mkdir -p "$out/links"
    ln -sf "$lib/libcudart.so.13" "$out/links/libcudart.so"
    links="-L$out/links"
fi
flags="-std=c++17 -cudart $runtime $links -L$lib -I$lib/../include/cccl ${NVCCFLAGS:-}"

for source in "$here"/*.cu; do
    name=$(basename "$source" .cu)
    [ "$out/$name" -nt "$source" ] && [ "$out/$name" -nt "$here/check.h" ] && continue
    case $name in
    rdc_other) ;;
    # Clusters came with compute capability 9.0; products of warp groups are in 9.0 alone.
    clusters) "$nvcc" $flags -gencode arch=compute_90,code=compute_90 -o "$out/$name" "$source" ;;
    tensor_matmul) "$nvcc" $flags -gencode arch=compute_90a,code=compute_90a -o "$out/$name" "$source" ;;
    rdc) "$nvcc" $flags -gencode "arch=$arch,code=$arch" -rdc=true -o "$out/rdc" "$here/rdc.cu" "$here/rdc_other.cu" ;;
    *) "$nvcc" $flags -gencode "arch=$arch,code=$arch" -o "$out/$name" "$source" ;;
    esac
done
