// Travelling salesman by hill climbing: each thread improves its own tour by 2-opt moves; one lock guards the best
// result (TSP).
// Flags: -mllvm -disable-block-placement
#include "../warploom.cuh"

struct Best {
    unsigned lock, length, climber;
};

// distances[a][b] is between two of `cities` cities. tours[p][t] is the city at position p of climber t's tour, improved
// in place: each step takes the move that saves most, the first of equals, until none saves anything or after `steps`.
// lengths[t] = the tour's length. best->length, initially ~0, becomes the smallest of them and best->climber its climber.
// `lanes` is the width of a warp; dynamic shared memory: cities^2 halfwords.
extern "C" __global__ void tsp_climb(const unsigned short* distances, unsigned cities, unsigned char* tours,
                                     unsigned climbers, unsigned steps, unsigned* lengths, volatile Best* best,
                                     unsigned lanes) {
    extern __shared__ unsigned short distance[];
#pragma unroll 1
    for (unsigned i = threadIdx.x; i < cities * cities; i += blockDim.x) distance[i] = distances[i];
    __syncthreads();

    unsigned me = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned length = ~0u;
    if (me < climbers) {
        unsigned char* tour = tours + me;
#pragma unroll 1
        for (unsigned step = 0; step < steps; ++step) {
            // Replaces the edges after positions i and j by i to j and i+1 to j+1, which reverses the part of the tour between
            // them.
            int saved = 0;
            unsigned from = 0, to = 0;
            unsigned a = tour[0];
#pragma unroll 1
            for (unsigned i = 0; i + 2 < cities; ++i) {
                unsigned b = tour[(i + 1) * climbers];
                const unsigned short* from_a = distance + a * cities;
                const unsigned short* from_b = distance + b * cities;
                int edge = from_a[b];
                unsigned c = tour[(i + 2) * climbers];
#pragma unroll 1
                for (unsigned j = i + 2; j < cities; ++j) {
                    unsigned d = tour[(j + 1 < cities ? j + 1 : 0) * climbers];
                    int saves = edge + distance[c * cities + d] - from_a[c] - from_b[d];
                    if (saves > saved) saved = saves, from = i + 1, to = j;
                    c = d;
                }
                a = b;
            }
            if (saved == 0) break;
#pragma unroll 1
            for (; from < to; ++from, --to) {
                unsigned char city = tour[from * climbers];
                tour[from * climbers] = tour[to * climbers];
                tour[to * climbers] = city;
            }
        }
        length = 0;
        unsigned last = tour[(cities - 1) * climbers];
#pragma unroll 1
        for (unsigned i = 0; i < cities; ++i) {
            unsigned city = tour[i * climbers];
            length += distance[last * cities + city];
            last = city;
        }
        lengths[me] = length;
    }

    // One lane at a time: otherwise a lane that waits in the loop would keep the holder from continuing.
    unsigned lane = threadIdx.x % lanes;
#pragma unroll 1
    for (unsigned turn = 0; turn < lanes; ++turn) {
        if (lane == turn && me < climbers) {
            unsigned taken;
            do {
                taken = atomicCAS((unsigned*)&best->lock, 0, 1);
                asm volatile(".pragma \"warploom.sib\";" : "+r"(taken));
            } while (taken);
            __threadfence();
            if (length < best->length) {
                best->length = length;
                best->climber = me;
            }
            __threadfence();
            atomicExch((unsigned*)&best->lock, 0);
        }
    }
}
