// A test of graphs: an element puts a number of others into up to two channels, as its hash says, while it has a life left.
#include "channel.cuh"

struct Spark {
    unsigned hash, life;
};

WL_FN unsigned mixed(unsigned hash) {
    hash = (hash ^ hash >> 16) * 0x7feb352du;
    hash = (hash ^ hash >> 15) * 0x846ca68bu;
    return hash ^ hash >> 16;
}

// Where sparks go: nowhere, to the same level of a stack, or to the next one if there is one.
enum Way { NOWHERE, SAME, NEXT };

WL_FN void fly(const Work& work, const Spark& spark, Channel* stack, unsigned way, unsigned most, unsigned salt) {
    Channel* to = stack + work.level + (way == NEXT);
    const unsigned count = way == NOWHERE || !spark.life ? 0 : mixed(spark.hash + salt) % (most + 1);
    put(to, count, [&](unsigned at) {
        for (unsigned i = 0; i < count; i++)
            write(to, at + i, Spark{mixed(spark.hash * 31 + salt + i), spark.life - 1});
    });
}

// `seen`: how many sparks came by, and the sum of their hashes.
FLOW_KERNEL mesh(Work work, Channel* first, Channel* second, unsigned ways, unsigned most, unsigned levels, unsigned* seen) {
    if (!has_work(work)) return;
    const unsigned source = deq(work);
    const Spark spark = read<Spark>(work.source, source);
    atomicAdd(&seen[0], 1u);
    atomicAdd(&seen[1], spark.hash);
    const bool last = work.level + 1 == levels;
    const unsigned one = ways & 3, other = ways >> 2;
    fly(work, spark, first, one == NEXT && last ? NOWHERE : one, most & 0xff, 1);
    fly(work, spark, second, other == NEXT && last ? NOWHERE : other, most >> 8, 1000);
    tfree(work, source);
}

FLOW_MAIN(mesh)
