// Four-way merge sort as a Cilk program: quarters are sorted, merged in pairs, and the pairs merged. Merges recurse.
// Forms: steps
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

// Parts shorter than this are sorted by insertion.
constexpr unsigned INSERTION = 20;

// Sorts the numbers from `low` to `high`, both included.
WL_FN void insert(unsigned* values, unsigned low, unsigned high) {
    for (unsigned i = low + 1; i <= high; i++) {
        const unsigned value = values[i];
        unsigned at = i;
        for (; at > low; at--) {
            const unsigned before = values[at - 1];
            if (before <= value) break;
            values[at] = before;
        }
        values[at] = value;
    }
}

WL_FN unsigned median(unsigned a, unsigned b, unsigned c) { return max(min(a, b), min(max(a, b), c)); }

// Moves small numbers before large ones. Returns the last position of the first part; neither part is empty.
WL_FN unsigned partition(unsigned* values, unsigned low, unsigned high) {
    const unsigned pivot = median(values[low], values[(low + high) / 2], values[high]);
    unsigned i = low, j = high;
    for (;;) {
        while (values[j] > pivot) j--;
        while (values[i] < pivot) i++;
        if (i >= j) return j < high ? j : high - 1;
        const unsigned swap = values[i];
        values[i++] = values[j];
        values[j--] = swap;
    }
}

// Quicksort. The larger part waits, so that 16 of them are enough for any count.
WL_FN void sort_alone(unsigned* values, unsigned count) {
    unsigned waiting[16], depth = 0, low = 0, high = count - 1;
    for (;;) {
        while (high - low >= INSERTION) {
            const unsigned split = partition(values, low, high);
            if (split - low < high - split) {
                waiting[depth++] = (split + 1) << 16 | high;
                high = split;
            } else {
                waiting[depth++] = low << 16 | split;
                low = split + 1;
            }
        }
        insert(values, low, high);
        if (!depth) return;
        low = waiting[--depth] >> 16;
        high = waiting[depth] & 0xffff;
    }
}

FLOW_KERNEL sort(Work work, Channel* quarters, unsigned* values, unsigned base) {
    if (!has_work(work)) return;
    const unsigned source = deq(work);
    const Range range = read<Range>(work.source, source);
    if (range.count <= base) {
        if (range.count) sort_alone(values + range.first, range.count);
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
FLOW_KERNEL sort_quarters(Work work, Channel* halves, Channel* merges, unsigned* values, unsigned* other) {
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
FLOW_KERNEL sort_halves(Work work, Channel* merges, unsigned* values, unsigned* other) {
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

// Splits the longer array in the middle and the other where that value belongs, until the shorter one is short: the
// cutoff of cilkmerge, however long the other one is.
FLOW_KERNEL sort_merge(Work work, unsigned base) {
    if (!has_work(work)) return;
    const unsigned source = deq(work);
    Merge m = read<Merge>(work.source, source);
    if (m.x_count < m.y_count) m = Merge{m.y, m.x, m.out, m.y_count, m.x_count};
    if (m.y_count < base) {
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

FLOW_MAIN(sort, sort_quarters, sort_halves, sort_merge)
