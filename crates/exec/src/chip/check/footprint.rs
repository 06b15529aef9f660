//! Refuses chips that would take more of the host's memory than a workstation has.
//!
//! What a machine allocates follows from its chip file. It is added up before any of it is taken: running out of memory
//! in the middle would end the process without a word.

use crate::chip::check::{Checked, Chip};

/// Limit on what the SMs may take, and on what the memory side may take: far above any real chip's.
const MOST_BYTES: u64 = 4 << 30;

/// Tags of a line, as a cache keeps them.
const TAG_BYTES: u64 = 48;

/// A line's bytes and its other marks, in an L1.
const LINE_BYTES: u64 = 160;

/// A request or packet that waits in a queue.
const MESSAGE_BYTES: u64 = 128;

/// An SM without its caches: its event wheel, its result ports, 64 warp slots.
const SM_BYTES: u64 = 64 << 10;

impl Chip {
    pub(super) fn check_footprint(&self) -> Checked {
        let sms = u64::from(self.sm.count) * self.sm_bytes() + self.network_bytes();
        let partitions = self.memory_side_bytes();
        for (key, count, what, bytes) in [
            ("sm.count", self.sm.count, "SMs with their caches", sms),
            ("l2.partitions", self.l2.partitions, "L2 slices with their queues", partitions),
        ] {
            let (mib, most) = (bytes >> 20, MOST_BYTES >> 20);
            let rule = format_args!(
                "so many {what} would take {mib} MiB of this computer's memory; they can take at most {most} MiB"
            );
            self.require(bytes <= MOST_BYTES, key, count, rule)?;
        }
        Ok(())
    }

    fn sm_bytes(&self) -> u64 {
        let (operands, units) = (&self.operands, &self.units);
        let places = [
            operands.banks,
            operands.sp_collectors,
            operands.sfu_collectors,
            operands.sfu_collectors,
            operands.memory_collectors,
            units.sp,
            units.sfu,
            units.dp,
        ];
        let data = self.l1.cache.lines() * (TAG_BYTES + LINE_BYTES);
        let tags = (self.fetch.cache.lines() + self.constant.cache.lines()) * TAG_BYTES;
        let mshrs = u64::from(self.l1.mshrs) * MESSAGE_BYTES;
        SM_BYTES + data + tags + mshrs + 8 * places.into_iter().map(u64::from).sum::<u64>()
    }

    fn memory_side_bytes(&self) -> u64 {
        let (l2, dram) = (&self.l2, &self.dram);
        let queues = 2 * (u64::from(l2.latency_cycles) + u64::from(l2.queue_requests)) * MESSAGE_BYTES;
        let mshrs = u64::from(l2.mshrs) * MESSAGE_BYTES;
        let slice = l2.cache.lines() * TAG_BYTES + queues + mshrs;
        let channel = (u64::from(dram.latency_cycles) + u64::from(dram.queue_requests)) * MESSAGE_BYTES;
        let aggregator = self.aggregator.as_ref().map_or(0, |a| a.cache.lines() * (TAG_BYTES + LINE_BYTES));
        u64::from(l2.partitions) * (u64::from(l2.slices_per_partition) * slice + channel) + aggregator
    }

    /// Both crossbars have a list for each pair of ports.
    fn network_bytes(&self) -> u64 {
        let slices = u64::from(self.l2.partitions) * u64::from(self.l2.slices_per_partition);
        2 * (u64::from(self.sm.count) + 1) * slices * 16
    }
}
