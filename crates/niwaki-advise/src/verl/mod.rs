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

use rejection::Rejected;

/// verl's bound on logs before they are exponentiated.
const SAFETY: f64 = 20.0;
/// What verl adds to denominators.
const TINY: f64 = 1e-8;

/// Smallest and largest of what came.
#[derive(Clone, Copy, Debug)]
struct Range {
    low: f64,
    high: f64,
}

impl Default for Range {
    fn default() -> Self {
        Self { low: f64::INFINITY, high: f64::NEG_INFINITY }
    }
}

impl Range {
    fn add(&mut self, value: f64) {
        self.low = self.low.min(value);
        self.high = self.high.max(value);
    }

    fn merge(&mut self, other: &Self) {
        self.low = self.low.min(other.low);
        self.high = self.high.max(other.high);
    }
}

/// First and second power sums with the range.
#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    first: f64,
    second: f64,
    range: Range,
}

impl Spread {
    fn add(&mut self, value: f64, times: f64) {
        self.first += times * value;
        self.second += times * value * value;
        self.range.add(value);
    }

    fn merge(&mut self, other: &Self) {
        self.first += other.first;
        self.second += other.second;
        self.range.merge(&other.range);
    }

    /// √(E[w²] − E[w]²), verl's spread of token weights.
    fn deviation(&self, count: f64) -> f64 {
        let mean = self.first / count;
        (self.second / count - mean * mean).max(0.0).sqrt()
    }

    /// The sample deviation with n − 1, as `torch.std`; 0 for one value.
    fn sample_deviation(&self, count: f64) -> f64 {
        if count < 2.0 {
            return 0.0;
        }
        let mean = self.first / count;
        ((self.second - count * mean * mean).max(0.0) / (count - 1.0)).sqrt()
    }

    fn ess(&self, count: f64) -> f64 {
        let mean = self.first / count + TINY;
        mean * mean / (self.second / count)
    }
}

/// The running sums behind the metrics.
#[derive(Clone, Debug)]
pub struct Tally {
    settings: Settings,
    sequences: f64,
    tokens: f64,
    training_ppl: f64,
    training_log_ppl: f64,
    rollout_ppl: f64,
    rollout_log_ppl: f64,
    log_ppl_diff: f64,
    log_ppl_abs_diff: f64,
    log_ppl_range: Range,
    ppl_ratio: f64,
    log_ratio: f64,
    ratio: f64,
    chi2_token: [f64; 2],
    chi2_seq: [f64; 2],
    sum_range: Range,
    /// Clamped, then raw.
    weights: [Spread; 2],
    means: [Spread; 2],
    high: f64,
    low: f64,
    seq_high: f64,
    seq_low: f64,
    /// Sequences with tokens, and tokens outside a band of weights.
    filled: f64,
    outside: f64,
    rejected: Rejected,
    logs: Vec<f64>,
}

impl Tally {
    /// Nothing counted yet.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        Self {
            settings,
            sequences: 0.0,
            tokens: 0.0,
            training_ppl: 0.0,
            training_log_ppl: 0.0,
            rollout_ppl: 0.0,
            rollout_log_ppl: 0.0,
            log_ppl_diff: 0.0,
            log_ppl_abs_diff: 0.0,
            log_ppl_range: Range::default(),
            ppl_ratio: 0.0,
            log_ratio: 0.0,
            ratio: 0.0,
            chi2_token: [0.0; 2],
            chi2_seq: [0.0; 2],
            sum_range: Range::default(),
            weights: [Spread::default(); 2],
            means: [Spread::default(); 2],
            high: 0.0,
            low: 0.0,
            seq_high: 0.0,
            seq_low: 0.0,
            filled: 0.0,
            outside: 0.0,
            rejected: Rejected::new(settings.rejection),
            logs: Vec::new(),
        }
    }

    /// Adds a sequence, `[tokens]` each; one without tokens counts as verl counts it.
    pub fn add(&mut self, training: &[f64], rollout: &[f64]) {
        let Settings { level, threshold, .. } = self.settings;
        let (upper, lower) = (threshold.upper, threshold.low());
        let outside = |weight: f64| f64::from(u8::from(weight < lower || weight > upper));
        let count = training.len() as f64;
        let mean = |values: &[f64]| values.iter().sum::<f64>() / (count + TINY);
        let (trained, rolled) = (mean(training), mean(rollout));
        let difference = rolled - trained;
        self.sequences += 1.0;
        self.tokens += count;
        self.filled += f64::from(u8::from(count > 0.0));
        self.logs.clear();
        self.training_ppl += (-trained).exp();
        self.training_log_ppl -= trained;
        self.rollout_ppl += (-rolled).exp();
        self.rollout_log_ppl -= rolled;
        self.log_ppl_diff += difference;
        self.log_ppl_abs_diff += difference.abs();
        self.log_ppl_range.add(difference);
        self.ppl_ratio += difference.exp();
        let (mut sum, mut weighed, mut raw_weighed) = (0.0, 0.0, 0.0);
        for (training, rollout) in training.iter().zip(rollout) {
            let log = training - rollout;
            let ratio = log.exp();
            self.logs.push(log);
            sum += log;
            self.ratio += ratio;
            let safe = if log.abs() <= SAFETY { ratio } else { log.clamp(-SAFETY, SAFETY).exp() };
            self.chi2_token[0] += safe * safe;
            self.chi2_token[1] += ratio * ratio;
            if level == Level::Token {
                let weight = threshold.applied(safe);
                self.outside += outside(safe);
                self.weights[0].add(weight, 1.0);
                self.weights[1].add(ratio, 1.0);
                self.high += f64::from(u8::from(safe > upper));
                self.low += f64::from(u8::from(safe < lower));
                weighed += weight;
                raw_weighed += ratio;
            }
        }
        self.log_ratio += sum;
        self.sum_range.add(sum);
        let safe = sum.clamp(-SAFETY, SAFETY);
        self.chi2_seq[0] += (2.0 * safe).exp();
        self.chi2_seq[1] += (2.0 * sum).exp();
        if level == Level::Sequence {
            let weight = threshold.applied(safe.exp());
            self.outside += count * outside(safe.exp());
            if count > 0.0 {
                self.weights[0].add(weight, count);
                self.weights[1].add(sum.exp(), count);
            }
            self.high += f64::from(u8::from(sum > upper.ln()));
            self.low += f64::from(u8::from(sum < lower.ln()));
            weighed = weight * count;
            raw_weighed = sum.exp() * count;
        }
        let (own, raw) = (weighed / (count + TINY), raw_weighed / (count + TINY));
        self.means[0].add(own, 1.0);
        self.means[1].add(raw, 1.0);
        self.seq_high += f64::from(u8::from(raw > upper));
        self.seq_low += f64::from(u8::from(raw < lower));
        self.rejected.add(&self.logs);
    }

    /// Adds the sums of other sequences.
    pub fn merge(&mut self, other: &Self) {
        let pairs = [
            (&mut self.sequences, other.sequences),
            (&mut self.tokens, other.tokens),
            (&mut self.training_ppl, other.training_ppl),
            (&mut self.training_log_ppl, other.training_log_ppl),
            (&mut self.rollout_ppl, other.rollout_ppl),
            (&mut self.rollout_log_ppl, other.rollout_log_ppl),
            (&mut self.log_ppl_diff, other.log_ppl_diff),
            (&mut self.log_ppl_abs_diff, other.log_ppl_abs_diff),
            (&mut self.ppl_ratio, other.ppl_ratio),
            (&mut self.log_ratio, other.log_ratio),
            (&mut self.ratio, other.ratio),
            (&mut self.high, other.high),
            (&mut self.low, other.low),
            (&mut self.seq_high, other.seq_high),
            (&mut self.seq_low, other.seq_low),
            (&mut self.filled, other.filled),
            (&mut self.outside, other.outside),
        ];
        for (own, other) in pairs {
            *own += other;
        }
        for at in 0..2 {
            self.chi2_token[at] += other.chi2_token[at];
            self.chi2_seq[at] += other.chi2_seq[at];
            self.weights[at].merge(&other.weights[at]);
            self.means[at].merge(&other.means[at]);
        }
        self.log_ppl_range.merge(&other.log_ppl_range);
        self.sum_range.merge(&other.sum_range);
        self.rejected.merge(&other.rejected);
    }

    /// The metrics by verl's names, without the `rollout_corr/` in front.
    #[must_use]
    pub fn metrics(&self) -> Vec<(String, f64)> {
        let (sequences, tokens) = (self.sequences, self.tokens + TINY);
        let token = self.settings.level == Level::Token;
        let counted = if token { tokens } else { sequences };
        let [weights, raw_weights] = &self.weights;
        let [means, raw_means] = &self.means;
        let away = |range: &Range| (range.high - 1.0).abs().max((range.low - 1.0).abs());
        let highest = if token { weights.range.high } else { self.sum_range.high.min(SAFETY).exp() };
        let lowest = if token { weights.range.low } else { self.sum_range.low.exp() };
        let list = [
            ("training_ppl", self.training_ppl / sequences),
            ("training_log_ppl", self.training_log_ppl / sequences),
            ("rollout_ppl", self.rollout_ppl / sequences),
            ("rollout_log_ppl", self.rollout_log_ppl / sequences),
            ("log_ppl_diff", self.log_ppl_diff / sequences),
            ("log_ppl_abs_diff", self.log_ppl_abs_diff / sequences),
            ("log_ppl_diff_max", self.log_ppl_range.high),
            ("log_ppl_diff_min", self.log_ppl_range.low),
            ("ppl_ratio", self.ppl_ratio / sequences),
            ("kl", -self.log_ratio / tokens),
            ("k3_kl", (self.ratio - self.log_ratio - self.tokens) / tokens),
            ("chi2_token", self.chi2_token[0] / tokens - 1.0),
            ("chi2_token_raw", self.chi2_token[1] / tokens - 1.0),
            ("chi2_seq", self.chi2_seq[0] / sequences - 1.0),
            ("chi2_seq_raw", self.chi2_seq[1] / sequences - 1.0),
            ("rollout_is_mean", weights.first / tokens),
            ("rollout_is_mean_raw", raw_weights.first / tokens),
            ("rollout_is_max", highest),
            ("rollout_is_max_raw", raw_weights.range.high),
            ("rollout_is_min", lowest),
            ("rollout_is_min_raw", raw_weights.range.low),
            ("rollout_is_std", if self.tokens > 1.0 { weights.deviation(tokens) } else { 0.0 }),
            ("rollout_is_std_raw", if self.tokens > 1.0 { raw_weights.deviation(tokens) } else { 0.0 }),
            ("rollout_is_eff_sample_size", weights.ess(tokens)),
            ("rollout_is_eff_sample_size_raw", raw_weights.ess(tokens)),
            ("rollout_is_ratio_fraction_high", self.high / counted),
            ("rollout_is_ratio_fraction_low", self.low / counted),
            ("rollout_is_seq_mean", means.first / sequences),
            ("rollout_is_seq_mean_raw", raw_means.first / sequences),
            ("rollout_is_seq_std", means.sample_deviation(sequences)),
            ("rollout_is_seq_std_raw", raw_means.sample_deviation(sequences)),
            ("rollout_is_seq_max", means.range.high),
            ("rollout_is_seq_max_raw", raw_means.range.high),
            ("rollout_is_seq_min", means.range.low),
            ("rollout_is_seq_min_raw", raw_means.range.low),
            ("rollout_is_seq_max_deviation", away(&means.range)),
            ("rollout_is_seq_max_deviation_raw", away(&raw_means.range)),
            ("rollout_is_seq_fraction_high", self.seq_high / sequences),
            ("rollout_is_seq_fraction_low", self.seq_low / sequences),
        ];
        let mut all = list.map(|(name, value)| (name.to_owned(), value)).to_vec();
        if self.settings.threshold.lower.is_some() {
            all.push(("rollout_is_oob_ratio".to_owned(), self.outside / tokens));
        }
        if self.settings.batch_normalised {
            let mean = if token { weights.first / tokens } else { means.first / self.filled };
            all.push(("rollout_is_batch_norm_factor".to_owned(), if mean > TINY { mean } else { 1.0 }));
        }
        self.rejected.metrics(&mut all);
        all
    }
}
