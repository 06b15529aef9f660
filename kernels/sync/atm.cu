// Bank transfers between two accounts, one spin lock per account (ATM).
// Flags: -mllvm -disable-block-placement
#include "../warploom.cuh"

struct Transfer {
    unsigned from, to, amount;
};

// balances[from] -= amount, balances[to] += amount for each transfer, in any order. locks[a] is 0 when account a is free.
// `from` and `to` must differ: a thread that needs one lock twice never gets it.
extern "C" __global__ void atm_transfer(const Transfer* transfers, unsigned count, volatile unsigned* balances,
                                        unsigned* locks) {
#pragma unroll 1
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        unsigned from = transfers[i].from, to = transfers[i].to, amount = transfers[i].amount;
        // All threads take the lower account first.
        unsigned* first = &locks[min(from, to)];
        unsigned* second = &locks[max(from, to)];
        unsigned done = 0;
        while (!done) {
            if (atomicCAS(first, 0, 1) == 0) {
                if (atomicCAS(second, 0, 1) == 0) {
                    __threadfence();
                    balances[from] = balances[from] - amount;
                    balances[to] = balances[to] + amount;
                    done = 1;
                    __threadfence();
                    atomicExch(second, 0);
                }
                // Released even without the second lock: its holder may be a lane that waits here for this one.
                atomicExch(first, 0);
            }
            // Hides the flag's value: otherwise the compiler would move the section behind the loop.
            asm volatile(".pragma \"warploom.sib\";" : "+r"(done));
        }
    }
}
