//! A warp: its registers, its local memory, and its control state ([`control`]).

pub mod control;
pub mod independent;
pub mod stack;

use warploom_isa::{Kernel, Operand, Reg};

use crate::chip::Divergence;
use crate::kit::lane_mask::LaneMask;
use crate::lanes::Registers;
use crate::warp::control::{Activation, Control, SimtStack, Splits};

/// The state of a warp of `N` lanes.
#[derive(Clone, Debug)]
pub struct Warp<const N: usize> {
    /// Number in the CTA.
    pub id: u32,
    pub control: Control,
    /// Lanes whose threads have not ended.
    pub live: LaneMask,
    /// `%tid` of each lane.
    pub tid: [[u32; N]; 3],
    /// Registers of all activations, one row per register.
    words: Vec<[u32; N]>,
    preds: Vec<u64>,
    /// Local memory, interleaved between lanes by word, as the hardware lays it out. Grows on the first write.
    local: Vec<[u32; N]>,
    /// Which bytes of local memory were written, four bits per word and lane, where that is tracked.
    local_written: Option<Vec<[u8; N]>>,
    /// Where each lane's stack ends if it took bytes while it ran (`alloca`); 0 if it did not.
    stack: Option<Box<[u32; N]>>,
}

impl<const N: usize> Warp<N> {
    /// Warp `id` of a CTA of shape `block`, at the kernel's first instruction.
    pub fn new(id: u32, block: [u32; 3], kernel: &Kernel, divergence: Divergence) -> Self {
        let first = id * N as u32;
        // From lane to lane: two divisions for each would be most of what it costs to start a warp.
        let [mut x, mut y, mut z] =
            [first % block[0], first / block[0] % block[1], first / block[0] / block[1]];
        let [mut xs, mut ys, mut zs] = [[x; N], [y; N], [z; N]];
        if block[0] - x >= N as u32 {
            // All in one row.
            xs.iter_mut().zip(0..).for_each(|(x, lane)| *x += lane);
        } else {
            for ((xs, ys), zs) in xs.iter_mut().zip(&mut ys).zip(&mut zs) {
                (*xs, *ys, *zs) = (x, y, z);
                x += 1;
                if x == block[0] {
                    (x, y) = (0, y + 1);
                }
                if y == block[1] {
                    (y, z) = (0, z + 1);
                }
            }
        }
        let live = live_lanes::<N>(id, block);
        let activation = Activation::default();
        let start = kernel.functions[0].start;
        let control = match divergence {
            Divergence::SimtStack => Control::Stack(SimtStack::new(start, live, activation)),
            Divergence::IndependentThreads => Control::Independent(Splits::new(start, live, activation)),
        };
        let mut warp = Warp {
            id,
            control,
            live,
            tid: [xs, ys, zs],
            words: Vec::new(),
            preds: Vec::new(),
            local: Vec::new(),
            local_written: None,
            stack: None,
        };
        warp.make_room(kernel, &activation);
        warp
    }

    /// Becomes the warp with the same number of another CTA of the launch, at the kernel's first instruction. Cheaper
    /// than a new one: which threads it has stays the same, and memory is there.
    pub(crate) fn restart(&mut self, block: [u32; 3], kernel: &Kernel) {
        self.live = live_lanes::<N>(self.id, block);
        self.control.restart(kernel.functions[0].start, self.live);
        self.words.clear();
        self.preds.clear();
        self.local.clear();
        self.local_written.iter_mut().for_each(Vec::clear);
        self.stack = None;
        self.make_room(kernel, &Activation::default());
    }

    /// Allocates the registers of an activation. Must precede [`Warp::registers`].
    pub fn make_room(&mut self, kernel: &Kernel, activation: &Activation) {
        let function = &kernel.functions[activation.function as usize];
        let words = (activation.registers + function.registers) as usize;
        let preds = (activation.predicates + function.predicates) as usize;
        if self.words.len() < words {
            self.words.resize(words, [0; N]);
        }
        if self.preds.len() < preds {
            self.preds.resize(preds, 0);
        }
    }

    #[inline(always)]
    pub fn registers(&mut self, activation: &Activation) -> Registers<'_, N> {
        Registers {
            words: &mut self.words[activation.registers as usize..],
            preds: &mut self.preds[activation.predicates as usize..],
            frame: activation.frame,
        }
    }

    /// As [`Warp::registers`], with all of local memory that was ever written, `%tid`, and the control state.
    #[inline(always)]
    pub(crate) fn parts(
        &mut self,
        activation: &Activation,
    ) -> (Registers<'_, N>, &mut Vec<[u32; N]>, &[[u32; N]; 3], &mut Control) {
        let registers = Registers {
            words: &mut self.words[activation.registers as usize..],
            preds: &mut self.preds[activation.predicates as usize..],
            frame: activation.frame,
        };
        (registers, &mut self.local, &self.tid, &mut self.control)
    }

    /// A word of local memory in every lane; zero if never written.
    #[inline]
    pub fn local_word(&self, word: usize) -> &[u32; N] {
        self.local.get(word).unwrap_or(&[0; N])
    }

    #[inline]
    pub fn local_word_mut(&mut self, word: usize) -> &mut [u32; N] {
        if self.local.len() <= word {
            self.local.resize(word + 1, [0; N]);
        }
        &mut self.local[word]
    }

    /// The end of what a lane took from its stack while it ran; 0 if it took nothing.
    pub fn stack_top(&self, lane: usize) -> u32 {
        self.stack.as_ref().map_or(0, |stack| stack[lane])
    }

    /// The largest [`Warp::stack_top`] of any lane.
    pub fn highest_stack_top(&self) -> u32 {
        self.stack.as_ref().map_or(0, |stack| stack.iter().copied().max().unwrap_or(0))
    }

    pub fn set_stack_top(&mut self, lane: usize, top: u32) {
        self.stack.get_or_insert_with(|| Box::new([0; N]))[lane] = top;
    }

    /// Lanes return from the function whose frame begins here: what it took from the stack is free.
    pub fn leave_frame(&mut self, lanes: LaneMask, frame: u32) {
        if let Some(stack) = &mut self.stack {
            lanes.lanes().for_each(|lane| stack[lane] = stack[lane].min(frame));
        }
    }

    pub fn local_byte(&self, address: u32, lane: usize) -> u8 {
        (self.local_word(address as usize / 4)[lane] >> (8 * (address % 4))) as u8
    }

    /// From now on it is tracked which bytes of local memory are written.
    pub fn track_local(mut self, track: bool) -> Self {
        self.local_written = track.then(Vec::new);
        self
    }

    /// The first of `lanes` that finds a byte of local memory, of `bytes` from its address on, that it never wrote.
    /// `None` if that is not tracked.
    pub fn local_unwritten(
        &self,
        lanes: LaneMask,
        address: impl Fn(usize) -> u64,
        bytes: u32,
    ) -> Option<usize> {
        let written = self.local_written.as_ref()?;
        let is_written = |lane: usize, at: u64| {
            written.get(at as usize / 4).is_some_and(|word| word[lane] >> (at % 4) & 1 == 1)
        };
        let misses = |&lane: &usize| (0..u64::from(bytes)).any(|at| !is_written(lane, address(lane) + at));
        lanes.lanes().find(misses)
    }

    /// Lanes wrote `bytes` bytes of local memory; or, without `written`, a function that they call finds nothing there.
    pub fn mark_local(&mut self, lanes: LaneMask, address: impl Fn(usize) -> u64, bytes: u32, written: bool) {
        let Some(known) = &mut self.local_written else { return };
        for lane in lanes.lanes() {
            for at in address(lane)..address(lane) + u64::from(bytes) {
                let (word, bit) = (at as usize / 4, 1 << (at % 4));
                if known.len() <= word {
                    known.resize(word + 1, [0; N]);
                }
                known[word][lane] = if written { known[word][lane] | bit } else { known[word][lane] & !bit };
            }
        }
    }

    /// Lanes copy bytes of local memory: where nothing was written, nothing is.
    pub fn copy_local_marks(&mut self, lanes: LaneMask, from: u32, to: u32, bytes: u32) {
        if self.local_written.is_none() {
            return;
        }
        for (lane, at) in lanes.lanes().flat_map(|lane| (0..bytes).map(move |at| (lane, at))) {
            let one = LaneMask::of(lane);
            let written = self.local_unwritten(one, |_| u64::from(from + at), 1).is_none();
            self.mark_local(one, |_| u64::from(to + at), 1, written);
        }
    }

    /// Moves a yielding warp's state out, as an image for memory: control state in `context_bytes` (or more, if its
    /// stack needs them), registers, predicates. Local memory is not part of it: it is in memory already. `None`
    /// without a SIMT stack.
    pub fn save(&mut self, context_bytes: usize) -> Option<Vec<u8>> {
        let Control::Stack(stack) = &mut self.control else { return None };
        let mut head = vec![self.words.len() as u32, self.preds.len() as u32, 0];
        stack.save(&mut head);
        let start = (4 * head.len()).max(context_bytes).next_multiple_of(4);
        head[2] = start as u32;
        *stack = SimtStack::empty();
        let mut image: Vec<u8> = head.iter().flat_map(|word| word.to_le_bytes()).collect();
        image.resize(start, 0);
        let (words, preds) = (std::mem::take(&mut self.words), std::mem::take(&mut self.preds));
        image.extend(words.iter().flatten().flat_map(|word| word.to_le_bytes()));
        image.extend(preds.iter().flat_map(|pred| pred.to_le_bytes()));
        Some(image)
    }

    /// Takes over the image of [`Warp::save`]. False if it is malformed: a kernel may have overwritten it.
    pub fn restore(&mut self, image: &[u8]) -> bool {
        let mut words = image.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        let mut word = || words.next().map(|word| word as usize);
        let (Some(rows), Some(preds), Some(start)) = (word(), word(), word()) else { return false };
        let Some(stack) = SimtStack::restore(&mut words) else { return false };
        let (row_bytes, pred_bytes) = (rows * N * 4, preds * 8);
        let Some(registers) = image.get(start..start + row_bytes + pred_bytes) else { return false };
        let (row_bytes, pred_bytes) = registers.split_at(row_bytes);
        let word = |b: &[u8]| u32::from_le_bytes([b[0], b[1], b[2], b[3]]);
        let row = |b: &[u8]| std::array::from_fn(|lane| word(&b[4 * lane..]));
        self.words = row_bytes.chunks_exact(N * 4).map(row).collect();
        self.preds =
            pred_bytes.chunks_exact(8).map(|b| word(b) as u64 | (word(&b[4..]) as u64) << 32).collect();
        self.control = Control::Stack(stack);
        true
    }

    /// `%tid` of a lane.
    pub fn thread(&self, lane: usize) -> [u32; 3] {
        [self.tid[0][lane], self.tid[1][lane], self.tid[2][lane]]
    }

    pub fn is_done(&self) -> bool {
        self.live.is_empty()
    }

    /// Whether the warp is back in the state `before`, after what `since` says. It would then repeat itself forever,
    /// as long as nothing changes that it reads.
    pub fn repeats(&self, before: &Warp<N>, since: Since) -> bool {
        self.live == before.live
            && self.control.repeats(&before.control, since)
            && self.preds == before.preds
            && self.words == before.words
            && self.local == before.local
            && self.stack == before.stack
    }

    /// Whether its lanes are where they were in the state `before`, after what `since` says.
    pub fn is_where(&self, before: &Warp<N>, since: Since) -> bool {
        self.live == before.live && self.control.repeats(&before.control, since)
    }

    /// How many registers, predicates and words of local memory this state or another has. Values are numbered in this
    /// order.
    pub fn counts(&self, other: &Warp<N>) -> [usize; 3] {
        [
            self.words.len().max(other.words.len()),
            self.preds.len().max(other.preds.len()),
            self.local.len().max(other.local.len()),
        ]
    }

    /// Whether a value is different in another state. Values are numbered as by [`Warp::counts`].
    pub fn differs(&self, other: &Warp<N>, value: usize) -> bool {
        let [registers, predicates, _] = self.counts(other);
        if value < registers {
            return self.words.get(value) != other.words.get(value);
        }
        let value = value - registers;
        if value < predicates {
            return self.preds.get(value) != other.preds.get(value);
        }
        self.local_word(value - predicates) != other.local_word(value - predicates)
    }

    /// The numbers of the values that are different in another state.
    pub fn differing(&self, other: &Warp<N>) -> Vec<usize> {
        let count = self.counts(other).iter().sum();
        (0..count).filter(|&value| self.differs(other, value)).collect()
    }

    /// The value of an operand in every lane, for messages.
    pub fn value(&self, activation: &Activation, operand: Operand, wide: bool, imms: &[u64]) -> [u64; N] {
        let word = |reg: u32| &self.words[(activation.registers + reg) as usize];
        match operand {
            Operand::Reg(Reg(reg)) if wide => {
                std::array::from_fn(|lane| word(reg)[lane] as u64 | (word(reg + 1)[lane] as u64) << 32)
            }
            Operand::Reg(Reg(reg)) => word(reg).map(u64::from),
            Operand::Imm(value) => [value as u64; N],
            Operand::Imm64(id) => [imms[id.index()]; N],
            Operand::Frame => [activation.frame as u64; N],
            _ => [0; N],
        }
    }
}

/// The lanes of a warp that have threads.
fn live_lanes<const N: usize>(id: u32, block: [u32; 3]) -> LaneMask {
    let threads = block.iter().product::<u32>();
    LaneMask::first_lanes((threads - id * N as u32).min(N as u32))
}

/// What a warp did since its state was saved.
#[derive(Clone, Copy, Debug, Default)]
pub struct Since {
    /// Lanes that executed an instruction.
    pub ran: LaneMask,
    /// Lanes communicated, so that results depend on which of them ran together.
    pub crossed: bool,
}
