//! The twin of losses that are written out: each as its paper or its trainer has it, with stop-gradients at where the batch is.

use super::{Case, clip_min, log_factor_of};
use niwaki_correction::Surrogate;
use niwaki_correction::surrogate::Mean;

/// One trajectory: log-ratios now and where gradients stop, and what else a loss may look at.
struct Lane<'a> {
    case: &'a Case,
    row: &'a [usize],
    now: Vec<f64>,
    stop: Vec<f64>,
}

impl Lane<'_> {
    fn advantage(&self, t: usize) -> f64 {
        self.case.advantage[self.row[t]]
    }

    /// What a weight from outside reads.
    fn outer(&self) -> Vec<f64> {
        match &self.case.behaviour {
            Some(behaviour) => self.case.mismatch(self.row, behaviour),
            None => self.stop.clone(),
        }
    }

    /// Log-ratios to the policy that sampled, where gradients stop.
    fn since_sampled(&self) -> Vec<f64> {
        self.outer()
            .iter()
            .zip(&self.stop)
            .map(|(outer, stop)| if self.case.behaviour.is_some() { outer + stop } else { *outer })
            .collect()
    }

    fn ppo(&self, surrogate: &Surrogate, t: usize) -> f64 {
        clip_min(surrogate, &surrogate.correction.rule(), 0, self.now[t].exp(), self.advantage(t))
    }

    /// `w A (1 + log π − stopped log π)`: the value `w A` and the gradient `w A ∇ log π`.
    fn score(&self, weight: f64, t: usize) -> f64 {
        weight * self.advantage(t) * (1.0 + self.now[t] - self.stop[t])
    }

    fn weighed(&self, surrogate: &Surrogate, weight: f64, t: usize) -> f64 {
        if self.case.behaviour.is_some() { weight * self.ppo(surrogate, t) } else { self.score(weight, t) }
    }
}

impl Case {
    fn masses(&self) -> Vec<(usize, f64)> {
        let rows = self.rows();
        let masses = rows
            .iter()
            .enumerate()
            .flat_map(|(lane, row)| row.iter().map(move |&step| (step, self.weight(lane))));
        masses.collect()
    }

    fn mean(&self, values: &[f64]) -> f64 {
        let masses = self.masses();
        let mass: f64 = masses.iter().map(|(_, mass)| mass).sum();
        masses.iter().map(|&(step, mass)| mass * values[step]).sum::<f64>() / mass
    }

    /// What each step adds to the covariance of advantage and log-prob.
    fn covariances(&self) -> Vec<f64> {
        let (advantage, log_prob) = (self.mean(&self.advantage), self.mean(&self.log_prob));
        let steps = self.advantage.iter().zip(&self.log_prob);
        steps.map(|(own, log)| (own - advantage) * (log - log_prob)).collect()
    }

    /// Whether so much of the mass lies above a step's score that it is not among the first `share`.
    fn among_first(&self, share: f64, step: usize, score: &[f64]) -> bool {
        let masses = self.masses();
        let all: f64 = masses.iter().map(|(_, mass)| mass).sum();
        let above: f64 =
            masses.iter().filter(|(other, _)| score[*other] > score[step]).map(|(_, mass)| mass).sum();
        let own = masses.iter().find(|(other, _)| *other == step).map_or(0.0, |(_, mass)| *mass);
        above == 0.0 || above + own <= share * all
    }

    /// The entropy above which a share of the steps lies.
    fn entropy_threshold(&self, share: f64) -> f64 {
        let mut masses = self.masses();
        masses.sort_by(|one, other| self.entropy[one.0].total_cmp(&self.entropy[other.0]));
        let sorted: Vec<f64> = masses.iter().map(|(step, _)| self.entropy[*step]).collect();
        if self.weight.is_none() {
            let place = (1.0 - share) * (sorted.len() - 1) as f64;
            let rest = place - place.floor();
            return sorted[place.floor() as usize] * (1.0 - rest) + sorted[place.ceil() as usize] * rest;
        }
        let all: f64 = masses.iter().map(|(_, mass)| mass).sum();
        let reached =
            |rank: usize| masses[..=rank].iter().map(|(_, mass)| mass).sum::<f64>() >= (1.0 - share) * all;
        sorted[(0..sorted.len()).find(|&rank| reached(rank)).unwrap_or(sorted.len() - 1)]
    }

    /// The objective of a written-out loss.
    pub(super) fn written_objective(&self, surrogate: &Surrogate, live: &[f64]) -> f64 {
        let rows = self.rows();
        let part = |row: &[usize]| match surrogate.mean {
            Mean::Steps => row.len() as f64,
            Mean::Trajectories => row.len().min(1) as f64,
        };
        let total: f64 = rows.iter().enumerate().map(|(lane, row)| self.weight(lane) * part(row)).sum();
        let covariances =
            if surrogate.correction.name().ends_with("-cov") { self.covariances() } else { Vec::new() };
        let mut objective = 0.0;
        for (lane, row) in rows.iter().enumerate().filter(|(_, row)| !row.is_empty()) {
            let lane_now =
                Lane { case: self, row, now: self.ell(row, live), stop: self.ell(row, &self.log_prob) };
            let scale = self.weight(lane) * part(row) / (row.len() as f64 * total);
            objective += scale
                * (0..row.len())
                    .map(|t| self.written_term(surrogate, &lane_now, t, (live, &covariances)))
                    .sum::<f64>();
        }
        objective
    }

    fn written_term(
        &self,
        surrogate: &Surrogate,
        lane: &Lane<'_>,
        t: usize,
        (live, covariances): (&[f64], &[f64]),
    ) -> f64 {
        let name = surrogate.correction.name();
        let value = |index: usize| surrogate.correction.values()[index];
        let (advantage, step, count) = (lane.advantage(t), lane.row[t], lane.row.len() as f64);
        let (now, stop) = (lane.now[t], lane.stop[t]);
        let k2 = |ell: &f64| ell * ell / 2.0;
        let k3 = |ell: &f64| ell.exp() - 1.0 - ell;
        let keep = |statistic: f64| if statistic <= value(0) { 1.0 } else { 0.0 };
        let fold = |of: &dyn Fn(&f64) -> f64, how: &str| {
            let parts: Vec<f64> = lane.outer().iter().map(of).collect();
            match how {
                "sequence" => parts.iter().sum(),
                "mean" => parts.iter().sum::<f64>() / count,
                _ => parts.iter().copied().fold(0.0, f64::max),
            }
        };
        match name {
            "sapo" => {
                let tau = if advantage > 0.0 { value(0) } else { value(1) };
                4.0 / (tau * (1.0 + (tau * (1.0 - now.exp())).exp())) * advantage
            }
            "vespo" => {
                let ratio = lane.since_sampled().iter().sum::<f64>().exp();
                let (k, rate) = if advantage >= 0.0 { (value(0), value(1)) } else { (value(2), value(3)) };
                lane.score(ratio.powf(k) * (rate * (1.0 - ratio)).exp(), t)
            }
            "outside" => {
                let source = if surrogate.routing { &lane.now } else { &lane.stop };
                (value(0) * source[..t].iter().sum::<f64>()).exp() * lane.ppo(surrogate, t)
            }
            "gmpo" => {
                let clipped = |ell: f64, of: usize| {
                    let sign = lane.advantage(of).signum();
                    sign * (sign * ell).min(sign * ell.clamp(-value(0), value(1)))
                };
                let source = if surrogate.routing { &lane.now } else { &lane.stop };
                let mean = (0..lane.row.len()).map(|of| clipped(source[of], of)).sum::<f64>() / count;
                let held = clipped(stop, t) != stop;
                let own = if surrogate.routing || held { 0.0 } else { now - stop };
                (mean + own).exp() * advantage
            }
            "dppo-tv" | "dppo-kl" => {
                let (new, old) = (self.log_prob[step].exp(), self.rollout[step].exp());
                let inside = if name == "dppo-tv" {
                    if advantage > 0.0 { new - old <= value(1) } else { old - new <= value(0) }
                } else {
                    let kl = old * (old / new).ln() + (1.0 - old) * ((1.0 - old) / (1.0 - new)).ln();
                    let bound = if advantage > 0.0 { value(1) } else { value(0) };
                    kl <= bound || (advantage > 0.0) == (new <= old)
                };
                lane.score(if inside { stop.exp().min(value(2)) } else { 0.0 }, t)
            }
            "clip-cov" => {
                let bounds = (surrogate.clip).map(|clip| clip.bounds::<f64>(0, false));
                let eligible = |step: usize| {
                    let ratio = (self.log_prob[step] - self.rollout[step]).exp();
                    let live = bounds.is_none_or(|bounds| bounds.term(ratio, self.advantage[step]).1);
                    live && value(1) < covariances[step] && covariances[step] < value(2)
                };
                let masses = self.masses();
                let all: f64 = masses.iter().map(|(_, mass)| mass).sum();
                let among: f64 =
                    masses.iter().filter(|(step, _)| eligible(*step)).map(|(_, mass)| mass).sum();
                let budget = value(0) * all;
                let budget = if self.weight.is_some() { budget } else { budget.floor().max(1.0) };
                let kept = if eligible(step) { (1.0 - budget / among).max(0.0) } else { 1.0 };
                kept * lane.ppo(surrogate, t)
            }
            "kl-cov" => {
                let chosen = self.among_first(value(0), step, covariances);
                now.exp() * advantage - if chosen { value(1) * now.abs() } else { 0.0 }
            }
            "dro" => advantage * (1.0 + now - stop) - 0.5 * value(0) * now * now,
            "kl-penalty" => lane.ppo(surrogate, t) - value(0) * k3(&(self.reference[step] - live[step])),
            "kl-corrected" => {
                lane.ppo(surrogate, t) - value(0) * now.exp() * k3(&(self.reference[step] - live[step]))
            }
            "off-policy-mask" => {
                let fallen = -lane.since_sampled().iter().sum::<f64>() / count;
                lane.ppo(surrogate, t) * if advantage >= 0.0 { 1.0 } else { keep(fallen) }
            }
            "top-entropy" => {
                let kept = self.entropy[step] >= self.entropy_threshold(value(0));
                lane.ppo(surrogate, t) * if kept { 1.0 } else { 0.0 }
            }
            "normalised-token-tis" => {
                let weight = |ell: f64| ell.exp().min(value(0));
                let mut weights = vec![0.0; self.log_prob.len()];
                for row in self.rows() {
                    let stop = self.ell(&row, &self.log_prob);
                    let other = Lane { case: self, row: &row, now: stop.clone(), stop };
                    row.iter().zip(other.outer()).for_each(|(&step, ell)| weights[step] = weight(ell));
                }
                lane.weighed(surrogate, weights[step] / self.mean(&weights), t)
            }
            "normalised-sequence-tis" => {
                let (mut mass, mut sum) = (0.0, 0.0);
                for (index, row) in self.rows().iter().enumerate().filter(|(_, row)| !row.is_empty()) {
                    let stop = self.ell(row, &self.log_prob);
                    let other = Lane { case: self, row, now: stop.clone(), stop };
                    mass += self.weight(index);
                    sum += self.weight(index) * other.outer().iter().sum::<f64>().exp().min(value(0));
                }
                lane.weighed(surrogate, lane.outer().iter().sum::<f64>().exp().min(value(0)) * mass / sum, t)
            }
            joined if joined.contains('+') => {
                let weights = joined.split('+').map(|part| {
                    let rule = part.parse::<Surrogate>().unwrap().correction.rule();
                    log_factor_of(&rule, &lane.outer(), t).exp()
                });
                let weight = weights.product();
                lane.weighed(surrogate, weight, t)
            }
            rejection => {
                let (how, by) = rejection.split_once('-').unwrap();
                let statistic = if by == "k2" { fold(&k2, how) } else { fold(&k3, how) };
                lane.weighed(surrogate, keep(statistic), t)
            }
        }
    }

    /// Whether a clip, a bound of GMPO's or KL-Cov's corner at zero lies within `reach` of a step.
    pub(super) fn near_a_written_kink(&self, surrogate: &Surrogate, reach: f64) -> bool {
        let (name, rule) = (surrogate.correction.name(), surrogate.correction.rule());
        let mut edges = match name {
            "kl-cov" => vec![0.0],
            "gmpo" => vec![-surrogate.correction.values()[0], surrogate.correction.values()[1]],
            _ => vec![],
        };
        if let Some(clip) =
            rule.clip(surrogate.clip).filter(|_| !["kl-cov", "gmpo", "sapo", "dro"].contains(&name))
        {
            let bounds = clip.bounds::<f64>(0, false);
            edges.extend([bounds.low, bounds.high, bounds.dual].map(f64::ln));
        }
        self.rows().iter().flatten().any(|&step| {
            let ell = self.log_prob[step] - self.rollout[step];
            edges.iter().any(|edge| (ell - edge).abs() < reach)
        })
    }
}
