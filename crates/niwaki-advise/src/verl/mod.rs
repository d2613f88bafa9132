//! verl's `rollout_corr/*` metrics, by its names and definitions, with `_raw` twins where it clamps.
//!
//! The definitions are those of `compute_offpolicy_metrics`, `compute_is_metrics` and `compute_rs_metrics` in
//! `verl/trainer/ppo/rollout_corr_helper.py` of verl 0.9.1: weights are π_training / π_rollout, logs are clamped to
//! ±20 before they are exponentiated, and truncated at a threshold. An alarm on clamped weights can stay silent
//! while the raw ones explode, so each clamped number has a twin that is not. Trajectories count alike, as there.
//! The sums add up over batches.

mod rejection;
mod settings;

pub use rejection::Rejection;
pub use settings::{Level, Settings, Threshold};

use crate::measure::{Damaged, Exact, Range, Reader, Writer};
use rejection::Rejected;

/// verl's bound on logs before they are exponentiated.
const SAFETY: f64 = 20.0;
/// What verl adds to denominators.
const TINY: f64 = 1e-8;

/// √(E[w²] − E[w]²), verl's spread of token weights, from the sums of first and second powers.
fn deviation([first, second]: [f64; 2], count: f64) -> f64 {
    let mean = first / count;
    (second / count - mean * mean).max(0.0).sqrt()
}

/// The sample deviation with n − 1, as `torch.std`; 0 for one value.
fn sample_deviation([first, second]: [f64; 2], count: f64) -> f64 {
    if count < 2.0 {
        return 0.0;
    }
    let mean = first / count;
    ((second - count * mean * mean).max(0.0) / (count - 1.0)).sqrt()
}

/// What is summed over sequences.
#[derive(Clone, Copy)]
enum Of {
    TrainingPpl,
    TrainingLogPpl,
    RolloutPpl,
    RolloutLogPpl,
    LogPplDiff,
    LogPplAbsDiff,
    PplRatio,
    LogRatio,
    Chi2Seq,
    Chi2SeqRaw,
    /// The mean weight of a sequence, clamped and raw, each followed by its square.
    Mean,
    MeanRaw = 12,
}

/// What is summed over tokens: ratios, their squares, and weights as [`Of::Mean`].
#[derive(Clone, Copy)]
enum Each {
    Ratio,
    Chi2,
    Chi2Raw,
    Weight,
    WeightRaw = 5,
}

/// What is counted.
#[derive(Clone, Copy)]
enum Counted {
    Sequences,
    Tokens,
    /// Weights above the upper bound and below the lower one, of tokens or of sequences as the level is.
    High,
    Low,
    SeqHigh,
    SeqLow,
    /// Sequences with tokens, and tokens outside a band of weights.
    Filled,
    Outside,
}

const COUNTS: usize = 8;

/// Smallest and largest of what.
#[derive(Clone, Copy)]
enum Ends {
    LogPpl,
    Sum,
    Weight,
    WeightRaw,
    Mean,
    MeanRaw,
}

const ENDS: usize = 6;

/// The running sums behind the metrics.
#[derive(Clone, Debug, PartialEq)]
pub struct Tally {
    settings: Settings,
    sequences: Exact<14>,
    tokens: Exact<7>,
    counts: [u64; COUNTS],
    ranges: [Range; ENDS],
    rejected: Rejected,
}

impl Tally {
    /// Nothing counted yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            sequences: Exact::default(),
            tokens: Exact::default(),
            counts: [0; COUNTS],
            ranges: [Range::default(); ENDS],
            rejected: Rejected::new(settings.rejection),
        }
    }

    /// Adds a sequence, `[tokens]` each; one without tokens counts as verl counts it.
    pub fn add(&mut self, training: &[f64], rollout: &[f64]) {
        let Settings { level, threshold, .. } = self.settings;
        let (upper, lower) = (threshold.upper, threshold.low());
        let outside = |weight: f64| weight < lower || weight > upper;
        let whole = training.len() as u64;
        let count = whole as f64;
        let mean = |values: &[f64]| values.iter().sum::<f64>() / (count + TINY);
        let (trained, rolled) = (mean(training), mean(rollout));
        let difference = rolled - trained;
        let mut counts = self.counts;
        let mut tell = |of: Counted, more: u64| counts[of as usize] += more;
        tell(Counted::Sequences, 1);
        tell(Counted::Tokens, whole);
        tell(Counted::Filled, u64::from(whole > 0));
        let (mut sum, mut weighed, mut raw_weighed) = (0.0, 0.0, 0.0);
        let logs: Vec<f64> =
            training.iter().zip(rollout).map(|(training, rollout)| training - rollout).collect();
        for &log in &logs {
            let ratio = log.exp();
            sum += log;
            let safe = if log.abs() <= SAFETY { ratio } else { log.clamp(-SAFETY, SAFETY).exp() };
            let mut terms = [ratio, safe * safe, ratio * ratio, 0.0, 0.0, 0.0, 0.0];
            if level == Level::Token {
                let weight = threshold.applied(safe);
                terms[Each::Weight as usize..].copy_from_slice(&[
                    weight,
                    weight * weight,
                    ratio,
                    ratio * ratio,
                ]);
                self.ranges[Ends::Weight as usize].add(weight);
                self.ranges[Ends::WeightRaw as usize].add(ratio);
                tell(Counted::Outside, u64::from(outside(safe)));
                tell(Counted::High, u64::from(safe > upper));
                tell(Counted::Low, u64::from(safe < lower));
                weighed += weight;
                raw_weighed += ratio;
            }
            self.tokens.add(&terms);
        }
        let safe = sum.clamp(-SAFETY, SAFETY);
        if level == Level::Sequence {
            let (weight, ratio) = (threshold.applied(safe.exp()), sum.exp());
            tell(Counted::Outside, whole * u64::from(outside(safe.exp())));
            if whole > 0 {
                let mut terms = [0.0; 7];
                terms[Each::Weight as usize..].copy_from_slice(&[
                    count * weight,
                    count * weight * weight,
                    count * ratio,
                    count * ratio * ratio,
                ]);
                self.tokens.add(&terms);
                self.ranges[Ends::Weight as usize].add(weight);
                self.ranges[Ends::WeightRaw as usize].add(ratio);
            }
            tell(Counted::High, u64::from(sum > upper.ln()));
            tell(Counted::Low, u64::from(sum < lower.ln()));
            weighed = weight * count;
            raw_weighed = ratio * count;
        }
        let (own, raw) = (weighed / (count + TINY), raw_weighed / (count + TINY));
        tell(Counted::SeqHigh, u64::from(raw > upper));
        tell(Counted::SeqLow, u64::from(raw < lower));
        self.counts = counts;
        self.sequences.add(&[
            (-trained).exp(),
            -trained,
            (-rolled).exp(),
            -rolled,
            difference,
            difference.abs(),
            difference.exp(),
            sum,
            (2.0 * safe).exp(),
            (2.0 * sum).exp(),
            own,
            own * own,
            raw,
            raw * raw,
        ]);
        for (ends, value) in
            [(Ends::LogPpl, difference), (Ends::Sum, sum), (Ends::Mean, own), (Ends::MeanRaw, raw)]
        {
            self.ranges[ends as usize].add(value);
        }
        self.rejected.add(&logs);
    }

    /// Adds the sums of other sequences.
    pub fn merge(&mut self, other: &Self) {
        self.sequences.merge(&other.sequences);
        self.tokens.merge(&other.tokens);
        self.counts.iter_mut().zip(other.counts).for_each(|(own, other)| *own += other);
        self.ranges.iter_mut().zip(&other.ranges).for_each(|(own, other)| own.merge(other));
        self.rejected.merge(&other.rejected);
    }

    pub(crate) fn write(&self, to: &mut Writer) {
        to.sums(&self.sequences);
        to.sums(&self.tokens);
        self.counts.into_iter().for_each(|count| to.whole(count));
        self.ranges.into_iter().for_each(|range| to.range(range));
        self.rejected.write(to);
    }

    /// Reads what was written under the same settings.
    pub(crate) fn read(&mut self, from: &mut Reader<'_>) -> Result<(), Damaged> {
        (self.sequences, self.tokens) = (from.sums()?, from.sums()?);
        for count in &mut self.counts {
            *count = from.count(1 << 48)? as u64;
        }
        for range in &mut self.ranges {
            *range = from.range()?;
        }
        self.rejected.read(from)
    }

    /// The metrics by verl's names, without the `rollout_corr/` in front.
    #[must_use]
    pub fn metrics(&self) -> Vec<(String, f64)> {
        let of = |of: Of| self.sequences.value(of as usize);
        let squared = |of: Of| [self.sequences.value(of as usize), self.sequences.value(of as usize + 1)];
        let each = |each: Each| self.tokens.value(each as usize);
        let weights = |each: Each| [self.tokens.value(each as usize), self.tokens.value(each as usize + 1)];
        let counted = |of: Counted| self.counts[of as usize] as f64;
        let range = |of: Ends| &self.ranges[of as usize];
        let (sequences, count) = (counted(Counted::Sequences), counted(Counted::Tokens));
        let tokens = count + TINY;
        let token = self.settings.level == Level::Token;
        let (weight, raw_weight) = (weights(Each::Weight), weights(Each::WeightRaw));
        let (means, raw_means) = (squared(Of::Mean), squared(Of::MeanRaw));
        let away = |range: &Range| (range.high - 1.0).abs().max((range.low - 1.0).abs());
        let ess = |[first, second]: [f64; 2]| (first / tokens + TINY).powi(2) / (second / tokens);
        let spread = |weights: [f64; 2]| if count > 1.0 { deviation(weights, tokens) } else { 0.0 };
        let highest = if token { range(Ends::Weight).high } else { range(Ends::Sum).high.min(SAFETY).exp() };
        let lowest = if token { range(Ends::Weight).low } else { range(Ends::Sum).low.exp() };
        let whole = if token { tokens } else { sequences };
        let list = [
            ("training_ppl", of(Of::TrainingPpl) / sequences),
            ("training_log_ppl", of(Of::TrainingLogPpl) / sequences),
            ("rollout_ppl", of(Of::RolloutPpl) / sequences),
            ("rollout_log_ppl", of(Of::RolloutLogPpl) / sequences),
            ("log_ppl_diff", of(Of::LogPplDiff) / sequences),
            ("log_ppl_abs_diff", of(Of::LogPplAbsDiff) / sequences),
            ("log_ppl_diff_max", range(Ends::LogPpl).high),
            ("log_ppl_diff_min", range(Ends::LogPpl).low),
            ("ppl_ratio", of(Of::PplRatio) / sequences),
            ("kl", -of(Of::LogRatio) / tokens),
            ("k3_kl", (each(Each::Ratio) - of(Of::LogRatio) - count) / tokens),
            ("chi2_token", each(Each::Chi2) / tokens - 1.0),
            ("chi2_token_raw", each(Each::Chi2Raw) / tokens - 1.0),
            ("chi2_seq", of(Of::Chi2Seq) / sequences - 1.0),
            ("chi2_seq_raw", of(Of::Chi2SeqRaw) / sequences - 1.0),
            ("rollout_is_mean", weight[0] / tokens),
            ("rollout_is_mean_raw", raw_weight[0] / tokens),
            ("rollout_is_max", highest),
            ("rollout_is_max_raw", range(Ends::WeightRaw).high),
            ("rollout_is_min", lowest),
            ("rollout_is_min_raw", range(Ends::WeightRaw).low),
            ("rollout_is_std", spread(weight)),
            ("rollout_is_std_raw", spread(raw_weight)),
            ("rollout_is_eff_sample_size", ess(weight)),
            ("rollout_is_eff_sample_size_raw", ess(raw_weight)),
            ("rollout_is_ratio_fraction_high", counted(Counted::High) / whole),
            ("rollout_is_ratio_fraction_low", counted(Counted::Low) / whole),
            ("rollout_is_seq_mean", means[0] / sequences),
            ("rollout_is_seq_mean_raw", raw_means[0] / sequences),
            ("rollout_is_seq_std", sample_deviation(means, sequences)),
            ("rollout_is_seq_std_raw", sample_deviation(raw_means, sequences)),
            ("rollout_is_seq_max", range(Ends::Mean).high),
            ("rollout_is_seq_max_raw", range(Ends::MeanRaw).high),
            ("rollout_is_seq_min", range(Ends::Mean).low),
            ("rollout_is_seq_min_raw", range(Ends::MeanRaw).low),
            ("rollout_is_seq_max_deviation", away(range(Ends::Mean))),
            ("rollout_is_seq_max_deviation_raw", away(range(Ends::MeanRaw))),
            ("rollout_is_seq_fraction_high", counted(Counted::SeqHigh) / sequences),
            ("rollout_is_seq_fraction_low", counted(Counted::SeqLow) / sequences),
        ];
        let mut all = list.map(|(name, value)| (name.to_owned(), value)).to_vec();
        if self.settings.threshold.lower.is_some() {
            all.push(("rollout_is_oob_ratio".to_owned(), counted(Counted::Outside) / tokens));
        }
        if self.settings.batch_normalised {
            let mean = if token { weight[0] / tokens } else { means[0] / counted(Counted::Filled) };
            all.push(("rollout_is_batch_norm_factor".to_owned(), if mean > TINY { mean } else { 1.0 }));
        }
        self.rejected.metrics(&mut all);
        all
    }
}
