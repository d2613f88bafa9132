//! A tally as a file: what was measured, without a single log-prob.
//!
//! ```text
//! NIWAKI-TALLY  version (4 bytes)  length of what follows (8)  settings, ranks, folds, iterations, …  checksum (8)
//! ```
//!
//! Numbers are little-endian. The checksum is that of all bytes before it, so that a file that is cut short or changed is refused;
//! another version is refused by its number.

use super::code::{Damaged, Reader, Writer};
use super::lags::{Lags, OLDEST};
use super::part::Cell;
use super::position::Places;
use super::run::{Iteration, Measure, PLACES, Sums};
use super::settings::Settings;
use super::signal::{Group, Rewards};
use crate::read::limits::LONGEST;
use crate::trajectory::{Against, Clock, LeftOut};
use crate::verl;
use niwaki_correction::Clip;
use niwaki_files::Digest;
use std::collections::BTreeSet;
use thiserror::Error;

const MARK: &[u8; 12] = b"NIWAKI-TALLY";
const VERSION: u32 = 2;
/// Bytes before what is measured.
const HEAD: usize = MARK.len() + 12;
/// Bytes of the checksum.
const FOOT: usize = 8;
/// More trajectories or steps than anybody has.
const MANY: u64 = 1 << 48;
/// Ranks of the largest machine.
const RANKS: u64 = 1 << 20;

/// Bytes that are not a tally.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum Unreadable {
    /// They begin otherwise.
    #[error("not a tally: its first bytes are not NIWAKI-TALLY")]
    Mark,
    /// Written by another version.
    #[error(
        "a tally of version {version}, and this program reads version {VERSION}; measure again, or read it with the niwaki that wrote it"
    )]
    Version {
        /// Its version.
        version: u32,
    },
    /// Cut short, or changed.
    #[error("a damaged tally: {0}")]
    Damaged(&'static str),
}

impl From<Damaged> for Unreadable {
    fn from(Damaged(why): Damaged) -> Self {
        Self::Damaged(why)
    }
}

impl Measure {
    /// The tally as bytes. The same trajectories give the same bytes, in whatever order they were added or merged.
    #[must_use]
    pub fn tally(&self) -> Vec<u8> {
        let mut writer = Writer::default();
        write(&mut writer, &self.sums);
        let mut bytes = MARK.to_vec();
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend((writer.bytes.len() as u64).to_le_bytes());
        bytes.append(&mut writer.bytes);
        bytes.extend(Digest::of(&bytes).value().to_le_bytes());
        bytes
    }

    /// Reads a tally.
    ///
    /// # Errors
    /// Where the bytes are not one.
    pub fn from_tally(bytes: &[u8]) -> Result<Self, Unreadable> {
        if !bytes.starts_with(MARK) {
            return Err(Unreadable::Mark);
        }
        let short = Unreadable::Damaged("it ends too early");
        let (head, rest) = bytes.split_at_checked(HEAD).ok_or_else(|| short.clone())?;
        let mut version = [0; 4];
        version.copy_from_slice(&head[MARK.len()..MARK.len() + 4]);
        let version = u32::from_le_bytes(version);
        if version != VERSION {
            return Err(Unreadable::Version { version });
        }
        let mut length = [0; 8];
        length.copy_from_slice(&head[MARK.len() + 4..]);
        let length = u64::from_le_bytes(length);
        if rest.len() < FOOT || ((rest.len() - FOOT) as u64) < length {
            return Err(short);
        }
        if (rest.len() - FOOT) as u64 > length {
            return Err(Unreadable::Damaged("it goes on behind its end"));
        }
        let (measured, foot) = bytes.split_at(bytes.len() - FOOT);
        if Digest::of(measured).value().to_le_bytes() != foot {
            return Err(Unreadable::Damaged("its checksum is another"));
        }
        let mut reader = Reader::new(&measured[HEAD..]);
        let sums = read(&mut reader)?;
        if reader.is_done() {
            Ok(Self::of(sums))
        } else {
            Err(Unreadable::Damaged("it goes on behind its end"))
        }
    }
}

fn write(to: &mut Writer, sums: &Sums) {
    let Settings { clip, ess_floor, batch, against, verl } = sums.settings;
    to.float(clip.low);
    to.float(clip.high);
    to.maybe(clip.dual);
    to.float(ess_floor);
    to.maybe(batch);
    to.flag(against == Against::Behaviour);
    verl.write(to);
    to.count(sums.rank.map_or(0, |rank| rank as usize + 1));
    to.count(sums.world.map_or(0, |world| world as usize));
    ranks(to, &sums.ranks);
    to.count(sums.places);
    to.count(sums.trajectories);
    to.count(sums.thinned);
    to.count(sums.left_out.earlier_uses);
    to.count(sums.left_out.unscored_steps);
    to.flag(sums.engines);
    to.count(match sums.clock {
        None => 0,
        Some(Clock::Versions) => 1,
        Some(Clock::Ages) => 2,
    });
    sums.folds.iter().for_each(|cell| write_cell(to, cell));
    to.count(sums.iterations.len());
    for (number, Iteration { cell, rewards, verl, lags, ranks: own }) in &sums.iterations {
        to.signed(*number);
        ranks(to, own);
        write_cell(to, cell);
        [rewards.lanes, rewards.known, rewards.rewarded, rewards.own_baseline]
            .into_iter()
            .for_each(|count| to.count(count));
        to.sums(&rewards.sum);
        to.range(rewards.range);
        verl.write(to);
        write_lags(to, lags);
    }
    let groups = sums.groups.each();
    to.count(groups.len());
    for ((iteration, key), Group { signal, own_baseline }) in groups {
        to.signed(iteration);
        to.key(key);
        to.flag(signal);
        to.flag(own_baseline);
    }
    let mut log_ratios = sums.log_ratios.clone();
    log_ratios.counts().iter().for_each(|count| to.sums(count));
}

fn ranks(to: &mut Writer, ranks: &BTreeSet<u32>) {
    to.count(ranks.len());
    ranks.iter().for_each(|&rank| to.whole(rank.into()));
}

fn write_cell(to: &mut Writer, cell: &Cell) {
    let Places { shift, sums, longest, .. } = &cell.places;
    [cell.lanes, cell.steps, *shift as usize, *longest].into_iter().for_each(|count| to.count(count));
    sums.iter().for_each(|sums| to.sums(sums));
    to.sums(&cell.plain);
    to.sums(&cell.wide);
}

fn read(from: &mut Reader<'_>) -> Result<Sums, Damaged> {
    let clip = Clip { low: from.float()?, high: from.float()?, dual: from.maybe()? };
    let (ess_floor, batch) = (from.float()?, from.maybe()?);
    let against = if from.flag()? { Against::Behaviour } else { Against::Old };
    let settings = Settings { clip, ess_floor, batch, against, verl: verl::Settings::read(from)? };
    if settings.check().is_err() {
        return Err(Damaged("its settings mean nothing"));
    }
    let mut sums = Sums::new(settings);
    let rank = from.count(RANKS)? as u32;
    sums.rank = rank.checked_sub(1);
    let world = from.count(RANKS)? as u32;
    sums.world = (world > 0).then_some(world);
    sums.ranks = read_ranks(from)?;
    sums.places = from.count(PLACES as u64)?.max(1);
    sums.trajectories = from.count(MANY)?;
    sums.thinned = from.count(MANY)?;
    sums.left_out = LeftOut { earlier_uses: from.count(MANY)?, unscored_steps: from.count(MANY)? };
    sums.engines = from.flag()?;
    sums.clock = match from.count(2)? {
        0 => None,
        1 => Some(Clock::Versions),
        _ => Some(Clock::Ages),
    };
    for fold in &mut sums.folds {
        *fold = read_cell(from, PLACES)?;
    }
    for _ in 0..from.count(MANY)? {
        let number = from.signed()?;
        let mut own = Iteration::new(sums.places, settings.verl);
        own.ranks = read_ranks(from)?;
        own.cell = read_cell(from, sums.places)?;
        let [lanes, known, rewarded, own_baseline] =
            [from.count(MANY)?, from.count(MANY)?, from.count(MANY)?, from.count(MANY)?];
        own.rewards =
            Rewards { lanes, known, sum: from.sums()?, range: from.range()?, rewarded, own_baseline };
        own.verl.read(from)?;
        own.lags = read_lags(from)?;
        if sums.iterations.insert(number, own).is_some() {
            return Err(Damaged("an iteration is there twice"));
        }
    }
    for _ in 0..from.count(MANY)? {
        let key = (from.signed()?, from.key()?);
        sums.groups.insert(key, Group { signal: from.flag()?, own_baseline: from.flag()? });
    }
    for count in sums.log_ratios.counts() {
        *count = from.sums()?;
    }
    sums.thin();
    Ok(sums)
}

fn write_lags(to: &mut Writer, lags: &Lags) {
    to.flag(lags.newest > i64::MIN);
    if lags.newest == i64::MIN {
        return;
    }
    to.signed(lags.newest);
    for (by, beyond) in [&lags.steps, &lags.oldest].into_iter().zip(&lags.beyond) {
        to.count(by.len());
        for (version, sums) in by {
            to.signed(*version);
            to.sums(sums);
        }
        to.sums(beyond);
    }
}

fn read_lags(from: &mut Reader<'_>) -> Result<Lags, Damaged> {
    let mut lags = Lags::default();
    if !from.flag()? {
        return Ok(lags);
    }
    let apart = |version: &i64| version.unsigned_abs() < 1 << 53;
    let wrong = || Damaged("a version is out of range");
    lags.newest = Some(from.signed()?).filter(apart).ok_or_else(wrong)?;
    let newest = lags.newest;
    for (by, beyond) in [&mut lags.steps, &mut lags.oldest].into_iter().zip(&mut lags.beyond) {
        for _ in 0..from.count(OLDEST as u64)? {
            let version = Some(from.signed()?).filter(apart).ok_or_else(wrong)?;
            if !(0..OLDEST).contains(&(newest - version)) {
                return Err(wrong());
            }
            by.insert(version, from.sums()?);
        }
        *beyond = from.sums()?;
    }
    Ok(lags)
}

fn read_ranks(from: &mut Reader<'_>) -> Result<BTreeSet<u32>, Damaged> {
    (0..from.count(RANKS)?).map(|_| from.count(RANKS).map(|rank| rank as u32)).collect()
}

fn read_cell(from: &mut Reader<'_>, limit: usize) -> Result<Cell, Damaged> {
    let mut cell = Cell::limited(limit);
    (cell.lanes, cell.steps) = (from.count(MANY)?, from.count(MANY)?);
    let shift = from.count(LONGEST.ilog2().into())? as u32;
    let longest = from.count(LONGEST as u64)?;
    let places = longest.div_ceil(1 << shift);
    if places > limit {
        return Err(Damaged("a trajectory has more places than are kept"));
    }
    (cell.places.shift, cell.places.longest) = (shift, longest);
    for _ in 0..places {
        cell.places.sums.push(from.sums()?);
    }
    (cell.plain, cell.wide) = (from.sums()?, from.sums()?);
    Ok(cell)
}
