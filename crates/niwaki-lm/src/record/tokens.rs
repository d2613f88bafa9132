//! A record's tokens: every candidate is one token wherever it stands, and all records are cut alike.

use crate::{Error, Result, Text, Vocabulary};
use niwaki_tasks::Record;
use std::ops::Range;

/// A record as a model reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordTokens {
    /// What stands before the first slot.
    pub prompt: Vec<u32>,
    /// What stands between a slot and the next, `[slots − 1]`.
    pub between: Vec<Vec<u32>>,
    /// The candidates of each slot.
    pub candidates: Vec<Vec<u32>>,
}

impl RecordTokens {
    /// Cuts a record behind one of its primings into tokens.
    ///
    /// # Errors
    /// If there is no such priming, or some candidate is not a single token in its place, or changes the tokens beside it.
    pub fn new(text: &Text, record: &Record, prime: Option<&str>) -> Result<Self> {
        let before = record.prompt(prime)?;
        let slots = record.slots();
        let mut plain = vec![0; slots.len()];
        let base = Cut::of(text, record, &before, &plain)?;
        if base.prompt.is_empty() {
            let reason = "stands at the very beginning, where a model has read nothing; begin the template with a text, \
                or give a priming";
            return Err(refuse(record, 0, &slots[0].candidates[0], reason.to_owned()));
        }
        let mut candidates = Vec::new();
        for (slot, of) in slots.iter().enumerate() {
            let mut tokens = Vec::new();
            for (choice, candidate) in of.candidates.iter().enumerate() {
                plain[slot] = choice;
                let cut = Cut::of(text, record, &before, &plain)?;
                if cut.between != base.between || cut.prompt != base.prompt {
                    let reason =
                        "changes the tokens beside it; choose another, or another template".to_owned();
                    return Err(refuse(record, slot, candidate, reason));
                }
                tokens.push(cut.chosen[slot]);
            }
            plain[slot] = 0;
            candidates.push(tokens);
        }
        Ok(Self { prompt: base.prompt, between: base.between, candidates })
    }

    /// Every token that occurs.
    #[must_use]
    pub fn vocabulary(&self) -> Vocabulary {
        let rest = self.between.iter().chain(&self.candidates).flatten();
        Vocabulary::of(self.prompt.iter().chain(rest).copied())
    }

    /// Candidates of each slot.
    #[must_use]
    pub fn counts(&self) -> Vec<usize> {
        self.candidates.iter().map(Vec::len).collect()
    }

    /// Tokens of a record up to its last slot, the prompt not counted.
    #[must_use]
    pub fn row(&self) -> usize {
        self.candidates.len() + self.between.iter().map(Vec::len).sum::<usize>()
    }
}

fn refuse(record: &Record, slot: usize, candidate: &str, reason: String) -> Error {
    let slot = record.slots()[slot].name.clone();
    Error::Candidate { path: record.path().to_owned(), slot, candidate: candidate.to_owned(), reason }
}

/// One filled record in tokens.
struct Cut {
    prompt: Vec<u32>,
    between: Vec<Vec<u32>>,
    chosen: Vec<u32>,
}

impl Cut {
    fn of(text: &Text, record: &Record, before: &str, choices: &[usize]) -> Result<Self> {
        let whole = format!("{}{}", &before[..before.len() - record.pieces()[0].len()], record.text(choices));
        let spans = text.spans(&whole)?;
        let mut at = before.len();
        let (mut places, mut chosen) = (Vec::new(), Vec::new());
        for (slot, &choice) in choices.iter().enumerate() {
            let candidate = &record.slots()[slot].candidates[choice];
            let place: Range<usize> = at..at + candidate.len();
            let Some(found) = spans.iter().position(|(_, span)| *span == place) else {
                let pieces: Vec<&str> = (spans.iter())
                    .filter(|(_, span)| span.start < place.end && place.start < span.end)
                    .filter_map(|(_, span)| whole.get(span.clone()))
                    .collect();
                let reason =
                    format!("is not a single token in its place: the tokenizer cuts '{}'", pieces.join("|"));
                return Err(refuse(record, slot, candidate, reason));
            };
            places.push(found);
            chosen.push(spans[found].0);
            at = place.end + record.pieces()[slot + 1].len();
        }
        let tokens = |range: Range<usize>| spans[range].iter().map(|(token, _)| *token).collect::<Vec<u32>>();
        let between = places.windows(2).map(|pair| tokens(pair[0] + 1..pair[1])).collect();
        Ok(Self { prompt: tokens(0..places[0]), between, chosen })
    }
}
