/* Kernels of two streams: one waits for a flag that the other sets. PTX is concurrent.ptx. */
#define main good_program
#include "program.c"
#undef main

int cudaStreamCreate(void **stream);
int cudaMemset(void *to, int value, size_t bytes);
int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream);
int cudaStreamWaitEvent(void *stream, void *event, unsigned flags);
int cudaStreamSynchronize(void *stream);
int cudaStreamQuery(void *stream);
int cudaMallocHost(void **place, size_t bytes);

static void wait_for(void) {}
static void set_flag(void) {}

__attribute__((constructor(65535))) static void register_more(void) {
    if (!fat_binary) return;
    __cudaRegisterFunction(fat_binary, (void *)wait_for, "wait_for", "wait_for", -1, 0, 0, 0, 0, 0);
    __cudaRegisterFunction(fat_binary, (void *)set_flag, "set_flag", "set_flag", -1, 0, 0, 0, 0, 0);
}

int main(int count, char **words) {
    const char *mode = words[1];
    unsigned *flag, *out, *pinned, value = 5;
    void *a, *b, *event;
    Dim3 one = {1, 1, 1}, many = {atoi(getenv("GRID")), 1, 1}, block = {192, 1, 1};
    if (cudaMalloc((void **)&flag, 4) | cudaMalloc((void **)&out, 4) | cudaMallocHost((void **)&pinned, 4)) return 3;
    if (cudaMemset(flag, 0, 4) | cudaStreamCreate(&a) | cudaStreamCreate(&b) | cudaEventCreate(&event)) return 3;
    void *waits[] = {&flag, &out}, *sets[] = {&flag, &value};
    report("launch", cudaLaunchKernel((void *)wait_for, many, block, waits, 0, a));
    report("copy", cudaMemcpyAsync(pinned, out, 4, 2, a));
    report("event", cudaEventRecord(event, a));
    if (!strcmp(mode, "kernel")) {
        report("launch", cudaLaunchKernel((void *)set_flag, one, one, sets, 0, b));
    } else if (!strcmp(mode, "copy")) {
        /* It takes its bytes at the call. */
        report("copy", cudaMemcpyAsync(flag, &value, 4, 1, b));
        value = 77;
    } else if (!strcmp(mode, "fault")) {
        flag = (unsigned *)16;
        report("launch", cudaLaunchKernel((void *)set_flag, one, one, sets, 0, b));
        report("last", cudaGetLastError());
    } else if (!strncmp(mode, "later", 5)) {
        /* The host waits for the other stream while the kernel waits, and only then lets it end. */
        for (int round = 0; round < 3; round++) {
            report("launch", cudaLaunchKernel((void *)vecadd, one, one, 0, 0, b));
            report("wait", round ? cudaStreamSynchronize(b) : cudaEventRecord(event, b) | cudaEventSynchronize(event));
        }
        unsigned seen = 9;
        report("copy", cudaMemcpyAsync(&seen, out, 4, 2, b));
        printf("%u\n", seen);
        if (!strcmp(mode, "later_copy")) report("copy", cudaMemcpyAsync(flag, &value, 4, 1, b));
        else report("launch", cudaLaunchKernel((void *)set_flag, one, one, sets, 0, b));
    } else if (!strcmp(mode, "order")) {
        /* Ordered by the event, so that the flag is never set in time. */
        report("wait", cudaStreamWaitEvent(b, event, 0));
        report("launch", cudaLaunchKernel((void *)set_flag, one, one, sets, 0, b));
    }
    report("synchronize", cudaStreamSynchronize(a));
    report("query", cudaStreamQuery(b) == 600 ? 0 : cudaStreamQuery(b));
    cudaDeviceSynchronize();
    unsigned last = 0;
    if (!cudaMemcpy(&last, out, 4, 2)) printf("%u %u\n", *pinned, last);
    return 0;
}
