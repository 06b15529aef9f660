/* Programs that make mistakes, or do what real programs do and tests of the runtime forget. */
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#define main good_program
#include "program.c"
#undef main

int cudaStreamCreate(void **stream);
int cudaMemset(void *to, int value, size_t bytes);
int cudaMemGetInfo(size_t *free, size_t *total);
int cudaGetDeviceProperties(void *place, int device);
int cudaMemcpyAsync(void *to, const void *from, size_t bytes, int kind, void *stream);

enum { N = 100 };
static const Dim3 grid = {4, 1, 1}, block = {32, 1, 1};
static float host[N];

static void say(const char *what, int error) { printf("%s: %s\n", what, cudaGetErrorName(error)); }

/* Adds host to itself on the device. Returns the second sum, or minus an error. */
static float twice(void) {
    float *a, *c, sums[N];
    unsigned n = N;
    int error = cudaMalloc((void **)&a, sizeof host) | cudaMalloc((void **)&c, sizeof host);
    void *arguments[] = {&a, &a, &c, &n};
    error |= cudaMemcpy(a, host, sizeof host, 1);
    error |= cudaLaunchKernel((void *)vecadd, grid, block, arguments, 0, 0);
    error |= cudaMemcpy(sums, c, sizeof host, 2);
    return error ? -error : sums[1];
}

static void *work(void *errors) {
    for (int i = 0; i < 5; i++) *(int *)errors += twice() != 2 * host[1];
    return NULL;
}

static int fork_and_work(int opened) {
    if (opened) twice();
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        void *memory;
        int error = cudaMalloc(&memory, 16);
        if (!error) printf("child: %g\n", twice() / 2);
        else say("child", error), cudaMalloc(&memory, 16);
        exit(0);
    }
    waitpid(child, NULL, 0);
    printf("parent: %g\n", twice() / 2);
    return 0;
}

int main(int count, char **words) {
    const char *mode = words[1];
    float *a, *c;
    unsigned n = N;
    for (int i = 0; i < N; i++) host[i] = i;
    if (!strcmp(mode, "fork_first")) return fork_and_work(0);
    if (!strcmp(mode, "fork")) return fork_and_work(1);
    if (!strcmp(mode, "threads")) {
        pthread_t threads[8];
        int errors[8] = {0}, sum = 0;
        for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, work, &errors[i]);
        for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL), sum += errors[i];
        printf("8 threads, %d errors\n", sum);
        return 0;
    }
    if (cudaMalloc((void **)&a, sizeof host) || cudaMemcpy(a, host, sizeof host, 1)) return 3;
    if (cudaMalloc((void **)&c, sizeof host + 4)) return 3;
    void *arguments[] = {&a, &a, &c, &n};
    if (!strcmp(mode, "_exit") || !strcmp(mode, "abort")) {
        twice();
        if (!strcmp(mode, "abort")) abort();
        _exit(5);
    }
    if (!strcmp(mode, "arguments")) {
        void *one_null[] = {&a, NULL, &c, &n}, *own = host, *of_host[] = {&own, &own, &c, &n};
        say("no arguments", cudaLaunchKernel((void *)vecadd, grid, block, NULL, 0, 0));
        Dim3 large = {2048, 1, 1}, deep = {1, 1, 65}, tall = {1, 70000, 1}, none = {1, 0, 1};
        say("2048 threads", cudaLaunchKernel((void *)vecadd, grid, large, arguments, 0, 0));
        say("65 in z", cudaLaunchKernel((void *)vecadd, grid, deep, arguments, 0, 0));
        say("70000 CTAs in y", cudaLaunchKernel((void *)vecadd, tall, block, arguments, 0, 0));
        say("an empty grid", cudaLaunchKernel((void *)vecadd, none, block, arguments, 0, 0));
        say("no device", cudaGetDeviceProperties(host, 3));
        say("a null argument", cudaLaunchKernel((void *)vecadd, grid, block, one_null, 0, 0));
        say("no kernel", cudaLaunchKernel((void *)main, grid, block, arguments, 0, 0));
        say("no stream", cudaLaunchKernel((void *)vecadd, grid, block, arguments, 0, (void *)0x1234567));
        cudaLaunchKernel((void *)vecadd, grid, block, of_host, 0, 0);
        say("a pointer of the host", cudaDeviceSynchronize());
    } else if (!strcmp(mode, "freed")) {
        cudaFree(a);
        say("free", cudaFree(a));
        say("fill", cudaMemset(a + 1, 0, 16));
        say("copy to", cudaMemcpy(a, host, 16, 1));
        say("copy from", cudaMemcpy(host, a, 16, 2));
        cudaLaunchKernel((void *)vecadd, grid, block, arguments, 0, 0);
        say("kernel", cudaDeviceSynchronize());
    } else if (!strcmp(mode, "all_memory")) {
        size_t left, all;
        void *memory;
        say("info", cudaMemGetInfo(&left, &all));
        say("all", cudaMalloc(&memory, left));
        say("info", cudaMemGetInfo(&left, &all));
        printf("%zu left\n", left);
    } else if (!strcmp(mode, "copies")) {
        say("past the end", cudaMemcpy(a, host, sizeof host + 1, 1));
        say("from past the end", cudaMemcpy(host, a + N - 1, 8, 2));
        say("device memory as the host's", cudaMemcpy(a, c, 16, 1));
        say("the host's as device memory", cudaMemcpy(host, host + 8, 16, 1));
        say("no direction", cudaMemcpy(a, host, 16, 9));
        say("null", cudaMemcpy(NULL, host, 16, 1));
    } else if (!strcmp(mode, "outside")) {
        /* The last thread reads a word past the end of `a`, twice, but `c` has a place for the sum. */
        float sums[N + 1] = {0};
        n = N + 1;
        for (int i = 0; i < 2; i++) cudaLaunchKernel((void *)vecadd, grid, block, arguments, 0, 0);
        int error = cudaDeviceSynchronize();
        if (!error) cudaMemcpy(sums, c, sizeof sums, 2);
        printf("wait: %s, %g %g\n", cudaGetErrorName(error), sums[N - 1], sums[N]);
    } else if (!strcmp(mode, "streams")) {
        Dim3 large = {atoi(getenv("GRID")), 1, 1};
        void *streams[3], *start, *end;
        float ms;
        for (int i = 0; i < 3; i++) cudaStreamCreate(&streams[i]);
        cudaEventCreate(&start), cudaEventCreate(&end);
        cudaDeviceSynchronize();
        for (int i = 0; i < 2; i++) cudaLaunchKernel((void *)vecadd, large, block, arguments, 0, streams[i]);
        cudaEventRecord(start, streams[2]);
        cudaMemcpyAsync(c, host, sizeof host, 1, streams[2]);
        cudaEventRecord(end, streams[2]);
        cudaDeviceSynchronize();
        cudaEventElapsedTime(&ms, start, end);
        printf("copy: %.3g ms\n", ms);
    }
    return 0;
}
