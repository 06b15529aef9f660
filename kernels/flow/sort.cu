// Four-way merge sort as a Cilk program: quarters are sorted, merged in pairs, and the pairs merged. Merges recurse.
#include "channel.cuh"

struct Range {
    unsigned first, count;
};

struct Merge {
    const unsigned *x, *y;
    unsigned* out;
    unsigned x_count, y_count;
};

// The next number comes from one array or the other; only that array's next number is read.
WL_FN void merge_alone(const Merge& m) {
    const unsigned *x = m.x, *y = m.y, *x_end = x + m.x_count, *y_end = y + m.y_count;
    unsigned* out = m.out;
    unsigned x_next = x < x_end ? *x : 0, y_next = y < y_end ? *y : 0;
    while (x < x_end || y < y_end) {
        const bool from_x = y == y_end || (x < x_end && x_next <= y_next);
        *out++ = from_x ? x_next : y_next;
        const unsigned* next = from_x ? ++x : ++y;
        if (next < (from_x ? x_end : y_end)) {
            const unsigned value = *next;
            x_next = from_x ? value : x_next;
            y_next = from_x ? y_next : value;
        }
    }
}

// Sorts runs of four by insertion, then merges from one array into the other and back.
WL_FN void sort_alone(unsigned* values, unsigned* other, unsigned count) {
    for (unsigned first = 0; first < count; first += 4) {
        const unsigned end = min(first + 4, count);
        for (unsigned i = first + 1; i < end; i++) {
            const unsigned value = values[i];
            unsigned at = i;
            for (; at > first; at--) {
                const unsigned before = values[at - 1];
                if (before <= value) break;
                values[at] = before;
            }
            values[at] = value;
        }
    }
    unsigned *from = values, *to = other;
    for (unsigned run = 4; run < count; run *= 2) {
        for (unsigned first = 0; first < count; first += 2 * run) {
            const unsigned x_count = min(run, count - first), y_count = min(run, count - first - x_count);
            merge_alone(Merge{from + first, from + first + x_count, to + first, x_count, y_count});
        }
        unsigned* swap = from;
        from = to;
        to = swap;
    }
    if (from != values)
        for (unsigned i = 0; i < count; i++) values[i] = from[i];
}

extern "C" __global__ void sort(Work work, Channel* quarters, unsigned* values, unsigned* other, unsigned base) {
    if (!has_work(work)) return;
    const unsigned source = deq(work);
    const Range range = read<Range>(work.source, source);
    if (range.count <= base) {
        sort_alone(values + range.first, other + range.first, range.count);
    } else {
        Channel* after = quarters + work.level;
        Channel* deeper = work.source + 1;
        const unsigned quarter = range.count / 4;
        put(after, 1, [&](unsigned at) { write(after, at, range); }, [&](unsigned) {
            put(deeper, 4, [&](unsigned at) {
                for (unsigned i = 0; i < 4; i++) {
                    const unsigned count = i == 3 ? range.count - 3 * quarter : quarter;
                    write(deeper, at + i, Range{range.first + i * quarter, count});
                }
            });
        });
    }
    tfree(work, source);
}

// After the sync of the four quarters: two merges into the second array.
extern "C" __global__ void sort_quarters(Work work, Channel* halves, Channel* merges, unsigned* values, unsigned* other) {
    if (!has_work(work)) return;
    const unsigned source = deq(work);
    const Range range = read<Range>(work.source, source);
    Channel* after = halves + work.level;
    const unsigned quarter = range.count / 4;
    put(after, 1, [&](unsigned at) { write(after, at, range); }, [&](unsigned) {
        put(merges, 2, [&](unsigned at) {
            unsigned *from = values + range.first, *to = other + range.first;
            const unsigned rest = range.count - 3 * quarter;
            write(merges, at, Merge{from, from + quarter, to, quarter, quarter});
            from += 2 * quarter;
            to += 2 * quarter;
            write(merges, at + 1, Merge{from, from + quarter, to, quarter, rest});
        });
    });
    tfree(work, source);
}

// After the sync of the two merges: one merge back.
extern "C" __global__ void sort_halves(Work work, Channel* merges, unsigned* values, unsigned* other) {
    if (!has_work(work)) return;
    const unsigned source = deq(work);
    const Range range = read<Range>(work.source, source);
    const unsigned half = range.count / 4 * 2;
    put(merges, 1, [&](unsigned at) {
        const unsigned* from = other + range.first;
        write(merges, at, Merge{from, from + half, values + range.first, half, range.count - half});
    });
    tfree(work, source);
}

// Splits the longer array in the middle and the other where that value belongs, until the shorter one is short.
extern "C" __global__ void sort_merge(Work work, unsigned base) {
    if (!has_work(work)) return;
    const unsigned source = deq(work);
    Merge m = read<Merge>(work.source, source);
    if (m.x_count < m.y_count) m = Merge{m.y, m.x, m.out, m.y_count, m.x_count};
    if (m.y_count < base && m.x_count < 4 * base) {
        merge_alone(m);
    } else {
        const unsigned x_split = m.x_count / 2, middle = m.x[x_split];
        unsigned y_split = 0, end = m.y_count;
        while (y_split < end) {
            const unsigned probe = (y_split + end) / 2;
            if (m.y[probe] < middle) y_split = probe + 1;
            else end = probe;
        }
        Channel* deeper = work.source + 1;
        put(deeper, 2, [&](unsigned at) {
            write(deeper, at, Merge{m.x, m.y, m.out, x_split, y_split});
            write(deeper, at + 1, Merge{m.x + x_split, m.y + y_split, m.out + x_split + y_split,
                                        m.x_count - x_split, m.y_count - y_split});
        });
    }
    tfree(work, source);
}
