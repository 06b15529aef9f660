// The recursive product with tiles that are read four numbers at a time.
// Forms: steps
#include "strassen.cuh"

FLOW_KERNEL strassen(Work work, const float* a, const float* b, float* c, unsigned row) {
    if (!has_work(work)) return;
    const unsigned source = deq(work);
    const Product task = read<Product>(work.source, source);
    if (task.size <= TILE) {
        for (unsigned i = 0; i < TILE; i++) {
            for (unsigned j = 0; j < TILE; j += 4) {
                float sums[4] = {};
                for (unsigned k = 0; k < TILE; k++) {
                    const float x = a[task.a + i * row + k];
                    const float4 y = *(const float4*)&b[task.b + k * row + j];
                    sums[0] = __fmaf_rn(x, y.x, sums[0]);
                    sums[1] = __fmaf_rn(x, y.y, sums[1]);
                    sums[2] = __fmaf_rn(x, y.z, sums[2]);
                    sums[3] = __fmaf_rn(x, y.w, sums[3]);
                }
                for (unsigned m = 0; m < 4; m++) add(&c[task.c + i * row + j + m], sums[m]);
            }
        }
    } else {
        split(work, task, row);
    }
    tfree(work, source);
}

FLOW_MAIN(strassen)
