//! verl's `rollout_rs_*`: what rejection by a divergence would mask.
//!
//! The definitions are those of `compute_rollout_rejection_mask` and `compute_rs_metrics` of verl 0.9.1.

use super::{SAFETY, TINY, deviation, sample_deviation};
use crate::measure::{Damaged, Exact, Range, Reader, Writer};
use std::fmt;

/// What of a sequence is held against the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    Token,
    Sum,
    Mean,
    Max,
}

/// An estimate of a token's divergence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Divergence {
    /// −ℓ
    K1,
    /// ℓ²/2
    K2,
    /// r − 1 − ℓ
    K3,
}

/// verl's names.
const OPTIONS: [(&str, Over, Divergence); 11] = [
    ("token_k1", Over::Token, Divergence::K1),
    ("token_k2", Over::Token, Divergence::K2),
    ("token_k3", Over::Token, Divergence::K3),
    ("seq_sum_k1", Over::Sum, Divergence::K1),
    ("seq_sum_k2", Over::Sum, Divergence::K2),
    ("seq_sum_k3", Over::Sum, Divergence::K3),
    ("seq_mean_k1", Over::Mean, Divergence::K1),
    ("seq_mean_k2", Over::Mean, Divergence::K2),
    ("seq_mean_k3", Over::Mean, Divergence::K3),
    ("seq_max_k2", Over::Max, Divergence::K2),
    ("seq_max_k3", Over::Max, Divergence::K3),
];

/// The options that are on, each with the bounds of its statistic.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rejection {
    bounds: [Option<(f64, f64)>; OPTIONS.len()],
}

impl Rejection {
    /// From verl's `rollout_rs` and `rollout_rs_threshold`: options between commas, and one threshold for all or one for
    /// each; `lower_upper` or an upper ratio for k1, an upper bound for the others.
    ///
    /// # Errors
    /// What is wrong with them, in a line.
    pub fn parse(options: &str, thresholds: &str) -> Result<Self, String> {
        let options: Vec<&str> =
            options.split(',').map(str::trim).filter(|option| !option.is_empty()).collect();
        let written: Vec<&str> =
            thresholds.split(',').map(str::trim).filter(|text| !text.is_empty()).collect();
        if options.is_empty() || (written.len() != 1 && written.len() != options.len()) {
            return Err(format!(
                "{} options and {} thresholds; give one for all or one for each",
                options.len(),
                written.len()
            ));
        }
        let mut rejection = Self::default();
        for (at, option) in options.iter().enumerate() {
            let place = OPTIONS.iter().position(|(name, ..)| name == option).ok_or_else(|| {
                format!(
                    "'{option}' is not a rejection rule; choose one of {}",
                    OPTIONS.map(|(name, ..)| name).join(", ")
                )
            })?;
            let text = written[at.min(written.len() - 1)];
            rejection.bounds[place] = Some(bounds(OPTIONS[place].2, text).ok_or_else(|| {
                format!("'{text}' is not a threshold for {option}; write a number above 0, or for k1 also LOWER_UPPER")
            })?);
        }
        Ok(rejection)
    }

    pub(super) fn write(&self, to: &mut Writer) {
        for bounds in self.bounds {
            to.maybe(bounds.map(|(low, _)| low));
            to.maybe(bounds.map(|(_, high)| high));
        }
    }

    pub(super) fn read(from: &mut Reader<'_>) -> Result<Self, Damaged> {
        let mut rejection = Self::default();
        for bounds in &mut rejection.bounds {
            *bounds = from.maybe()?.zip(from.maybe()?);
        }
        Ok(rejection)
    }

    pub(super) fn is_on(&self) -> bool {
        self.bounds.iter().any(Option::is_some)
    }
}

impl fmt::Display for Rejection {
    /// The options that are on, each with its bounds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let on = OPTIONS.iter().zip(&self.bounds).filter_map(|((name, ..), bounds)| Some((name, (*bounds)?)));
        let written: Vec<String> = on.map(|(name, (low, high))| format!("{name} {low}_{high}")).collect();
        f.write_str(if written.is_empty() { "off" } else { "" })?;
        f.write_str(&written.join(", "))
    }
}

/// Bounds of a statistic; those of k1 are written as ratios.
fn bounds(divergence: Divergence, text: &str) -> Option<(f64, f64)> {
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| *number > 0.0 && number.is_finite());
    match (divergence, text.split_once('_')) {
        (Divergence::K1, Some((lower, upper))) => {
            let (lower, upper) = (number(lower)?, number(upper)?);
            (lower <= upper).then(|| (lower.ln(), upper.ln()))
        }
        (Divergence::K1, None) => number(text).map(|upper| ((1.0 / upper).ln(), upper.ln())),
        (_, None) => number(text).map(|upper| (0.0, upper)),
        _ => None,
    }
}

/// What is summed of an option: of its statistic over tokens, as it is, held within its bounds, and that squared; over sequences
/// with tokens, and that squared.
#[derive(Clone, Copy)]
enum Of {
    Total,
    Held,
    HeldSquared,
    Sequence,
    SequenceSquared,
}

/// Tokens and sequences of an option that are counted.
#[derive(Clone, Copy)]
enum Counted {
    High,
    Low,
    SequencesHigh,
    SequencesLow,
    Masked,
    SequencesMasked,
}

/// Sums of one option.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Sums {
    sums: Exact<5>,
    counts: [u64; 6],
    tokens: Range,
    sequences: Range,
}

impl Sums {
    fn get(&self, of: Of) -> f64 {
        self.sums.value(of as usize)
    }

    fn count(&self, of: Counted) -> f64 {
        self.counts[of as usize] as f64
    }
}

/// The running sums of all options that are on.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rejected {
    settings: Rejection,
    /// One for each option; none where all are off.
    sums: Vec<Sums>,
    sequences: u64,
    filled: u64,
    tokens: u64,
    masked: u64,
    sequences_masked: u64,
}

impl Rejected {
    pub(super) fn new(settings: Rejection) -> Self {
        let options = if settings.is_on() { OPTIONS.len() } else { 0 };
        Self {
            settings,
            sums: vec![Sums::default(); options],
            sequences: 0,
            filled: 0,
            tokens: 0,
            masked: 0,
            sequences_masked: 0,
        }
    }

    /// Adds a sequence by its log-ratios.
    pub(super) fn add(&mut self, logs: &[f64]) {
        self.sequences += 1;
        if !self.settings.is_on() || logs.is_empty() {
            return;
        }
        let count = logs.len() as f64;
        self.filled += 1;
        self.tokens += logs.len() as u64;
        let mut dropped = vec![false; logs.len()];
        for ((_, over, divergence), (bounds, sums)) in
            OPTIONS.iter().zip(self.settings.bounds.iter().zip(&mut self.sums))
        {
            let Some((low, high)) = *bounds else { continue };
            let below = *divergence == Divergence::K1;
            let token = |log: &f64| {
                let log = log.clamp(-SAFETY, SAFETY);
                match divergence {
                    Divergence::K1 => -log,
                    Divergence::K2 => 0.5 * log * log,
                    Divergence::K3 => log.exp() - 1.0 - log,
                }
            };
            let values = || logs.iter().map(token);
            let whole = match over {
                Over::Token | Over::Mean => values().sum::<f64>() / (count + TINY),
                Over::Sum => values().sum(),
                Over::Max => values().fold(f64::NEG_INFINITY, f64::max),
            };
            let out = |value: f64| value > high || (below && value < low);
            let mut any = false;
            for (value, dropped) in values().zip(&mut dropped) {
                let value = if *over == Over::Token { value } else { whole };
                let held = value.clamp(low, high);
                sums.sums.add(&[value, held, held * held, 0.0, 0.0]);
                sums.tokens.add(value);
                sums.counts[Counted::High as usize] += u64::from(value > high);
                sums.counts[Counted::Low as usize] += u64::from(below && value < low);
                sums.counts[Counted::Masked as usize] += u64::from(out(value));
                any |= out(value);
                *dropped |= out(value);
            }
            sums.sums.add(&[0.0, 0.0, 0.0, whole, whole * whole]);
            sums.sequences.add(whole);
            sums.counts[Counted::SequencesHigh as usize] += u64::from(whole > high);
            sums.counts[Counted::SequencesLow as usize] += u64::from(below && whole < low);
            sums.counts[Counted::SequencesMasked as usize] += u64::from(any);
        }
        self.masked += dropped.iter().filter(|dropped| **dropped).count() as u64;
        self.sequences_masked += u64::from(dropped.contains(&true));
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (own, other) in self.sums.iter_mut().zip(&other.sums) {
            own.sums.merge(&other.sums);
            own.counts.iter_mut().zip(other.counts).for_each(|(own, other)| *own += other);
            own.tokens.merge(&other.tokens);
            own.sequences.merge(&other.sequences);
        }
        self.sequences += other.sequences;
        self.filled += other.filled;
        self.tokens += other.tokens;
        self.masked += other.masked;
        self.sequences_masked += other.sequences_masked;
    }

    pub(super) fn write(&self, to: &mut Writer) {
        let own = [self.sequences, self.filled, self.tokens, self.masked, self.sequences_masked];
        own.into_iter().for_each(|count| to.whole(count));
        for sums in &self.sums {
            to.sums(&sums.sums);
            sums.counts.into_iter().for_each(|count| to.whole(count));
            to.range(sums.tokens);
            to.range(sums.sequences);
        }
    }

    /// Reads what was written under the same settings.
    pub(super) fn read(&mut self, from: &mut Reader<'_>) -> Result<(), Damaged> {
        for count in [
            &mut self.sequences,
            &mut self.filled,
            &mut self.tokens,
            &mut self.masked,
            &mut self.sequences_masked,
        ] {
            *count = from.count(1 << 48)? as u64;
        }
        for sums in &mut self.sums {
            sums.sums = from.sums()?;
            for count in &mut sums.counts {
                *count = from.count(1 << 48)? as u64;
            }
            (sums.tokens, sums.sequences) = (from.range()?, from.range()?);
        }
        Ok(())
    }

    pub(super) fn metrics(&self, into: &mut Vec<(String, f64)>) {
        if !self.settings.is_on() {
            return;
        }
        let (count, filled) = (self.tokens as f64, self.filled as f64);
        let tokens = count + TINY;
        for ((name, over, divergence), (bounds, sums)) in
            OPTIONS.iter().zip(self.settings.bounds.iter().zip(&self.sums))
        {
            if bounds.is_none() {
                continue;
            }
            let token = *over == Over::Token;
            let range = if token { &sums.tokens } else { &sums.sequences };
            let by = |of_tokens: Counted, of_sequences: Counted| {
                if token { sums.count(of_tokens) / tokens } else { sums.count(of_sequences) / filled }
            };
            let over = [sums.get(Of::Sequence), sums.get(Of::SequenceSquared)];
            let held = [sums.get(Of::Held), sums.get(Of::HeldSquared)];
            let sequences = &sums.sequences;
            let mut put = |what: &str, value: f64| into.push((format!("rollout_rs_{name}_{what}"), value));
            put("mean", sums.get(Of::Total) / tokens);
            put("max", range.high);
            put("min", range.low);
            put("fraction_high", by(Counted::High, Counted::SequencesHigh));
            put("fraction_low", by(Counted::Low, Counted::SequencesLow));
            put("std", if count > 1.0 { deviation(held, tokens) } else { 0.0 });
            put("seq_mean", over[0] / filled);
            put("seq_std", sample_deviation(over, filled));
            put("seq_max", sequences.high);
            put("seq_min", sequences.low);
            put("seq_max_deviation", sequences.high.abs().max(sequences.low.abs()));
            put("seq_fraction_high", sums.count(Counted::SequencesHigh) / filled);
            if *divergence == Divergence::K1 {
                put("seq_fraction_low", sums.count(Counted::SequencesLow) / filled);
            }
            put("masked_fraction", sums.count(Counted::Masked) / tokens);
            put("seq_masked_fraction", sums.count(Counted::SequencesMasked) / filled);
        }
        into.push(("rollout_rs_masked_fraction".to_owned(), self.masked as f64 / tokens));
        into.push((
            "rollout_rs_seq_masked_fraction".to_owned(),
            self.sequences_masked as f64 / self.sequences as f64,
        ));
    }
}
