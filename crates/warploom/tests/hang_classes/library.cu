// Waits in functions of CUDA's libraries, with their line tables. library.ptx is made of this file by CUDA 13:
// nvcc -O2 -std=c++17 -arch=sm_90 -lineinfo -ptx library.cu
// without its `.section .debug_str`, and with `cuda/include` for the folders of the headers.
#include <cooperative_groups.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/semaphore>

using Ref = cuda::atomic_ref<unsigned, cuda::thread_scope_device>;
using Semaphore = cuda::binary_semaphore<cuda::thread_scope_device>;
using Barrier = cuda::barrier<cuda::thread_scope_block>;

// The first warp keeps the lock.
extern "C" __global__ void kept_lock(unsigned* lock, unsigned* out) {
    if (threadIdx.x % 32 != 0) return;
    Ref word(*lock);
    while (word.exchange(1, cuda::memory_order_acquire) != 0) {
    }
    if (out[0] == 0) return;
    word.store(0, cuda::memory_order_release);
}

// The second warp finds the semaphore taken for good.
extern "C" __global__ void semaphore_not_released(unsigned* word, unsigned* out) {
    Semaphore* semaphore = reinterpret_cast<Semaphore*>(word);
    if (threadIdx.x == 0) new (semaphore) Semaphore(1);
    __syncthreads();
    if (threadIdx.x % 32 != 0) return;
    semaphore->acquire();
    out[threadIdx.x] = 1;
}

// 48 of 64 threads come.
extern "C" __global__ void barrier_short(unsigned* unused, unsigned* out) {
    __shared__ Barrier barrier;
    if (threadIdx.x == 0) init(&barrier, blockDim.x);
    __syncthreads();
    if (threadIdx.x < 48) barrier.arrive_and_wait();
    out[threadIdx.x] = 1;
}

// The first thread of a tile waits for the second, which waits for it.
extern "C" __global__ void tile_meets_first(volatile unsigned* flag, unsigned* out) {
    namespace cg = cooperative_groups;
    auto tile = cg::tiled_partition<16>(cg::this_thread_block());
    if (tile.thread_rank() == 0) {
        while (*flag == 0) {
        }
    }
    tile.sync();
    if (tile.thread_rank() == 1) *flag = 1;
    out[threadIdx.x] = 1;
}
