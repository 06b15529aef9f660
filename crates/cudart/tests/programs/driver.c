/* A program for the driver's API, in C. It loads PTX from the file that the variable PTX names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void *Handle;
typedef uint64_t Address;

int cuInit(unsigned flags);
int cuDeviceGet(int *device, int ordinal);
int cuDeviceGetName(char *name, int room, int device);
int cuDeviceGetAttribute(int *value, int attribute, int device);
int cuDevicePrimaryCtxRetain(Handle *context, int device);
int cuCtxCreate_v2(Handle *context, unsigned flags, int device);
int cuCtxDestroy_v2(Handle context);
int cuCtxSetCurrent(Handle context);
int cuCtxGetCurrent(Handle *context);
int cuCtxPopCurrent_v2(Handle *context);
int cuCtxSynchronize(void);
int cuModuleLoadData(Handle *module, const void *image);
int cuModuleLoadDataEx(Handle *module, const void *image, unsigned count, int *options, void **values);
int cuModuleUnload(Handle module);
int cuModuleGetFunction(Handle *function, Handle module, const char *name);
int cuModuleGetGlobal_v2(Address *address, size_t *bytes, Handle module, const char *name);
int cuFuncGetAttribute(int *value, int attribute, Handle function);
int cuFuncGetParamInfo(Handle function, size_t index, size_t *offset, size_t *bytes);
int cuLaunchKernel(Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void **, void **);
int cuOccupancyMaxPotentialBlockSize(int *grid, int *block, Handle function, Handle shared, size_t bytes, int limit);
int cuMemAlloc_v2(Address *address, size_t bytes);
int cuMemFree_v2(Address address);
int cuMemcpyHtoD_v2(Address to, const void *from, size_t bytes);
int cuMemcpyDtoH_v2(void *to, Address from, size_t bytes);
int cuMemsetD32_v2(Address to, unsigned value, size_t count);
int cuMemGetAddressRange_v2(Address *start, size_t *bytes, Address inside);
int cuPointerGetAttribute(void *value, int attribute, Address pointer);
int cuLinkCreate_v2(unsigned count, int *options, void **values, Handle *state);
int cuLinkAddData_v2(Handle, int kind, void *data, size_t bytes, const char *name, unsigned, int *, void **);
int cuLinkComplete(Handle state, void **image, size_t *bytes);
int cuLinkDestroy(Handle state);
int cuGetErrorName(int code, const char **name);
int cuGetProcAddress_v2(const char *name, void **place, int version, uint64_t flags, int *status);
int cuTexRefCreate(void);
int cuStreamCreate(Handle *stream, unsigned flags);
int cuStreamBeginCapture_v2(Handle stream, int mode);
int cuStreamEndCapture(Handle stream, Handle *graph);
int cuStreamSynchronize(Handle stream);
int cuMemAllocAsync(Address *address, size_t bytes, Handle stream);
int cuMemFreeAsync(Address address, Handle stream);
int cuMemsetD32Async(Address to, unsigned value, size_t count, Handle stream);
int cuMemcpyDtoHAsync_v2(void *to, Address from, size_t bytes, Handle stream);
int cuGraphCreate(Handle *graph, unsigned flags);
int cuGraphAddMemAllocNode(Handle *node, Handle graph, const Handle *after, size_t count, void *parameters);
int cuGraphAddMemFreeNode(Handle *node, Handle graph, const Handle *after, size_t count, Address address);
int cuGraphInstantiateWithFlags(Handle *executable, Handle graph, uint64_t flags);
int cuGraphLaunch(Handle executable, Handle stream);
int cuDeviceGetGraphMemAttribute(int device, int attribute, void *value);

static const char *name(int code) {
    const char *text = "?";
    cuGetErrorName(code, &text);
    return text;
}

/* Ends the program if a call does not give the code that it should. */
static void is(int code, int expected, const char *what) {
    if (code == expected) return;
    printf("%s: %s, not %s\n", what, name(code), name(expected));
    exit(3);
}
#define OK(call) is(call, 0, #call)

static char *read_file(const char *path) {
    char *text = calloc(1, 1 << 20);
    FILE *file = fopen(path, "rb");
    if (!file) exit(4);
    fread(text, 1, (1 << 20) - 1, file);
    fclose(file);
    return text;
}

enum { N = 100 };

static void add(Handle function, int by_buffer) {
    uint32_t a[N], b[N], c[N];
    Address da, db, dc;
    for (unsigned i = 0; i < N; i++) a[i] = i, b[i] = 1000;
    OK(cuMemAlloc_v2(&da, sizeof a)), OK(cuMemAlloc_v2(&db, sizeof b)), OK(cuMemAlloc_v2(&dc, sizeof c));
    OK(cuMemcpyHtoD_v2(da, a, sizeof a));
    OK(cuMemsetD32_v2(db, 1000, N));
    uint32_t n = N;
    if (by_buffer) {
        struct { Address a, b, c; uint32_t n; } all = {da, db, dc, n};
        size_t bytes = sizeof all;
        void *extra[] = {(void *)1, &all, (void *)2, &bytes, 0, 0};
        OK(cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, 0, 0, extra));
        bytes = 8;
        is(cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, 0, 0, extra), 1, "a short buffer");
    } else {
        void *arguments[] = {&da, &db, &dc, &n};
        OK(cuLaunchKernel(function, 1, 1, 1, 128, 1, 1, 0, 0, arguments, 0));
    }
    OK(cuCtxSynchronize());
    OK(cuMemcpyDtoH_v2(c, dc, sizeof c));
    printf("%u %u\n", c[0], c[N - 1]);
    Address start;
    size_t bytes;
    OK(cuMemGetAddressRange_v2(&start, &bytes, dc + 8));
    if (start != dc || bytes != sizeof c) exit(5);
    unsigned kind = 0;
    OK(cuPointerGetAttribute(&kind, 2, dc));
    is(cuPointerGetAttribute(&kind, 2, (Address)c), 1, "a pointer of the host");
    OK(cuMemFree_v2(da)), OK(cuMemFree_v2(db)), OK(cuMemFree_v2(dc));
    is(cuMemFree_v2(dc), 1, "a pointer that was freed");
    is(cuMemcpyDtoH_v2(c, dc, sizeof c), 1, "a copy from memory that was freed");
    is(cuMemcpyHtoD_v2(dc, c, sizeof c), 1, "a copy to memory that was freed");
}

/* Memory that a graph allocates and frees: the same at each launch. */
static void graph_memory(void) {
    uint32_t found[N];
    uint64_t used = 1;
    Address address, kept;
    Handle stream, graph, executable, nodes[2];
    OK(cuStreamCreate(&stream, 0));
    OK(cuStreamBeginCapture_v2(stream, 0));
    OK(cuMemAllocAsync(&address, sizeof found, stream));
    OK(cuMemsetD32Async(address, 5, N, stream));
    OK(cuMemcpyDtoHAsync_v2(found, address, sizeof found, stream));
    OK(cuMemFreeAsync(address, stream));
    OK(cuStreamEndCapture(stream, &graph));
    OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
    is(cuMemFree_v2(address), 1, "memory of a graph that has not run");
    for (int turn = 0; turn < 2; turn++) {
        memset(found, 0, sizeof found);
        OK(cuGraphLaunch(executable, stream));
        OK(cuStreamSynchronize(stream));
        if (found[0] != 5 || found[N - 1] != 5) exit(10);
    }
    is(cuMemFree_v2(address), 1, "memory that a graph has freed");
    /* A graph that leaves its memory to the program, and one that frees it. */
    struct { uint64_t pool[11]; void *access; size_t count, bytes; Address address; } parameters = {0};
    parameters.bytes = sizeof found;
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddMemAllocNode(&nodes[0], graph, 0, 0, &parameters));
    kept = parameters.address;
    OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
    OK(cuGraphLaunch(executable, stream));
    OK(cuMemsetD32_v2(kept, 6, N));
    OK(cuDeviceGetGraphMemAttribute(0, 0, &used));
    if (used != sizeof found) exit(11);
    OK(cuGraphCreate(&graph, 0));
    OK(cuGraphAddMemFreeNode(&nodes[1], graph, 0, 0, kept));
    OK(cuGraphInstantiateWithFlags(&executable, graph, 0));
    OK(cuGraphLaunch(executable, stream));
    is(cuGraphLaunch(executable, stream), 1, "a second free");
    OK(cuDeviceGetGraphMemAttribute(0, 0, &used));
    if (used != 0) exit(12);
    OK(cuDeviceGetGraphMemAttribute(0, 1, &used));
    if (used != sizeof found) exit(13);
    printf("passed\n");
}

int main(int count, char **words) {
    const char *mode = count > 1 ? words[1] : "good";
    int device, value;
    Handle context = 0, module = 0, function = 0;
    is(cuDeviceGet(&device, 0), 3, "before cuInit");
    OK(cuInit(0));
    OK(cuDeviceGet(&device, 0));
    is(cuDeviceGet(&device, 1), 101, "a second device");
    is(cuCtxSynchronize(), 201, "without a context");
    char *ptx = read_file(getenv("PTX"));
    if (!strcmp(mode, "good")) {
        OK(cuDevicePrimaryCtxRetain(&context, 0));
        OK(cuCtxSetCurrent(context));
    } else {
        OK(cuCtxCreate_v2(&context, 0, 0));
    }
    Handle current = 0;
    OK(cuCtxGetCurrent(&current));
    if (current != context) return 6;
    if (!strcmp(mode, "cubin")) {
        unsigned char cubin[64] = {0x7f, 'E', 'L', 'F', 2, 1, 1, 0x33, 7};
        cubin[16] = 2, cubin[18] = 190, cubin[20] = 1, cubin[48] = 90;
        is(cuModuleLoadData(&module, cubin), 209, "a cubin");
        printf("refused\n");
        return 0;
    }
    if (!strcmp(mode, "wrong")) {
        char log[400] = "";
        int options[] = {5, 6};
        void *values[] = {log, (void *)sizeof log};
        strcpy(strstr(ptx, "ld.param"), "ld.nowhere x;}");
        is(cuModuleLoadDataEx(&module, ptx, 2, options, values), 218, "wrong PTX");
        printf("%d bytes: %s\n", (int)(size_t)values[1] > 0, strstr(log, "nowhere") ? "nowhere" : log);
        is(cuTexRefCreate(), 801, "a function that is not there");
        return 0;
    }
    if (!strcmp(mode, "link")) {
        const char *caller = ".version 6.4\n.target sm_20\n.address_size 64\n.extern .func (.param .b32 r) seven();\n"
                             ".visible .global .u32 answer;\n.visible .entry ask() {\n.reg .b32 x;\n{\n"
                             ".param .b32 r;\ncall.uni (r), seven;\nld.param.b32 x, [r];\n}\n"
                             "st.global.u32 [answer], x;\nret;\n}\n";
        const char *callee = ".version 6.4\n.target sm_20\n.address_size 64\n.visible .func (.param .b32 r) seven() {\n"
                             "st.param.b32 [r], 7;\nret;\n}\n";
        Handle state;
        void *image;
        size_t bytes;
        Address address;
        OK(cuLinkCreate_v2(0, 0, 0, &state));
        OK(cuLinkAddData_v2(state, 1, (void *)caller, strlen(caller) + 1, "caller", 0, 0, 0));
        OK(cuLinkAddData_v2(state, 1, (void *)callee, strlen(callee) + 1, "callee", 0, 0, 0));
        OK(cuLinkComplete(state, &image, &bytes));
        OK(cuModuleLoadData(&module, image));
        OK(cuLinkDestroy(state));
        OK(cuModuleGetFunction(&function, module, "ask"));
        OK(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0));
        OK(cuModuleGetGlobal_v2(&address, &bytes, module, "answer"));
        OK(cuMemcpyDtoH_v2(&value, address, bytes));
        printf("%d\n", value);
        return 0;
    }
    if (!strcmp(mode, "graph")) {
        graph_memory();
        return 0;
    }
    OK(cuModuleLoadData(&module, ptx));
    is(cuModuleGetFunction(&function, module, "nothing"), 500, "a kernel that is not there");
    OK(cuModuleGetFunction(&function, module, "vecadd"));
    OK(cuFuncGetAttribute(&value, 0, function));
    size_t offset, bytes;
    OK(cuFuncGetParamInfo(function, 3, &offset, &bytes));
    printf("%d threads, parameter 3 of %zu bytes at %zu\n", value, bytes, offset);
    if (!strcmp(mode, "fault")) {
        Address nowhere = 64;
        uint32_t n = 4;
        void *arguments[] = {&nowhere, &nowhere, &nowhere, &n};
        OK(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, 0, arguments, 0));
        is(cuCtxSynchronize(), 700, "a fault");
        is(cuMemAlloc_v2(&nowhere, 4), 700, "after a fault");
        OK(cuCtxDestroy_v2(context));
        OK(cuCtxCreate_v2(&context, 0, 0));
        OK(cuMemAlloc_v2(&nowhere, 4));
        printf("a new context works\n");
        return 0;
    }
    add(function, 0);
    add(function, 1);
    /* Functions by name and version of CUDA. */
    void *found = 0, *old = 0;
    int status = -1;
    OK(cuGetProcAddress_v2("cuMemAlloc", &found, 12000, 0, &status));
    if (found != (void *)cuMemAlloc_v2 || status != 0) return 7;
    is(cuGetProcAddress_v2("cuTexRefCreate", &found, 12000, 0, &status), 500, "a name that is not there");
    if (status != 1) return 8;
    OK(cuGetProcAddress_v2("cuCtxCreate", &old, 11000, 0, &status));
    OK(cuGetProcAddress_v2("cuCtxCreate", &found, 13000, 0, &status));
    if (old == found || !dlsym(RTLD_DEFAULT, "warploom_simulated_driver")) return 9;
    int grid, block;
    OK(cuOccupancyMaxPotentialBlockSize(&grid, &block, function, 0, 0, 0));
    printf("%d %d\n", grid > 0, block > 0);
    OK(cuModuleUnload(module));
    is(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0), 400, "a kernel of a module that is gone");
    OK(cuCtxPopCurrent_v2(&current));
    is(cuCtxSynchronize(), 201, "after the context was popped");
    printf("passed\n");
    return 0;
}
