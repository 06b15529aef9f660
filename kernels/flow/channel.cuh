// Channels for kernels: bounded queues in global memory that many wavefronts fill and empty concurrently.
//
// A channel has three arrays: the elements, a control array with twice as many entries that lists elements in the order
// in which they became ready, and a `done` counter per group of elements. Producers reserve elements at `tail`, fill them,
// reserve entries at `reserve`, and publish by advancing `ready` over written entries. The aggregator starts wavefronts on
// ready entries and advances `head` over freed groups. Nobody waits: entries that a producer cannot publish yet, because an
// earlier producer has not written its own, are published by that earlier producer.
//
// Positions only grow and wrap at 2^32; a slot is a position modulo the channel's width, a power of two.
//
// With FLOW_LOG_STEPS defined, wavefronts reserve as in the paper's Figure 5 (`reserve=steps`).
//
// With FLOW_GPU defined, the same kernels become functions of one persistent kernel for a GPU without an aggregator, and
// the calls are those of persistent.cuh.
#pragma once
#include "../warploom.cuh"

typedef unsigned long long u64;

#ifndef FLOW_GPU
// One cache line each for the constants, the reserved, the freed and the published counters.
struct alignas(64) Channel {
    char* elements;
    unsigned* entries;
    unsigned* done;
    unsigned width;
    unsigned slot_stride;  // bytes from an element to the next, and from a word of an element to its next:
    unsigned word_stride;  // an array of structures, or a structure of arrays
    unsigned group_shift;  // log2 of the elements that share a `done` counter
    unsigned most;         // elements that a lane may put at once, as the graph declares; 0: nobody may put any
    unsigned lane_by_lane; // reserve for one lane at a time
    alignas(64) unsigned tail;
    alignas(64) unsigned head;
    alignas(64) unsigned reserve;
    alignas(64) unsigned ready;
};
#else
// The counters in memory, behind the line of the constants.
struct alignas(64) Counters {
    char constants[64];
    alignas(64) unsigned tail;
    alignas(64) unsigned head;
    alignas(64) u64 finished;  // chunks in the upper half, their elements in the lower one
    unsigned handed;           // per_sm.cuh: elements that were handed out
    unsigned promised;         // per_sm.cuh: elements that those in flight may put
    alignas(64) unsigned ready;
};

// The constants. Every CTA has its own copy in shared memory, because fences empty the L1.
struct alignas(64) Channel {
    char* elements;
    unsigned* entries;
    Counters* counters;
    unsigned width, slot_stride, word_stride;
    unsigned number;        // of this copy
    unsigned most;          // elements that a lane may put at once, as the graph declares
    unsigned lane_by_lane;  // not used here
    u64* fault;             // where a kernel that finds no room leaves the number and one
};
#endif

// What the aggregator passes to a wavefront: which elements to process. The first parameter of every kernel.
struct Work {
    Channel* source;
    unsigned first;  // position in the control array
    unsigned count;  // elements of all CTAs of this start
    unsigned level;  // of the source in its stack
    unsigned unused;
};

#ifdef FLOW_GPU
WL_FN unsigned now(const unsigned* word) {
    unsigned value;
    asm volatile("ld.relaxed.gpu.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
}
#else
WL_FN unsigned now(const unsigned* word) { return *(const volatile unsigned*)word; }
#endif

// Elements.

// A word of the element at a position.
WL_FN unsigned* word_of(const Channel* channel, unsigned position, unsigned word) {
    const unsigned slot = position & (channel->width - 1);
    return (unsigned*)(channel->elements + (u64)slot * channel->slot_stride + (u64)word * channel->word_stride);
}

// Elements move in the largest pieces that their size and place allow, up to 16 bytes: a lane then touches a line once,
// not once per word. Layouts that scatter the words of an element go word by word. In assembly, because compilers split
// such accesses where a structure has fields of several sizes.
template <unsigned WORDS> WL_FN void load_piece(unsigned* to, const unsigned* from) {
    if (WORDS == 4)
        asm volatile("ld.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "l"(from) : "memory");
    else
        asm volatile("ld.v2.u32 {%0, %1}, [%2];" : "=r"(to[0]), "=r"(to[1]) : "l"(from) : "memory");
}
template <unsigned WORDS> WL_FN void store_piece(unsigned* to, const unsigned* from) {
    if (WORDS == 4)
        asm volatile("st.v4.u32 [%0], {%1, %2, %3, %4};"
                     :: "l"(to), "r"(from[0]), "r"(from[1]), "r"(from[2]), "r"(from[3]) : "memory");
    else
        asm volatile("st.v2.u32 [%0], {%1, %2};" :: "l"(to), "r"(from[0]), "r"(from[1]) : "memory");
}
template <class T> constexpr unsigned PIECE_WORDS = sizeof(T) % 16 == 0 ? 4 : sizeof(T) % 8 == 0 ? 2 : 1;
WL_FN bool in_pieces(const Channel* channel, unsigned words) {
    return channel->word_stride == 4 && channel->slot_stride % (4 * words) == 0;
}

template <class T> WL_FN T read(const Channel* channel, unsigned position) {
    constexpr unsigned WORDS = (sizeof(T) + 3) / 4, PIECE = PIECE_WORDS<T>;
    unsigned words[WORDS];
    if (PIECE > 1 && in_pieces(channel, PIECE)) {
        const unsigned* from = word_of(channel, position, 0);
#pragma unroll
        for (unsigned i = 0; i + PIECE <= WORDS; i += PIECE) load_piece<PIECE>(words + i, from + i);
    } else {
#pragma unroll
        for (unsigned i = 0; i < WORDS; i++) words[i] = *word_of(channel, position, i);
    }
    T value;
    __builtin_memcpy(&value, words, sizeof(T));
    return value;
}

template <class T> WL_FN void write(const Channel* channel, unsigned position, const T& value) {
    constexpr unsigned WORDS = (sizeof(T) + 3) / 4, PIECE = PIECE_WORDS<T>;
    unsigned words[WORDS] = {};
    __builtin_memcpy(words, &value, sizeof(T));
    if (PIECE > 1 && in_pieces(channel, PIECE)) {
        unsigned* to = word_of(channel, position, 0);
#pragma unroll
        for (unsigned i = 0; i + PIECE <= WORDS; i += PIECE) store_piece<PIECE>(to + i, words + i);
    } else {
#pragma unroll
        for (unsigned i = 0; i < WORDS; i++) *word_of(channel, position, i) = words[i];
    }
}

// A control entry holds a slot. Its low bit flips on each pass through the array, to tell written entries from old ones.
WL_FN unsigned entry_turn(const Channel* channel, unsigned at) { return (at / (2 * channel->width) & 1) ^ 1; }
WL_FN unsigned* entry_of(const Channel* channel, unsigned at) {
    return channel->entries + (at & (2 * channel->width - 1));
}
WL_FN bool is_written(const Channel* channel, unsigned at) {
    return (now(entry_of(channel, at)) & 1) == entry_turn(channel, at);
}

#ifdef FLOW_GPU
#include "persistent.cuh"
#else

// A kernel over a channel, and the list of a program's kernels.
#define FLOW_KERNEL extern "C" __global__ void
#define FLOW_MAIN(...)

// Operations on whole wavefronts.

WL_FN u64 wave_active() {
    u64 lanes;
    asm volatile("wl.activemask.b64 %0;" : "=l"(lanes));
    return lanes;
}
WL_FN u64 wave_ballot(bool value) {
    u64 lanes;
    asm volatile("{ .reg .pred p; setp.ne.s32 p, %1, 0; wl.ballot.b64 %0, p; }" : "=l"(lanes) : "r"((int)value));
    return lanes;
}
WL_FN unsigned wave_lane() {
    unsigned lane;
    asm("mov.u32 %0, %%wl_laneid;" : "=r"(lane));
    return lane;
}
WL_FN unsigned wave_from(unsigned value, unsigned lane) {
    unsigned theirs;
    asm volatile("wl.shfl.idx.b32 %0, %1, %2;" : "=r"(theirs) : "r"(value), "r"(lane));
    return theirs;
}
WL_FN void wave_yield(const void* resource) { asm volatile("wl.yield.b64 %0;" ::"l"(resource) : "memory"); }
WL_FN unsigned lowest(u64 lanes) { return __builtin_ctzll(lanes); }

#ifdef FLOW_LOG_STEPS
// Figure 5 as the paper has it: prefix sum and broadcast by lanes that read from one another, in log2(64) steps.

// The sum over this lane and all lower ones. In each step a lane adds what the one before it has added up, and goes on to
// the one before that; lanes that are not active are not met.
WL_FN unsigned sum_in_steps(unsigned value) {
    const unsigned lane = wave_lane();
    const u64 below = wave_active() & ((1ull << lane) - 1);
    unsigned before = below ? 63 - __clzll(below) : lane, more = below != 0;
    for (unsigned step = 1; step < 64; step *= 2) {
        const unsigned theirs = wave_from(value, before), further = wave_from(before, before);
        const unsigned goes_on = wave_from(more, before);
        value += more ? theirs : 0;
        before = more ? further : before;
        more &= goes_on;
    }
    return value;
}
WL_FN unsigned prefix_sum(unsigned count, unsigned& all) {
    const unsigned sum = sum_in_steps(count);
    all = wave_from(sum, 63 - __clzll(wave_active()));
    return sum - count;
}
// `leader` is the lowest active lane.
WL_FN unsigned broadcast(unsigned value, unsigned leader) { return sum_in_steps(wave_lane() == leader ? value : 0); }
#else
// The sum of the counts of all lower lanes. `all` becomes the sum over all lanes.
WL_FN unsigned prefix_sum(unsigned count, unsigned& all) {
    const u64 below = (1ull << wave_lane()) - 1;
    unsigned offset = 0;
    all = 0;
    for (unsigned bit = 0; wave_ballot(count >> bit != 0); bit++) {
        const u64 have = wave_ballot(count >> bit & 1);
        offset += __popcll(have & below) << bit;
        all += __popcll(have) << bit;
    }
    return offset;
}
WL_FN unsigned broadcast(unsigned value, unsigned leader) { return wave_from(value, leader); }
#endif

// Reserving one lane at a time: the baseline of the paper's Figure 17.

WL_FN bool talloc_by_lane(Channel* channel, unsigned count, unsigned& position) {
    for (;;) {
        const unsigned old = now(&channel->tail);
        if (old + count - now(&channel->head) > channel->width) return false;
        if (atomicCAS(&channel->tail, old, old + count) == old) {
            position = old;
            return true;
        }
    }
}

// There is always room for entries, so that nothing has to be tried: one addition reserves them.
WL_FN unsigned reserve_by_lane(Channel* channel, unsigned count) { return atomicAdd(&channel->reserve, count); }

// Entries that a lane looks at together, and how often before a CAS. If few lanes are active, one wavefront may have to
// publish what hundreds of others have left to it; entry by entry, they would all wait for it.
constexpr unsigned ENTRY_BLOCK = 4, BLOCKS_PER_CAS = 8;

// How many entries of a block are written before the first that is not. All are of one pass through the array.
WL_FN unsigned written_in_block(const Channel* channel, unsigned block) {
    const unsigned turn = entry_turn(channel, block) ? 15 : 0;
    unsigned a, b, c, d;
    asm volatile("ld.volatile.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(entry_of(channel, block)) : "memory");
    const unsigned bits = (a & 1) | (b & 1) << 1 | (c & 1) << 2 | (d & 1) << 3;
    return __builtin_ctz((bits ^ turn) | 1u << ENTRY_BLOCK);
}

// Makes entries `first` to `end`, which this lane has written, ready if all entries before them are. Returns whether
// this lane did so; it must then look at the entries behind them.
WL_FN bool publish_own(Channel* channel, unsigned first, unsigned end) {
    unsigned old = now(&channel->ready);
    while (old - first < end - first) {
        const unsigned seen = atomicCAS(&channel->ready, old, end);
        if (seen == old) return true;
        old = seen;
    }
    // Either an earlier entry is unwritten, and its producer will publish these too, or they are published already.
    return false;
}

WL_FN void publish_by_lane(Channel* channel, unsigned first, unsigned end) {
    if (!publish_own(channel, first, end)) return;
    for (;; end++) {
        __threadfence();
        if (!is_written(channel, end) || atomicCAS(&channel->ready, end, end + 1) != end) return;
    }
}

// The calls of the paper's Table 1.

// How long a wavefront sleeps after its first CAS that fails, and at most, in nanoseconds. When a level starts, hundreds
// of wavefronts reserve at once. Without a pause each failure takes the line away from the one that would succeed. For the
// same reason `tail` is read by an atomic: it brings the line as its only copy, and the CAS finds it there.
constexpr unsigned FIRST_PAUSE = 128, LONGEST_PAUSE = 4096;

// Reserves `all` elements if there is room for all of them; called by one lane of a wavefront. Another wavefront's
// reservation between the load and the CAS forces a retry, so there is next to nothing between them.
WL_FN bool reserve_room(Channel* channel, unsigned all, unsigned& position) {
    const unsigned width = channel->width;
    unsigned head = now(&channel->head);
    for (unsigned pause = FIRST_PAUSE;; pause = min(2 * pause, LONGEST_PAUSE)) {
        const unsigned old = atomicAdd(&channel->tail, 0);
        if (old + all - head > width) {
            head = now(&channel->head);
            if (old + all - head > width) return false;
        }
        if (atomicCAS(&channel->tail, old, old + all) == old) {
            position = old;
            return true;
        }
        asm volatile("nanosleep.u32 %0;" ::"r"(pause));
    }
}

// What a wavefront waits for if it puts more at once than its graph declares: no channel has this address. Firmware ends
// the run then, with an error that names kernel and channel.
WL_FN const void* excess_of(const Channel* channel) { return (const char*)channel + 1; }

// Reserves `count` adjacent elements for each active lane, with one CAS for as many lanes as there is room for, lowest
// lanes first. False for lanes that get none. A lane must fill and enqueue its elements before it waits for anything.
WL_FN bool talloc(Channel* channel, unsigned count, unsigned& position) {
    if (count > channel->most) wave_yield(excess_of(channel));
    if (channel->lane_by_lane) return talloc_by_lane(channel, count, position);
    unsigned all, old = 0;
    const unsigned offset = prefix_sum(count, all);
    const unsigned leader = lowest(wave_active());
    bool reserved = false;
    if (wave_lane() == leader) reserved = reserve_room(channel, all, old);
    if (wave_ballot(reserved)) {
        position = broadcast(old, leader) + offset;
        return true;
    }
    for (;;) {
        old = now(&channel->tail);
        const unsigned room = channel->width - (old - now(&channel->head));
        const bool fits = offset + count <= room;
        const u64 served = wave_ballot(fits);
        if (!served) return false;
        const unsigned taken = wave_from(offset + count, 63 - __clzll(served));
        if (wave_lane() == leader) reserved = atomicCAS(&channel->tail, old, old + taken) == old;
        if (wave_ballot(reserved)) {
            position = old + offset;
            return fits;
        }
    }
}

// Makes elements from `talloc` ready. Their words are visible to the wavefronts that are started on them.
WL_FN void enq(Channel* channel, unsigned position, unsigned count) {
    __threadfence();
    const unsigned mask = channel->width - 1;
    if (channel->lane_by_lane) {
        const unsigned at = reserve_by_lane(channel, count);
        for (unsigned i = 0; i < count; i++)
            *(volatile unsigned*)entry_of(channel, at + i) = (position + i & mask) << 1 | entry_turn(channel, at + i);
        __threadfence();
        publish_by_lane(channel, at, at + count);
        return;
    }
    unsigned all, first = 0;
    const unsigned offset = prefix_sum(count, all);
    const u64 active = wave_active();
    const unsigned leader = lowest(active), rank = __popcll(active & ((1ull << wave_lane()) - 1));
    if (wave_lane() == leader) first = reserve_by_lane(channel, all);
    first = broadcast(first, leader);
    for (unsigned i = 0, at = first + offset; i < count; i++, at++)
        *(volatile unsigned*)entry_of(channel, at) = (position + i & mask) << 1 | entry_turn(channel, at);
    __threadfence();
    bool ours = false;
    if (wave_lane() == leader) ours = publish_own(channel, first, first + all);
    // Looks at the entries behind ours, a block per lane at a time, up to the first unwritten one. The producer of that
    // entry looks after writing it, so none is left behind. Those before ours in the first block are written.
    for (unsigned end = first + all; wave_ballot(ours);) {
        __threadfence();
        unsigned next = end & -ENTRY_BLOCK;
        for (unsigned i = 0; i < BLOCKS_PER_CAS; i++) {
            const unsigned block = next + rank * ENTRY_BLOCK, written = written_in_block(channel, block);
            const u64 missing = wave_ballot(written < ENTRY_BLOCK);
            next = wave_from(block + written, missing ? lowest(missing) : 63 - __clzll(active));
            if (missing) break;
        }
        if (next == end) return;
        if (wave_lane() == leader) ours = atomicCAS(&channel->ready, end, next) == end;
        end = next;
    }
}

// This lane's index among the elements of its start, and whether it has an element.
WL_FN unsigned work_index() { return blockIdx.x * 64 + threadIdx.x; }
WL_FN bool has_work(const Work& work) { return work_index() < work.count; }

// The position of this lane's element.
WL_FN unsigned deq(const Work& work) { return *entry_of(work.source, work.first + work_index()) >> 1; }

// Marks this lane's element as done, after everything made from it is visible.
WL_FN void tfree(const Work& work, unsigned position) {
    __threadfence();
    const unsigned slot = position & (work.source->width - 1);
    atomicAdd(work.source->done + (slot >> work.source->group_shift), 1u);
}

// Puts `count` elements for each active lane, for as many lanes at a time as there is room for. `fill(position)` writes
// a lane's elements; once they are ready, `then(position)` does what may wait again. If there is no room, the wavefront
// yields and retries when it is restarted.
template <class Fill, class Then> WL_FN void put(Channel* channel, unsigned count, Fill fill, Then then) {
    bool todo = count != 0;
    while (wave_ballot(todo)) {
        if (todo) {
            unsigned position;
            if (talloc(channel, count, position)) {
                fill(position);
                enq(channel, position, count);
                then(position);
                todo = false;
            }
        }
        if (wave_ballot(todo) && todo) wave_yield(channel);
    }
}
template <class Fill> WL_FN void put(Channel* channel, unsigned count, Fill fill) {
    put(channel, count, fill, [](unsigned) {});
}

// Like `put`, in one attempt: false for lanes for which there is no room.
template <class Fill> WL_FN bool offer(Channel* channel, unsigned count, Fill fill) {
    unsigned position;
    const bool room = talloc(channel, count, position);
    if (room) {
        fill(position);
        enq(channel, position, count);
    }
    return room;
}

// Calls `body` for the lanes of one level after the other, because lanes that put together put into one channel.
template <class Body> WL_FN void by_level(unsigned level, Body body) {
    bool todo = true;
    while (const u64 left = wave_ballot(todo)) {
        if (level == wave_from(level, lowest(left)) && todo) {
            body();
            todo = false;
        }
    }
}

// Adds 1 to a count for every active lane.
WL_FN void tally(unsigned* count) {
    const u64 active = wave_active();
    if (wave_lane() == lowest(active)) atomicAdd(count, (unsigned)__popcll(active));
}

#endif  // FLOW_GPU
