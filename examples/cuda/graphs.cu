// Graphs: work of two streams captured into one, launched several times with new values; a graph made node by node;
// memory that a graph allocates and frees.
#include "check.h"

__global__ void scale(float *x, float by, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] *= by;
}

__global__ void add(float *x, const float *y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += y[i];
}

static void count(void *calls) { ++*(int *)calls; }

static int captured(int n, float *host, float *x, float *y) {
    cudaStream_t a, b;
    cudaEvent_t fork, join;
    CHECK(cudaStreamCreate(&a));
    CHECK(cudaStreamCreateWithFlags(&b, cudaStreamNonBlocking));
    CHECK(cudaEventCreate(&fork));
    CHECK(cudaEventCreate(&join));
    int calls = 0, ctas = (n + 127) / 128;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
    CHECK(cudaMemcpyAsync(x, host, n * sizeof(float), cudaMemcpyHostToDevice, a));
    CHECK(cudaEventRecord(fork, a));
    CHECK(cudaStreamWaitEvent(b, fork, 0));
    scale<<<ctas, 128, 0, a>>>(x, 2, n);
    scale<<<ctas, 128, 0, b>>>(y, 3, n);
    CHECK(cudaEventRecord(join, b));
    CHECK(cudaStreamWaitEvent(a, join, 0));
    add<<<ctas, 128, 0, a>>>(x, y, n);
    CHECK(cudaLaunchHostFunc(a, count, &calls));
    cudaStreamCaptureStatus status;
    CHECK(cudaStreamIsCapturing(b, &status));
    if (status != cudaStreamCaptureStatusActive) return 1;
    CHECK(cudaStreamEndCapture(a, &graph));
    size_t nodes = 0;
    CHECK(cudaGraphGetNodes(graph, NULL, &nodes));
    if (nodes != 5 || calls != 0) return 2;
    CHECK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < n; i++) host[i] = 1;
    CHECK(cudaMemset(y, 0, n * sizeof(float)));
    float *ones = (float *)malloc(n * sizeof(float));
    for (int i = 0; i < n; i++) ones[i] = 1;
    CHECK(cudaMemcpy(y, ones, n * sizeof(float), cudaMemcpyHostToDevice));
    // Each launch multiplies y by 3 and reads what the host has now.
    for (int turn = 0; turn < 3; turn++) {
        for (int i = 0; i < n; i++) host[i] = turn + 1;
        CHECK(cudaGraphLaunch(exec, a));
        CHECK(cudaStreamSynchronize(a));
    }
    CHECK(cudaMemcpy(ones, x, n * sizeof(float), cudaMemcpyDeviceToHost));
    for (int i = 0; i < n; i++)
        if (ones[i] != 6 + 27) return 3;
    if (calls != 3) return 4;
    // What a capture does not allow ends it.
    CHECK(cudaStreamBeginCapture(a, cudaStreamCaptureModeGlobal));
    if (cudaStreamSynchronize(a) != cudaErrorStreamCaptureUnsupported) return 5;
    if (cudaStreamEndCapture(a, &graph) != cudaErrorStreamCaptureInvalidated) return 6;
    cudaGetLastError();
    free(ones);
    CHECK(cudaGraphExecDestroy(exec));
    return 0;
}

static int by_hand(int n, float *host, float *x) {
    cudaGraph_t graph;
    cudaGraphNode_t fill, kernel, copy;
    cudaGraphExec_t exec;
    cudaMemsetParams filled = {};
    filled.dst = x, filled.elementSize = 4, filled.width = n, filled.height = 1, filled.value = 0x3f800000;
    float by = 5;
    void *arguments[] = {&x, &by, &n};
    cudaKernelNodeParams launched = {};
    launched.func = (void *)scale, launched.gridDim = dim3((n + 127) / 128), launched.blockDim = dim3(128);
    launched.kernelParams = arguments;
    CHECK(cudaGraphCreate(&graph, 0));
    CHECK(cudaGraphAddMemsetNode(&fill, graph, NULL, 0, &filled));
    CHECK(cudaGraphAddKernelNode(&kernel, graph, &fill, 1, &launched));
    CHECK(cudaGraphAddMemcpyNode1D(&copy, graph, &kernel, 1, host, x, n * sizeof(float), cudaMemcpyDeviceToHost));
    CHECK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    CHECK(cudaGraphLaunch(exec, 0));
    CHECK(cudaDeviceSynchronize());
    if (host[0] != 5 || host[n - 1] != 5) return 7;
    by = 7;
    CHECK(cudaGraphExecKernelNodeSetParams(exec, kernel, &launched));
    CHECK(cudaGraphLaunch(exec, 0));
    CHECK(cudaDeviceSynchronize());
    return host[n - 1] == 7 ? 0 : 8;
}

static int own_memory(int n, float *host) {
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    float *x, *y;
    int ctas = (n + 127) / 128;
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    CHECK(cudaMallocAsync(&x, n * sizeof(float), stream));
    CHECK(cudaMallocAsync(&y, n * sizeof(float), stream));
    CHECK(cudaMemcpyAsync(x, host, n * sizeof(float), cudaMemcpyHostToDevice, stream));
    CHECK(cudaMemsetAsync(y, 0, n * sizeof(float), stream));
    add<<<ctas, 128, 0, stream>>>(y, x, n);
    CHECK(cudaFreeAsync(x, stream));
    scale<<<ctas, 128, 0, stream>>>(y, 2, n);
    CHECK(cudaMemcpyAsync(host, y, n * sizeof(float), cudaMemcpyDeviceToHost, stream));
    CHECK(cudaFreeAsync(y, stream));
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < n; i++) host[i] = 1;
    for (int turn = 0; turn < 3; turn++) CHECK(cudaGraphLaunch(exec, stream));
    CHECK(cudaStreamSynchronize(stream));
    return host[0] == 8 && host[n - 1] == 8 ? 0 : 9;
}

int main() {
    int n = 1000;
    float *host, *x, *y;
    CHECK(cudaMallocHost(&host, n * sizeof(float)));
    CHECK(cudaMalloc(&x, n * sizeof(float)));
    CHECK(cudaMalloc(&y, n * sizeof(float)));
    int wrong = captured(n, host, x, y);
    if (!wrong) wrong = by_hand(n, host, x);
    if (!wrong) wrong = own_memory(n, host);
    if (wrong) printf("wrong: %d\n", wrong);
    return wrong ? wrong : passed();
}
