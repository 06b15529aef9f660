//! Warps whose state moves between the SM and memory, a line a cycle beside the load/store unit, past the L1. When a
//! state is saved, the warp's restart record follows it, into the channel that firmware takes such records from.

use std::collections::VecDeque;

use crate::kit::cycle::Cycle;
use crate::kit::ids::SwitchId;
use crate::kit::line::LineAddress;
use crate::kit::slab::Slab;

/// A warp's state on its way.
#[derive(Clone, Debug)]
pub(crate) struct Switch {
    /// The warp: its slot while it leaves, its number among those that are away while it comes back.
    pub warp: u32,
    /// What it waits for.
    pub resource: u64,
    /// It goes to memory.
    pub saves: bool,
    /// Its bytes, in whole lines. Once they are saved, those of its restart record.
    pub image: Vec<u8>,
    /// Where they go or come from; 0 as long as there is no place.
    pub address: u64,
    /// Where the state is saved, and its bytes.
    pub saved: Option<(u64, usize)>,
    sent: usize,
    answered: usize,
}

/// A place in the restart channel: its address, and the number of the record from 1 on.
pub(crate) type RecordPlace = (u64, u32);

/// A line to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Line {
    /// Of this switch.
    pub switch: SwitchId,
    /// Its number in the state.
    pub index: usize,
    /// Where.
    pub address: LineAddress,
    /// It is written.
    pub saves: bool,
}

/// All states on their way.
#[derive(Debug, Default)]
#[repr(C)]
pub(crate) struct Switches {
    /// Those with lines to send, in order.
    queue: VecDeque<SwitchId>,
    /// Those of which all has been answered.
    pub done: Vec<SwitchId>,
    /// Those whose state is saved and whose restart record has no place yet, in order.
    saved: VecDeque<SwitchId>,
    all: Slab<SwitchId, Switch>,
    line_bytes: usize,
    /// When the next line can go.
    free_at: Cycle,
    /// Memory that is no longer needed: bytes and address.
    pub free: Vec<(usize, u64)>,
}

impl Switches {
    /// Whether no line waits to be sent.
    #[inline(always)]
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// A state of so many bytes begins to move, in whole lines. A state that leaves has no place yet.
    pub(crate) fn begin(
        &mut self,
        warp: u32,
        resource: u64,
        mut image: Vec<u8>,
        from: Option<u64>,
        line_bytes: usize,
    ) {
        self.line_bytes = line_bytes;
        image.resize(image.len().next_multiple_of(line_bytes), 0);
        let (saves, address) = (from.is_none(), from.unwrap_or(0));
        let switch = Switch { warp, resource, saves, image, address, saved: None, sent: 0, answered: 0 };
        let id = self.all.put(switch);
        self.queue.push_back(id);
    }

    /// A state is where it belongs.
    pub(crate) fn end(&mut self, switch: SwitchId) -> Switch {
        let ended = &mut self.all[switch];
        let image = std::mem::take(&mut ended.image);
        let ended = Switch { image, ..ended.clone() };
        self.all.give_back(switch);
        ended
    }

    /// Whether a state needs a place in memory.
    pub(crate) fn wants_room(&self) -> bool {
        self.queue.iter().any(|&id| self.all[id].address == 0)
    }

    /// States without a place get one.
    pub(crate) fn give_room<E>(&mut self, mut take: impl FnMut(usize) -> Result<u64, E>) -> Result<(), E> {
        for &id in &self.queue {
            let switch = &mut self.all[id];
            if switch.address == 0 {
                switch.address = take(switch.image.len())?;
            }
        }
        Ok(())
    }

    /// Whether a restart record needs a place in memory.
    pub(crate) fn wants_record(&self) -> bool {
        !self.saved.is_empty()
    }

    /// Restart records get places, as long as there are any. A record is a line: its number, which says that it is
    /// there, the address of the saved state, and what the warp waits for.
    pub(crate) fn give_records(&mut self, mut take: impl FnMut() -> Option<RecordPlace>) {
        while let Some(&id) = self.saved.front() {
            let Some((place, number)) = take() else { return };
            self.saved.pop_front();
            let switch = &mut self.all[id];
            let words = [u64::from(number), switch.address, switch.resource];
            let mut image: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            image.resize(image.len().next_multiple_of(self.line_bytes), 0);
            switch.saved = Some((switch.address, switch.image.len()));
            (switch.image, switch.address, switch.sent, switch.answered) = (image, place, 0, 0);
            self.queue.push_back(id);
        }
    }

    /// When the next line can go.
    pub(crate) fn next_line(&self) -> Option<Cycle> {
        self.queue.front().filter(|&&id| self.all[id].address != 0).map(|_| self.free_at)
    }

    /// The line that can go at cycle `now`.
    pub(crate) fn line(&self, now: Cycle) -> Option<Line> {
        let &id = self.queue.front().filter(|_| self.free_at <= now)?;
        let switch = &self.all[id];
        let address = LineAddress(switch.address + (switch.sent * self.line_bytes) as u64);
        let line = Line { switch: id, index: switch.sent, address, saves: switch.saves };
        (switch.address != 0).then_some(line)
    }

    /// The line was sent.
    pub(crate) fn sent(&mut self, now: Cycle) {
        self.free_at = now + 1;
        let Some(&id) = self.queue.front() else { return };
        let switch = &mut self.all[id];
        switch.sent += 1;
        if switch.sent * self.line_bytes == switch.image.len() {
            self.queue.pop_front();
        }
    }

    /// The bytes of a state that goes to memory.
    pub(crate) fn image_to_save(&self, switch: SwitchId) -> Option<&[u8]> {
        Some(&self.all[switch]).filter(|switch| switch.saves).map(|switch| &switch.image[..])
    }

    /// The answer to a line has come, with its bytes.
    pub(crate) fn arrived(&mut self, id: SwitchId, index: usize, bytes: &[u8]) {
        let switch = &mut self.all[id];
        if !switch.saves {
            switch.image[index * bytes.len()..][..bytes.len()].copy_from_slice(bytes);
        }
        switch.answered += 1;
        if switch.answered * self.line_bytes < switch.image.len() {
            return;
        }
        if switch.saves && switch.saved.is_none() {
            self.saved.push_back(id);
        } else {
            self.done.push(id);
        }
    }
}
