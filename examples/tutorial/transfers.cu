// Bank transfers, for the tutorial in docs/tutorial: thread i moves 1 from account i % accounts to account
// (5 * i + 1) % accounts. If `accounts` is a power of two that divides the number of threads, every account ends with
// what it began with. The .ptx is what clang 19 makes of this file.

__device__ void acquire(unsigned* lock) {
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    __threadfence();
}

__device__ void release(unsigned* lock) {
    __threadfence();
    atomicExch(lock, 0);
}

__device__ void transfer(volatile unsigned* balance, unsigned from, unsigned to) {
    balance[from] = balance[from] - 1;
    balance[to] = balance[to] + 1;
}

// One lock for the whole bank.
extern "C" __global__ void one_lock(unsigned* balance, unsigned* locks, unsigned accounts) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned from = i % accounts, to = (5 * i + 1) % accounts;
    acquire(&locks[0]);
    transfer(balance, from, to);
    release(&locks[0]);
}

// A lock for each account, taken in the order of the transfer.
extern "C" __global__ void lock_pairs(unsigned* balance, unsigned* locks, unsigned accounts) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned from = i % accounts, to = (5 * i + 1) % accounts;
    acquire(&locks[from]);
    acquire(&locks[to]);
    transfer(balance, from, to);
    release(&locks[to]);
    release(&locks[from]);
}

// A lock for each account, the lower one first.
extern "C" __global__ void ordered(unsigned* balance, unsigned* locks, unsigned accounts) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned from = i % accounts, to = (5 * i + 1) % accounts;
    acquire(&locks[min(from, to)]);
    acquire(&locks[max(from, to)]);
    transfer(balance, from, to);
    release(&locks[max(from, to)]);
    release(&locks[min(from, to)]);
}

// No locks.
extern "C" __global__ void atomics(unsigned* balance, unsigned* locks, unsigned accounts) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned from = i % accounts, to = (5 * i + 1) % accounts;
    atomicSub(&balance[from], 1);
    atomicAdd(&balance[to], 1);
}
