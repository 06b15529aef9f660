#!/bin/sh
# Rebuilds every kernels/*.ptx, kernels/sync/*.ptx, kernels/free/*.ptx and kernels/flow/*.ptx from its .cu with clang 19. Nothing is installed.
# CLANG, ARCH and PTX may be overridden: ARCH=sm_80 PTX=70 kernels/build.sh
# A source may ask for more options in a line `// Flags: ...`. Those that do want blocks in the order of the source, as
# nvcc leaves them: clang turns loops around, which costs branches and moves the backward one that marks a spin loop.
# One that needs a newer GPU says so in a line `// Target: sm_80 70`, with the version of PTX.
set -eu
cd "$(dirname "$0")"
clang=${CLANG:-clang-19}
default_arch=${ARCH:-sm_70}
default_ptx=${PTX:-63}

if ! command -v "$clang" >/dev/null; then
    echo "build.sh: $clang not found; on Debian or Ubuntu: apt-get install clang-19" >&2
    exit 1
fi
version=$("$clang" --version | sed -n '1s/.*version \([0-9.]*\).*/\1/p')

for source in ${*:-*.cu sync/*.cu free/*.cu flow/*.cu}; do
    name=${source%.cu}
    flags=$(sed -n 's|^// Flags: ||p' "$source")
    set -- $(sed -n 's|^// Target: ||p' "$source") "$default_arch" "$default_ptx"
    arch=$1 ptx=$2
    # Kernels over channels come in two forms: for a chip with an aggregator, and in one persistent kernel for GPUs.
    gpu=
    if grep -q '^FLOW_MAIN' "$source"; then gpu=${name%/*}/gpu/${name##*/}; fi
    # Programs of `warploom work` have a third form, which reserves in log steps.
    steps=
    if grep -q '^// Forms: steps' "$source"; then steps=${name%/*}/steps/${name##*/}; fi
    for form in "$name" $steps $gpu; do
    define=
    if [ "$form" = "$steps" ]; then define=-DFLOW_LOG_STEPS; fi
    if [ "$form" = "$gpu" ]; then define=-DFLOW_GPU arch=sm_80 ptx=70; fi
    {
        echo "// Compiler: clang $version -O2${flags:+ $flags}${define:+ $define}"
        echo "// Target:   $arch, PTX ISA ${ptx%?}.${ptx#?}"
        echo "// Source:   kernels/$source"
        "$clang" -x cuda --cuda-device-only -nocudainc -nocudalib --cuda-gpu-arch="$arch" \
            --cuda-feature="+ptx$ptx" -O2 $flags $define -Wall -S -o - "$source"
    } >"$form.ptx.new" || { rm -f "$form.ptx.new"; exit 1; }
    mv "$form.ptx.new" "$form.ptx"
    done
done
