// The programs of docs/channels.md as people write them today, to compare with the persistent kernel of `on=cuda`:
//   launch  a grid of one thread per task, launched by the thread that spawns it (dynamic parallelism)
//   levels  the host launches a grid for all tasks that are ready, reads how many they have spawned, and repeats
//   while   the same loop as a CUDA graph with a while node, without the host
// Joins are counters: the thread that ends the last task of a frame goes on with what follows, in place.
//
// examples/flow/build.sh builds it. Then: compare PROGRAM FORM [SIZE [SIZE2]], for example `compare fibonacci levels 24`.
#define FLOW_GPU
#include "../../kernels/flow/channel.cuh"
#undef FLOW_MAIN
#define FLOW_MAIN(...)
#include "../../kernels/flow/queens.cu"
#include "../../kernels/flow/sort.cu"
#include "../../kernels/flow/tree.cu"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        const cudaError_t error = (call);                                                          \
        if (error != cudaSuccess) {                                                                \
            std::printf("FAILED %s: %s\n", #call, cudaGetErrorString(error));                      \
            std::exit(1);                                                                          \
        }                                                                                          \
    } while (0)

constexpr unsigned NOBODY = ~0u, THREADS = 256, MOST_CHILDREN = 16;

enum Kind : unsigned { FIB, FIB_SUM, QUEENS, QUEENS_SUM, SORT, SORT_QUARTERS, SORT_HALVES, MERGE, MERGE_BACK, JOIN, VISIT };

// What to do, with up to five numbers, and the frame that waits for it.
struct Task {
    Kind kind;
    unsigned frame, slot;
    unsigned a[5];
};

// What follows a sync: a task, once no result is missing.
struct Frame {
    unsigned missing, children;
    Task then;
    unsigned results[MOST_CHILDREN];
};

struct Queue {
    Task* tasks;
    unsigned count;
};

enum Form { LAUNCH, LEVELS, WHILE };

struct State {
    Queue queues[2];  // LEVELS and WHILE: this round's and the next one's; LAUNCH: all tasks ever
    unsigned now;     // which queue is this round's
    Frame* frames;
    unsigned frame_count, most_frames, most_tasks;
    unsigned blocks_done;
    unsigned overflow;
    unsigned result;
    // Inputs.
    unsigned n, serial;
    unsigned *values, *other;
    unsigned children, inner;
};

__global__ void run_launched(State* state, unsigned first, unsigned count);

// Takes `count` adjacent numbers for each lane from a counter, with one addition for the lanes that are together.
__device__ unsigned take(unsigned* counter, unsigned count) {
    const unsigned lanes = together(), leader = __ffs(lanes) - 1;
    unsigned all, base = 0;
    const unsigned offset = prefix_sum(lanes, count, all);
    if (lane_of() == leader) base = atomicAdd(counter, all);
    return __shfl_sync(lanes, base, leader) + offset;
}

template <Form FORM> struct Context {
    State* state;

    __device__ unsigned frame(unsigned children, const Task& then) const {
        const unsigned at = take(&state->frame_count, 1);
        if (at >= state->most_frames) {
            state->overflow = 1;
            return NOBODY;
        }
        state->frames[at].missing = state->frames[at].children = children;
        state->frames[at].then = then;
        return at;
    }

    // Spawns `count` tasks; `make(i)` is one of them.
    template <class Make> __device__ void spawn(unsigned count, Make make) const {
        Queue* queue = &state->queues[FORM == LAUNCH ? 0 : state->now ^ 1];
        const unsigned first = take(&queue->count, count);
        if (first + count > state->most_tasks) {
            state->overflow = 1;
            return;
        }
        for (unsigned i = 0; i < count; i++) queue->tasks[first + i] = make(i);
        if (FORM == LAUNCH) {
            __threadfence();
            run_launched<<<1, count, 0, cudaStreamFireAndForget>>>(state, first, count);
            if (cudaPeekAtLastError() != cudaSuccess) state->overflow = 2;
        }
    }

    // The result of a task. True if its frame is complete: `task` becomes what follows.
    __device__ bool finish(Task& task, unsigned value) const {
        if (task.frame == NOBODY) {
            state->result = value;
            return false;
        }
        Frame& frame = state->frames[task.frame];
        frame.results[task.slot] = value;
        __threadfence();
        if (atomicSub(&frame.missing, 1u) != 1) return false;
        __threadfence();
        const unsigned of = task.frame;
        task = frame.then;
        task.a[4] = of;  // whose results it reads
        return true;
    }

    // Runs a task. True if another one follows in place.
    __device__ bool step(Task& task) const {
        const unsigned* a = task.a;
        const volatile unsigned* results = state->frames[a[4] < state->most_frames ? a[4] : 0].results;
        switch (task.kind) {
        case FIB: {
            if (a[0] <= 2) return finish(task, 1);
            const unsigned n = a[0], f = frame(2, Task{FIB_SUM, task.frame, task.slot});
            spawn(2, [&](unsigned i) { return Task{FIB, f, i, {n - 1 - i}}; });
            return false;
        }
        case FIB_SUM: return finish(task, results[0] + results[1]);
        case QUEENS: {
            const Board board{a[0], a[1], a[2]};
            const unsigned row = a[3], rows = state->n - row;
            unsigned open = open_columns(board, state->n);
            const unsigned count = __popc(open);
            if (rows <= state->serial) return finish(task, solve(board, state->n, rows));
            if (!open) return finish(task, 0);
            const unsigned f = frame(count, Task{QUEENS_SUM, task.frame, task.slot});
            spawn(count, [&](unsigned i) {
                const unsigned column = open & -open;
                open ^= column;
                const Board next = place(board, column);
                return Task{QUEENS, f, i, {next.columns, next.left, next.right, row + 1}};
            });
            return false;
        }
        case QUEENS_SUM: {
            unsigned sum = 0;
            for (unsigned i = 0; i < state->frames[a[4]].children; i++) sum += results[i];
            return finish(task, sum);
        }
        case SORT: {
            const unsigned first = a[0], count = a[1], quarter = count / 4;
            if (count <= state->serial) {
                if (count) sort_alone(state->values + first, count);
                return finish(task, 0);
            }
            const unsigned f = frame(4, Task{SORT_QUARTERS, task.frame, task.slot, {first, count}});
            spawn(4, [&](unsigned i) {
                return Task{SORT, f, i, {first + i * quarter, i == 3 ? count - 3 * quarter : quarter}};
            });
            return false;
        }
        case SORT_QUARTERS: {
            const unsigned first = a[0], count = a[1], quarter = count / 4;
            const unsigned f = frame(2, Task{SORT_HALVES, task.frame, task.slot, {first, count}});
            spawn(2, [&](unsigned i) {
                const unsigned at = first + 2 * i * quarter;
                return Task{MERGE, f, i, {at, at + quarter, at, quarter, i ? count - 3 * quarter : quarter}};
            });
            return false;
        }
        case SORT_HALVES: {
            const unsigned first = a[0], count = a[1], half = count / 4 * 2, f = task.frame, slot = task.slot;
            spawn(1, [&](unsigned) {
                return Task{MERGE_BACK, f, slot, {first, first + half, first, half, count - half}};
            });
            return false;
        }
        case MERGE:
        case MERGE_BACK: {
            unsigned x = a[0], y = a[1], out = a[2], x_count = a[3], y_count = a[4];
            if (x_count < y_count) {
                x = a[1], y = a[0];
                x_count = a[4], y_count = a[3];
            }
            const unsigned* from = task.kind == MERGE ? state->values : state->other;
            unsigned* to = task.kind == MERGE ? state->other : state->values;
            if (y_count < state->serial) {
                merge_alone(::Merge{from + x, from + y, to + out, x_count, y_count});
                return finish(task, 0);
            }
            const unsigned x_split = x_count / 2, middle = from[x + x_split];
            unsigned y_split = 0, end = y_count;
            while (y_split < end) {
                const unsigned probe = (y_split + end) / 2;
                if (from[y + probe] < middle) y_split = probe + 1;
                else end = probe;
            }
            const Kind kind = task.kind;
            const unsigned f = frame(2, Task{JOIN, task.frame, task.slot});
            spawn(2, [&](unsigned i) {
                if (!i) return Task{kind, f, i, {x, y, out, x_split, y_split}};
                return Task{kind, f, i,
                            {x + x_split, y + y_split, out + x_split + y_split, x_count - x_split, y_count - y_split}};
            });
            return false;
        }
        case JOIN: return finish(task, 0);
        case VISIT: {
            const u64 node = (u64)a[1] << 32 | a[0];
            tally(&state->result);
            if (a[1] < state->inner) {
                spawn(state->children, [&](unsigned i) {
                    const u64 child = child_of(node, i);
                    return Task{VISIT, NOBODY, 0, {(unsigned)child, (unsigned)(child >> 32)}};
                });
            }
            return false;
        }
        }
        return false;
    }

    __device__ void run(Task task) const {
        while (step(task)) {}
    }
};

__global__ void run_launched(State* state, unsigned first, unsigned count) {
    if (threadIdx.x < count) Context<LAUNCH>{state}.run(state->queues[0].tasks[first + threadIdx.x]);
}

__global__ void run_level(State* state, unsigned count) {
    const unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count) Context<LEVELS>{state}.run(state->queues[state->now].tasks[at]);
}

__global__ void swap_queues(State* state) {
    state->queues[state->now].count = 0;
    state->now ^= 1;
}

// A round of the while node. The last block of all swaps the queues and decides about another round.
__global__ void run_round(State* state, cudaGraphConditionalHandle more) {
    const unsigned count = state->queues[state->now].count;
    for (unsigned at = blockIdx.x * blockDim.x + threadIdx.x; at < count; at += gridDim.x * blockDim.x)
        Context<WHILE>{state}.run(state->queues[state->now].tasks[at]);
    __syncthreads();
    if (threadIdx.x) return;
    __threadfence();
    if (atomicAdd(&state->blocks_done, 1u) != gridDim.x - 1) return;
    __threadfence();
    state->blocks_done = 0;
    state->queues[state->now].count = 0;
    state->now ^= 1;
    const unsigned next = *(volatile unsigned*)&state->queues[state->now].count;
    cudaGraphSetConditional(more, next > 0 && !state->overflow);
}

struct Input {
    std::vector<Task> tasks;
    std::vector<unsigned> values;
    State state{};
};

// The random words of `warploom work` with seed=1.
static unsigned random_word(u64& seed) {
    u64 hash = seed += 0x9e3779b97f4a7c15ull;
    hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9ull;
    hash = (hash ^ hash >> 27) * 0x94d049bb133111ebull;
    return (hash ^ hash >> 31) >> 32;
}

int main(int argc, char** argv) {
    if (argc < 3) return std::printf("compare PROGRAM FORM [SIZE [SIZE2]]\n"), 2;
    const char *program = argv[1], *form = argv[2];
    const auto number = [&](int at, unsigned otherwise) { return argc > at ? (unsigned)std::atoll(argv[at]) : otherwise; };
    Input input;
    input.state.most_frames = 1 << 22;
    input.state.most_tasks = std::strcmp(form, "launch") ? 1 << 22 : 1 << 24;
    u64 seed = 1;
    if (!std::strcmp(program, "fibonacci")) {
        input.tasks = {Task{FIB, NOBODY, 0, {number(3, 24)}}};
    } else if (!std::strcmp(program, "queens")) {
        input.state.n = number(3, 12);
        input.state.serial = number(4, 4);
        input.tasks = {Task{QUEENS, NOBODY, 0, {0, 0, 0, 0}}};
    } else if (!std::strcmp(program, "sort")) {
        input.values.resize(number(3, 1000000));
        input.state.serial = number(4, 64);
        for (unsigned& value : input.values) value = random_word(seed);
        input.tasks = {Task{SORT, NOBODY, 0, {0, (unsigned)input.values.size()}}};
    } else if (!std::strcmp(program, "tree")) {
        input.state.children = 8;
        input.state.inner = (u64)number(4, 124000) * 0xffffffffu / 1000000;
        for (unsigned i = 0; i < number(3, 10000); i++) {
            const unsigned low = random_word(seed), high = random_word(seed);
            input.tasks.push_back(Task{VISIT, NOBODY, 0, {low, high}});
        }
    } else {
        return std::printf("no program `%s`\n", program), 2;
    }

    State host = input.state, *state;
    CHECK(cudaMalloc(&state, sizeof(State)));
    for (Queue& queue : host.queues) CHECK(cudaMalloc(&queue.tasks, sizeof(Task) * host.most_tasks));
    CHECK(cudaMalloc(&host.frames, sizeof(Frame) * host.most_frames));
    const size_t bytes = sizeof(unsigned) * std::max<size_t>(input.values.size(), 1);
    CHECK(cudaMalloc(&host.values, bytes));
    CHECK(cudaMalloc(&host.other, bytes));
    host.queues[0].count = input.tasks.size();

    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    int sms = 0;
    CHECK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
    if (!std::strcmp(form, "launch")) CHECK(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 1 << 18));
    cudaGraphExec_t loop = nullptr;
    if (!std::strcmp(form, "while")) {
        cudaGraph_t graph;
        CHECK(cudaGraphCreate(&graph, 0));
        cudaGraphConditionalHandle more;
        CHECK(cudaGraphConditionalHandleCreate(&more, graph, 1, cudaGraphCondAssignDefault));
        cudaGraphNodeParams node = {cudaGraphNodeTypeConditional};
        node.conditional.handle = more;
        node.conditional.type = cudaGraphCondTypeWhile;
        node.conditional.size = 1;
        cudaGraphNode_t at;
        CHECK(cudaGraphAddNode(&at, graph, nullptr, nullptr, 0, &node));
        cudaGraphNodeParams body = {cudaGraphNodeTypeKernel};
        void* arguments[] = {&state, &more};
        body.kernel.func = (void*)run_round;
        body.kernel.gridDim = dim3(sms * 4);
        body.kernel.blockDim = dim3(THREADS);
        body.kernel.kernelParams = arguments;
        CHECK(cudaGraphAddNode(&at, node.conditional.phGraph_out[0], nullptr, nullptr, 0, &body));
        CHECK(cudaGraphInstantiate(&loop, graph, 0));
    }

    std::vector<double> times;
    unsigned rounds = 0;
    State end;
    for (int repeat = 0; repeat < 6; repeat++) {
        CHECK(cudaMemcpy(state, &host, sizeof(State), cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy(host.queues[0].tasks, input.tasks.data(), sizeof(Task) * input.tasks.size(),
                         cudaMemcpyHostToDevice));
        if (!input.values.empty())
            CHECK(cudaMemcpy(host.values, input.values.data(), bytes, cudaMemcpyHostToDevice));
        CHECK(cudaDeviceSynchronize());
        const auto begun = std::chrono::steady_clock::now();
        rounds = 0;
        if (loop) {
            CHECK(cudaGraphLaunch(loop, stream));
        } else if (!std::strcmp(form, "launch")) {
            const unsigned count = input.tasks.size();
            for (unsigned first = 0; first < count; first += 1024)
                run_launched<<<1, std::min(1024u, count - first), 0, stream>>>(state, first, std::min(1024u, count - first));
        } else {
            static unsigned* count = nullptr;
            if (!count) CHECK(cudaMallocHost(&count, sizeof(unsigned)));
            *count = input.tasks.size();
            for (unsigned now = 0; *count; now ^= 1, rounds++) {
                if (*count > host.most_tasks) break;
                run_level<<<(*count + THREADS - 1) / THREADS, THREADS, 0, stream>>>(state, *count);
                CHECK(cudaMemcpyAsync(count, &state->queues[now ^ 1].count, sizeof(unsigned), cudaMemcpyDeviceToHost, stream));
                swap_queues<<<1, 1, 0, stream>>>(state);
                CHECK(cudaStreamSynchronize(stream));
            }
        }
        CHECK(cudaGetLastError());
        CHECK(cudaDeviceSynchronize());
        const std::chrono::duration<double, std::milli> time = std::chrono::steady_clock::now() - begun;
        if (repeat) times.push_back(time.count());
        CHECK(cudaMemcpy(&end, state, sizeof(State), cudaMemcpyDeviceToHost));
        if (end.overflow) return std::printf("%s %s FAILED: %s\n", program, form, end.overflow == 1 ? "no room" : "a launch was refused"), 1;
    }
    if (!input.values.empty()) {
        std::vector<unsigned> sorted(input.values.size());
        CHECK(cudaMemcpy(sorted.data(), host.values, bytes, cudaMemcpyDeviceToHost));
        std::sort(input.values.begin(), input.values.end());
        end.result = sorted == input.values;
    }
    std::sort(times.begin(), times.end());
    std::printf("%s %s result %u median %.3f ms least %.3f ms frames %u rounds %u\n", program, form, end.result,
                times[times.size() / 2], times[0], end.frame_count, rounds);
}
