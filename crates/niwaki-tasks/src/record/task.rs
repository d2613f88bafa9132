//! What a filled record pays, and the sequence of choices that policies play.

use super::Record;
use crate::Sequence;

/// What a filled record pays.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Rule {
    /// The first case whose slots are all filled so: `(slot, candidate)` pairs and what it pays.
    Cases(Vec<(Vec<(usize, usize)>, f64)>),
    /// 1 where these slots are filled with the same text.
    Equal(Vec<usize>),
    /// By a table over these slots, the first slowest.
    Table(Vec<usize>, Vec<f64>),
}

/// A record with what it pays: one choice per slot.
///
/// Paper: `app:pretrained` (structured records)
#[derive(Clone, Debug, PartialEq)]
pub struct RecordTask {
    pub(super) record: Record,
    pub(super) rule: Rule,
}

impl RecordTask {
    /// The record.
    #[must_use]
    pub fn record(&self) -> &Record {
        &self.record
    }
}

impl Sequence for RecordTask {
    fn vocab(&self) -> usize {
        self.record.slots.iter().map(|slot| slot.candidates.len()).max().unwrap_or(0)
    }

    fn horizon(&self) -> usize {
        self.record.slots.len()
    }

    fn masked(&self) -> bool {
        self.record.slots.iter().any(|slot| slot.candidates.len() < self.vocab())
    }

    fn open(&self, prefix: &[usize], open: &mut [bool]) {
        let count = self.record.slots[prefix.len()].candidates.len();
        open.iter_mut().enumerate().for_each(|(token, open)| *open = token < count);
    }

    fn reward(&self, choices: &[usize]) -> f64 {
        match &self.rule {
            Rule::Cases(cases) => {
                let holds =
                    |when: &[(usize, usize)]| when.iter().all(|&(slot, choice)| choices[slot] == choice);
                cases.iter().find(|(when, _)| holds(when)).map_or(0.0, |(_, pays)| *pays)
            }
            Rule::Equal(slots) => {
                let text = |slot: usize| &self.record.slots[slot].candidates[choices[slot]];
                f64::from(u8::from(slots.windows(2).all(|pair| text(pair[0]) == text(pair[1]))))
            }
            Rule::Table(slots, pays) => {
                let place =
                    |at: usize, &slot: &usize| at * self.record.slots[slot].candidates.len() + choices[slot];
                pays[slots.iter().fold(0, place)]
            }
        }
    }
}
