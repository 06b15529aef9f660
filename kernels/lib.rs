//! The kernels that come with Warploom, as text: CUDA sources, the PTX built from them, and listings. `README.md`
//! says what each kernel expects and computes. The corpus of other compilers' PTX is for tests only and is not among
//! them.
//!
//! ```
//! let ptx: &str = warploom_kernels::text!("vecadd.ptx");
//! assert!(ptx.contains(".entry vecadd"));
//! ```

macro_rules! files {
    ($($path:literal,)*) => {
        &[$(($path, include_str!($path))),*]
    };
}

/// Every file with its text, sorted by path.
pub const FILES: &[(&str, &str)] = files![
    "bfs.cu",
    "bfs.ptx",
    "bitonic.cu",
    "bitonic.ptx",
    "chain.ptx",
    "chain_bits.ptx",
    "dpoly.cu",
    "dpoly.ptx",
    "flow/channel.cuh",
    "flow/fibonacci.cu",
    "flow/fibonacci.ptx",
    "flow/fibonacci_main.cu",
    "flow/fibonacci_main.ptx",
    "flow/gpu/fibonacci.ptx",
    "flow/gpu/fibonacci_main.ptx",
    "flow/gpu/mesh.ptx",
    "flow/gpu/queens.ptx",
    "flow/gpu/relay.ptx",
    "flow/gpu/sort.ptx",
    "flow/gpu/strassen.ptx",
    "flow/gpu/strassen_vector.ptx",
    "flow/gpu/tree.ptx",
    "flow/mesh.cu",
    "flow/mesh.ptx",
    "flow/per_sm.cuh",
    "flow/persistent.cuh",
    "flow/queens.cu",
    "flow/queens.cuh",
    "flow/queens.ptx",
    "flow/queens_flat.cu",
    "flow/queens_flat.ptx",
    "flow/relay.cu",
    "flow/relay.ptx",
    "flow/sort.cu",
    "flow/sort.ptx",
    "flow/steps/fibonacci.ptx",
    "flow/steps/fibonacci_main.ptx",
    "flow/steps/queens.ptx",
    "flow/steps/sort.ptx",
    "flow/steps/strassen.ptx",
    "flow/steps/strassen_vector.ptx",
    "flow/steps/tree.ptx",
    "flow/strassen.cu",
    "flow/strassen.cuh",
    "flow/strassen.ptx",
    "flow/strassen_vector.cu",
    "flow/strassen_vector.ptx",
    "flow/tree.cu",
    "flow/tree.ptx",
    "free/flows.cu",
    "free/flows.ptx",
    "free/grids.cu",
    "free/grids.ptx",
    "free/heartwall.cu",
    "free/heartwall.ptx",
    "free/matrices.cu",
    "free/matrices.ptx",
    "free/mergesort.cu",
    "free/mergesort.ptx",
    "free/points.cu",
    "free/points.ptx",
    "funcptr.cu",
    "funcptr.ptx",
    "globals.cu",
    "globals.ptx",
    "half.cu",
    "half.ptx",
    "hangs/barrier_deadlock.cu",
    "hangs/barrier_deadlock.ptx",
    "hangs/cannot_start.cu",
    "hangs/cannot_start.ptx",
    "hangs/endless_loop.cu",
    "hangs/endless_loop.ptx",
    "hangs/lock_bits.cu",
    "hangs/lock_bits.ptx",
    "hangs/lock_cycle.cu",
    "hangs/lock_cycle.ptx",
    "hangs/lost_token.cu",
    "hangs/lost_token.ptx",
    "hangs/semaphore.cu",
    "hangs/semaphore.ptx",
    "hangs/simd_deadlock.cu",
    "hangs/simd_deadlock.ptx",
    "hangs/stale_copy.cu",
    "hangs/stale_copy.ptx",
    "hashtable.cu",
    "hashtable.ptx",
    "histogram.cu",
    "histogram.ptx",
    "listings/chain.sass",
    "listings/counter.sass",
    "listings/primitives.sass",
    "localarray.cu",
    "localarray.ptx",
    "lock_bits.cuh",
    "matmul.cu",
    "matmul.ptx",
    "nbody.cu",
    "nbody.ptx",
    "nw.cu",
    "nw.cuh",
    "nw.ptx",
    "nw_atomic.cu",
    "nw_atomic.ptx",
    "nw_pipe.cu",
    "nw_pipe.ptx",
    "nw_tiny.cu",
    "nw_tiny.ptx",
    "primitives.cu",
    "primitives.cuh",
    "primitives.ptx",
    "printf.cu",
    "printf.ptx",
    "recursion.cu",
    "recursion.ptx",
    "reduce.cu",
    "reduce.ptx",
    "scan.cu",
    "scan.ptx",
    "spinlock.cu",
    "spinlock.ptx",
    "switch.cu",
    "switch.ptx",
    "sync/atm.cu",
    "sync/atm.ptx",
    "sync/barneshut.cu",
    "sync/barneshut.ptx",
    "sync/cloth.cu",
    "sync/cloth.ptx",
    "sync/hashtable_backoff.cu",
    "sync/hashtable_backoff.ptx",
    "sync/hashtable_locks.cu",
    "sync/hashtable_locks.ptx",
    "sync/hashtable_records.cu",
    "sync/hashtable_records.ptx",
    "sync/mbarrier.cu",
    "sync/mbarrier.ptx",
    "sync/tsp.cu",
    "sync/tsp.ptx",
    "sync/wavefront.cu",
    "sync/wavefront.ptx",
    "tinylock.cuh",
    "tinylocks.cu",
    "tinylocks.ptx",
    "vecadd.cu",
    "vecadd.ptx",
    "warploom.cuh",
    "warpops.cu",
    "warpops.ptx",
];

/// The text of the file with this path (`flow/sort.ptx`); [`text!`] is the same at compile time.
pub const fn find(path: &str) -> Option<&'static str> {
    let mut at = 0;
    while at < FILES.len() {
        let (name, text) = FILES[at];
        if same(name.as_bytes(), path.as_bytes()) {
            return Some(text);
        }
        at += 1;
    }
    None
}

/// `==` cannot be used in a `const fn`.
const fn same(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

/// The text of the file with this path, found at compile time: a path that is not in [`FILES`] does not compile.
#[macro_export]
macro_rules! text {
    ($path:expr) => {
        const {
            match $crate::find($path) {
                Some(text) => text,
                None => panic!("no kernel file has this path"),
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{FILES, find};

    /// Folders of texts that only tests read.
    const OF_TESTS: [&str; 2] = ["corpus", "triton"];

    /// The paths of all kernels, headers and listings in a folder, relative to `root`.
    fn paths(root: &Path, folder: &Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap();
            if path.is_dir() && !OF_TESTS.contains(&name) {
                paths(root, &path, found);
            } else if path
                .extension()
                .is_some_and(|e| ["cu", "cuh", "ptx", "sass"].iter().any(|wanted| e == *wanted))
            {
                found.push(name.to_string());
            }
        }
    }

    #[test]
    fn every_file_is_listed() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut found = Vec::new();
        paths(root, root, &mut found);
        found.sort();
        assert_eq!(found, FILES.iter().map(|(path, _)| path.to_string()).collect::<Vec<_>>());
    }

    #[test]
    fn files_are_found_by_their_whole_path() {
        assert!(find("flow/sort.ptx").is_some_and(|text| text.contains(".entry sort")));
        assert_eq!(find("flow/sort"), None);
        assert_eq!(find("sort.ptx"), None);
        assert_eq!(find("flow/sort.ptx2"), None);
    }
}
