//! The aggregator's way to memory: its messages, and the store queue in front of them.
//!
//! Stores leave the queue one after the other, so that all others see them in the order of the program. Atomics happen at
//! the L2 slice, after all earlier stores.

use std::collections::VecDeque;

use warploom_isa::{AtomOp, Ty};

use crate::mem::message::{Request, RequestKind, SECTOR_BYTES};
use crate::mem::store::Memory;
use crate::slab::Slab;
use crate::sm::lanes::{AtomicUnit, atomic};

/// What a message is for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Errand {
    Load { address: u64, bytes: u32 },
    Store(Store),
    Atomic { address: u64, op: AtomOp, ty: Ty, operands: [u64; 2] },
}

/// Who waits for an access: the instruction's number, and where its result goes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiter {
    pub number: Option<u64>,
    pub result: Option<u32>,
}

/// A store that others do not see yet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Store {
    pub address: u64,
    pub bytes: u32,
    pub value: u64,
    pub waiter: Waiter,
}

/// A message that has not been answered.
#[derive(Clone, Copy, Debug)]
struct Flight {
    errand: Errand,
    waiter: Waiter,
    value: u64,
}

/// An access that is done.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    pub waiter: Waiter,
    pub value: u64,
}

/// The way to memory.
#[derive(Debug)]
pub(super) struct Port {
    node: u16,
    line_bytes: u64,
    flights: Slab<Flight>,
    stores: VecDeque<Store>,
    /// The first of `stores` is on its way.
    storing: bool,
    /// Atomics on their way.
    pub atomics: u32,
    /// Messages for the network, with the cycle they are sent.
    pub outbox: Vec<(u64, Request)>,
    /// Packets that the network still takes.
    pub room: u32,
    last_sent: u64,
}

impl Port {
    pub fn new(node: u16, line_bytes: u64, room: u32) -> Port {
        Port {
            node,
            line_bytes,
            flights: Slab::default(),
            stores: VecDeque::new(),
            storing: false,
            atomics: 0,
            outbox: Vec::new(),
            room,
            last_sent: 0,
        }
    }

    fn line(&self, address: u64) -> u64 {
        address & !(self.line_bytes - 1)
    }

    /// Whether an earlier store to the same line waits.
    pub fn stores_to_line(&self, address: u64) -> bool {
        self.stores.iter().any(|store| self.line(store.address) == self.line(address))
    }

    /// Stores that others do not see yet.
    pub fn pending_stores(&self) -> usize {
        self.stores.len()
    }

    pub fn load(&mut self, cycle: u64, address: u64, bytes: u32, waiter: Waiter) {
        self.send(cycle, address, RequestKind::Read, Errand::Load { address, bytes }, waiter);
    }

    pub fn atomic(&mut self, cycle: u64, address: u64, errand: Errand, waiter: Waiter) {
        let Errand::Atomic { op, ty, .. } = errand else { unreachable!("called for atomics") };
        let operands = if op == AtomOp::Cas { 2 } else { 1 };
        let bytes = ty.bytes() as u8;
        let kind = RequestKind::Atomic {
            same_word: 1,
            lanes: 1,
            operand_bytes: operands * bytes,
            result_bytes: bytes,
        };
        self.atomics += 1;
        self.send(cycle, address, kind, errand, waiter);
    }

    /// A store joins the queue.
    pub fn store(&mut self, cycle: u64, store: Store) {
        self.stores.push_back(store);
        self.next_store(cycle);
    }

    /// Sends the first store, if it can go.
    pub fn next_store(&mut self, cycle: u64) {
        if self.storing || self.room == 0 {
            return;
        }
        let Some(&store) = self.stores.front() else { return };
        self.storing = true;
        self.send(cycle, store.address, RequestKind::Write, Errand::Store(store), store.waiter);
    }

    fn send(&mut self, cycle: u64, address: u64, kind: RequestKind, errand: Errand, waiter: Waiter) {
        debug_assert!(self.room > 0, "the network takes no more");
        self.room -= 1;
        let line = self.line(address);
        let sectors = 1 << ((address - line) / SECTOR_BYTES as u64);
        let ticket = self.flights.put(Flight { errand, waiter, value: 0 });
        self.last_sent = self.last_sent.max(cycle);
        let request = Request { line, sectors, whole: 0, kind, sm: self.node, ticket };
        self.outbox.push((self.last_sent, request));
    }

    /// An L2 slice serves a message: bytes move. Returns whether memory changed.
    pub fn serve(&mut self, ticket: u32, memory: &mut Memory) -> bool {
        let flight = &mut self.flights[ticket];
        match flight.errand {
            Errand::Load { address, bytes } => {
                flight.value = word(memory, address, bytes);
                false
            }
            Errand::Store(Store { address, bytes, value, .. }) => {
                let before = word(memory, address, bytes);
                memory.write(address, &value.to_le_bytes()[..bytes as usize]);
                before != word(memory, address, bytes)
            }
            Errand::Atomic { address, op, ty, operands: [b, c] } => {
                let found = word(memory, address, ty.bytes());
                let new = atomic(AtomicUnit::L2, op, ty, [found, b, c]);
                memory.write(address, &new.to_le_bytes()[..ty.bytes() as usize]);
                flight.value = found;
                found != word(memory, address, ty.bytes())
            }
        }
    }

    /// The answer to a message arrives in a cycle.
    pub fn arrive(&mut self, cycle: u64, ticket: u32) -> Done {
        let Flight { errand, waiter, value } = self.flights[ticket];
        self.flights.give_back(ticket);
        match errand {
            Errand::Load { .. } => {}
            Errand::Store(_) => {
                self.stores.pop_front();
                self.storing = false;
                self.next_store(cycle);
            }
            Errand::Atomic { .. } => self.atomics -= 1,
        }
        Done { waiter, value }
    }

    /// Whether nothing is on its way.
    pub fn is_idle(&self) -> bool {
        self.flights.in_use() == 0 && self.stores.is_empty()
    }
}

fn word(memory: &Memory, address: u64, bytes: u32) -> u64 {
    let data = memory.read(address, bytes as usize).unwrap_or(&[]);
    data.iter().rev().fold(0, |value, &byte| value << 8 | byte as u64)
}
