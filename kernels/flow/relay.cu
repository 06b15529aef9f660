// A test of channels: a range of numbers is split until each is alone, passes around several times, and is counted.
#include "channel.cuh"

struct Range {
    unsigned first, count, rounds;
};

FLOW_KERNEL relay(Work work, Channel* next, unsigned* seen) {
    if (!has_work(work)) return;
    const unsigned source = deq(work);
    const Range range = read<Range>(work.source, source);
    if (range.count > 1) {
        const unsigned parts = min(range.count, 2 + range.first % 3), each = range.count / parts;
        put(next, parts, [&](unsigned at) {
            for (unsigned i = 0; i < parts; i++) {
                const unsigned count = i + 1 == parts ? range.count - i * each : each;
                write(next, at + i, Range{range.first + i * each, count, range.rounds});
            }
        });
    } else if (range.rounds) {
        put(next, 1, [&](unsigned at) { write(next, at, Range{range.first, 1, range.rounds - 1}); });
    } else {
        atomicAdd(&seen[range.first], 1u);
    }
    tfree(work, source);
}

FLOW_MAIN(relay)
