/* Stands for NVIDIA's runtime, linked into a program. If one of these runs, it was not redirected. */
#define NOT_REDIRECTED(name)                                     \
    __attribute__((noinline)) long name(long a, long b, long c) { \
        static volatile long calls;                               \
        for (long i = 0; i < 4; i++) calls += a + b + c + i;      \
        return 999;                                               \
    }
NOT_REDIRECTED(__cudaRegisterFatBinary)
NOT_REDIRECTED(__cudaRegisterFatBinaryEnd)
NOT_REDIRECTED(__cudaRegisterFunction)
NOT_REDIRECTED(cudaLaunchKernel)
NOT_REDIRECTED(cudaMalloc)
NOT_REDIRECTED(cudaOfTomorrow)
NOT_REDIRECTED(cudaMallocManaged)
NOT_REDIRECTED(cudaFree)
NOT_REDIRECTED(cudaMemcpy)
NOT_REDIRECTED(cudaDeviceSynchronize)
NOT_REDIRECTED(cudaGetLastError)
NOT_REDIRECTED(cudaEventCreate)
NOT_REDIRECTED(cudaEventRecord)
NOT_REDIRECTED(cudaEventSynchronize)
NOT_REDIRECTED(cudaEventElapsedTime)
NOT_REDIRECTED(cudaIpcGetMemHandle)
const char *cudaGetErrorName(int error) { return error ? "not redirected" : "none, and not redirected"; }
