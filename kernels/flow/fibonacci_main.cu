// The Cilk program of Figure 8 with one channel for all tasks, and a stack for the sums only: Figures 10 and 11.
// Forms: steps
#include "channel.cuh"

// A task says itself on which level of the recursion it is.
struct Fib {
    unsigned* result;
    unsigned n;
    unsigned level;
};

struct Sum {
    unsigned* result;
    unsigned terms[2];
};

FLOW_KERNEL fib_main(Work work, Channel* sums) {
    if (!has_work(work)) return;
    const unsigned source = deq(work);
    const Fib task = read<Fib>(work.source, source);
    if (task.n <= 2) {
        *task.result = 1;
    } else {
        Channel* after = sums + task.level;
        Channel* tasks = work.source;
        by_level(task.level, [&] {
            put(after, 1, [&](unsigned sum) {
                write(after, sum, task.result);
            }, [&](unsigned sum) {
                put(tasks, 2, [&](unsigned at) {
                    write(tasks, at, Fib{word_of(after, sum, 2), task.n - 1, task.level + 1});
                    write(tasks, at + 1, Fib{word_of(after, sum, 3), task.n - 2, task.level + 1});
                });
            });
        });
    }
    tfree(work, source);
}

FLOW_KERNEL fib_sum(Work work) {
    if (!has_work(work)) return;
    const unsigned source = deq(work);
    const Sum sum = read<Sum>(work.source, source);
    *sum.result = sum.terms[0] + sum.terms[1];
    tfree(work, source);
}

FLOW_MAIN(fib_main, fib_sum)
