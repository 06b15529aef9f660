/* Graphs whose nodes are described by one structure for all kinds. */
#define main good_program
#include "program.c"
#undef main

/* As CUDA 12 has them. */
typedef struct { void *function; Dim3 grid, block; unsigned shared; void **arguments, **extra; } Kernel;
typedef struct { int kind, reserved[3]; union { Kernel kernel; struct { void *memory; size_t pitch; unsigned value,
    bytes; size_t width, rows; } fill; long long all[29]; } of; long long end; } Node;
typedef struct { unsigned long long flags; void *stream, *wrong; int result; } Instantiate;
int cudaGraphCreate(void **graph, unsigned flags);
int cudaGraphAddNode(void **node, void *graph, void **after, size_t count, Node *parameters);
int cudaGraphKernelNodeGetParams(void *node, Kernel *parameters);
int cudaGraphInstantiateWithParams(void **executable, void *graph, Instantiate *parameters);
int cudaGraphLaunch(void *executable, void *stream);

int main(void) {
    unsigned n = 100;
    float *a, *c, sums[100];
    void *graph, *fill, *kernel, *executable;
    if (cudaMalloc((void **)&a, sizeof sums) | cudaMalloc((void **)&c, sizeof sums)) return 3;
    void *arguments[] = {&a, &a, &c, &n};
    Node first = {2}, second = {0}, unknown = {13};
    first.of.fill.memory = a, first.of.fill.value = 0x3fc00000, first.of.fill.bytes = 4;
    first.of.fill.width = 100, first.of.fill.rows = 1;
    Kernel launch = {(void *)vecadd, {4, 1, 1}, {32, 1, 1}, 0, arguments, 0}, got = {0};
    second.of.kernel = launch;
    report("graph", cudaGraphCreate(&graph, 0));
    report("fill", cudaGraphAddNode(&fill, graph, NULL, 0, &first));
    report("kernel", cudaGraphAddNode(&kernel, graph, &fill, 1, &second));
    report("unknown", cudaGraphAddNode(&kernel, graph, &fill, 1, &unknown) == 801 ? 0 : 1);
    report("not a kernel", cudaGraphKernelNodeGetParams(fill, &got) == 1 ? 0 : 1);
    report("get", cudaGraphKernelNodeGetParams(kernel, &got));
    printf("%d %u %u %u\n", got.function == (void *)vecadd, got.grid.x, got.block.x, *(unsigned *)got.arguments[3]);
    Instantiate made = {0, 0, &made, 9};
    report("instantiate", cudaGraphInstantiateWithParams(&executable, graph, &made));
    report("launch", cudaGraphLaunch(executable, 0));
    report("copy", cudaMemcpy(sums, c, sizeof sums, 2));
    printf("%d %d, %g %g\n", made.result, made.wrong != NULL, sums[0], sums[99]);
    return 0;
}
