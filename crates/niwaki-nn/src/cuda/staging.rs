//! Pinned memory through which host values go to the device: the host fills one part while the device empties others.

use super::device::{Device, Pinned};
use super::event::Event;
use crate::Result;
use rayon::prelude::*;

/// Parts of the memory.
const PARTS: usize = 4;

/// Bytes of a part, where writes are small and where they are large.
const SMALL: usize = 256 << 10;
const LARGE: usize = 8 << 20;

/// Bytes from which on a copy is shared among threads, and pieces no longer travel together.
const SHARED: usize = SMALL;

/// The memory of one device.
pub(super) struct Staging {
    memory: Pinned<u8>,
    /// Bytes of a part.
    size: usize,
    /// When the device is through with each part.
    emptied: [Event; PARTS],
    /// The part that is filled, and how much of it is.
    part: usize,
    filled: usize,
}

impl Staging {
    /// Room for writes of so many bytes; more go through it in turns.
    ///
    /// # Errors
    /// If the host has no room.
    pub(super) fn new(bytes: usize) -> Result<Self> {
        let emptied = [Event::new()?, Event::new()?, Event::new()?, Event::new()?];
        let size = if bytes > PARTS * SMALL { LARGE } else { SMALL };
        Ok(Self { memory: Pinned::new(PARTS * size)?, size, emptied, part: 0, filled: 0 })
    }

    /// Whether writes of so many bytes are worth more room.
    pub(super) fn is_narrow_for(&self, bytes: usize) -> bool {
        self.size < LARGE && bytes > PARTS * SMALL
    }

    /// Starts from the front once the device has emptied everything: what is filled again and again stays in the processor's cache.
    pub(super) fn rewind(&mut self) {
        (self.part, self.filled) = (0, 0);
    }

    /// Queues the way of pieces to places one behind the other, in order; what lies between them is overwritten, too. They travel together
    /// where they are small.
    pub(super) fn write(&mut self, device: &Device, pieces: &[(u64, &[u8])]) -> Result<()> {
        let (Some(&(first, _)), length) = (pieces.first(), extent(pieces)) else { return Ok(()) };
        if pieces.len() == 1 || length > SHARED {
            return pieces.iter().try_for_each(|&(at, bytes)| self.write_one(device, at, bytes));
        }
        if length > self.size - self.filled {
            self.turn(device)?;
        }
        let begins = self.part * self.size + self.filled;
        let room = &mut self.memory.values_mut()[begins..begins + length];
        for (at, bytes) in pieces {
            room[(at - first) as usize..][..bytes.len()].copy_from_slice(bytes);
        }
        device.send(first, room)?;
        self.take(length);
        Ok(())
    }

    /// Copies bytes into free parts and queues their way to `at`.
    fn write_one(&mut self, device: &Device, mut at: u64, mut bytes: &[u8]) -> Result<()> {
        while !bytes.is_empty() {
            if self.filled == self.size {
                self.turn(device)?;
            }
            let (now, later) = bytes.split_at(bytes.len().min(self.size - self.filled));
            let begins = self.part * self.size + self.filled;
            let room = &mut self.memory.values_mut()[begins..begins + now.len()];
            if now.len() < SHARED {
                room.copy_from_slice(now);
            } else {
                let pieces = room.par_chunks_mut(SHARED / 4).zip(now.par_chunks(SHARED / 4));
                pieces.for_each(|(to, from)| to.copy_from_slice(from));
            }
            device.send(at, room)?;
            self.take(now.len());
            at += now.len() as u64;
            bytes = later;
        }
        Ok(())
    }

    /// Goes on to the next part, once the device is through with it.
    fn turn(&mut self, device: &Device) -> Result<()> {
        device.mark(&self.emptied[self.part])?;
        self.part = (self.part + 1) % PARTS;
        self.filled = 0;
        // Never marked, it is over.
        self.emptied[self.part].wait()
    }

    /// Counts bytes as filled; pieces start on a cache line.
    fn take(&mut self, bytes: usize) {
        self.filled = (self.filled + bytes).next_multiple_of(64).min(self.size);
    }
}

/// Bytes from the first of some places to the end of the last.
pub(super) fn extent(pieces: &[(u64, &[u8])]) -> usize {
    let (Some((first, _)), Some((last, end))) = (pieces.first(), pieces.last()) else { return 0 };
    (last - first) as usize + end.len()
}
