// Channels on a GPU without an aggregator: one persistent kernel whose first warp schedules and whose other warps work.
// channel.cuh includes this with FLOW_GPU defined. per_sm.cuh has the form with a scheduler in every CTA.
//
// Every kernel of a program is a function here. The scheduler looks at the channels and hands chunks of up to 32 elements
// of one channel to workers through a ring. A worker runs the function of the channel's kernel, a lane per element.
//
// Admission by credits. Nothing can yield on this GPU, so a chunk is handed out only if there is room for everything that
// its elements may put: for each channel that its kernel writes, as many free elements as the graph declares at most, less
// those already promised to chunks in flight. So `put` reserves by one addition and never waits.
//
// Why nothing deadlocks. A worker that has a chunk waits for one thing only: that an element it was given is written. Its
// producer reserved it, and between that and the write it waits for nothing. So all chunks in flight end, and what they
// promised is exact then. When nothing is in flight, all elements that were handed out are freed, and the scheduler offers
// the deepest waiting elements first. Everything deeper than they is empty and has room for at least one element's
// products, because no graph may put more at once than a channel holds. Only a channel that feeds itself or one that is
// not deeper can be full without an end; then nothing can be handed out, and the run ends with that as its result.
#pragma once

constexpr unsigned LANES = 32;

// A channel as the scheduler knows it. Sorted by depth; the host writes these (crates/flow/src/persistent).
struct Cell {
    Counters* counters;
    unsigned channel;      // its number among the descriptors
    unsigned width, kernel, level, depth;
    unsigned after_sync;   // its elements wait for everything deeper
    unsigned constants;    // the kernel's arguments after `Work`: where they begin
    unsigned feeds, feeds_end;      // channels that its kernel writes
    unsigned feeders, feeders_end;  // channels whose kernels write it
    unsigned window;                // per_sm.cuh: how far elements may be handed out ahead of the first one in use
};

// Another channel, and how many elements are put at most for one element.
struct Feed {
    unsigned cell, most;
};

// In `Run::fault`: a lane has put more at once than the graph declares.
constexpr u64 EXCESS = 1ull << 32;

enum Status { RUNNING = 0, FINISHED = 1, STUCK = 2, NO_ROOM = 3 };

struct Run {
    const Cell* cells;
    const Feed* feeds;
    const u64* constants;
    u64* ring;
    Counters* descriptors;  // all channels, and one without room behind the last level of each stack
    unsigned cell_count, feed_count, constant_count, descriptor_count;
    unsigned ring_mask, unused;
    u64 fault;          // the number, and one, of the channel in which a kernel found no room, or EXCESS and these
    unsigned status;
    unsigned rounds;    // of the scheduler
    u64 chunks, elements;
    alignas(64) unsigned claimed;  // tickets of workers: each waits at its own place of the ring
};

// A place of the ring: zero while empty, else the first position, the cell and the count of a chunk.
constexpr u64 STOP = ~0ull;
WL_FN u64 chunk_of(unsigned cell, unsigned first, unsigned count) {
    return (u64)first << 32 | (u64)cell << 8 | count;
}

// Acquire and release. Nothing here needs sequential consistency: every word has one writer at a time, or is added to.
WL_FN void fence() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

WL_FN u64 now(const u64* word) {
    u64 value;
    asm volatile("ld.relaxed.gpu.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
}
WL_FN void set(unsigned* word, unsigned value) {
    asm volatile("st.relaxed.gpu.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}
WL_FN void set(u64* word, u64 value) {
    asm volatile("st.relaxed.gpu.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

// Lanes of a warp that execute together. Taken once and then used, because lanes may part anywhere on this GPU.

WL_FN unsigned lane_of() {
    unsigned lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}
WL_FN unsigned together() {
    unsigned lanes;
    asm volatile("activemask.b32 %0;" : "=r"(lanes));
    return lanes;
}
WL_FN u64 from_lane(u64 value, unsigned lane) {
    const unsigned low = __shfl_sync(~0u, (unsigned)value, lane), high = __shfl_sync(~0u, (unsigned)(value >> 32), lane);
    return (u64)high << 32 | low;
}

// The sum of the counts of all lower lanes. `all` becomes the sum over all lanes of the group.
WL_FN unsigned prefix_sum(unsigned lanes, unsigned count, unsigned& all) {
    const unsigned below = (1u << lane_of()) - 1;
    unsigned offset = 0;
    all = 0;
    for (unsigned bit = 0; __ballot_sync(lanes, count >> bit != 0); bit++) {
        const unsigned have = __ballot_sync(lanes, count >> bit & 1);
        offset += __popc(have & below) << bit;
        all += __popc(have) << bit;
    }
    return offset;
}

// The calls of kernels.

#define FLOW_KERNEL static __device__ __forceinline__ void

WL_FN bool has_work(const Work& work) { return lane_of() < work.count; }

// The position of this lane's element, once its producer has written it. That one has found room: nothing is handed out
// after the scheduler has seen more reserved elements than a channel holds.
WL_FN unsigned deq(const Work& work) {
    const unsigned at = work.first + lane_of(), lanes = together();
    const unsigned* entry = entry_of(work.source, at);
    for (;;) {
        unsigned value;
        asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(value) : "l"(entry) : "memory");
        // All together: lanes that leave a loop one by one may stay apart.
        if (__all_sync(lanes, (value & 1) == entry_turn(work.source, at))) return at;
        // With several schedulers, one may hand out what its producer found no room for. The run fails.
        if (__any_sync(lanes, now(work.source->fault) != 0)) asm volatile("exit;");
        asm volatile("nanosleep.u32 100;");
    }
}

// The end of a chunk frees its elements.
WL_FN void tfree(const Work&, unsigned) {}

// Elements that this thread has filled and not yet marked as written: at the end of a chunk one fence does for all. The
// position and the channel's number, and how many.
constexpr unsigned MOST_PENDING = 4;
static __shared__ u64 pending_at[MOST_PENDING][256];
static __shared__ unsigned pending_elements[MOST_PENDING][256], pending_count[256];
extern __shared__ u64 flow_shared[];

// Marks this thread's pending elements as written. A fence after filling them must have come before.
WL_FN void publish() {
    for (unsigned i = 0; i < pending_count[threadIdx.x]; i++) {
        const u64 pending = pending_at[i][threadIdx.x];
        const Channel* channel = (Channel*)flow_shared + (unsigned)pending;
        const unsigned first = pending >> 32, count = pending_elements[i][threadIdx.x];
        for (unsigned at = first; at != first + count; at++)
            set(entry_of(channel, at), (at & (channel->width - 1)) << 1 | entry_turn(channel, at));
    }
    pending_count[threadIdx.x] = 0;
}

// clang would not inline what is called from both entries, and calls cost registers.
#if __clang_major__ >= 15
#define FLOW_INLINE [[clang::always_inline]]
#else
#define FLOW_INLINE
#endif

// How often a kernel that finds no room looks again. The scheduler has seen room, and its own store is on the way.
constexpr unsigned LOOKS_FOR_ROOM = 10000;

// Puts `count` elements for each lane; `fill` and `then` as in channel.cuh. There is room, or the graph declares too few.
// Elements are handed out in the order in which they were reserved, so there is no second order of ready elements.
template <class Fill, class Then> WL_FN void put(Channel* channel, unsigned count, Fill fill, Then then) {
    if (!count) return;
    const unsigned lanes = together(), leader = __ffs(lanes) - 1, width = channel->width;
    unsigned all, base = 0;
    const unsigned offset = prefix_sum(lanes, count, all);
    if (!width || __any_sync(lanes, count > channel->most)) {
        set(channel->fault, channel->number + 1 | (width ? EXCESS : 0));
        return;
    }
    bool fits = false;
    if (lane_of() == leader) {
        Counters* counters = channel->counters;
        // Asked for together, because both take long.
        unsigned head = now(&counters->head);
        base = atomicAdd(&counters->tail, all);
        fits = base + all - head <= width;
        for (unsigned looks = 0; !fits && looks < LOOKS_FOR_ROOM; looks++)
            fits = base + all - now(&counters->head) <= width;
    }
    if (!__any_sync(lanes, fits)) {
        set(channel->fault, channel->number + 1);
        return;
    }
    base = __shfl_sync(lanes, base, leader);
    FLOW_INLINE fill(base + offset);
    if (pending_count[threadIdx.x] == MOST_PENDING) {
        fence();
        publish();
    }
    const unsigned pending = pending_count[threadIdx.x]++;
    pending_at[pending][threadIdx.x] = (u64)(base + offset) << 32 | channel->number;
    pending_elements[pending][threadIdx.x] = count;
    __syncwarp(lanes);
    FLOW_INLINE then(base + offset);
}
template <class Fill> WL_FN void put(Channel* channel, unsigned count, Fill fill) {
    put(channel, count, fill, [](unsigned) {});
}

// There is always room.
template <class Fill> WL_FN bool offer(Channel* channel, unsigned count, Fill fill) {
    put(channel, count, fill);
    return true;
}

// Calls `body` for the lanes of one level after the other, because lanes that put together put into one channel.
template <class Body> WL_FN void by_level(unsigned level, Body body) {
    const unsigned lanes = together();
    bool todo = true;
    while (const unsigned left = __ballot_sync(lanes, todo)) {
        if (level == __shfl_sync(lanes, level, __ffs(left) - 1) && todo) {
            FLOW_INLINE body();
            todo = false;
        }
        __syncwarp(lanes);
    }
}

// Adds 1 to a count for every lane.
WL_FN void tally(unsigned* count) {
    const unsigned lanes = together();
    if (lane_of() == __ffs(lanes) - 1) atomicAdd(count, (unsigned)__popc(lanes));
}

// Calls a kernel's function with its arguments from memory.

template <unsigned... I> struct Indices {};
template <unsigned N, unsigned... I> struct UpTo : UpTo<N - 1, N - 1, I...> {};
template <unsigned... I> struct UpTo<0, I...> {
    typedef Indices<I...> type;
};

template <class T> struct Argument {
    static __device__ __forceinline__ T from(u64 bits) {
        T value;
        __builtin_memcpy(&value, &bits, sizeof(T));
        return value;
    }
};
// A channel is given by its number, and found in this CTA's copy.
template <> struct Argument<Channel*> {
    static __device__ __forceinline__ Channel* from(u64 number) { return (Channel*)flow_shared + number; }
};

template <auto F> struct Call;
template <class... Args, void (*F)(Work, Args...)> struct Call<F> {
    static constexpr unsigned ARGUMENTS = sizeof...(Args);
    template <unsigned... I>
    static __device__ __forceinline__ void with(const Work& work, const u64* constants, Indices<I...>) {
        F(work, Argument<Args>::from(constants[I])...);
    }
    static __device__ __forceinline__ void from(const Work& work, const u64* constants) {
        with(work, constants, typename UpTo<ARGUMENTS>::type());
    }
};

// Marks an entry whose element is done. Its width leaves the bit free.
constexpr unsigned DONE = 1u << 31;

template <auto... KERNELS> WL_FN void run_chunk(const Cell& cell, const u64* constants, unsigned first, unsigned count) {
    Channel* channel = (Channel*)flow_shared + cell.channel;
    const Work work{channel, first, count, cell.level, 0};
    unsigned number = 0;
    const u64* arguments = constants + cell.constants;
    (void)((cell.kernel == number++ ? (Call<KERNELS>::from(work, arguments), true) : false) || ...);
    __syncwarp();
    const unsigned at = first + lane_of();
    // What the element's words were needed for has happened, so nobody reads them any more.
    if (lane_of() < count) set(entry_of(channel, at), entry_turn(channel, at) | DONE);
    __syncwarp();
    // After the barrier, so that the fence covers what all lanes have written.
    fence();
    if (lane_of() == 0)
        asm volatile("red.add.u64 [%0], %1;" ::"l"(&cell.counters->finished), "l"(1ull << 32 | count) : "memory");
    publish();
}

// The scheduler's and the workers' copy of the graph, and the scheduler's own state of each channel.
struct Shared {
    Channel* channels;
    Cell* cells;
    Feed* feeds;
    u64* constants;
    unsigned *next, *head, *tail;   // positions: handed out, freed, reserved
    unsigned* busy;                 // elements in flight
    unsigned *finished, *promised;  // per_sm.cuh: elements that are done, and that chunks in flight may put
};

// The host computes the same size.
WL_FN Shared shared_of(const Run* run) {
    Shared s;
    const unsigned n = run->cell_count;
    s.channels = (Channel*)flow_shared;
    s.cells = (Cell*)(s.channels + run->descriptor_count);
    s.feeds = (Feed*)(s.cells + n);
    s.constants = (u64*)(s.feeds + run->feed_count);
    s.next = (unsigned*)(s.constants + run->constant_count);
    s.head = s.next + n;
    s.tail = s.head + n;
    s.busy = s.tail + n;
    s.finished = s.busy + n;
    s.promised = s.finished + n;
    pending_count[threadIdx.x] = 0;
    for (unsigned i = threadIdx.x; i < run->descriptor_count; i += blockDim.x) {
        s.channels[i] = *(const Channel*)&run->descriptors[i];
        s.channels[i].counters = run->descriptors + i;
        s.channels[i].number = i;
    }
    for (unsigned i = threadIdx.x; i < n; i += blockDim.x) {
        s.cells[i] = run->cells[i];
        s.next[i] = s.head[i] = 0;
    }
    for (unsigned i = threadIdx.x; i < run->feed_count; i += blockDim.x) s.feeds[i] = run->feeds[i];
    for (unsigned i = threadIdx.x; i < run->constant_count; i += blockDim.x) s.constants[i] = run->constants[i];
    __syncthreads();
    return s;
}

// Waits for a worker's next chunk at a place of its own.
WL_FN u64 next_chunk(u64* ring, unsigned mask, unsigned* claimed) {
    u64 chunk = 0, *place = nullptr;
    if (lane_of() == 0) {
        place = ring + (atomicAdd(claimed, 1u) & mask);
        while (!(chunk = now(place))) asm volatile("nanosleep.u32 20;");
    }
    chunk = from_lane(chunk, 0);
    if (chunk == STOP) return chunk;
    // Before the place is emptied, because it would wait for that.
    fence();
    if (lane_of() == 0) set(place, 0);
    return chunk;
}

template <auto... KERNELS> WL_FN void work_on(Run* run, const Shared& s) {
    for (;;) {
        const u64 chunk = next_chunk(run->ring, run->ring_mask, &run->claimed);
        if (chunk == STOP) return;
        run_chunk<KERNELS...>(s.cells[chunk >> 8 & 0xffffff], s.constants, chunk >> 32, chunk & 0xff);
    }
}

// What a look at the channels found.
struct Look {
    unsigned ended;    // chunks, in all
    int deepest;       // depth of the deepest elements that are not done, or -1
    bool in_flight;    // some are handed out and not done
    bool no_room;      // a kernel has put more than the graph declares
};

WL_FN int largest(int value) {
    int all;
    asm volatile("redux.sync.max.s32 %0, %1, -1;" : "=r"(all) : "r"(value));
    return all;
}
WL_FN unsigned least(unsigned value) {
    unsigned all;
    asm volatile("redux.sync.min.u32 %0, %1, -1;" : "=r"(all) : "r"(value));
    return all;
}
WL_FN unsigned total(unsigned value) {
    unsigned all;
    asm volatile("redux.sync.add.u32 %0, %1, -1;" : "=r"(all) : "r"(value));
    return all;
}
WL_FN unsigned any_of(unsigned flags) {
    unsigned all;
    asm volatile("redux.sync.or.b32 %0, %1, -1;" : "=r"(all) : "r"(flags));
    return all;
}

// Channels that a lane reads at once: their values arrive together.
constexpr unsigned AT_ONCE = 4;

// Frees done elements of a channel whose other elements are still in flight: all that are done before the first that is
// not, and before `limit`. A lane looks at four entries together, and at several such blocks. More wait for the next look:
// on an H200, programs that need no more room were slower where this went on until the first that is not done.
WL_FN void free_done(const Shared& s, unsigned cell, unsigned limit) {
    const Channel* channel = s.channels + s.cells[cell].channel;
    const unsigned head = s.head[cell], first = head & -4u;
    unsigned done[2 * AT_ONCE], end = first + 2 * AT_ONCE * LANES * 4;
#pragma unroll
    for (unsigned i = 0; i < 2 * AT_ONCE; i++) {
        const unsigned at = first + (i * LANES + lane_of()) * 4;
        const unsigned mark = entry_turn(channel, at) | DONE;
        unsigned a, b, c, d;
        asm volatile("ld.relaxed.gpu.v4.u32 {%0, %1, %2, %3}, [%4];"
                     : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(entry_of(channel, at)) : "memory");
        done[i] = (a == mark) | (b == mark) << 1 | (c == mark) << 2 | (d == mark) << 3;
        // Those before the head are free already; those that are not handed out are marked from an earlier pass at most.
        if (at == first) done[i] |= (1u << (head - first)) - 1;
    }
#pragma unroll
    for (unsigned i = 2 * AT_ONCE; i-- > 0;) {
        const unsigned missing = __ballot_sync(~0u, done[i] != 15);
        if (!missing) continue;
        const unsigned lane = __ffs(missing) - 1, there = __shfl_sync(~0u, done[i], lane);
        end = first + (i * LANES + lane) * 4 + __ffs(~there) - 1;
    }
    if ((int)(end - limit) > 0) end = limit;
    __syncwarp();
    if (lane_of() == 0 && end != head) {
        s.head[cell] = end;
        set(&s.cells[cell].counters->head, end);
    }
    __syncwarp();
}

WL_FN Look look(Run* run, const Shared& s) {
    const unsigned n = run->cell_count, lane = lane_of();
    unsigned ended = 0;
    // Read `finished` before `tail`: what an element put was reserved before it was done, so channels without elements in
    // flight have then shown everything that came of them.
    for (unsigned block = 0; block < n; block += AT_ONCE * LANES) {
        u64 finished[AT_ONCE];
#pragma unroll
        for (unsigned i = 0; i < AT_ONCE; i++) {
            const unsigned c = block + i * LANES + lane;
            finished[i] = c < n ? now(&s.cells[c].counters->finished) : 0;
        }
#pragma unroll
        for (unsigned i = 0; i < AT_ONCE; i++) {
            const unsigned c = block + i * LANES + lane;
            if (block + i * LANES >= n) break;
            if (c >= n) continue;
            ended += finished[i] >> 32;
            const unsigned next = s.next[c], busy = next - (unsigned)finished[i];
            s.busy[c] = busy;
        }
    }
    __syncwarp();
    fence();
    int deepest = -1;
    bool in_flight = false, overfull = false, crowded = false;
    for (unsigned block = 0; block < n; block += AT_ONCE * LANES) {
        unsigned tail[AT_ONCE];
#pragma unroll
        for (unsigned i = 0; i < AT_ONCE; i++) {
            const unsigned c = block + i * LANES + lane;
            tail[i] = c < n ? now(&s.cells[c].counters->tail) : 0;
        }
#pragma unroll
        for (unsigned i = 0; i < AT_ONCE; i++) {
            const unsigned c = block + i * LANES + lane;
            if (block + i * LANES >= n) break;
            if (c >= n) continue;
            s.tail[c] = tail[i];
            if (!s.busy[c] && s.head[c] != s.next[c]) {
                s.head[c] = s.next[c];
                set(&s.cells[c].counters->head, s.head[c]);
            }
            const unsigned used = tail[i] - s.head[c], busy = s.busy[c], width = s.cells[c].width;
            if (used > width) {
                overfull = true;
                set(&run->fault, s.cells[c].channel + 1);
            }
            crowded |= busy && used > width / 2;
            in_flight |= busy != 0;
            if (busy || tail[i] != s.next[c]) deepest = max(deepest, (int)s.cells[c].depth);
        }
    }
    __syncwarp();
    if (any_of(crowded)) {
        for (unsigned c = 0; c < n; c++)
            if (s.busy[c] && s.tail[c] - s.head[c] > s.cells[c].width / 2) free_done(s, c, s.next[c]);
    }
    const unsigned flags = any_of(in_flight | overfull << 1);
    return Look{total(ended), largest(deepest), (flags & 1) != 0, (flags & 2) != 0};
}

// Whether elements of a channel may be handed out: after a sync, once everything deeper has ended. A kernel that puts
// continuations and is not done may not have put yet what they wait for.
WL_FN bool may_start(const Shared& s, unsigned cell, int deepest) {
    const Cell& c = s.cells[cell];
    if (s.tail[cell] == s.next[cell]) return false;
    if (!c.after_sync) return true;
    bool fed = false;
    for (unsigned i = c.feeders; i < c.feeders_end; i++) fed |= s.busy[s.feeds[i].cell] != 0;
    return !fed && deepest <= (int)c.depth;
}

// Elements of a channel that are free and promised to nobody.
WL_FN unsigned room_in(const Shared& s, unsigned cell) {
    const Cell& c = s.cells[cell];
    // What elements in flight have put already counts twice until they are done.
    unsigned used = s.tail[cell] - s.head[cell];
    for (unsigned i = c.feeders; i < c.feeders_end; i++) used += s.busy[s.feeds[i].cell] * s.feeds[i].most;
    return used < c.width ? c.width - used : 0;
}

// Hands out chunks of a channel. `places`: empty places of the ring; `idle`: workers without a chunk. Full chunks may wait
// for workers; others are handed out only to idle ones, because more elements may come meanwhile.
WL_FN unsigned hand_out(Run* run, const Shared& s, unsigned cell, unsigned pushed, unsigned places, int idle) {
    const Cell& c = s.cells[cell];
    const unsigned first = s.next[cell];
    unsigned count = s.tail[cell] - first;
    unsigned admitted = count;
    for (unsigned i = c.feeds + lane_of(); i < c.feeds_end; i += LANES) {
        const unsigned room = room_in(s, s.feeds[i].cell), most = s.feeds[i].most;
        if ((u64)admitted * most > room) admitted = room / most;
    }
    count = least(admitted);
    unsigned chunks = count / LANES;
    if (chunks * LANES < count && (int)chunks < idle) chunks++;
    chunks = min(chunks, places);
    count = min(count, chunks * LANES);
    __syncwarp();
    for (unsigned i = lane_of(); i < chunks; i += LANES) {
        u64* place = run->ring + (pushed + i & run->ring_mask);
        set(place, chunk_of(cell, first + i * LANES, min(LANES, count - i * LANES)));
    }
    if (lane_of() == 0 && chunks) {
        s.next[cell] = first + count;
        s.busy[cell] += count;
    }
    __syncwarp();
    return chunks;
}

// Looks for more empty places of the ring behind those known, at least `least` in all. There are at most `ring_mask`.
WL_FN unsigned empty_places(const Run* run, unsigned pushed, unsigned known, unsigned least) {
    while (known < least) {
        unsigned full[AT_ONCE];
#pragma unroll
        for (unsigned i = 0; i < AT_ONCE; i++)
            full[i] = now(run->ring + (pushed + known + i * LANES + lane_of() & run->ring_mask)) != 0;
#pragma unroll
        for (unsigned i = 0; i < AT_ONCE; i++) {
            const unsigned stop = __ballot_sync(~0u, full[i] != 0);
            if (stop) return min(known + __ffs(stop) - 1, run->ring_mask);
            known += LANES;
        }
    }
    return min(known, run->ring_mask);
}

WL_FN void schedule(Run* run, const Shared& s, unsigned workers) {
    const unsigned n = run->cell_count, lane = lane_of();
    // All places are empty at first.
    unsigned pushed = 0, rounds = 0, status = RUNNING, empty = run->ring_mask;
    u64 elements = 0;
    // A worker that has ended its chunk should find the next one in the ring, but chunks that wait there are fixed.
    const unsigned most_waiting = workers / 2 + 1;
    while (status == RUNNING) {
        const Look seen = look(run, s);
        if (seen.no_room) {
            status = NO_ROOM;
            break;
        }
        const unsigned waiting = pushed - seen.ended;
        const unsigned wanted = waiting < workers + most_waiting ? workers + most_waiting - waiting : 0;
        unsigned places = wanted;
        int idle = (int)(workers - waiting);
        const unsigned before = pushed;
        for (int block = (n - 1) / LANES; block >= 0; block--) {
            const unsigned mine = block * LANES + lane;
            unsigned ready = __ballot_sync(~0u, mine < n && may_start(s, mine, seen.deepest));
            while (ready && places) {
                const unsigned which = LANES - 1 - __clz(ready);
                ready &= ~(1u << which);
                const unsigned cell = block * LANES + which;
                const unsigned needed = min(places, (s.tail[cell] - s.next[cell]) / LANES + 1);
                if (empty < needed) empty = empty_places(run, pushed, empty, needed);
                const unsigned chunks = hand_out(run, s, cell, pushed, min(places, empty), idle);
                pushed += chunks;
                places -= chunks;
                empty -= chunks;
                idle -= chunks;
            }
        }
        rounds++;
        if (seen.deepest < 0) status = now(&run->fault) ? NO_ROOM : FINISHED;
        else if (pushed == before && !seen.in_flight) status = STUCK;
    }
    // Chunks in flight end; then every worker waits at an empty place, and there are more places than workers.
    while (look(run, s).in_flight) {}
    for (unsigned i = lane; i <= run->ring_mask; i += LANES) set(run->ring + i, STOP);
    for (unsigned c = lane; c < n; c += LANES) {
        elements += s.next[c];
        // For the host's audit: everything that was reserved was made ready.
        s.cells[c].counters->ready = s.tail[c];
    }
    elements = total((unsigned)elements);
    if (lane == 0) {
        run->status = status;
        run->rounds = rounds;
        run->chunks = pushed;
        run->elements = elements;
    }
}

// The persistent kernel. All its CTAs must be resident together.
template <auto... KERNELS> WL_FN void run_all(Run* run) {
    const Shared s = shared_of(run);
    const unsigned workers = gridDim.x * (blockDim.x / LANES) - 1;
    if (blockIdx.x == 0 && threadIdx.x < LANES) schedule(run, s, workers);
    else work_on<KERNELS...>(run, s);
}

#include "per_sm.cuh"

// A batch from the host, a chunk per warp.
template <auto... KERNELS> WL_FN void run_batch(Run* run, unsigned cell, unsigned first, unsigned count) {
    const Shared s = shared_of(run);
    const unsigned start = (blockIdx.x * blockDim.x + threadIdx.x) / LANES * LANES;
    if (start >= count) return;
    run_chunk<KERNELS...>(s.cells[cell], s.constants, first + start, min(LANES, count - start));
}

// Tells the host the kernels' names, and how many arguments each takes after `Work`.
template <auto... KERNELS> WL_FN void describe(const char* text, char* names, unsigned room, unsigned* arguments) {
    for (unsigned i = 0; i < room && text[i]; i++) names[i] = text[i];
    unsigned number = 0;
    ((arguments[number++] = Call<KERNELS>::ARGUMENTS), ...);
}

#define FLOW_MAIN(...)                                                                                               \
    extern "C" __global__ void flow_kernels(char* names, unsigned room, unsigned* arguments) {                       \
        describe<__VA_ARGS__>(#__VA_ARGS__, names, room, arguments);                                                 \
    }                                                                                                                \
    extern "C" __global__ void __launch_bounds__(256, 1) flow_persistent(Run* run) { run_all<__VA_ARGS__>(run); }    \
    extern "C" __global__ void __launch_bounds__(256, 1) flow_per_sm(Run* run) { run_per_sm<__VA_ARGS__>(run); }     \
    extern "C" __global__ void __launch_bounds__(256, 1) flow_batch(Run* run, unsigned cell, unsigned first,         \
                                                                     unsigned count) {                               \
        run_batch<__VA_ARGS__>(run, cell, first, count);                                                             \
    }
