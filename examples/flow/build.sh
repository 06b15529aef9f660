#!/bin/sh
# Builds the comparison of docs/channels.md with nvcc (NVCC, or the one on the path) for the GPU of this computer.
# NVCCFLAGS are more options, for example -arch=sm_90.
set -eu
cd "$(dirname "$0")"
"${NVCC:-nvcc}" -std=c++17 -O3 -rdc=true ${NVCCFLAGS:--arch=native} -o "${1:-compare}" compare.cu -lcudadevrt
