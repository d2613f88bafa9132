//! verl's `rollout_rs_*`: what rejection by a divergence would mask.
//!
//! The definitions are those of `compute_rollout_rejection_mask` and `compute_rs_metrics` of verl 0.9.1.

use super::{Range, SAFETY, Spread, TINY};

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

    pub(super) fn is_on(&self) -> bool {
        self.bounds.iter().any(Option::is_some)
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

/// Sums of one option.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    /// Of the statistic over tokens, as it is and held within its bounds.
    total: f64,
    tokens: Range,
    held: Spread,
    high: f64,
    low: f64,
    /// Over sequences with tokens.
    sequences: Spread,
    sequences_high: f64,
    sequences_low: f64,
    masked: f64,
    sequences_masked: f64,
}

/// The running sums of all options that are on.
#[derive(Clone, Debug)]
pub(super) struct Rejected {
    settings: Rejection,
    sums: Vec<Sums>,
    sequences: f64,
    filled: f64,
    tokens: f64,
    masked: f64,
    sequences_masked: f64,
}

impl Rejected {
    pub(super) fn new(settings: Rejection) -> Self {
        Self {
            settings,
            sums: vec![Sums::default(); OPTIONS.len()],
            sequences: 0.0,
            filled: 0.0,
            tokens: 0.0,
            masked: 0.0,
            sequences_masked: 0.0,
        }
    }

    /// Adds a sequence by its log-ratios.
    pub(super) fn add(&mut self, logs: &[f64]) {
        self.sequences += 1.0;
        if !self.settings.is_on() || logs.is_empty() {
            return;
        }
        let count = logs.len() as f64;
        self.filled += 1.0;
        self.tokens += count;
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
                sums.total += value;
                sums.tokens.add(value);
                sums.held.add(value.clamp(low, high), 1.0);
                sums.high += f64::from(u8::from(value > high));
                sums.low += f64::from(u8::from(below && value < low));
                sums.masked += f64::from(u8::from(out(value)));
                any |= out(value);
                *dropped |= out(value);
            }
            sums.sequences.add(whole, 1.0);
            sums.sequences_high += f64::from(u8::from(whole > high));
            sums.sequences_low += f64::from(u8::from(below && whole < low));
            sums.sequences_masked += f64::from(u8::from(any));
        }
        self.masked += dropped.iter().filter(|dropped| **dropped).count() as f64;
        self.sequences_masked += f64::from(u8::from(dropped.contains(&true)));
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (own, other) in self.sums.iter_mut().zip(&other.sums) {
            own.total += other.total;
            own.tokens.merge(&other.tokens);
            own.held.merge(&other.held);
            own.high += other.high;
            own.low += other.low;
            own.sequences.merge(&other.sequences);
            own.sequences_high += other.sequences_high;
            own.sequences_low += other.sequences_low;
            own.masked += other.masked;
            own.sequences_masked += other.sequences_masked;
        }
        self.sequences += other.sequences;
        self.filled += other.filled;
        self.tokens += other.tokens;
        self.masked += other.masked;
        self.sequences_masked += other.sequences_masked;
    }

    pub(super) fn metrics(&self, into: &mut Vec<(String, f64)>) {
        if !self.settings.is_on() {
            return;
        }
        let (tokens, filled) = (self.tokens + TINY, self.filled);
        for ((name, over, divergence), (bounds, sums)) in
            OPTIONS.iter().zip(self.settings.bounds.iter().zip(&self.sums))
        {
            if bounds.is_none() {
                continue;
            }
            let token = *over == Over::Token;
            let range = if token { &sums.tokens } else { &sums.sequences.range };
            let by = |tokens_share: f64, sequences_share: f64| {
                if token { tokens_share / tokens } else { sequences_share / filled }
            };
            let sequences = &sums.sequences;
            let mut put = |what: &str, value: f64| into.push((format!("rollout_rs_{name}_{what}"), value));
            put("mean", sums.total / tokens);
            put("max", range.high);
            put("min", range.low);
            put("fraction_high", by(sums.high, sums.sequences_high));
            put("fraction_low", by(sums.low, sums.sequences_low));
            put("std", if self.tokens > 1.0 { sums.held.deviation(tokens) } else { 0.0 });
            put("seq_mean", sequences.first / filled);
            put("seq_std", sequences.sample_deviation(filled));
            put("seq_max", sequences.range.high);
            put("seq_min", sequences.range.low);
            put("seq_max_deviation", sequences.range.high.abs().max(sequences.range.low.abs()));
            put("seq_fraction_high", sums.sequences_high / filled);
            if *divergence == Divergence::K1 {
                put("seq_fraction_low", sums.sequences_low / filled);
            }
            put("masked_fraction", sums.masked / tokens);
            put("seq_masked_fraction", sums.sequences_masked / filled);
        }
        into.push(("rollout_rs_masked_fraction".to_owned(), self.masked / tokens));
        into.push(("rollout_rs_seq_masked_fraction".to_owned(), self.sequences_masked / self.sequences));
    }
}
