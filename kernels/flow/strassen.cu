// The recursive product as a compiler without vectors has it: a lane reads its tiles number by number.
// Forms: steps
#include "strassen.cuh"

FLOW_KERNEL strassen(Work work, const float* a, const float* b, float* c, unsigned row) {
    if (!has_work(work)) return;
    const unsigned source = deq(work);
    const Product task = read<Product>(work.source, source);
    if (task.size <= TILE) {
        for (unsigned i = 0; i < TILE; i++) {
            for (unsigned j = 0; j < TILE; j++) {
                float sum = 0;
                for (unsigned k = 0; k < TILE; k++)
                    sum = __fmaf_rn(a[task.a + i * row + k], b[task.b + k * row + j], sum);
                add(&c[task.c + i * row + j], sum);
            }
        }
    } else {
        split(work, task, row);
    }
    tfree(work, source);
}

FLOW_MAIN(strassen)
