// A scheduler in every CTA: the persistent kernel `flow_per_sm`. persistent.cuh includes this.
//
// The elements of a channel are dealt to the CTAs in chunks of 32 positions, one after the other, so no two schedulers ever
// claim the same one. A scheduler hands its own elements to the workers of its CTA through a ring in shared memory.
//
// Credits are claimed by atomics. Each channel has a count of the elements that chunks in flight may still put. A scheduler
// adds what its chunk may put, then looks at the channel: if everything that was promised before it, everything in the
// channel and its own fit, they are its own; it gives back what does not fit. A worker takes its promise back after a fence
// behind everything that it put. So whoever misses a promise sees the elements that were put instead, and of two claims the
// later one sees the earlier one.
//
// Elements end out of order, and a channel is freed in order. In a channel that feeds itself, elements beyond the middle of
// the channel wait for the first ones (`window`). Else, finished elements behind one that waits could fill the channel.

constexpr unsigned SM_PLACES = 32;

static __shared__ u64 sm_ring[SM_PLACES];
static __shared__ unsigned sm_claimed, sm_ended;

// What a scheduler knows of the channels: `Shared` has `next` as the next position of its own, and `busy` as the elements
// that all schedulers have handed out and that were not done when it looked.
struct SmLook {
    int deepest;     // depth of the deepest elements that are not done, or -1
    bool in_flight;  // some are handed out and not done
    unsigned status;
    bool fault;
    unsigned chunks;  // that have ended
};

WL_FN SmLook look_around(Run* run, const Shared& s) {
    const unsigned n = run->cell_count, lane = lane_of();
    unsigned chunks = 0;
    bool in_flight = false;
    // `finished` before `tail`, as in `look`.
    for (unsigned block = 0; block < n; block += AT_ONCE * LANES) {
        unsigned finished[AT_ONCE], ended[AT_ONCE], handed[AT_ONCE], promised[AT_ONCE];
#pragma unroll
        for (unsigned i = 0; i < AT_ONCE; i++) {
            const unsigned c = block + i * LANES + lane;
            if (c < n)
                asm volatile("ld.relaxed.gpu.v4.u32 {%0, %1, %2, %3}, [%4];"
                             : "=r"(finished[i]), "=r"(ended[i]), "=r"(handed[i]), "=r"(promised[i])
                             : "l"(&s.cells[c].counters->finished) : "memory");
        }
#pragma unroll
        for (unsigned i = 0; i < AT_ONCE; i++) {
            const unsigned c = block + i * LANES + lane;
            if (c >= n) continue;
            chunks += ended[i];
            s.finished[c] = finished[i];
            s.busy[c] = handed[i] - finished[i];
            s.promised[c] = promised[i];
            in_flight |= handed[i] != finished[i];
        }
    }
    __syncwarp();
    fence();
    int deepest = -1;
    bool crowded = false;
    const unsigned status = lane == 0 ? now(&run->status) : 0;
    const bool fault = lane == 0 && now(&run->fault);
    for (unsigned block = 0; block < n; block += AT_ONCE * LANES) {
        unsigned tail[AT_ONCE], head[AT_ONCE];
#pragma unroll
        for (unsigned i = 0; i < AT_ONCE; i++) {
            const unsigned c = block + i * LANES + lane;
            tail[i] = c < n ? now(&s.cells[c].counters->tail) : 0;
            head[i] = c < n ? now(&s.cells[c].counters->head) : 0;
        }
#pragma unroll
        for (unsigned i = 0; i < AT_ONCE; i++) {
            const unsigned c = block + i * LANES + lane;
            if (c >= n) continue;
            s.tail[c] = tail[i];
            s.head[c] = head[i];
            if (tail[i] != s.finished[c]) deepest = max(deepest, (int)s.cells[c].depth);
            // One CTA frees a channel's elements: all at once, or as far as they are done.
            if (c % gridDim.x != blockIdx.x || head[i] == s.finished[c]) continue;
            if (tail[i] == s.finished[c]) {
                s.head[c] = tail[i];
                set(&s.cells[c].counters->head, tail[i]);
            } else {
                crowded |= !s.busy[c] || tail[i] - head[i] > s.cells[c].width / 2;
            }
        }
    }
    __syncwarp();
    if (any_of(crowded)) {
        for (unsigned c = blockIdx.x; c < n; c += gridDim.x)
            if (s.head[c] != s.finished[c] && (!s.busy[c] || s.tail[c] - s.head[c] > s.cells[c].width / 2))
                free_done(s, c, s.tail[c]);
    }
    const unsigned flags = any_of(in_flight | fault << 1 | status << 2);
    return SmLook{largest(deepest), (flags & 1) != 0, flags >> 2, (flags & 2) != 0, total(chunks)};
}

// Whether nothing of some channels was in flight from the look until now: all that were ever handed out were done then.
WL_FN bool was_quiet(const Shared& s, unsigned cell) {
    return now(&s.cells[cell].counters->handed) == s.finished[cell];
}

// The end of the own elements that may be handed out.
WL_FN unsigned end_of(const Shared& s, unsigned cell) {
    const unsigned tail = s.tail[cell], window = s.head[cell] + s.cells[cell].window;
    return (int)(tail - window) > 0 ? window : tail;
}

// As `may_start`. Of continuations, only those of which `feeders_were_quiet` is true as well.
WL_FN bool may_start_own(const Shared& s, unsigned cell, int deepest) {
    return (int)(end_of(s, cell) - s.next[cell]) > 0 && (!s.cells[cell].after_sync || deepest <= (int)s.cells[cell].depth);
}

// Whether all continuations that were seen come from elements that were done before everything deeper was: a scheduler may
// have handed out others since, but what these put was not seen.
WL_FN bool feeders_were_quiet(const Shared& s, unsigned cell) {
    const Cell& c = s.cells[cell];
    fence();
    bool quiet = true;
    for (unsigned i = c.feeders + lane_of(); i < c.feeders_end; i += LANES) quiet &= was_quiet(s, s.feeds[i].cell);
    return !any_of(!quiet);
}

// Claims room for what so many elements of a channel may put. Returns for how many there is room.
WL_FN unsigned claim_room(const Shared& s, unsigned cell, unsigned count) {
    const Cell& c = s.cells[cell];
    // Only if there seems to be room: claims that come to nothing hinder others meanwhile.
    unsigned fits = count;
    for (unsigned i = c.feeds + lane_of(); i < c.feeds_end; i += LANES) {
        const unsigned to = s.feeds[i].cell, used = s.tail[to] - s.head[to] + s.promised[to], width = s.cells[to].width;
        fits = min(fits, used < width ? (width - used) / s.feeds[i].most : 0);
    }
    count = least(fits);
    if (!count || c.feeds == c.feeds_end) return count;
    fits = count;
    for (unsigned i = c.feeds + lane_of(); i < c.feeds_end; i += LANES) {
        Counters* to = s.cells[s.feeds[i].cell].counters;
        const unsigned promised = atomicAdd(&to->promised, count * s.feeds[i].most);
        fence();
        const unsigned tail = now(&to->tail), used = tail - now(&to->head) + promised;
        const unsigned width = s.cells[s.feeds[i].cell].width;
        fits = min(fits, used < width ? (width - used) / s.feeds[i].most : 0);
    }
    fits = least(fits);
    for (unsigned i = c.feeds + lane_of(); i < c.feeds_end; i += LANES) {
        const unsigned most = s.feeds[i].most;
        s.promised[s.feeds[i].cell] += fits * most;
        if (fits < count) atomicAdd(&s.cells[s.feeds[i].cell].counters->promised, (fits - count) * most);
    }
    __syncwarp();
    return fits;
}

// Hands out chunks of own elements of a channel; `places` and `idle` as for `hand_out`. A lane has the piece of a chunk.
WL_FN unsigned hand_out_own(const Shared& s, unsigned cell, unsigned pushed, unsigned places, int idle) {
    const unsigned lane = lane_of(), stride = gridDim.x * LANES;
    const unsigned first = s.next[cell], end = end_of(s, cell);
    const unsigned begin = lane ? (first & -LANES) + lane * stride : first, chunk_end = (begin & -LANES) + LANES;
    const bool some = (int)(end - begin) > 0, whole = (int)(end - chunk_end) >= 0;
    unsigned chunks = __popc(__ballot_sync(~0u, whole));
    if (__any_sync(~0u, some && !whole) && (int)chunks < idle) chunks++;
    chunks = min(chunks, places);
    unsigned count = lane < chunks ? (whole ? chunk_end : end) - begin : 0;
    const unsigned admitted = claim_room(s, cell, total(count));
    if (!admitted) return 0;
    // All before a lane's piece: the rest of the first chunk, and whole ones.
    const unsigned before = lane ? LANES - first % LANES + (lane - 1) * LANES : 0;
    count = before < admitted ? min(count, admitted - before) : 0;
    const unsigned last = 31 - __clz(__ballot_sync(~0u, count != 0));
    if (lane == last) {
        const unsigned next = begin + count;
        s.next[cell] = next == chunk_end ? chunk_end - LANES + stride : next;
        s.busy[cell] += admitted;
        asm volatile("red.add.u32 [%0], %1;" ::"l"(&s.cells[cell].counters->handed), "r"(admitted) : "memory");
    }
    __syncwarp();
    // The worker's own fence comes behind this, so that whoever sees what the chunk puts sees that it was handed out.
    __threadfence_block();
    if (count) set(sm_ring + (pushed + lane) % SM_PLACES, chunk_of(cell, begin, count));
    __syncwarp();
    return last + 1;
}

// Whether nothing can be handed out any more though elements wait: nothing was in flight from the look until now, the
// channels are freed as far as they can be, and no elements that may start have room for what they put.
WL_FN bool is_stuck(const Shared& s, unsigned n, int deepest) {
    fence();
    bool moves = false;
    for (unsigned c = lane_of(); c < n; c += LANES) {
        const Channel* channel = s.channels + s.cells[c].channel;
        const unsigned head = s.head[c];
        const bool frees = head != s.tail[c] && now(entry_of(channel, head)) == (entry_turn(channel, head) | DONE);
        bool starts = s.tail[c] != s.finished[c] && (!s.cells[c].after_sync || deepest <= (int)s.cells[c].depth);
        for (unsigned i = s.cells[c].feeds; i < s.cells[c].feeds_end; i++) {
            const unsigned to = s.feeds[i].cell;
            starts &= s.cells[to].width - (s.tail[to] - s.head[to]) >= s.feeds[i].most;
        }
        moves |= !was_quiet(s, c) || frees || starts;
    }
    return !any_of(moves);
}

WL_FN void schedule_own(Run* run, const Shared& s, unsigned workers) {
    const unsigned n = run->cell_count, lane = lane_of(), most_waiting = workers / 2 + 1;
    unsigned pushed = 0, rounds = 0, status = RUNNING;
    SmLook seen;
    for (;; rounds++) {
        seen = look_around(run, s);
        status = seen.status;
        if (status != RUNNING) break;
        const unsigned waiting = pushed - now(&sm_ended), before = pushed;
        int idle = (int)(workers - waiting);
        // A worker may not have emptied the place yet from which it took a chunk long ago.
        const unsigned full = __ballot_sync(~0u, now(sm_ring + (pushed + lane) % SM_PLACES) != 0);
        unsigned places = min(workers + most_waiting - waiting, full ? __ffs(full) - 1 : SM_PLACES);
        for (int block = (n - 1) / LANES; block >= 0; block--) {
            const unsigned mine = block * LANES + lane;
            unsigned ready = __ballot_sync(~0u, mine < n && may_start_own(s, mine, seen.deepest));
            while (ready && places) {
                const unsigned which = LANES - 1 - __clz(ready);
                ready &= ~(1u << which);
                const unsigned cell = block * LANES + which;
                if (s.cells[cell].after_sync && !feeders_were_quiet(s, cell)) continue;
                const unsigned chunks = hand_out_own(s, cell, pushed, places, idle);
                pushed += chunks;
                places -= chunks;
                idle -= chunks;
            }
        }
        // The first scheduler ends the run for all.
        if (blockIdx.x) continue;
        if (seen.fault) status = NO_ROOM;
        else if (seen.deepest < 0) status = FINISHED;
        else if (!seen.in_flight && pushed == before && is_stuck(s, n, seen.deepest)) status = STUCK;
        if (status == RUNNING) continue;
        __syncwarp();
        if (lane == 0) set(&run->status, status);
        break;
    }
    // Nothing is in flight, or the result will be refused.
    fence();
    sm_ring[lane] = STOP;
    unsigned elements = 0;
    for (unsigned c = lane; c < n; c += LANES) {
        elements += s.finished[c];
        // For the host's audit: everything that was reserved was made ready, and is free.
        if (c % gridDim.x != blockIdx.x) continue;
        const unsigned tail = now(&s.cells[c].counters->tail);
        s.cells[c].counters->ready = tail;
        if (status == FINISHED) s.cells[c].counters->head = tail;
    }
    elements = total(elements);
    if (blockIdx.x == 0 && lane == 0) {
        run->rounds = rounds;
        run->chunks = seen.chunks;
        run->elements = elements;
    }
}

template <auto... KERNELS> WL_FN void work_for_own(const Shared& s) {
    for (;;) {
        const u64 chunk = next_chunk(sm_ring, SM_PLACES - 1, &sm_claimed);
        if (chunk == STOP) return;
        const Cell& cell = s.cells[chunk >> 8 & 0xffffff];
        const unsigned count = chunk & 0xff;
        run_chunk<KERNELS...>(cell, s.constants, chunk >> 32, count);
        // Behind the chunk's fence.
        for (unsigned i = cell.feeds + lane_of(); i < cell.feeds_end; i += LANES)
            asm volatile("red.add.u32 [%0], %1;" ::"l"(&s.cells[s.feeds[i].cell].counters->promised),
                         "r"(-count * s.feeds[i].most) : "memory");
        if (lane_of() == 0) atomicAdd(&sm_ended, 1u);
    }
}

// The persistent kernel with a scheduler per CTA. All its CTAs must be resident together.
template <auto... KERNELS> WL_FN void run_per_sm(Run* run) {
    if (threadIdx.x < SM_PLACES) sm_ring[threadIdx.x] = 0;
    if (threadIdx.x == 0) sm_claimed = sm_ended = 0;
    const Shared s = shared_of(run);
    if (threadIdx.x < LANES) {
        // The first chunk of a channel goes to another CTA than that of the channel before it.
        for (unsigned c = lane_of(); c < run->cell_count; c += LANES)
            s.next[c] = (blockIdx.x + gridDim.x - c % gridDim.x) % gridDim.x * LANES;
        __syncwarp();
        schedule_own(run, s, blockDim.x / LANES - 1);
    } else {
        work_for_own<KERNELS...>(s);
    }
}
