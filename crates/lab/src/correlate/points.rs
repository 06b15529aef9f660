//! The points: workloads and inputs, from no contention to hundreds of threads per lock.

use serde::{Deserialize, Serialize};

/// What mostly takes the time of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    Arithmetic,
    Memory,
    /// Synchronization with at most 32 threads per lock or flag.
    LowContention,
    /// Synchronization with more.
    HighContention,
    /// Many short launches.
    Launches,
}

impl Class {
    pub const ALL: [Class; 5] =
        [Class::Arithmetic, Class::Memory, Class::LowContention, Class::HighContention, Class::Launches];

    pub fn name(self) -> &'static str {
        match self {
            Class::Arithmetic => "arithmetic",
            Class::Memory => "memory",
            Class::LowContention => "low contention",
            Class::HighContention => "high contention",
            Class::Launches => "launches",
        }
    }
}

/// A workload with an input.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    pub class: Class,
    pub workload: &'static str,
    /// `name=value`, in the order of the command line.
    pub params: &'static str,
}

impl Point {
    /// As on the command line of `warploom work`.
    pub fn name(&self) -> String {
        format!("{} {}", self.workload, self.params).trim_end().to_string()
    }

    pub(super) fn assignments(&self) -> Vec<&'static str> {
        self.params.split_whitespace().collect()
    }
}

macro_rules! points {
    ($($class:ident: $($workload:literal [$($params:literal),* $(,)?]),* ;)*) => {
        &[$($($(Point { class: Class::$class, workload: $workload, params: $params },)*)*)*]
    };
}

/// All points.
pub const POINTS: &[Point] = points! {
    Arithmetic:
        "matmul" ["size=128", "size=256", "size=512"],
        "kmeans" ["points=65536 features=32 clusters=16"],
        "lava" ["each=64"],
        "nn" [""],
        "cfd" [""],
        "heartwall" [""],
        "backprop" ["inputs=16384"];
    Memory:
        "vecadd" ["size=131072", "size=1048576", "size=8388608"],
        "streamcluster" ["points=65536"],
        "hotspot" ["size=512"],
        "srad" ["size=256"],
        "bfs" ["vertices=65536"],
        "mergesort" ["keys=65536 ctas=64"];
    LowContention:
        "hashtable" [
            "keys=80000 buckets=4096", "keys=80000 buckets=16384", "keys=80000 buckets=65536",
            "keys=20000 buckets=4096 ctas=40", "keys=20000 buckets=1024 ctas=40",
            "keys=8000 buckets=1024 ctas=16", "keys=4000 buckets=256 ctas=16 threads=128",
            "keys=80000 buckets=4096 version=sleep", "keys=80000 buckets=4096 version=delay",
            "keys=80000 buckets=1024 version=unlocked", "keys=80000 buckets=4096 version=ticket",
            "keys=80000 buckets=4096 version=queue", "keys=80000 buckets=4096 version=exchange",
        ],
        "atm" ["accounts=10000", "accounts=100000", "transfers=1220 accounts=1000 ctas=13",
               "transfers=122000 accounts=100000"],
        "treebuild" ["", "bodies=30000 ctas=60", "bodies=30000 ctas=132"],
        "treesort" ["", "bodies=30000 ctas=60"],
        "cloth" ["", "width=128 height=128"],
        "nw1" ["size=256", "size=1024 columns=128", "size=4096 columns=128"],
        "nw2" ["size=256", "size=1024 columns=128"],
        "tsp" ["climbers=96 steps=50", "cities=24 climbers=192 steps=20"];
    HighContention:
        "hashtable" [
            "keys=20000 buckets=64", "keys=20000 buckets=128", "keys=80000 buckets=256",
            "keys=80000 buckets=512", "keys=80000 buckets=1024", "keys=80000 buckets=1024 ctas=80",
            "keys=80000 buckets=512 ctas=320", "keys=10000 buckets=16 ctas=8",
            "keys=20000 buckets=64 version=sleep", "keys=80000 buckets=1024 version=sleep",
            "keys=20000 buckets=64 version=delay", "keys=20000 buckets=64 version=ticket",
            "keys=20000 buckets=64 version=queue", "keys=80000 buckets=256 version=queue",
            "keys=80000 buckets=1024 version=queue", "keys=80000 buckets=64 version=exchange",
        ],
        "atm" ["", "accounts=100", "accounts=300", "transfers=48800 accounts=1000", "accounts=100 ctas=32"],
        "tsp" ["cities=24 climbers=1536 steps=4", "cities=24 climbers=3000 steps=4"];
    Launches:
        "gaussian" ["size=32", "size=64"],
        "lud" ["size=64"],
        "pathfinder" [""],
        "nw" ["size=496", "size=992"];
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work::Workload;

    #[test]
    fn there_are_sixty_points_and_all_can_run() {
        assert!(POINTS.len() >= 60, "{}", POINTS.len());
        for point in POINTS {
            let workload = Workload::find(point.workload).unwrap();
            workload.values(&point.assignments()).unwrap();
        }
        let mut names: Vec<_> = POINTS.iter().map(Point::name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), POINTS.len());
    }
}
