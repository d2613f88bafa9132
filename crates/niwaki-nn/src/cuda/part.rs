//! Gradients over some of each member's items, in the memory of the passes over all of them.
//!
//! Members may have signal in different numbers of items, but a batched program has equally many for each. So the items
//! that stay are dealt to *shares* of a quarter of a member's items. A share runs like a member, with a copy of its
//! member's parameters, and the gradients of a member's shares are added up. What a share has too few items for, and shares that nobody
//! needs, are asked for nothing. Tapes are written once for each number of shares; there are few such numbers.

use super::device::{Buffer, Device};
use super::kernels::{ITEMS, Kernels};
use super::lower::{Addresses, SCALAR, padded};
use super::parameters::{Gradient, Parameters};
use super::session::{Flat, Inputs, Pass, Session, Wanted, addresses};
use super::tape::{Tape, arguments};
use crate::Result;
use crate::graph::{Graph, IndexSource};

/// Shares of a member that keeps all its items.
const SHARES: usize = 4;

/// Numbers of shares that tapes are written for.
const SIZES: usize = 16;

/// Some items of one member, in order.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) member: usize,
    pub(super) items: Vec<usize>,
}

/// Which part is worked on, and what its shares are.
pub(super) struct Left {
    /// Its place among the session's parts.
    pub(super) part: usize,
    pub(super) shares: Vec<Share>,
}

/// Tapes for one number of shares.
pub(super) struct Part {
    /// Shares, idle ones among them.
    pub(super) shares: usize,
    /// Items of a share.
    pub(super) slots: usize,
    pub(super) passes: Vec<Pass>,
    pub(super) copies: Copies,
    inputs: Inputs,
    /// `[share, slot]`: which of all members' items stands there.
    picks: Buffer,
    /// Scratch and what tapes make once.
    _room: [Buffer; 2],
}

/// The parameters and gradients of shares.
pub(super) struct Copies {
    parameters: Parameters,
    gradient: Buffer,
    /// `[share]`: whose it is.
    owners: Buffer,
    /// `[member + 1]`: where a member's shares begin.
    starts: Buffer,
    shares: usize,
    members: usize,
    /// Quads of a member's flat parameters.
    quads: usize,
}

/// Items of a share, where members have so many.
pub(super) fn slots_of(items: usize) -> usize {
    items.div_ceil(SHARES).max(1)
}

/// Deals the items that stay to shares.
pub(super) fn deal(silent: &[Vec<bool>], slots: usize) -> Vec<Share> {
    let mut shares = Vec::new();
    for (member, silent) in silent.iter().enumerate() {
        let stay: Vec<usize> = (0..silent.len()).filter(|&item| !silent[item]).collect();
        shares.extend(stay.chunks(slots).map(|items| Share { member, items: items.to_vec() }));
    }
    shares
}

/// The shares that a part has which so many need: the next of a few numbers.
pub(super) fn room_for(members: usize, needed: usize) -> usize {
    needed.max(1).next_multiple_of((SHARES * members).div_ceil(SIZES).max(1))
}

impl Part {
    /// Writes the tapes, with the arenas of the session's passes; nothing where these do not hold them.
    pub(super) fn new(
        device: &Device,
        session: &Session,
        whole: &Wanted<'_>,
        shares: usize,
    ) -> Result<Option<Self>> {
        let slots = slots_of(whole.items);
        let copies = Copies::new(device, whole, shares)?;
        let flat = Flat {
            parameters: copies.parameters.at(),
            rounded: copies.parameters.rounded_at(),
            gradient: copies.gradient.at,
            places: whole.flat.places,
            squares: None,
            live: None,
        };
        let wanted = Wanted { flat, members: shares, items: slots, ..*whole };
        let inputs = Inputs::new(device, wanted.tools.graph, shares * slots)?;
        let size = shares.div_ceil(session.laid.passes.len().max(1));
        let [arena, scratch, shared] = wanted.needs(&inputs, size)?;
        if arena > session.laid.arena {
            return Ok(None);
        }
        let room = [device.allocate(scratch)?, device.allocate(shared)?];
        let mut passes = Vec::new();
        for (pass, start) in session.laid.passes.iter().zip((0..shares).step_by(size)) {
            let members = start..(start + size).min(shares);
            let addresses = Addresses {
                arena: pass.arena,
                scratch: room[0].at,
                shared: room[1].at,
                ..addresses(wanted.tools.graph, &inputs, flat, &members, slots)
            };
            passes.push(Pass::new(&wanted, members, &addresses)?);
        }
        let picks = device.allocate(shares * slots * SCALAR)?;
        Ok(Some(Self { shares, slots, passes, copies, inputs, picks, _room: room }))
    }

    /// Copies the inputs of the items that stay to their slots; an idle slot takes the first item.
    pub(super) fn fill(
        &self,
        device: &Device,
        kernels: &Kernels,
        (graph, whole, items): (&Graph, &Inputs, usize),
        shares: &[Share],
    ) -> Result<()> {
        let mut picks = vec![0_i32; self.shares * self.slots];
        for (picks, share) in picks.chunks_exact_mut(self.slots).zip(shares) {
            for (pick, item) in picks.iter_mut().zip(&share.items) {
                *pick = (share.member * items + item) as i32;
            }
        }
        device.write(self.picks.at, &picks)?;
        self.copies.own(device, shares)?;
        let mut tape = Tape::default();
        let mut copy = |from: u64, to: u64, bytes: usize| {
            let words = bytes.is_multiple_of(SCALAR);
            let (name, size) = if words { ("pick_words", bytes / SCALAR) } else { ("pick_bytes", bytes) };
            let arguments = arguments![from, to, self.picks.at, size];
            tape.kernel("items", kernels.get(ITEMS, name)?, (picks.len(), 1, 1), 256, 0, arguments)
        };
        for named in graph.inputs() {
            let place = named.what.position();
            if let (Some(from), Some(to)) = (whole.scalars[place], self.inputs.scalars[place]) {
                copy(from, to, graph.shape(named.what).size() * SCALAR)?;
            }
        }
        for (place, source) in graph.index_sources().iter().enumerate() {
            // Constants stand there already.
            if let IndexSource::Input { rows, .. } = source {
                copy(whole.indices[place], self.inputs.indices[place], rows * SCALAR)?;
            }
        }
        for (place, mask) in graph.masks().iter().enumerate() {
            copy(whole.masks[place], self.inputs.masks[place], mask.what.size())?;
        }
        tape.run(device)
    }
}

impl Copies {
    fn new(device: &Device, whole: &Wanted<'_>, shares: usize) -> Result<Self> {
        let length = padded(whole.tools.graph);
        let bytes = shares * length * SCALAR;
        let parameters = Parameters::new(device, shares, length, whole.tools.precision)?;
        let gradient = device.allocate(bytes)?;
        // As in the members' own: what no output reaches keeps a gradient of zero.
        device.zero(gradient.at, bytes)?;
        Ok(Self {
            parameters,
            gradient,
            owners: device.allocate(shares * SCALAR)?,
            starts: device.allocate((whole.members + 1) * SCALAR)?,
            shares,
            members: whole.members,
            quads: length / 4,
        })
    }

    /// Says whose the shares are; idle ones are the first member's.
    fn own(&self, device: &Device, shares: &[Share]) -> Result<()> {
        let mut owners: Vec<i32> = shares.iter().map(|share| share.member as i32).collect();
        owners.resize(self.shares, 0);
        let starts: Vec<i32> = (0..=self.members)
            .map(|member| shares.partition_point(|share| share.member < member) as i32)
            .collect();
        device.write(self.owners.at, &owners)?;
        device.write(self.starts.at, &starts)
    }

    /// Queues copies of the members' parameters to their shares.
    pub(super) fn lend(&self, device: &Device, kernels: &Kernels, from: &Parameters) -> Result<()> {
        let lend = |from: u64, to: u64, quads: usize| {
            let arguments = arguments![from, to, self.owners.at, quads];
            self.queue(device, kernels, "lend_parameters", self.shares, arguments)
        };
        lend(from.at(), self.parameters.at(), self.quads)?;
        match (from.rounded_at(), self.parameters.rounded_at()) {
            // Half as many bytes.
            (Some(from), Some(to)) => lend(from, to, self.quads / 2),
            _ => Ok(()),
        }
    }

    /// Queues the sums of the shares' gradients.
    pub(super) fn collect(&self, device: &Device, kernels: &Kernels, gradient: &Gradient) -> Result<()> {
        let arguments =
            arguments![self.gradient.at, gradient.at(), gradient.places_at(), self.starts.at, self.quads];
        self.queue(device, kernels, "collect_gradients", self.members, arguments)
    }

    fn queue(
        &self,
        device: &Device,
        kernels: &Kernels,
        name: &'static str,
        rows: usize,
        arguments: super::tape::Arguments,
    ) -> Result<()> {
        let mut tape = Tape::default();
        let grid = (self.quads.div_ceil(256), rows, 1);
        tape.kernel("shares", kernels.get(ITEMS, name)?, grid, 256, 0, arguments)?;
        tape.run(device)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_dealt_to_shares_of_a_quarter() {
        // Of 8 items the first member keeps 0, 2, 3, 4 and 7, the second none, the third all.
        let silent =
            [[false, true, false, false, false, true, true, false].to_vec(), vec![true; 8], vec![false; 8]];
        let slots = slots_of(8);
        let shares = deal(&silent, slots);
        let items: Vec<(usize, &[usize])> =
            shares.iter().map(|share| (share.member, &*share.items)).collect();
        let expected: [(usize, &[usize]); 7] =
            [(0, &[0, 2]), (0, &[3, 4]), (0, &[7]), (2, &[0, 1]), (2, &[2, 3]), (2, &[4, 5]), (2, &[6, 7])];
        assert_eq!((slots, items.as_slice()), (2, expected.as_slice()));
    }

    #[test]
    fn few_sizes_hold_every_number_of_shares() {
        // 100 members have up to 400 shares, in steps of 25.
        assert_eq!([0, 1, 25, 26, 399].map(|needed| room_for(100, needed)), [25, 25, 25, 50, 400]);
        assert_eq!([0, 1, 3].map(|needed| room_for(1, needed)), [1, 1, 3]);
    }
}
