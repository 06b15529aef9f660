/* A CUDA program as nvcc would make it, but in C: it registers its kernels before main, and calls the runtime.
   The PTX is read from the file that the variable PTX names. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { unsigned x, y, z; } Dim3;
void **__cudaRegisterFatBinary(void *wrapper);
void __cudaRegisterFatBinaryEnd(void **handle);
void __cudaRegisterFunction(void **, const void *, char *, const char *, int, void *, void *, void *, void *, int *);
int cudaLaunchKernel(const void *function, Dim3 grid, Dim3 block, void **arguments, size_t shared, void *stream);
int cudaMalloc(void **place, size_t bytes);
int cudaMallocManaged(void **place, size_t bytes, unsigned flags);
int cudaFree(void *memory);
int cudaMemcpy(void *to, const void *from, size_t bytes, int kind);
int cudaDeviceSynchronize(void);
int cudaGetLastError(void);
const char *cudaGetErrorName(int error);
int cudaEventCreate(void **event);
int cudaEventRecord(void *event, void *stream);
int cudaEventSynchronize(void *event);
int cudaEventElapsedTime(float *ms, void *start, void *end);
int cudaIpcGetMemHandle(void *handle, void *memory);

/* Only the runtime that is linked in has the first, and only the shared one the others. */
#define SOMEWHERE __attribute__((weak))
SOMEWHERE int cudaOfTomorrow(void);
SOMEWHERE int __cudaLaunchKernel_ptsz(const void *, Dim3, Dim3, void **, size_t, void *);
SOMEWHERE int cudaMemcpy_ptds(void *to, const void *from, size_t bytes, int kind);

/* A function of the program's that has such a name, too. */
__attribute__((noinline)) int cudaOwn(void) { return 17; }

__attribute__((section(".nv_fatbin"), used)) static const char section[16] = "fat binary";

static struct { uint32_t magic, version; const void *data; void *modules; } wrapper = {0x466243b1, 1, 0, 0};

/* The stub by whose address a kernel is known. */
static void vecadd(void) {}

static void **fat_binary;

static void put(unsigned char *at, uint64_t value, int bytes) {
    for (int i = 0; i < bytes; i++) at[i] = value >> 8 * i;
}

__attribute__((constructor(65000))) static void register_all(void) {
    const char *name = getenv("PTX");
    FILE *file = name ? fopen(name, "rb") : NULL;
    if (!file) return;
    unsigned char *fat = calloc(1, 1 << 20);
    size_t bytes = fread(fat + 80, 1, (1 << 20) - 88, file);
    size_t padded = (bytes + 8) / 8 * 8;
    fclose(file);
    put(fat, 0xba55ed50, 4), put(fat + 4, 1, 2), put(fat + 6, 16, 2), put(fat + 8, 64 + padded, 8);
    put(fat + 16, getenv("SASS") ? 2 : 1, 2), put(fat + 20, 64, 4), put(fat + 24, padded, 8), put(fat + 44, 20, 4);
    wrapper.data = fat;
    void **handle = fat_binary = __cudaRegisterFatBinary(&wrapper);
    __cudaRegisterFunction(handle, (void *)vecadd, "vecadd", "vecadd", -1, 0, 0, 0, 0, 0);
    __cudaRegisterFatBinaryEnd(handle);
}

static int report(const char *what, int error) {
    if (error) printf("%s: %s\n", what, cudaGetErrorName(error));
    return error;
}

int main(int count, char **words) {
    const char *mode = count > 1 ? words[1] : "good";
    unsigned n = 100;
    float *a, *c, host[100], *managed, ms = 0;
    void *start, *end;
    if (report("malloc", cudaMalloc((void **)&a, sizeof host))) return 3;
    if (report("malloc", cudaMalloc((void **)&c, sizeof host))) return 3;
    if (report("managed", cudaMallocManaged((void **)&managed, sizeof host, 1))) return 3;
    for (int i = 0; i < 100; i++) host[i] = i, managed[i] = 1000;
    if (report("copy", cudaMemcpy(a, host, sizeof host, 1))) return 3;
    if (!strcmp(mode, "missing")) {
        char handle[64];
        report("shared", cudaIpcGetMemHandle(handle, a));
        return 5;
    }
    if (!strcmp(mode, "unknown")) {
        report("unknown", cudaOfTomorrow());
        printf("own: %d\n", cudaOwn());
        return 6;
    }
    int per_thread = !strcmp(mode, "per_thread");
    if (!strcmp(mode, "fault")) c = (float *)16;
    report("event", cudaEventCreate(&start) | cudaEventCreate(&end) | cudaEventRecord(start, 0));
    void *arguments[] = {&a, &managed, &c, &n};
    Dim3 grid = {4, 1, 1}, block = {32, 1, 1};
    for (int launch = 0; launch < 3; launch++)
        report("launch", (per_thread ? __cudaLaunchKernel_ptsz : cudaLaunchKernel)(
                             (void *)vecadd, grid, block, arguments, 0, 0));
    report("event", cudaEventRecord(end, 0));
    report("wait", cudaDeviceSynchronize());
    report("last", cudaGetLastError());
    report("elapsed", cudaEventElapsedTime(&ms, start, end));
    report("copy", (per_thread ? cudaMemcpy_ptds : cudaMemcpy)(host, c, sizeof host, 2));
    if (report("free", cudaFree(a))) return 4;
    printf("%g %g, %s\n", host[0], host[99], ms > 0 ? "some time" : "no time");
    return 7;
}
