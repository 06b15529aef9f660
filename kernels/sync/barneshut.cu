// Two steps of a Barnes-Hut simulation: building the octree of the bodies (TB), and sorting the bodies by the tree (ST).
// Flags: -mllvm -disable-block-placement
#include "../warploom.cuh"

// Nodes 0 .. bodies-1 are the bodies, those from there to `root` the cells; a parent has a higher number than its children.
// children[8 * (cell - bodies) + octant] is a node or one of these.
const unsigned NONE = ~0u, LOCKED = ~0u - 1;

struct Tree {
    unsigned lowest;  // the lowest cell in use
    unsigned full;    // a cell was needed when none was left
};

// The octant of a cell that a body is in. Moves x, y, z to the octant's middle, half its side in each direction.
static __device__ __forceinline__ unsigned octant(float4 body, float x, float y, float z) {
    return (x < body.x ? 1 : 0) | (y < body.y ? 2 : 0) | (z < body.z ? 4 : 0);
}
static __device__ __forceinline__ void enter(unsigned which, float half, float& x, float& y, float& z) {
    x += which & 1 ? half : -half;
    y += which & 2 ? half : -half;
    z += which & 4 ? half : -half;
}

// Inserts all bodies into the tree, which has only its root: a cell without children around (0, 0, 0) that extends `reach`
// in each direction. A child that is a body or NONE is the lock of its place: the thread that swaps it for LOCKED owns it.
extern "C" __global__ void barneshut_build(const float4* positions, unsigned bodies, volatile unsigned* children,
                                           unsigned root, float reach, Tree* tree) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, stride = gridDim.x * blockDim.x;
    const unsigned cells = LOCKED - bodies;  // only for cells is node - bodies below this
    unsigned cell = root, which = 0, more = i < bodies;
    float x = 0, y = 0, z = 0, half = 0.5f * reach;
    float4 body = make_float4(0, 0, 0, 0);
    if (more) {
        body = positions[i];
        which = octant(body, x, y, z);
    }
    // The barrier keeps warps that failed to get their lock from retrying before the others have done their work.
    while (__syncthreads_or(more)) {
        if (more) {
            // Descend to the first node that is no cell. After a failure the descent continues where it ended.
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
                        // Add cells until the two bodies part. Nobody sees them before the first one is put in its place.
                        float4 other = positions[child];
                        unsigned above = NONE, above_which = 0, mine = which, its = which;
                        do {
                            unsigned added = atomicAdd(&tree->lowest, ~0u) - 1;
                            // Below the lowest cell the count runs into the bodies, and further down it wraps.
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
        // One common way back for threads that got their lock and those that did not.
        asm volatile(".pragma \"warploom.sib\";" : "+r"(more));
    }
}

// sorted[..] = the bodies in the order of the tree's leaves. counts[cell - bodies] is the number of bodies below a cell,
// starts[cell - bodies] where they go: initially 0 for the root and ~0 for the others. A thread waits for its cell's start,
// which the parent's thread sets. The whole grid must be resident.
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
        // Keeps waiting and working threads in the same loop.
        asm volatile(".pragma \"warploom.sib\";" : "+r"(cell));
    }
}
