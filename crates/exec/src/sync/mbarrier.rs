//! `mbarrier` objects: a barrier with phases in one 64-bit word of shared memory.
//!
//! The layout is opaque to programs. Ours: bits 0–19 arrivals still pending in this phase, 20–39 arrivals that a phase
//! expects, 40–60 outstanding transaction bytes (two's complement), 62 initialised, 63 the phase's parity.

use warploom_isa::MbarrierOp;

const COUNT_BITS: u32 = 20;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;
const TX_BITS: u32 = 21;
const TX_MASK: u64 = (1 << TX_BITS) - 1;

/// An mbarrier, unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Object {
    pending: u64,
    expected: u64,
    transactions: i64,
    parity: u64,
}

impl Object {
    fn unpack(word: u64) -> Result<Object, &'static str> {
        if word >> 62 & 1 == 0 {
            return Err("used before mbarrier.init");
        }
        let transactions = (word >> (2 * COUNT_BITS) & TX_MASK) << (64 - TX_BITS);
        Ok(Object {
            pending: word & COUNT_MASK,
            expected: word >> COUNT_BITS & COUNT_MASK,
            transactions: transactions as i64 >> (64 - TX_BITS),
            parity: word >> 63,
        })
    }

    fn pack(self) -> u64 {
        self.pending
            | self.expected << COUNT_BITS
            | (self.transactions as u64 & TX_MASK) << (2 * COUNT_BITS)
            | 1 << 62
            | self.parity << 63
    }

    fn arrive(&mut self, count: u64) -> Result<(), &'static str> {
        if count == 0 || count > self.pending {
            return Err("more arrivals than the phase expects");
        }
        self.pending -= count;
        self.end_phase_if_complete();
        Ok(())
    }

    fn transact(&mut self, bytes: i64) -> Result<(), &'static str> {
        self.transactions += bytes;
        if self.transactions.abs() >= 1 << (TX_BITS - 1) {
            return Err("the transaction count is out of range");
        }
        Ok(())
    }

    /// Starts the next phase if this one is complete.
    fn end_phase_if_complete(&mut self) {
        if self.pending == 0 && self.transactions == 0 {
            self.pending = self.expected;
            self.parity ^= 1;
        }
    }
}

/// Performs an operation on an mbarrier word. `value` is the operation's third operand: count, bytes, state or parity.
/// Returns the new word and the result: a state, a count, or 0/1. The error says how the mbarrier is misused.
pub fn perform(op: MbarrierOp, word: u64, value: u64) -> Result<(u64, u64), &'static str> {
    if op == MbarrierOp::Init {
        if value == 0 || value > COUNT_MASK {
            return Err("the count must be 1 to 1048575");
        }
        return Ok((Object { pending: value, expected: value, transactions: 0, parity: 0 }.pack(), 0));
    }
    if op == MbarrierOp::PendingCount {
        return Ok((word, value & COUNT_MASK));
    }
    let mut object = Object::unpack(word)?;
    let mut result = word;
    match op {
        MbarrierOp::Inval => return Ok((0, 0)),
        MbarrierOp::Arrive => object.arrive(value)?,
        MbarrierOp::ArriveDrop => {
            if value > object.expected {
                return Err("more arrivals are dropped than a phase expects");
            }
            object.expected -= value;
            object.arrive(value)?;
        }
        MbarrierOp::ArriveExpectTx => {
            object.transact(value as u32 as i64)?;
            object.arrive(1)?;
        }
        MbarrierOp::ExpectTx => object.transact(value as u32 as i64)?,
        MbarrierOp::CompleteTx => {
            object.transact(-(value as u32 as i64))?;
            object.end_phase_if_complete();
        }
        MbarrierOp::TestWait => result = (object.parity != value >> 63) as u64,
        MbarrierOp::TestWaitParity => result = (object.parity != value & 1) as u64,
        MbarrierOp::Init | MbarrierOp::PendingCount => unreachable!("handled above"),
    }
    Ok((object.pack(), result))
}

/// For messages: arrivals still pending in an mbarrier's phase, arrivals expected, and outstanding transaction bytes.
/// `None` if the word is not an mbarrier.
pub fn progress(word: u64) -> Option<(u64, u64, i64)> {
    Object::unpack(word).ok().map(|object| (object.pending, object.expected, object.transactions))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(op: MbarrierOp, word: &mut u64, value: u64) -> u64 {
        let (new, result) = perform(op, *word, value).unwrap();
        *word = new;
        result
    }

    #[test]
    fn a_phase_ends_with_its_last_arrival() {
        let mut word = 0;
        run(MbarrierOp::Init, &mut word, 2);
        let state = run(MbarrierOp::Arrive, &mut word, 1);
        assert_eq!(run(MbarrierOp::PendingCount, &mut word, state), 2);
        assert_eq!(run(MbarrierOp::TestWait, &mut word, state), 0);
        assert_eq!(run(MbarrierOp::TestWaitParity, &mut word, 0), 0);
        run(MbarrierOp::Arrive, &mut word, 1);
        assert_eq!(run(MbarrierOp::TestWait, &mut word, state), 1);
        assert_eq!(run(MbarrierOp::TestWaitParity, &mut word, 0), 1);
        assert_eq!(run(MbarrierOp::TestWaitParity, &mut word, 1), 0);
    }

    #[test]
    fn transactions_hold_the_phase() {
        let mut word = 0;
        run(MbarrierOp::Init, &mut word, 1);
        let state = run(MbarrierOp::ArriveExpectTx, &mut word, 64);
        run(MbarrierOp::CompleteTx, &mut word, 32);
        assert_eq!(run(MbarrierOp::TestWait, &mut word, state), 0);
        run(MbarrierOp::CompleteTx, &mut word, 32);
        assert_eq!(run(MbarrierOp::TestWait, &mut word, state), 1);
    }

    #[test]
    fn dropping_lowers_later_phases() {
        let mut word = 0;
        run(MbarrierOp::Init, &mut word, 2);
        run(MbarrierOp::ArriveDrop, &mut word, 1);
        run(MbarrierOp::Arrive, &mut word, 1);
        let state = run(MbarrierOp::Arrive, &mut word, 1);
        assert_eq!(run(MbarrierOp::TestWait, &mut word, state), 1);
    }

    #[test]
    fn misuse_is_told() {
        assert_eq!(perform(MbarrierOp::Arrive, 0, 1), Err("used before mbarrier.init"));
        assert_eq!(perform(MbarrierOp::Init, 0, 0), Err("the count must be 1 to 1048575"));
        let (word, _) = perform(MbarrierOp::Init, 0, 1).unwrap();
        assert_eq!(perform(MbarrierOp::Arrive, word, 2), Err("more arrivals than the phase expects"));
        assert_eq!(
            perform(MbarrierOp::ArriveDrop, word, 2),
            Err("more arrivals are dropped than a phase expects")
        );
    }
}
