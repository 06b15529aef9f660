// Fibonacci numbers: the example of Figure 6, and the Cilk program of Figure 8.
// Forms: steps
#include "channel.cuh"

// Figure 6: every leaf task of the naive recursion adds 1 to the result.
FLOW_KERNEL fib_naive(Work work, Channel* tasks, unsigned* result) {
    if (!has_work(work)) return;
    const unsigned source = deq(work);
    const unsigned n = read<unsigned>(work.source, source);
    if (n <= 2) {
        atomicAdd(result, 1u);
    } else {
        put(tasks, 2, [&](unsigned at) {
            write(tasks, at, n - 1);
            write(tasks, at + 1, n - 2);
        });
    }
    tfree(work, source);
}

struct Fib {
    unsigned* result;
    unsigned n;
};

struct Sum {
    unsigned* result;
    unsigned terms[2];
};

// Lines 2 to 5 of Figure 8: two tasks one level deeper, and their continuation after the sync at this level.
FLOW_KERNEL fib(Work work, Channel* sums) {
    if (!has_work(work)) return;
    const unsigned source = deq(work);
    const Fib task = read<Fib>(work.source, source);
    if (task.n <= 2) {
        *task.result = 1;
    } else {
        Channel* after = sums + work.level;
        Channel* deeper = work.source + 1;
        put(after, 1, [&](unsigned sum) {
            write(after, sum, task.result);
        }, [&](unsigned sum) {
            put(deeper, 2, [&](unsigned at) {
                write(deeper, at, Fib{word_of(after, sum, 2), task.n - 1});
                write(deeper, at + 1, Fib{word_of(after, sum, 3), task.n - 2});
            });
        });
    }
    tfree(work, source);
}

// The recursion in one lane: depth first, as in work-first scheduling.
WL_FN unsigned fib_alone(unsigned n) {
    unsigned waiting[32], depth = 0, sum = 0;
    for (;;) {
        while (n > 2) {
            waiting[depth++] = n - 2;
            n--;
        }
        sum++;
        if (!depth) return sum;
        n = waiting[--depth];
    }
}

// Like `fib`, but without room for tasks the lane runs them itself: help-first while there is room, work-first after.
FLOW_KERNEL fib_hybrid(Work work, Channel* sums) {
    if (!has_work(work)) return;
    const unsigned source = deq(work);
    const Fib task = read<Fib>(work.source, source);
    if (task.n <= 2) {
        *task.result = 1;
    } else {
        Channel* after = sums + work.level;
        Channel* deeper = work.source + 1;
        unsigned sum = 0;
        const bool synced = offer(after, 1, [&](unsigned at) {
            write(after, at, task.result);
            sum = at;
        });
        if (!synced) {
            *task.result = fib_alone(task.n);
        } else {
            const bool spawned = offer(deeper, 2, [&](unsigned at) {
                write(deeper, at, Fib{word_of(after, sum, 2), task.n - 1});
                write(deeper, at + 1, Fib{word_of(after, sum, 3), task.n - 2});
            });
            if (!spawned) {
                *word_of(after, sum, 2) = fib_alone(task.n - 1);
                *word_of(after, sum, 3) = fib_alone(task.n - 2);
            }
        }
    }
    tfree(work, source);
}

// Line 7: the sum of both results.
FLOW_KERNEL fib_sum(Work work) {
    if (!has_work(work)) return;
    const unsigned source = deq(work);
    const Sum sum = read<Sum>(work.source, source);
    *sum.result = sum.terms[0] + sum.terms[1];
    tfree(work, source);
}

FLOW_MAIN(fib_naive, fib, fib_hybrid, fib_sum)
