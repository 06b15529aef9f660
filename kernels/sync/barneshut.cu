// Two steps of a Barnes-Hut simulation: building the octree of some bodies (TB), and sorting the bodies by the tree (ST).
// Flags: -mllvm -disable-block-placement
#include "../warploom.cuh"

// Nodes 0 .. bodies-1 are the bodies, those from there on to `root` the cells, of which a parent has the higher number.
// children[8 * (cell - bodies) + octant] is a node or one of these.
const unsigned NONE = ~0u, LOCKED = ~0u - 1;

struct Tree {
    unsigned lowest;  // the lowest cell in use
    unsigned full;    // whether a cell was wanted when there was none
};

// Which octant of a cell a body is in, and the way to the octant's middle, half a side of it in each direction.
static __device__ __forceinline__ unsigned octant(float4 body, float x, float y, float z) {
    return (x < body.x ? 1 : 0) | (y < body.y ? 2 : 0) | (z < body.z ? 4 : 0);
}
static __device__ __forceinline__ void enter(unsigned which, float half, float& x, float& y, float& z) {
    x += which & 1 ? half : -half;
    y += which & 2 ? half : -half;
    z += which & 4 ? half : -half;
}

// Inserts all bodies into the tree, which has only its root, a cell without children around (0, 0, 0) that reaches `reach`
// in each direction. A child that is a body or none is the lock of that place: who swaps it for LOCKED may change it.
extern "C" __global__ void barneshut_build(const float4* positions, unsigned bodies, volatile unsigned* children,
                                           unsigned root, float reach, Tree* tree) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x;
    const unsigned cells = LOCKED - bodies;  // node - bodies is below this for cells only
    unsigned cell = root, which = 0, more = i < bodies;
    float x = 0, y = 0, z = 0, half = 0.5f * reach;
    float4 body = make_float4(0, 0, 0, 0);
    if (more) {
        body = positions[i];
        which = octant(body, x, y, z);
    }
    // The barrier keeps warps that did not get their lock from trying again before the others have done their work.
    while (__syncthreads_or(more)) {
        if (more) {
            // Down to what is no cell. After a failure the way goes on from where it ended.
            unsigned child = children[8 * (cell - bodies) + which];
            while (child - bodies < cells) {
                cell = child;
                enter(which, half, x, y, z);
                half *= 0.5f;
                which = octant(body, x, y, z);
                child = children[8 * (cell - bodies) + which];
            }
            if (child != LOCKED) {
                volatile unsigned* place = &children[8 * (cell - bodies) + which];
                asm volatile(".pragma \"warploom.lock acquire\";" ::: "memory");
                if (atomicCAS((unsigned*)place, child, LOCKED) == child) {
                    unsigned patch = i;
                    if (child != NONE) {
                        // Cells until the two bodies part. Nobody sees them before the first one is put in its place.
                        float4 other = positions[child];
                        unsigned above = NONE, above_which = 0, mine = which, its = which;
                        do {
                            unsigned added = atomicAdd(&tree->lowest, ~0u) - 1;
                            // Past the lowest cell the count goes on into the bodies, and further down it wraps.
                            if (added < bodies || added >= root) {
                                tree->full = 1;
                                break;
                            }
                            if (above == NONE) patch = added;
                            else children[8 * (above - bodies) + above_which] = added;
                            enter(mine, half, x, y, z);
                            half *= 0.5f;
                            mine = octant(body, x, y, z);
                            its = octant(other, x, y, z);
                            above = added, above_which = mine;
                        } while (mine == its);
                        if (above != NONE) {
                            children[8 * (above - bodies) + its] = child;
                            children[8 * (above - bodies) + mine] = i;
                        }
                        __threadfence();
                    }
                    *place = patch;
                    i += stride;
                    more = i < bodies;
                    if (more) {
                        body = positions[i];
                        cell = root, x = y = z = 0, half = 0.5f * reach;
                        which = octant(body, x, y, z);
                    }
                }
            }
        }
        // One way back for those who got their lock and those who did not.
        asm volatile(".pragma \"warploom.sib\";" : "+r"(more));
    }
}

// sorted[..] = the bodies in the order of the tree's leaves. counts[cell - bodies] are the bodies below a cell,
// starts[cell - bodies] where they go: 0 for the root, ~0 for the others at first. A thread waits for its cell's start,
// which the thread of the parent sets. The grid must be resident as a whole.
extern "C" __global__ void barneshut_sort(const unsigned* children, const unsigned* counts, volatile unsigned* starts,
                                          unsigned* sorted, unsigned bodies, unsigned lowest, unsigned root) {
    int cell = (int)(root - bodies) - (int)(blockIdx.x * blockDim.x + threadIdx.x);
    int stride = gridDim.x * blockDim.x, bottom = lowest - bodies;
    while (cell >= bottom) {
        asm volatile(".pragma \"warploom.lock wait\";" ::: "memory");
        unsigned start = starts[cell];
        if (start != NONE) {
#pragma unroll 1
            for (unsigned which = 0; which < 8; ++which) {
                unsigned child = children[8 * cell + which];
                if (child < bodies) {
                    sorted[start++] = child;
                } else if (child != NONE) {
                    starts[child - bodies] = start;
                    start += counts[child - bodies];
                }
            }
            cell -= stride;
        }
        // Keeps the waiting threads' loop and the working ones' the same.
        asm volatile(".pragma \"warploom.sib\";" : "+r"(cell));
    }
}
