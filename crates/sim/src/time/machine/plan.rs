//! Work of several streams: kernels and copies, each of which begins when those before it have ended. Kernels that are
//! due at the same time run together.

use std::ops::Range;

use crate::chip::Chip;
use crate::exec::launch::Launch;
use crate::kit::cycle::Cycle;
use crate::time::machine::totals::TimedStats;
use crate::time::room::{Free, Needs};

/// A piece of a plan.
#[derive(Clone, Debug)]
pub(crate) struct Piece {
    /// The numbers of earlier pieces that must have ended before it begins.
    pub after: Vec<usize>,
    /// No sooner, in cycles since the plan began.
    pub not_before: u64,
    pub work: PieceWork,
}

#[derive(Clone, Debug)]
pub(crate) enum PieceWork {
    /// The kernel with this number. Lower numbers of priority come first.
    Kernel { number: u16, priority: i32 },
    /// Bytes that have moved when so many cycles are over.
    Copy { cycles: u64, moves: Vec<Move> },
}

/// Bytes that come to a place in device memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// The address of the first byte.
    pub to: u64,
    pub from: MoveFrom,
}

/// Where bytes come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MoveFrom {
    Host(Vec<u8>),
    /// So many bytes at an address of the device, as they are when the copy ends.
    Device {
        address: u64,
        bytes: u64,
    },
}

/// How far a piece is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Progress {
    /// Waits for so many others.
    Waits(usize),
    /// Begins at this cycle, unless it is a kernel for which there is no room then.
    Due(Cycle),
    Ended,
}

/// A kernel of a plan.
#[derive(Debug)]
pub(crate) struct PlannedKernel {
    piece: usize,
    priority: i32,
    needs: Needs,
    /// The numbers of its CTAs.
    pub(crate) ctas: Range<u64>,
    /// The next CTA to start.
    next: u64,
    ended_ctas: u64,
    /// When it may begin, if that has come.
    pub(crate) arrival: Option<Cycle>,
    /// When its first CTA started.
    pub(crate) start: Option<Cycle>,
    /// When its last CTA so far ended.
    last_end: Cycle,
    pub(crate) is_over: bool,
    /// The counters of the machine when it started.
    pub(crate) before: Option<Box<TimedStats>>,
    /// What it did, once it is over.
    pub(crate) stats: Option<Box<TimedStats>>,
}

impl PlannedKernel {
    /// CTAs that have started.
    pub(crate) fn started(&self) -> u64 {
        self.next - self.ctas.start
    }

    /// CTAs that have not started.
    pub(crate) fn unstarted(&self) -> u64 {
        self.ctas.end - self.next
    }

    pub(crate) fn warps_per_cta(&self) -> u32 {
        self.needs.warps
    }

    /// From its first CTA's start to the last one's end, or to `now`.
    pub(crate) fn span(&self, now: Cycle) -> Option<Range<Cycle>> {
        let end = if self.is_over { self.last_end } else { now };
        self.start.map(|start| start..end.max(start))
    }

    /// Whether it was on the chip at the same time as another.
    pub(crate) fn overlaps(&self, other: &PlannedKernel, now: Cycle) -> bool {
        let spans = self.span(now).zip(other.span(now));
        spans.is_some_and(|(a, b)| a.start < b.end && b.start < a.end)
    }
}

/// A plan that is being carried out.
#[derive(Debug)]
pub(crate) struct Plan {
    start: Cycle,
    pieces: Vec<Piece>,
    progress: Vec<Progress>,
    /// The pieces that wait for each.
    followers: Vec<Vec<usize>>,
    /// When each began and ended.
    pub(crate) times: Vec<Option<Range<Cycle>>>,
    /// The pieces that have not ended.
    left: Vec<usize>,
    /// The plan pauses when these pieces have ended, if there are any.
    until: Vec<usize>,
    pub(crate) kernels: Vec<PlannedKernel>,
    /// Kernels that have come and are not over, by priority, those of the same in the order of their arrival.
    arrived: Vec<u16>,
    /// Kernels that can be on the chip at once.
    most_kernels: usize,
    /// By SM.
    free: Vec<Free>,
}

impl Plan {
    /// A plan without pieces.
    pub(crate) fn new(chip: &Chip, most_kernels: u32, start: Cycle) -> Plan {
        Plan {
            start,
            pieces: Vec::new(),
            progress: Vec::new(),
            followers: Vec::new(),
            times: Vec::new(),
            left: Vec::new(),
            until: Vec::new(),
            kernels: Vec::new(),
            arrived: Vec::new(),
            most_kernels: most_kernels.max(1) as usize,
            free: vec![Free::of_empty_sm(chip); chip.sm.count as usize],
        }
    }

    /// Adds pieces. `launches` are all kernels by number, those of earlier pieces, too. The plan pauses when the pieces
    /// `until` have ended, or runs to its end if there are none.
    pub(crate) fn add(&mut self, launches: &[Launch<'_>], pieces: Vec<Piece>, until: Vec<usize>) {
        let first_kernel = self.kernels.len();
        for launch in &launches[first_kernel..] {
            let count = launch.shape.ctas();
            self.kernels.push(PlannedKernel {
                piece: 0,
                priority: 0,
                needs: Needs::of(launch),
                ctas: launch.first_cta..launch.first_cta + count,
                next: launch.first_cta,
                ended_ctas: 0,
                arrival: None,
                start: None,
                last_end: self.start,
                is_over: false,
                before: None,
                stats: None,
            });
        }
        for piece in pieces {
            let at = self.pieces.len();
            let waits_for = |&&before: &&usize| self.progress[before] != Progress::Ended;
            let others: Vec<usize> = piece.after.iter().filter(waits_for).copied().collect();
            others.iter().for_each(|&before| self.followers[before].push(at));
            if let PieceWork::Kernel { number, priority } = piece.work {
                let kernel = &mut self.kernels[usize::from(number)];
                (kernel.piece, kernel.priority) = (at, priority);
            }
            self.progress.push(match others.len() {
                0 => Progress::Due(self.begin_of(&piece)),
                others => Progress::Waits(others),
            });
            self.pieces.push(piece);
            self.followers.push(Vec::new());
            self.times.push(None);
            self.left.push(at);
        }
        self.until = until;
    }

    pub(crate) fn is_done(&self) -> bool {
        self.left.is_empty()
    }

    /// Whether the pieces have ended that it was to be carried out to, and others have not.
    pub(crate) fn is_paused(&self) -> bool {
        let ended = |&piece: &usize| self.progress[piece] == Progress::Ended;
        !self.until.is_empty() && !self.is_done() && self.until.iter().all(ended)
    }

    /// When a piece can begin whose earlier ones have ended.
    fn begin_of(&self, piece: &Piece) -> Cycle {
        let ends = piece.after.iter().filter_map(|&before| self.times[before].as_ref());
        let last = ends.map(|time| time.end).max().unwrap_or(self.start);
        last.max(self.start + piece.not_before)
    }

    /// Lets pieces begin and end that do so by cycle `now`. Returns what copies have moved, in order.
    pub(crate) fn settle(&mut self, now: Cycle) -> Vec<Move> {
        let mut moved = Vec::new();
        // Each round takes what is due first, so that copies end and kernels arrive in the order of their times.
        while let Some((due, at)) = self.next_due().filter(|&(due, _)| due <= now) {
            match &mut self.pieces[at].work {
                &mut PieceWork::Kernel { number, priority } => {
                    self.kernels[usize::from(number)].arrival = Some(due);
                    let is_first = |&other: &u16| self.kernels[usize::from(other)].priority <= priority;
                    let place = self.arrived.partition_point(is_first);
                    self.arrived.insert(place, number);
                }
                PieceWork::Copy { cycles, moves } => {
                    moved.append(moves);
                    let begin = Cycle(due.0 - *cycles);
                    self.end(at, begin..due);
                }
            }
        }
        moved
    }

    /// The piece that begins (a kernel) or ends (a copy) next, and when.
    fn next_due(&self) -> Option<(Cycle, usize)> {
        let due = |&at: &usize| match (&self.progress[at], &self.pieces[at].work) {
            (&Progress::Due(begin), PieceWork::Copy { cycles, .. }) => Some((begin + *cycles, at)),
            (&Progress::Due(begin), &PieceWork::Kernel { number, .. }) => {
                self.kernels[usize::from(number)].arrival.is_none().then_some((begin, at))
            }
            _ => None,
        };
        self.left.iter().filter_map(due).min()
    }

    /// When something happens next that does not depend on warps.
    pub(crate) fn next_event(&self) -> Option<Cycle> {
        self.next_due().map(|(due, _)| due)
    }

    fn end(&mut self, at: usize, time: Range<Cycle>) {
        self.progress[at] = Progress::Ended;
        self.left.retain(|&piece| piece != at);
        self.times[at] = Some(time.clone());
        for follower in std::mem::take(&mut self.followers[at]) {
            let Progress::Waits(others) = &mut self.progress[follower] else { continue };
            *others -= 1;
            if *others == 0 {
                self.progress[follower] = Progress::Due(self.begin_of(&self.pieces[follower]));
            }
        }
    }

    /// Kernels that may start CTAs and have any left, in the order in which they do.
    pub(crate) fn startable(&self) -> impl Iterator<Item = u16> {
        let first = self.arrived.iter().take(self.most_kernels).copied();
        first.filter(|&kernel| self.kernels[usize::from(kernel)].unstarted() > 0)
    }

    /// Whether an SM has room for a CTA of a kernel.
    pub(crate) fn fits(&self, kernel: u16, sm: usize) -> bool {
        self.free[sm].holds(&self.kernels[usize::from(kernel)].needs) > 0
    }

    /// Whether some CTA that may start finds room.
    pub(crate) fn something_fits(&self) -> bool {
        self.startable().any(|kernel| (0..self.free.len()).any(|sm| self.fits(kernel, sm)))
    }

    /// Takes room on an SM for the next CTA of a kernel, and returns its number.
    pub(crate) fn start_cta(&mut self, kernel: u16, sm: usize, now: Cycle) -> u64 {
        let kernel = &mut self.kernels[usize::from(kernel)];
        self.free[sm].start_cta(&kernel.needs);
        kernel.start.get_or_insert(now);
        kernel.next += 1;
        kernel.next - 1
    }

    /// A CTA of a kernel has ended on an SM. Returns whether the kernel is over.
    pub(crate) fn cta_ended(&mut self, kernel: u16, sm: usize, end: Cycle) -> bool {
        let there = &mut self.kernels[usize::from(kernel)];
        self.free[sm].end_cta(&there.needs);
        there.ended_ctas += 1;
        there.last_end = there.last_end.max(end);
        if there.ended_ctas < there.ctas.end - there.ctas.start {
            return false;
        }
        there.is_over = true;
        let (piece, time) = (there.piece, there.start.unwrap_or(self.start)..there.last_end);
        self.arrived.retain(|&other| other != kernel);
        self.end(piece, time);
        true
    }

    /// CTAs that have started.
    pub(crate) fn started(&self) -> u64 {
        self.kernels.iter().map(PlannedKernel::started).sum()
    }

    /// The cycle in which the kernel began that has been on the chip longest.
    pub(crate) fn oldest_start(&self) -> Option<Cycle> {
        let running = self.arrived.iter().map(|&kernel| &self.kernels[usize::from(kernel)]);
        running.filter_map(|kernel| kernel.start).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn copy(after: &[usize], not_before: u64, cycles: u64) -> Piece {
        Piece { after: after.to_vec(), not_before, work: PieceWork::Copy { cycles, moves: Vec::new() } }
    }

    #[test]
    fn copies_follow_each_other() {
        let chip = Chip::load("gtx480", &[]).unwrap();
        let pieces = vec![copy(&[], 10, 5), copy(&[0], 0, 7), copy(&[0, 1], 100, 1), copy(&[], 0, 3)];
        let mut plan = Plan::new(&chip, 16, Cycle(1000));
        plan.add(&[], pieces, Vec::new());
        assert_eq!(plan.next_event(), Some(Cycle(1003)));
        plan.settle(Cycle(1015));
        assert_eq!(plan.next_event(), Some(Cycle(1022)));
        plan.settle(Cycle(2000));
        assert!(plan.is_done() && plan.next_event().is_none());
        let times: Vec<_> = plan.times.iter().flatten().map(|t| (t.start.0, t.end.0)).collect();
        assert_eq!(times, [(1010, 1015), (1015, 1022), (1100, 1101), (1000, 1003)]);
    }

    #[test]
    fn pieces_are_added_while_others_are_left() {
        let chip = Chip::load("gtx480", &[]).unwrap();
        let mut plan = Plan::new(&chip, 16, Cycle(1000));
        plan.add(&[], vec![copy(&[], 0, 5), copy(&[], 0, 50)], vec![0]);
        plan.settle(Cycle(1004));
        assert!(!plan.is_paused());
        plan.settle(Cycle(1005));
        assert!(plan.is_paused() && !plan.is_done());
        plan.add(&[], vec![copy(&[0], 0, 3), copy(&[0, 1], 0, 3)], Vec::new());
        assert!(!plan.is_paused());
        plan.settle(Cycle(2000));
        let times: Vec<_> = plan.times.iter().flatten().map(|t| (t.start.0, t.end.0)).collect();
        assert_eq!(times, [(1000, 1005), (1000, 1050), (1005, 1008), (1050, 1053)]);
    }
}
