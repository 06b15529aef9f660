#!/bin/sh
# Rebuilds the PTX of this folder with clang 19, with line tables. See ../build.sh.
set -eu
cd "$(dirname "$0")"
clang=${CLANG:-clang-19}
for source in *.cu; do
    {
        echo "// Compiler: $("$clang" --version | sed -n '1s/.*version \([0-9.]*\).*/clang \1/p') -O2 -gline-directives-only"
        echo "// Source:   kernels/hangs/$source"
        "$clang" -x cuda --cuda-device-only -nocudainc -nocudalib --cuda-gpu-arch=sm_70 --cuda-feature=+ptx63 \
            -O2 -fno-unroll-loops -gline-directives-only -fdebug-compilation-dir=. -Wall -S -o - "$source" |
            sed 's|"\./|"|'
    } >"${source%.cu}.ptx"
done
