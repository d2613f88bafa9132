//! The passes over a block of trajectories: read, spread, factor and clip, pull back, count; and the two passes
//! over a whole batch.
//!
//! A block is a few thousand steps: small enough to stay in cache, long enough that loops over it vectorise
//! even where single trajectories are short. Such loops are plain index loops over slices of equal length,
//! without branches.

use super::pull_back::route;
use crate::Real;
use crate::clip::Bounds;
use crate::diagnostics::{Columns, Tally};
use crate::family::{Form, Reads, Rule};
use crate::log_ratio::{Way, log_ratios, running_minimum, scan_rows, sum, windowed_prefix};
use std::ops::Range;

/// Steps per block, unless trajectories are long: then four of them, up to [`LARGEST_BLOCK`], but at least one.
const BLOCK: usize = 2048;
const LARGEST_BLOCK: usize = 8192;

/// The policy's own steps.
pub(super) struct Steps<'a, F> {
    pub(super) log_prob: &'a [F],
    pub(super) rollout_log_prob: &'a [F],
    pub(super) advantage: &'a [F],
    pub(super) behaviour_log_prob: Option<&'a [F]>,
}

/// The passes' buffers.
#[derive(Debug, Default)]
pub(super) struct Passes<F> {
    /// `[lanes + 1]`
    pub(super) offsets: Vec<usize>,
    /// `[steps]`: what comes out.
    pub(super) own: Vec<F>,
    pub(super) routed: Vec<F>,
    pub(super) cotangent: Vec<F>,
    /// What is read and factored: `[block]`, so that it stays in cache, or `[steps]` for members that look at the
    /// whole batch. `base` is the step that stands first.
    base: usize,
    /// Steps per block.
    block: usize,
    ell: Vec<F>,
    reading: Vec<F>,
    attained: Vec<usize>,
    log_factor: Vec<F>,
    credit: Vec<F>,
    /// `[longest]`: the clip range, and the log of the batch mean of the factors.
    pub(super) low: Vec<F>,
    pub(super) high: Vec<F>,
    pub(super) dual: F,
    normaliser: Vec<F>,
    /// `[block]`: the same spread over the steps of the block in hand, and its scales, values and prefixes.
    pub(super) block_low: Vec<F>,
    pub(super) block_high: Vec<F>,
    block_scale: Vec<F>,
    factor: Vec<F>,
    ratio: Vec<F>,
    value: Vec<F>,
    prefix_ratio: Vec<f64>,
    pub(super) tally: Tally,
}

impl<F: Real> Passes<F> {
    /// Makes room for a batch; `coupled` members keep the readings of the whole of it.
    pub(super) fn resize(&mut self, steps: usize, longest: usize, coupled: bool) {
        for buffer in [&mut self.own, &mut self.routed, &mut self.cotangent] {
            buffer.resize(steps, F::ZERO);
        }
        let block = longest.max(BLOCK).max((4 * longest).min(LARGEST_BLOCK));
        self.block = block;
        let kept = if coupled { steps } else { block };
        for buffer in [&mut self.ell, &mut self.reading, &mut self.log_factor, &mut self.credit] {
            buffer.resize(kept, F::ZERO);
        }
        self.attained.resize(kept, 0);
        let by_block = [
            &mut self.block_low,
            &mut self.block_high,
            &mut self.block_scale,
            &mut self.factor,
            &mut self.ratio,
            &mut self.value,
        ];
        for buffer in by_block {
            buffer.resize(block, F::ZERO);
        }
        self.prefix_ratio.resize(block, 0.0);
        self.normaliser.clear();
        self.normaliser.resize(longest, F::ZERO);
        self.base = 0;
    }

    /// Lets the buffers of the readings start at this block.
    pub(super) fn start_at(&mut self, block: &Range<usize>) {
        self.base = self.offsets[block.start];
    }

    /// Where a span of steps lies in the buffers of the readings.
    fn kept(&self, span: &Range<usize>) -> Range<usize> {
        span.start - self.base..span.end - self.base
    }

    /// The batch cut into blocks of whole trajectories, as ranges of lanes.
    pub(super) fn blocks(&self) -> impl Iterator<Item = Range<usize>> + use<F> {
        let mut ranges = Vec::new();
        let mut start = 0;
        for lane in 0..self.offsets.len() - 1 {
            if lane > start && self.offsets[lane + 1] - self.offsets[start] > self.block {
                ranges.push(start..lane);
                start = lane;
            }
        }
        ranges.push(start..self.offsets.len() - 1);
        ranges.into_iter()
    }

    /// Log-ratios of a block and what the member reads off them.
    #[inline(always)]
    pub(super) fn read(&mut self, rule: &Rule, steps: &Steps<'_, F>, block: Range<usize>) {
        let span = self.offsets[block.start]..self.offsets[block.end];
        let kept = self.kept(&span);
        let ell = &mut self.ell[kept.clone()];
        let (log_prob, rollout) = (&steps.log_prob[span.clone()], &steps.rollout_log_prob[span.clone()]);
        // A weight from outside compares rollout with behaviour where the batch knows both.
        let mismatch = steps.behaviour_log_prob.filter(|_| rule.form == Form::Weigh);
        match mismatch {
            Some(behaviour) => log_ratios(rollout, &behaviour[span.clone()], ell),
            None => log_ratios(log_prob, rollout, ell),
        }
        let offsets = &self.offsets[block.start..=block.end];
        if rule.reads == Reads::Prefix {
            let (ell, reading) = (&self.ell[kept.clone()], &mut self.reading[kept.clone()]);
            scan_rows(offsets, Way::Forward, ell, reading, F::ZERO, |sum, ell| sum + ell);
        } else {
            for row in offsets.windows(2).map(|row| row[0] - self.base..row[1] - self.base) {
                let (ell, reading) = (&self.ell[row.clone()], &mut self.reading[row.clone()]);
                match rule.reads {
                    Reads::Prefix => {}
                    Reads::Window(window) => windowed_prefix(ell, window, reading),
                    Reads::Minimum => running_minimum(ell, reading, &mut self.attained[row]),
                    Reads::Step => reading.copy_from_slice(ell),
                    Reads::SequenceMean => reading.fill(sum(ell) / F::from_f64(ell.len() as f64)),
                    Reads::SequenceSum => reading.fill(sum(ell)),
                }
            }
        }
        if mismatch.is_some() {
            log_ratios(log_prob, rollout, &mut self.ell[kept]);
        }
    }

    /// Spreads the clip range over the steps of a block; one that does not grow is the same for every block.
    #[inline(always)]
    pub(super) fn spread_bounds(&mut self, rule: &Rule, block: &Range<usize>) {
        if !rule.growing_clip {
            return;
        }
        let first = self.offsets[block.start];
        for row in self.offsets[block.start..=block.end].windows(2) {
            let (at, length) = (row[0] - first..row[1] - first, row[1] - row[0]);
            self.block_low[at.clone()].copy_from_slice(&self.low[..length]);
            self.block_high[at].copy_from_slice(&self.high[..length]);
        }
    }

    /// Spreads the trajectories' scales over the steps of a block.
    #[inline(always)]
    pub(super) fn spread_scales(
        &mut self,
        block: &Range<usize>,
        alike: bool,
        scale: impl Fn(usize, usize) -> F,
    ) {
        let first = self.offsets[block.start];
        if alike {
            let scale = scale(block.start, 1);
            self.block_scale[..self.offsets[block.end] - first].fill(scale);
            return;
        }
        for lane in block.clone() {
            let row = self.offsets[lane] - first..self.offsets[lane + 1] - first;
            let scale = scale(lane, row.len());
            self.block_scale[row].fill(scale);
        }
    }

    /// Factors, clip and terms of a block; returns its share of the objective.
    #[inline(always)]
    pub(super) fn terms<const FUSED: bool>(
        &mut self,
        rule: &Rule,
        steps: &Steps<'_, F>,
        block: Range<usize>,
    ) -> F {
        let span = self.offsets[block.start]..self.offsets[block.end];
        let length = span.len();
        let kept = self.kept(&span);
        let ell = &self.ell[kept.clone()][..length];
        let reading = &self.reading[kept.clone()][..length];
        let advantage = &steps.advantage[span.clone()][..length];
        let log_factor = &mut self.log_factor[kept.clone()][..length];
        let own = &mut self.own[span][..length];
        let credit = &mut self.credit[kept][..length];
        let (low, high, dual) = (&self.block_low[..length], &self.block_high[..length], self.dual);
        let (value, scale) = (&mut self.value[..length], &mut self.block_scale[..length]);
        let (factor, ratio) = (&mut self.factor[..length], &mut self.ratio[..length]);
        // The slope waits in `credit`.
        for t in 0..length {
            let read = rule.factor(reading[t]);
            log_factor[t] = read.log_factor;
            credit[t] = read.slope;
        }
        if rule.self_normalised {
            let start = self.offsets[block.start];
            for row in self.offsets[block.start..=block.end].windows(2) {
                let log_factor = &mut log_factor[row[0] - start..row[1] - start];
                log_factor
                    .iter_mut()
                    .zip(&self.normaliser)
                    .for_each(|(log_factor, &mean)| *log_factor -= mean);
            }
        }
        for t in 0..length {
            factor[t] = exp::<F, FUSED>(log_factor[t]);
        }
        for t in 0..length {
            ratio[t] = exp::<F, FUSED>(ell[t]);
        }
        // The ratio inside the clip waits in `own`; a factor outside the clip joins the scale.
        match rule.form {
            Form::Multiply => {
                for t in 0..length {
                    // A dropped or vanished side wins over an infinite one.
                    let none = (factor[t] == F::ZERO) | (ratio[t] == F::ZERO);
                    own[t] = if none { F::ZERO } else { factor[t] * ratio[t] };
                }
            }
            Form::Replace => own.copy_from_slice(factor),
            Form::Weigh => {
                if steps.behaviour_log_prob.is_some() {
                    own.copy_from_slice(ratio);
                } else {
                    own.fill(F::ONE);
                }
                (0..length).for_each(|t| scale[t] *= factor[t]);
            }
        }
        for t in 0..length {
            let bounds = Bounds { low: low[t], high: high[t], dual };
            let (term, live) = bounds.term(own[t], advantage[t]);
            value[t] = scale[t] * term;
            // A live term is its own derivative with respect to the log of its ratio.
            own[t] = if live { value[t] } else { F::ZERO };
            credit[t] *= own[t];
        }
        sum(value)
    }

    /// The routed channel and the cotangent of a block.
    #[inline(always)]
    pub(super) fn pull_back(&mut self, rule: &Rule, block: Range<usize>, routing: bool) {
        let span = self.offsets[block.start]..self.offsets[block.end];
        if routing && rule.form == Form::Multiply && rule.reads == Reads::Prefix {
            let credit = &self.credit[self.kept(&span)];
            let offsets = &self.offsets[block.start..=block.end];
            let routed = &mut self.routed[span.clone()];
            scan_rows(offsets, Way::Backward, credit, routed, F::ZERO, |sum, credit| sum + credit);
        } else if routing && rule.form != Form::Weigh {
            for lane in block {
                let row = self.offsets[lane]..self.offsets[lane + 1];
                let kept = self.kept(&row);
                let routed = &mut self.routed[row.clone()];
                route(rule.reads, &self.credit[kept.clone()], &self.attained[kept], routed);
                if rule.form == Form::Replace {
                    // The step's own ratio is not in the term: all credit comes through the reading.
                    routed.iter_mut().zip(&self.own[row]).for_each(|(routed, &own)| *routed -= own);
                }
            }
        } else {
            self.routed[span.clone()].fill(F::ZERO);
        }
        let length = span.len();
        let (own, routed) = (&self.own[span.clone()][..length], &self.routed[span.clone()][..length]);
        let cotangent = &mut self.cotangent[span][..length];
        for t in 0..length {
            cotangent[t] = own[t] + routed[t];
        }
    }

    /// Adds a block to the diagnostics.
    #[inline(always)]
    pub(super) fn count(&mut self, steps: &Steps<'_, F>, block: Range<usize>, weight: impl Fn(usize) -> F) {
        let span = self.offsets[block.start]..self.offsets[block.end];
        let kept = self.kept(&span);
        let prefix_ratio = &mut self.prefix_ratio[..span.len()];
        let offsets = &self.offsets[block.start..=block.end];
        let ratio = &self.ratio[..span.len()];
        scan_rows(offsets, Way::Forward, ratio, prefix_ratio, 1.0, |product, ratio| product * ratio.to_f64());
        // Outside these a product has lost digits that later factors could bring back: from the logs, then.
        let lost = |product: f64| !(1e-290..=1e290).contains(&product);
        if prefix_ratio.iter().fold(false, |any, &product| any | lost(product)) {
            let ell = &self.ell[kept.clone()];
            scan_rows(offsets, Way::Forward, ell, prefix_ratio, 0.0, |sum, ell| sum + ell.to_f64());
            prefix_ratio.iter_mut().for_each(|log| *log = Real::exp(*log));
        }
        let columns = Columns {
            ell: &self.ell[kept],
            ratio: &self.ratio[..span.len()],
            factor: &self.factor[..span.len()],
            prefix_ratio,
            advantage: &steps.advantage[span.clone()],
            own: &self.own[span],
        };
        self.tally.add(&columns, &self.offsets[block.start..=block.end], |lane| {
            weight(block.start + lane).to_f64()
        });
    }

    /// Normalised ESS of `exp(strength · reading)` over all (trajectory, step) pairs.
    ///
    /// Paper: `app:diagnostics` (normalised ESS over the joint distribution)
    pub(super) fn ess_at(&self, strength: f64, weight: impl Fn(usize) -> F) -> f64 {
        let highest = self.reading.iter().map(|reading| strength * reading.to_f64()).fold(0.0, f64::max);
        let (mut mass, mut first, mut second) = (0.0, 0.0, 0.0);
        for (lane, row) in self.offsets.windows(2).enumerate() {
            let weight = weight(lane).to_f64();
            for &reading in &self.reading[row[0]..row[1]] {
                let value = Real::exp(strength * reading.to_f64() - highest);
                mass += weight;
                first += weight * value;
                second += weight * value * value;
            }
        }
        first * first / (second * mass)
    }

    /// `normaliser[t] = log(weighted mean of the factors at t)`, each position scaled by its largest factor.
    pub(super) fn fill_normaliser(&mut self, rule: &Rule, weight: impl Fn(usize) -> F) {
        for t in 0..self.normaliser.len() {
            let rows = || self.offsets.windows(2).enumerate().filter(|(_, row)| row[0] + t < row[1]);
            let log_factor = |row: &[usize]| rule.factor(self.reading[row[0] + t]).log_factor.to_f64();
            let highest = rows().map(|(_, row)| log_factor(row)).fold(f64::NEG_INFINITY, f64::max);
            let (mut mass, mut scaled) = (0.0, 0.0);
            for (lane, row) in rows() {
                mass += weight(lane).to_f64();
                scaled += weight(lane).to_f64() * Real::exp(log_factor(row) - highest);
            }
            self.normaliser[t] = F::from_f64(highest + (scaled / mass).ln());
        }
    }

    /// Takes back, at each step, the credit that flows through the batch mean of the factors.
    ///
    /// With `ω` the trajectory weights, `log g_n = αL_n − log mean(ω e^{αL})` gives
    /// `Σ_n own_n ∂log g_n/∂L_m = α (own_m − ω_m g_m / Σω · Σ_n own_n)`.
    pub(super) fn share_credit(&mut self, rule: &Rule, weight: impl Fn(usize) -> F) {
        for t in 0..self.normaliser.len() {
            let rows = || self.offsets.windows(2).enumerate().filter(|(_, row)| row[0] + t < row[1]);
            let (mut total, mut mass) = (F::ZERO, F::ZERO);
            for (lane, row) in rows() {
                total += self.own[row[0] + t];
                mass += weight(lane);
            }
            for (lane, row) in rows() {
                let at = row[0] + t;
                let share = weight(lane) * self.log_factor[at].exp() / mass;
                self.credit[at] -= rule.factor(self.reading[at]).slope * share * total;
            }
        }
    }
}

/// eˣ, fused where the processor is known to fuse.
#[inline(always)]
fn exp<F: Real, const FUSED: bool>(x: F) -> F {
    if FUSED { x.exp_by(F::fused) } else { x.exp() }
}
