// Distance solver of a cloth: threads move both ends of a link towards its length, one spin lock per particle (DS).
// Flags: -mllvm -disable-block-placement
#include "../warploom.cuh"

struct Link {
    unsigned a, b;
    float length;
};

// Position, and how many links have moved it.
struct __attribute__((aligned(16))) Particle {
    float x, y, z;
    unsigned moves;
};

// Each link moves both of its particles by the same distance, which removes `stiffness` of its error. Any order is valid.
// locks[p] is 0 when particle p is free; `a` and `b` must differ.
extern "C" __global__ void cloth_solve(const Link* links, unsigned count, volatile Particle* particles, unsigned* locks,
                                       float stiffness) {
#pragma unroll 1
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        unsigned a = links[i].a, b = links[i].b;
        float length = links[i].length;
        unsigned* first = &locks[min(a, b)];
        unsigned* second = &locks[max(a, b)];
        volatile Particle *p = &particles[a], *q = &particles[b];
        unsigned done = 0;
        while (!done) {
            if (atomicCAS(first, 0, 1) == 0) {
                if (atomicCAS(second, 0, 1) == 0) {
                    __threadfence();
                    float px = p->x, py = p->y, pz = p->z, qx = q->x, qy = q->y, qz = q->z;
                    float dx = qx - px, dy = qy - py, dz = qz - pz;
                    float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + 1e-12f);
                    float share = 0.5f * stiffness * (1.0f - length * inverse);
                    p->x = px + share * dx, p->y = py + share * dy, p->z = pz + share * dz;
                    q->x = qx - share * dx, q->y = qy - share * dy, q->z = qz - share * dz;
                    p->moves = p->moves + 1;
                    q->moves = q->moves + 1;
                    done = 1;
                    __threadfence();
                    atomicExch(second, 0);
                }
                atomicExch(first, 0);
            }
            asm volatile(".pragma \"warploom.sib\";" : "+r"(done));
        }
    }
}
