//! The slow, obvious twin: every formula written out per trajectory, and central differences of it.

mod written;

use niwaki_correction::family::{Bound, Form, Reads, Rule};
use niwaki_correction::surrogate::Mean;
use niwaki_correction::{Batch, Rows, Surrogate, Workspace};

/// A random batch with ragged rows, masks, weights and behaviour log-probs.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) offsets: Vec<usize>,
    pub(crate) log_prob: Vec<f64>,
    pub(crate) rollout: Vec<f64>,
    pub(crate) advantage: Vec<f64>,
    behaviour: Option<Vec<f64>>,
    reference: Vec<f64>,
    entropy: Vec<f64>,
    mask: Option<Vec<bool>>,
    weight: Option<Vec<f64>>,
}

/// SplitMix64, enough noise for test cases.
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }
}

impl Case {
    pub(crate) fn draw(seed: u64) -> Self {
        let mut noise = Noise(seed.wrapping_mul(77));
        let mut offsets = vec![0];
        for _ in 0..5 {
            let length = (noise.uniform() * 7.0) as usize + usize::from(offsets.len() == 1);
            offsets.push(offsets[offsets.len() - 1] + length);
        }
        let steps = offsets[5];
        let mut draw = |low: f64, high: f64| -> Vec<f64> {
            (0..steps).map(|_| low + (high - low) * noise.uniform()).collect()
        };
        let rollout = draw(-2.0, -0.5);
        let log_prob: Vec<f64> =
            rollout.iter().zip(draw(-0.3, 0.3)).map(|(old, shift)| old + shift).collect();
        let advantage = draw(-1.0, 1.0);
        let behaviour = rollout.iter().zip(draw(-0.2, 0.2)).map(|(old, shift)| old + shift).collect();
        let mut mask: Vec<bool> = draw(0.0, 1.0).iter().map(|&u| u < 0.7).collect();
        mask[0] = true;
        let weight =
            draw(0.1, 1.0)[..1].repeat(5).iter().enumerate().map(|(n, w)| w + 0.2 * n as f64).collect();
        let mut draw = |low: f64, high: f64| -> Vec<f64> {
            (0..steps).map(|_| low + (high - low) * noise.uniform()).collect()
        };
        let reference = rollout.iter().zip(draw(-0.2, 0.2)).map(|(old, shift)| old + shift).collect();
        let entropy = draw(0.0, 2.0);
        Self {
            offsets,
            log_prob,
            rollout,
            advantage,
            reference,
            entropy,
            behaviour: (seed % 2 == 1).then_some(behaviour),
            mask: (seed / 2 % 2 == 1).then_some(mask),
            weight: (seed / 4 % 2 == 1).then_some(weight),
        }
    }

    pub(crate) fn batch(&self) -> Batch<'_, f64> {
        let mut batch =
            Batch::new(Rows::ragged(&self.offsets), &self.log_prob, &self.rollout, &self.advantage)
                .held_to(&self.reference)
                .with_entropy(&self.entropy);
        if let Some(behaviour) = &self.behaviour {
            batch = batch.sampled_by(behaviour);
        }
        if let Some(mask) = &self.mask {
            batch = batch.masked(mask);
        }
        if let Some(weight) = &self.weight {
            batch = batch.weighted(weight);
        }
        batch
    }

    pub(crate) fn at_the_rollout_policy(mut self) -> Self {
        self.log_prob.clone_from(&self.rollout);
        self
    }

    /// The same trajectories in the opposite order.
    pub(crate) fn reversed(&self) -> Self {
        let rows: Vec<_> = self.offsets.windows(2).rev().map(|row| row[0]..row[1]).collect();
        let pick =
            |values: &[f64]| rows.iter().flat_map(|row| values[row.clone()].to_vec()).collect::<Vec<_>>();
        let mut offsets = vec![0];
        rows.iter().for_each(|row| offsets.push(offsets[offsets.len() - 1] + row.len()));
        Self {
            log_prob: pick(&self.log_prob),
            rollout: pick(&self.rollout),
            advantage: pick(&self.advantage),
            reference: pick(&self.reference),
            entropy: pick(&self.entropy),
            behaviour: self.behaviour.as_deref().map(pick),
            mask: self
                .mask
                .as_ref()
                .map(|mask| rows.iter().flat_map(|row| mask[row.clone()].to_vec()).collect()),
            weight: self.weight.as_ref().map(|weight| weight.iter().rev().copied().collect()),
            offsets,
        }
    }

    /// The policy's own steps of each trajectory.
    fn rows(&self) -> Vec<Vec<usize>> {
        let counts = |step: &usize| self.mask.as_ref().is_none_or(|mask| mask[*step]);
        self.offsets.windows(2).map(|row| (row[0]..row[1]).filter(counts).collect()).collect()
    }

    /// The strength that an amplification comes to, by halving: every step's weight on fresh data is summed up as it is.
    fn at_lengths(&self, rule: Rule) -> Rule {
        let Some(limit) = rule.amplification else { return rule };
        let rows = self.rows();
        let within = |strength: f64| {
            let weights =
                rows.iter().flat_map(|row| (0..row.len()).map(|behind| 1.0 + strength * behind as f64));
            let (count, square) =
                weights.fold((0.0, 0.0), |sum, weight| (sum.0 + 1.0, sum.1 + weight * weight));
            square <= limit * limit * count
        };
        let (mut held, mut broken) = if within(1.0) { (1.0, 1.0) } else { (0.0, 1.0) };
        for _ in 0..60 {
            let middle = 0.5 * (held + broken);
            if within(middle) { held = middle } else { broken = middle }
        }
        Rule { strength: held, amplification: None, ..rule }
    }

    /// Compares value and cotangent; returns how many steps went flat, and how many cotangents were compared.
    pub(crate) fn check(&self, surrogate: &Surrogate) -> (usize, usize) {
        let mut workspace = Workspace::default();
        let evaluation = surrogate.evaluate(&self.batch(), &mut workspace).unwrap();
        let rule = self.at_lengths(surrogate.correction.rule());
        let rule = rule.resolve(|strength| self.ess(rule, strength));
        assert!((evaluation.rule.strength - rule.strength).abs() < 1e-9);
        let twin = |live: &[f64]| match rule.written {
            None => self.objective(surrogate, &rule, live),
            Some(_) => self.written_objective(surrogate, live),
        };
        let value = twin(&self.log_prob);
        assert!(
            (evaluation.objective - value).abs() < 1e-13,
            "{surrogate:?}: {} for {value}",
            evaluation.objective
        );
        let largest = evaluation.cotangent.iter().fold(1e-6, |most: f64, value| most.max(value.abs()));
        // The error of the difference is of order h⁴, about 1e-12 at h = 1e-3.
        let h = 1e-3;
        // A step moves its own ratio by 2h, and by as much times the strength through what the factor reads.
        let reach = 2.5 * h * (1.0 + rule.strength);
        let kink = match rule.written {
            None => self.near_a_kink(surrogate, &rule, &self.log_prob, reach),
            Some(_) => self.near_a_written_kink(surrogate, reach),
        };
        for step in 0..self.log_prob.len() {
            let mut live = self.log_prob.clone();
            let mut at = |shift: f64| {
                live[step] = self.log_prob[step] + shift;
                twin(&live)
            };
            let difference = (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h);
            let error = (evaluation.cotangent[step] - difference).abs() / largest;
            assert!(kink || error < 1e-7, "{surrogate:?}, {rule:?}, step {step}: {error:e}");
            let sum = evaluation.own[step] + evaluation.routed[step];
            assert_eq!(sum, evaluation.cotangent[step]);
        }
        let flat = evaluation.diagnostics.clip_fraction * evaluation.diagnostics.steps as f64;
        (flat.round() as usize, if kink { 0 } else { self.log_prob.len() })
    }

    fn weight(&self, lane: usize) -> f64 {
        self.weight.as_ref().map_or(1.0, |weight| weight[lane])
    }

    fn ell(&self, row: &[usize], log_prob: &[f64]) -> Vec<f64> {
        row.iter().map(|&step| log_prob[step] - self.rollout[step]).collect()
    }

    fn mismatch(&self, row: &[usize], behaviour: &[f64]) -> Vec<f64> {
        row.iter().map(|&step| self.rollout[step] - behaviour[step]).collect()
    }

    fn ess(&self, rule: Rule, strength: f64) -> f64 {
        let (mut mass, mut first, mut second) = (0.0, 0.0, 0.0);
        for (lane, row) in self.rows().iter().enumerate() {
            let ell = self.ell(row, &self.log_prob);
            for t in 0..ell.len() {
                let value = (strength * read(rule.reads, &ell, t)).exp();
                mass += self.weight(lane);
                first += self.weight(lane) * value;
                second += self.weight(lane) * value * value;
            }
        }
        first * first / (mass * second)
    }

    /// The objective with stop-gradients at `self.log_prob` and everything else at `live`.
    fn objective(&self, surrogate: &Surrogate, rule: &Rule, live: &[f64]) -> f64 {
        let source = if surrogate.routing { live } else { &self.log_prob };
        let rows = self.rows();
        let part = |row: &[usize]| match surrogate.mean {
            Mean::Steps => row.len() as f64,
            Mean::Trajectories => row.len().min(1) as f64,
        };
        let total: f64 = rows.iter().enumerate().map(|(lane, row)| self.weight(lane) * part(row)).sum();
        let mut objective = 0.0;
        for (lane, row) in rows.iter().enumerate().filter(|(_, row)| !row.is_empty()) {
            let (now, frozen) = (self.ell(row, live), self.ell(row, &self.log_prob));
            let scale = self.weight(lane) * part(row) / (row.len() as f64 * total);
            for t in 0..row.len() {
                let advantage = self.advantage[row[t]];
                let log_factor = || {
                    let log = log_factor(rule, read(rule.reads, &self.ell(row, source), t));
                    log - if rule.self_normalised { self.normaliser(rule, &rows, source, t) } else { 0.0 }
                };
                objective += scale
                    * match (rule.form, &self.behaviour) {
                        (Form::Multiply, _) => {
                            clip_min(surrogate, rule, t, (log_factor() + now[t]).exp(), advantage)
                        }
                        (Form::Replace, _) => {
                            // Detached, the step's own ratio is what moves (the token-level variant).
                            let own = if surrogate.routing { 0.0 } else { now[t] - frozen[t] };
                            clip_min(surrogate, rule, t, (log_factor() + own).exp(), advantage)
                        }
                        (Form::Weigh, Some(behaviour)) => {
                            let weight = log_factor_of(rule, &self.mismatch(row, behaviour), t).exp();
                            weight * clip_min(surrogate, rule, t, now[t].exp(), advantage)
                        }
                        (Form::Weigh, None) => {
                            let weight = log_factor_of(rule, &frozen, t).exp();
                            weight * advantage * (1.0 + now[t] - frozen[t])
                        }
                    };
            }
        }
        objective
    }

    fn normaliser(&self, rule: &Rule, rows: &[Vec<usize>], source: &[f64], t: usize) -> f64 {
        let (mut mass, mut sum) = (0.0, 0.0);
        for (lane, row) in rows.iter().enumerate().filter(|(_, row)| row.len() > t) {
            mass += self.weight(lane);
            sum += self.weight(lane) * log_factor_of(rule, &self.ell(row, source), t).exp();
        }
        (sum / mass).ln()
    }

    /// Whether a bound, a clip or a minimum changes sides within `reach` of here.
    fn near_a_kink(&self, surrogate: &Surrogate, rule: &Rule, at: &[f64], reach: f64) -> bool {
        let (Bound::Clamp(low, high) | Bound::Drop(low, high) | Bound::Keep(low, high)) = rule.bound;
        self.rows().iter().any(|row| {
            let ell = self.ell(row, at);
            (0..row.len()).any(|t| {
                let log_factor = rule.strength * read(rule.reads, &ell, t);
                let normaliser =
                    if rule.self_normalised { self.normaliser(rule, &self.rows(), at, t) } else { 0.0 };
                let edge = |value: f64, edge: f64| (value - edge).abs() < reach;
                let mut prefix = ell[..t].to_vec();
                prefix.sort_by(f64::total_cmp);
                let tie = rule.reads == Reads::Minimum && t > 1 && prefix[1] - prefix[0] < 2.0 * reach;
                let factor =
                    if matches!(rule.bound, Bound::Keep(..)) { 0.0 } else { log_factor.clamp(low, high) };
                let ratio = match rule.form {
                    Form::Multiply => factor - normaliser + ell[t],
                    Form::Replace => factor - normaliser,
                    Form::Weigh => ell[t],
                };
                let clipped = rule.clip(surrogate.clip).is_some_and(|clip| {
                    let bounds = clip.bounds::<f64>(t, rule.growing_clip);
                    [bounds.low, bounds.high, bounds.dual].iter().any(|bound| edge(ratio, bound.ln()))
                });
                tie || clipped || edge(log_factor, low) || edge(log_factor, high)
            })
        })
    }
}

fn read(reads: Reads, ell: &[f64], t: usize) -> f64 {
    match reads {
        Reads::Prefix => ell[..t].iter().sum(),
        Reads::Window(window) => ell[t.saturating_sub(window)..t].iter().sum(),
        Reads::Minimum => ell[..t].iter().copied().reduce(f64::min).unwrap_or(0.0),
        Reads::Step => ell[t],
        Reads::SequenceMean => ell.iter().sum::<f64>() / ell.len() as f64,
        Reads::SequenceSum => ell.iter().sum(),
    }
}

fn log_factor(rule: &Rule, reading: f64) -> f64 {
    let log = rule.strength * reading;
    match rule.bound {
        Bound::Clamp(low, high) => log.clamp(low, high),
        Bound::Drop(low, high) if log < low || log > high => f64::NEG_INFINITY,
        Bound::Drop(..) => log,
        Bound::Keep(low, high) => {
            if (low..=high).contains(&log) {
                0.0
            } else {
                f64::NEG_INFINITY
            }
        }
    }
}

fn log_factor_of(rule: &Rule, ell: &[f64], t: usize) -> f64 {
    log_factor(rule, read(rule.reads, ell, t))
}

/// `min(r·A, clip(r)·A)`, with the dual clip where it is on.
fn clip_min(surrogate: &Surrogate, rule: &Rule, t: usize, ratio: f64, advantage: f64) -> f64 {
    let Some(clip) = surrogate.clip else { return ratio * advantage };
    let stretch = if rule.growing_clip { ((t + 1) as f64).sqrt() } else { 1.0 };
    let (low, high) = ((1.0 - clip.low).powf(stretch), (1.0 + clip.high).powf(stretch));
    let plain = (ratio * advantage).min(ratio.clamp(low, high) * advantage);
    let dual = clip.dual.unwrap_or(f64::INFINITY).min(rule.dual);
    if advantage < 0.0 && dual.is_finite() { plain.max(dual * advantage) } else { plain }
}
