// The other file of rdc.cu.
#include "check.h"

__device__ int offset = 7;
__device__ int other(int x) { return x * x + 1; }

void set_offset(int value) { CHECK(cudaMemcpyToSymbol(offset, &value, sizeof value)); }
