//! The passes over a tile of trajectories: read, factor and clip, count, pull back.
//!
//! A tile's passes run over a few positions at a time, so that what they hand on stays in cache. Loops run over
//! vectors of equal length, without branches.

use super::column::Column;
use super::pull_back::{reversed_sum, route};
use super::tile::{Abreast, LANES, Source, Tile};
use super::turn::PLAIN;
use crate::Real;
use crate::clip::Bounds;
use crate::diagnostics::{Columns, Tally};
use crate::family::{Form, Reads, Rule};
use crate::log_ratio::{add, exclusive_prefixes, running_minima, windowed_prefixes};
use std::ops::Range;

/// Positions that are factored, clipped and counted together.
const POSITIONS: usize = 64;

/// The policy's own steps.
pub(super) struct Steps<'a, F> {
    pub(super) log_prob: &'a [F],
    pub(super) rollout_log_prob: &'a [F],
    pub(super) advantage: &'a [F],
    pub(super) behaviour_log_prob: Option<&'a [F]>,
}

/// A tile, where it lies in the buffers, and what its trajectories count for.
pub(super) struct Placed<F> {
    pub(super) tile: Tile,
    /// Its positions in the buffers.
    pub(super) rows: Range<usize>,
    /// Weights of the trajectories, and what scales their steps' terms; zero for missing ones.
    pub(super) weight: Abreast<F>,
    pub(super) scale: Abreast<F>,
}

/// When log-ratios are fetched and read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// A few positions at a time, just before they are used: for members that read sums of what came before.
    InPassing,
    /// A tile at a time.
    ByTile,
    /// All tiles before the first factor, for members that look at the whole batch.
    Before,
}

impl When {
    pub(super) fn of(rule: &Rule) -> Self {
        match rule.reads {
            _ if rule.self_normalised || rule.ess_floor.is_some() => Self::Before,
            Reads::Prefix => Self::InPassing,
            _ => Self::ByTile,
        }
    }
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
    /// The positions in hand, all of a tile's, or all tiles': see [`When`].
    pub(super) ell: Column<F>,
    pub(super) reading: Column<F>,
    attained: Vec<Abreast<usize>>,
    pub(super) credit: Column<F>,
    /// `[longest]`: the clip range, and the log of the batch mean of the factors.
    pub(super) low: Vec<F>,
    pub(super) high: Vec<F>,
    pub(super) dual: F,
    pub(super) normaliser: Vec<F>,
    /// `[POSITIONS]`; the last is the own channel.
    advantage: Column<F>,
    factor: Column<F>,
    ratio: Column<F>,
    term: Column<F>,
    /// Zero times every value that came in: finite exactly where all of them are.
    pub(super) probe: Abreast<F>,
    pub(super) tally: Tally,
}

impl<F: Real> Passes<F> {
    /// Makes room for `rows` positions of a batch.
    pub(super) fn resize(&mut self, steps: usize, longest: usize, rows: usize, when: When) {
        for buffer in [&mut self.own, &mut self.routed, &mut self.cotangent] {
            buffer.resize(steps, F::ZERO);
        }
        self.credit.resize(rows);
        for buffer in [&mut self.ell, &mut self.reading] {
            buffer.resize(if when == When::InPassing { POSITIONS } else { rows });
        }
        self.attained.resize(rows, [0; LANES]);
        for buffer in [&mut self.advantage, &mut self.factor, &mut self.ratio, &mut self.term] {
            buffer.resize(POSITIONS);
        }
        self.normaliser.clear();
        self.normaliser.resize(longest, F::ZERO);
        self.probe = [F::ZERO; LANES];
    }

    /// Fetches the log-ratios of a tile, and what the member reads off them.
    #[inline(always)]
    pub(super) fn read<const LEVEL: u8>(&mut self, rule: &Rule, steps: &Steps<'_, F>, placed: &Placed<F>) {
        self.read_on::<LEVEL>(rule, steps, placed, (0, placed.rows.clone()), [F::ZERO; LANES]);
    }

    /// Fetches the log-ratios of as many positions as there are rows, from the first on, and what the member reads off
    /// them where the sums of earlier log-ratios are `before`; returns those sums with these positions'. All members but
    /// those that read a prefix need all positions at once.
    #[inline(always)]
    fn read_on<const LEVEL: u8>(
        &mut self,
        rule: &Rule,
        steps: &Steps<'_, F>,
        placed: &Placed<F>,
        (first, rows): (usize, Range<usize>),
        before: Abreast<F>,
    ) -> Abreast<F> {
        let tile = &placed.tile;
        let mut sums = before;
        let ell = &mut self.ell[rows.clone()];
        let reading = &mut self.reading[rows.clone()];
        let current = Source { plus: steps.log_prob, minus: Some(steps.rollout_log_prob) };
        // A weight from outside compares rollout with behaviour where the batch knows both.
        let mismatch = steps.behaviour_log_prob.filter(|_| rule.form == Form::Weigh);
        match mismatch {
            Some(_) => {
                let source = Source { plus: steps.rollout_log_prob, minus: mismatch };
                tile.fetch::<F, LEVEL>(source, first, ell);
            }
            None => tile.fetch::<F, LEVEL>(current, first, ell),
        }
        match rule.reads {
            Reads::Prefix => sums = exclusive_prefixes(before, ell, reading),
            Reads::Window(window) => windowed_prefixes(ell, window, reading),
            Reads::Minimum => running_minima(ell, reading, &mut self.attained[rows]),
            Reads::Step => reading.copy_from_slice(ell),
            Reads::SequenceMean | Reads::SequenceSum => {
                let mut sum = [F::ZERO; LANES];
                ell.iter().for_each(|ell| add(&mut sum, ell));
                if rule.reads == Reads::SequenceMean {
                    for lane in 0..LANES {
                        sum[lane] = sum[lane] / F::from_f64(tile.lengths[lane].max(1) as f64);
                    }
                }
                reading.fill(sum);
            }
        }
        if !tile.even {
            // Past a trajectory's end there is nothing to read, nor anything that could overflow.
            for (step, reading) in reading.iter_mut().enumerate() {
                *reading = tile.at_step(first + step, reading);
            }
        }
        if mismatch.is_some() {
            tile.fetch::<F, LEVEL>(current, first, ell);
        }
        sums
    }

    /// Factors and terms of a tile, and its diagnostics where they are `MEASURED`; returns its trajectories' shares of the
    /// objective.
    #[inline(always)]
    pub(super) fn terms<const LEVEL: u8, const MEASURED: bool>(
        &mut self,
        rule: &Rule,
        steps: &Steps<'_, F>,
        placed: &Placed<F>,
        when: When,
    ) -> Abreast<f64> {
        let weight = placed.weight.map(F::to_f64);
        let (mut value, mut before) = ([F::ZERO; LANES], [F::ZERO; LANES]);
        if when == When::ByTile {
            self.read::<LEVEL>(rule, steps, placed);
        }
        for first in (0..placed.tile.horizon).step_by(POSITIONS) {
            let positions = first..(first + POSITIONS).min(placed.tile.horizon);
            let kept = placed.rows.start + positions.start..placed.rows.start + positions.end;
            // Where log-ratios and readings are.
            let rows = if when == When::InPassing { 0..kept.len() } else { kept.clone() };
            if when == When::InPassing {
                before = self.read_on::<LEVEL>(rule, steps, placed, (first, rows.clone()), before);
            }
            let advantage = &mut self.advantage[..rows.len()];
            let source = Source { plus: steps.advantage, minus: None };
            placed.tile.fetch::<F, LEVEL>(source, first, advantage);
            self.factors::<LEVEL>(rule, positions.clone(), rows.clone());
            self.probe(rows.clone());
            let clipped = self.clip(rule, steps, placed, positions.clone(), (rows.clone(), kept));
            add(&mut value, &clipped);
            if MEASURED {
                let columns = Columns {
                    first,
                    ell: &self.ell[rows.clone()],
                    ratio: &self.ratio[..rows.len()],
                    factor: &self.factor[..rows.len()],
                    advantage: &self.advantage[..rows.len()],
                    own: &self.term[..rows.len()],
                };
                self.tally.add::<F, LEVEL>(&placed.tile, &columns, &weight);
            }
            placed.tile.put_back::<F, LEVEL>(&self.term[..rows.len()], first, &mut self.own);
        }
        if MEASURED {
            self.tally.end(&placed.tile, &weight);
        }
        value.map(F::to_f64)
    }

    /// Adds zero times every value: what is not finite stays.
    #[inline(always)]
    fn probe(&mut self, rows: Range<usize>) {
        let mut probe = self.probe;
        for (ell, advantage) in self.ell[rows].iter().zip(self.advantage.iter()) {
            for lane in 0..LANES {
                probe[lane] += (ell[lane] + advantage[lane]) * F::ZERO;
            }
        }
        self.probe = probe;
    }

    /// The member's factors and the steps' own ratios.
    #[inline(always)]
    fn factors<const LEVEL: u8>(&mut self, rule: &Rule, positions: Range<usize>, rows: Range<usize>) {
        let rule = *rule;
        let reading = self.reading[rows.clone()].as_flattened();
        let log_factor = self.factor[..rows.len()].as_flattened_mut();
        for (log_factor, &reading) in log_factor.iter_mut().zip(reading) {
            *log_factor = rule.factor(reading).log_factor;
        }
        if rule.self_normalised {
            for (log_factor, &mean) in self.factor.iter_mut().zip(&self.normaliser[positions]) {
                log_factor.iter_mut().for_each(|log_factor| *log_factor -= mean);
            }
        }
        for factor in self.factor[..rows.len()].as_flattened_mut() {
            *factor = exp::<F, LEVEL>(*factor);
        }
        let ratio = self.ratio[..rows.len()].as_flattened_mut();
        for (ratio, &ell) in ratio.iter_mut().zip(self.ell[rows].as_flattened()) {
            *ratio = exp::<F, LEVEL>(ell);
        }
    }

    /// Clips and gates the steps' terms; returns their sums by trajectory.
    #[inline(always)]
    fn clip(
        &mut self,
        rule: &Rule,
        steps: &Steps<'_, F>,
        placed: &Placed<F>,
        positions: Range<usize>,
        (rows, kept): (Range<usize>, Range<usize>),
    ) -> Abreast<F> {
        let length = rows.len();
        let clip = Clip {
            rule: *rule,
            low: &self.low[positions.clone()][..length],
            high: &self.high[positions][..length],
            dual: self.dual,
            scale: &placed.scale,
            reading: &self.reading[rows][..length],
            advantage: &self.advantage[..length],
            factor: &self.factor[..length],
            ratio: &self.ratio[..length],
        };
        let (term, credit) = (&mut self.term[..length], &mut self.credit[kept][..length]);
        match rule.form {
            Form::Multiply => clip.terms(term, credit, |factor, ratio| {
                // A dropped or vanished side wins over an infinite one.
                let none = (factor == F::ZERO) | (ratio == F::ZERO);
                (if none { F::ZERO } else { factor * ratio }, F::ONE)
            }),
            Form::Replace => clip.terms(term, credit, |factor, _| (factor, F::ONE)),
            Form::Weigh if steps.behaviour_log_prob.is_some() => {
                clip.terms(term, credit, |factor, ratio| (ratio, factor))
            }
            Form::Weigh => clip.terms(term, credit, |factor, _| (F::ONE, factor)),
        }
    }

    /// The routed channel and the cotangent of a tile, back in the batch's own order.
    #[inline(always)]
    pub(super) fn pull_back<const LEVEL: u8>(
        &mut self,
        rule: &Rule,
        placed: &Placed<F>,
        routing: bool,
        when: When,
    ) {
        let (tile, rows, span) = (&placed.tile, placed.rows.clone(), placed.tile.span.clone());
        if routing && rule.form != Form::Weigh {
            // The reading has served.
            if when == When::InPassing {
                let mut after = [F::ZERO; LANES];
                for first in (0..tile.horizon).step_by(POSITIONS).rev() {
                    let credit = &self.credit[rows.clone()][first..(first + POSITIONS).min(tile.horizon)];
                    let routed = &mut self.reading[..credit.len()];
                    after = reversed_sum(after, credit, routed);
                    tile.put_back::<F, LEVEL>(routed, first, &mut self.routed);
                }
            } else {
                let routed = &mut self.reading[rows.clone()];
                route(rule.reads, &self.credit[rows.clone()], &self.attained[rows], &tile.lengths, routed);
                tile.put_back::<F, LEVEL>(routed, 0, &mut self.routed);
            }
            if rule.form == Form::Replace {
                // The step's own ratio is not in the term: all credit comes through the reading.
                for (routed, &own) in self.routed[span.clone()].iter_mut().zip(&self.own[span.clone()]) {
                    *routed -= own;
                }
            }
        } else {
            self.routed[span.clone()].fill(F::ZERO);
        }
        let channels = self.own[span.clone()].iter().zip(&self.routed[span.clone()]);
        for (cotangent, (&own, &routed)) in self.cotangent[span].iter_mut().zip(channels) {
            *cotangent = own + routed;
        }
    }
}

/// What clips and gates some positions of a tile, `[positions]` each.
struct Clip<'a, F> {
    rule: Rule,
    low: &'a [F],
    high: &'a [F],
    dual: F,
    scale: &'a Abreast<F>,
    reading: &'a [Abreast<F>],
    advantage: &'a [Abreast<F>],
    factor: &'a [Abreast<F>],
    ratio: &'a [Abreast<F>],
}

impl<F: Real> Clip<'_, F> {
    /// Fills the own channel and the credit that its factors earn; returns the sums of the objective's terms.
    ///
    /// `parts` makes the ratio inside the clip and the weight outside it of a step's factor and ratio.
    #[inline(always)]
    fn terms(
        &self,
        own: &mut [Abreast<F>],
        credit: &mut [Abreast<F>],
        parts: impl Fn(F, F) -> (F, F),
    ) -> Abreast<F> {
        let mut sums = [F::ZERO; LANES];
        let (rule, scale, dual) = (self.rule, *self.scale, self.dual);
        for t in 0..own.len() {
            let bounds = Bounds { low: self.low[t], high: self.high[t], dual };
            // By value, so that nothing read can be what is written.
            let (advantage, reading) = (self.advantage[t], self.reading[t]);
            let (factor, ratio) = (self.factor[t], self.ratio[t]);
            let (mut live, mut earned) = ([F::ZERO; LANES], [F::ZERO; LANES]);
            for lane in 0..LANES {
                let (ratio, weight) = parts(factor[lane], ratio[lane]);
                let (term, alive) = bounds.term(ratio, advantage[lane]);
                let value = scale[lane] * weight * term;
                sums[lane] += value;
                // A live term is its own derivative with respect to the log of its ratio.
                live[lane] = if alive { value } else { F::ZERO };
                earned[lane] = rule.factor(reading[lane]).slope * live[lane];
            }
            (own[t], credit[t]) = (live, earned);
        }
        sums
    }
}

/// eˣ, fused where the processor is known to fuse.
#[inline(always)]
fn exp<F: Real, const LEVEL: u8>(x: F) -> F {
    if LEVEL > PLAIN { x.exp_by(F::fused) } else { x.exp() }
}
