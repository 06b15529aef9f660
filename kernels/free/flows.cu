// Bodies and flows: particles in boxes (lava), the flux between the cells of a mesh (CFD).
// Flags: -mllvm -disable-block-placement
#include "../warploom.cuh"

// out[p] = the sums of charge_q * exp(-a2 |d|^2), and of that times d, over the particles q of p's box and its neighbours.
// Particles are (x, y, z, charge), `each` per box, boxes in a cube of `side`. One block per box, one thread per particle.
extern "C" __global__ void lava_forces(const float4* particles, float4* out, unsigned side, unsigned each, float a2) {
    extern __shared__ float4 near[];
    unsigned box = blockIdx.x, t = threadIdx.x;
    int bx = box % side, by = box / side % side, bz = box / side / side, n = side;
    float4 me = particles[box * each + t];
    float4 sum = make_float4(0, 0, 0, 0);
#pragma unroll 1
    for (int k = 0; k < 27; ++k) {
        int x = bx + k % 3 - 1, y = by + k / 3 % 3 - 1, z = bz + k / 9 - 1;
        if (x < 0 || y < 0 || z < 0 || x >= n || y >= n || z >= n) continue;
        near[t] = particles[(unsigned)((z * n + y) * n + x) * each + t];
        __syncthreads();
#pragma unroll 1
        for (unsigned q = 0; q < each; ++q) {
            float4 other = near[q];
            float dx = other.x - me.x, dy = other.y - me.y, dz = other.z - me.z;
            float force = other.w * __nvvm_ex2_approx_f(-1.44269504f * a2 * (dx * dx + dy * dy + dz * dz));
            sum.x += force * dx, sum.y += force * dy, sum.z += force * dz, sum.w += force;
        }
        __syncthreads();
    }
    out[box * each + t] = sum;
}

const unsigned FACES = 4;
const unsigned VARIABLES = 5;  // density, momentum in three directions, energy: one array each
const float GAMMA = 1.4f;

struct State {
    float density, mx, my, mz, energy, pressure, sound;
};

static __device__ __forceinline__ State state(const float* variables, unsigned cells, unsigned i) {
    State s;
    s.density = variables[i], s.mx = variables[cells + i], s.my = variables[2 * cells + i];
    s.mz = variables[3 * cells + i], s.energy = variables[4 * cells + i];
    float kinetic = 0.5f * (s.mx * s.mx + s.my * s.my + s.mz * s.mz) / s.density;
    s.pressure = (GAMMA - 1.0f) * (s.energy - kinetic);
    s.sound = __nvvm_sqrt_rn_f(GAMMA * s.pressure / s.density);
    return s;
}

// One step: updated = variables - rate * the flux through the faces: the mean of both sides, and a part of their
// difference. neighbours[f][i] is the cell behind face f of cell i, normals[3 f + axis][i] the face's direction. A face
// without a neighbour borders on the cell itself.
extern "C" __global__ void cfd_step(const float* variables, const unsigned* neighbours, const float* normals,
                                    float* updated, unsigned cells, float rate) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= cells) return;
    State me = state(variables, cells, i);
    float flux[VARIABLES] = {0, 0, 0, 0, 0};
#pragma unroll 1
    for (unsigned f = 0; f < FACES; ++f) {
        unsigned j = neighbours[f * cells + i];
        State it = state(variables, cells, j < cells ? j : i);
        float nx = normals[(3 * f) * cells + i], ny = normals[(3 * f + 1) * cells + i], nz = normals[(3 * f + 2) * cells + i];
        float mine = (me.mx * nx + me.my * ny + me.mz * nz) / me.density;
        float its = (it.mx * nx + it.my * ny + it.mz * nz) / it.density;
        float drag = 0.25f * (me.sound + it.sound);
        flux[0] += 0.5f * (mine * me.density + its * it.density) + drag * (me.density - it.density);
        flux[1] += 0.5f * (mine * me.mx + its * it.mx + nx * (me.pressure + it.pressure)) + drag * (me.mx - it.mx);
        flux[2] += 0.5f * (mine * me.my + its * it.my + ny * (me.pressure + it.pressure)) + drag * (me.my - it.my);
        flux[3] += 0.5f * (mine * me.mz + its * it.mz + nz * (me.pressure + it.pressure)) + drag * (me.mz - it.mz);
        flux[4] += 0.5f * (mine * (me.energy + me.pressure) + its * (it.energy + it.pressure)) +
                   drag * (me.energy - it.energy);
    }
    for (unsigned v = 0; v < VARIABLES; ++v) updated[v * cells + i] = variables[v * cells + i] - rate * flux[v];
}
