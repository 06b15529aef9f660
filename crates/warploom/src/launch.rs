//! How a kernel is launched: the shape of its grid and what may end it early.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use warploom_sim::Progress;

use crate::sim::SimModel;

/// A launch: how many CTAs of how many threads, and the limits after which it is ended.
///
/// ```
/// use warploom::Launch;
///
/// let line = Launch::grid(4096).block(256);
/// let plane = Launch::grid([64, 64]).block((16, 16)).shared_bytes(2048).max_cycles(1_000_000);
/// ```
#[derive(Clone, Debug)]
pub struct Launch {
    pub grid: [u32; 3],
    /// Threads per CTA. If not given, the block that the kernel requires (`.reqntid`), or else one thread.
    pub block: Option<[u32; 3]>,
    /// Shared memory per CTA in addition to what the kernel declares.
    pub dynamic_shared_bytes: u32,
    /// CTAs of a cluster. If not given, what the kernel requires (`.reqnctapercluster`), or else no clusters.
    pub cluster: Option<[u32; 3]>,
    /// All CTAs are resident at once, so that they can wait for each other; refused if they do not fit.
    pub cooperative: bool,
    /// In a plan: whose CTAs start before those of other kernels that are there. Lower numbers come first.
    pub priority: i32,
    /// Simulated chips only: how this launch is executed, if not as the device's others.
    pub model: Option<SimModel>,
    /// Real GPUs only: the launch is ended as a hang after this time.
    pub time_limit: Option<Duration>,
    /// Real GPUs only: after one launch to warm up, so many more are timed, and all buffers are restored before each.
    /// 0: the launch itself is timed.
    pub repeat: u32,
    /// The launch is ended as a hang after so many cycles. The functional model counts one cycle per warp instruction.
    pub max_cycles: Option<u64>,
    /// The launch ends soon after the flag becomes true. Simulated chips only.
    pub interrupt: Option<Arc<AtomicBool>>,
    /// Updated while the launch runs, for another thread to show. Simulated chips only.
    pub progress: Option<Arc<Progress>>,
}

impl Launch {
    /// A grid of so many CTAs: one number, or an array or tuple of two or three.
    pub fn grid(ctas: impl Into<Dim>) -> Launch {
        Launch {
            grid: ctas.into().0,
            block: None,
            dynamic_shared_bytes: 0,
            cluster: None,
            cooperative: false,
            priority: 0,
            model: None,
            time_limit: None,
            repeat: 0,
            max_cycles: None,
            interrupt: None,
            progress: None,
        }
    }

    /// CTAs of so many threads: one number, or an array or tuple of two or three.
    pub fn block(mut self, threads: impl Into<Dim>) -> Launch {
        self.block = Some(threads.into().0);
        self
    }

    /// Adds shared memory to what the kernel declares, for its `extern __shared__` array.
    pub fn shared_bytes(mut self, bytes: u32) -> Launch {
        self.dynamic_shared_bytes = bytes;
        self
    }

    /// Clusters of so many CTAs: one number, or an array or tuple of two or three.
    pub fn cluster(mut self, ctas: impl Into<Dim>) -> Launch {
        self.cluster = Some(ctas.into().0);
        self
    }

    /// Makes the launch cooperative: all CTAs are resident at once, or it fails.
    pub fn cooperative(mut self) -> Launch {
        self.cooperative = true;
        self
    }

    /// Executes the launch in this model of the simulated chip, whatever the device's.
    pub fn model(mut self, model: SimModel) -> Launch {
        self.model = Some(model);
        self
    }

    /// Ends the launch as a hang after this time, on a real GPU.
    pub fn time_limit(mut self, limit: Duration) -> Launch {
        self.time_limit = Some(limit);
        self
    }

    /// Times `count` launches on a real GPU, after one to warm up. All buffers are restored before each; variables of
    /// the module are not.
    pub fn repeat(mut self, count: u32) -> Launch {
        self.repeat = count;
        self
    }

    /// Ends the launch as a hang after so many cycles, on a simulated chip.
    pub fn max_cycles(mut self, cycles: u64) -> Launch {
        self.max_cycles = Some(cycles);
        self
    }

    /// Ends the launch soon after the flag becomes true, for instance from a Ctrl-C handler.
    pub fn interrupt(mut self, flag: Arc<AtomicBool>) -> Launch {
        self.interrupt = Some(flag);
        self
    }
}

/// Extents in x, y and z, made from a number or from an array or tuple of numbers. Missing extents are 1.
///
/// A number that cannot be an extent (negative, or over 32 bits) becomes one that every device refuses, so that
/// the error appears at the launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dim(pub [u32; 3]);

macro_rules! dim_from {
    ($($number:ty),*) => {$(
        impl From<$number> for Dim {
            fn from(x: $number) -> Dim {
                Dim([extent(x), 1, 1])
            }
        }
        impl From<[$number; 2]> for Dim {
            fn from([x, y]: [$number; 2]) -> Dim {
                Dim([extent(x), extent(y), 1])
            }
        }
        impl From<[$number; 3]> for Dim {
            fn from([x, y, z]: [$number; 3]) -> Dim {
                Dim([extent(x), extent(y), extent(z)])
            }
        }
        impl From<($number, $number)> for Dim {
            fn from((x, y): ($number, $number)) -> Dim {
                Dim::from([x, y])
            }
        }
        impl From<($number, $number, $number)> for Dim {
            fn from((x, y, z): ($number, $number, $number)) -> Dim {
                Dim::from([x, y, z])
            }
        }
    )*};
}

dim_from!(i32, u32, u64, usize);

/// A negative extent becomes 0 and one over 32 bits the largest. Every device refuses both at the launch.
fn extent<T: TryInto<u32> + PartialOrd + Default>(value: T) -> u32 {
    let fallback = if value < T::default() { 0 } else { u32::MAX };
    value.try_into().unwrap_or(fallback)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents() {
        assert_eq!(Dim::from(5), Dim([5, 1, 1]));
        assert_eq!(Dim::from([5usize, 6]), Dim([5, 6, 1]));
        assert_eq!(Dim::from((5u32, 6, 7)), Dim([5, 6, 7]));
        assert_eq!(Dim::from(-1), Dim([0, 1, 1]));
        assert_eq!(Dim::from(1u64 << 40), Dim([u32::MAX, 1, 1]));
    }
}
