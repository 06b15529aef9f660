// Visits all nodes of an unbalanced tree: a node has `children` children or none, by a hash of the path to it. Nobody can
// tell how large a subtree is before it is visited.
// Forms: steps
#include "channel.cuh"

WL_FN u64 child_of(u64 node, unsigned number) {
    u64 hash = node + (number + 1) * 0x9e3779b97f4a7c15ull;
    hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9ull;
    hash = (hash ^ hash >> 27) * 0x94d049bb133111ebull;
    return hash ^ hash >> 31;
}

// A node whose upper half is below `inner` has children.
FLOW_KERNEL visit(Work work, Channel* nodes, unsigned* visited, unsigned children, unsigned inner) {
    if (!has_work(work)) return;
    const unsigned source = deq(work);
    const u64 node = read<u64>(work.source, source);
    tally(visited);
    if ((unsigned)(node >> 32) < inner) {
        put(nodes, children, [&](unsigned at) {
            for (unsigned i = 0; i < children; i++) write(nodes, at + i, child_of(node, i));
        });
    }
    tfree(work, source);
}

FLOW_MAIN(visit)
