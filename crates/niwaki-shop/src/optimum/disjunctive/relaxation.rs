//! Bounds that ignore the order on machines: longest jobs, and the work that the machines must share.
//!
//! If each machine k is given a multiplier w(k), the weighted loads of any schedule satisfy
//! Σ w(k) (load(k) + head(k) + tail(k)) ≤ Σ w(k) · makespan, where head and tail are the least times that a job
//! spends before and after machine k. The left side is at least its minimum over all choices of machines, operation
//! by operation. The best multipliers (a subgradient ascent finds them) give the linear relaxation's bound.

use super::shop::Shop;

/// Multipliers of the machines.
enum Weights {
    /// One machine alone counts. A list for each machine would take memory with the square of their number.
    One(u32),
    /// `[machine]`.
    Each(Vec<i64>),
}

/// Multipliers of the machines and what they leave beside the loads.
pub(crate) struct Cut {
    weights: Weights,
    /// Σ w(k) (head(k) + tail(k)).
    pub(crate) offset: i64,
}

/// The order-free bound and the cuts that carry it.
pub(crate) struct Relaxation {
    pub(crate) lower: u32,
    pub(crate) cuts: Vec<Cut>,
    /// Least time after each operation's end.
    pub(crate) tails: Vec<u32>,
}

/// Looks at choices while multipliers are sought: a large shop gets fewer rounds, and a bound that is no less true.
const STEPS: usize = 40_000_000;

/// Multipliers are rounded to this many parts.
const PARTS: f64 = 20_000.0;

impl Relaxation {
    pub(crate) fn new(shop: &Shop) -> Self {
        let (heads, tails, mut lower) = job_paths(shop);
        let mut frame = vec![(u32::MAX, u32::MAX); shop.machines];
        for operation in 0..shop.operations() {
            for choice in shop.alternatives(operation) {
                let (head, tail) = &mut frame[choice.machine as usize];
                *head = (*head).min(heads[operation]);
                *tail = (*tail).min(tails[operation]);
            }
        }
        let frame: Vec<i64> = frame
            .into_iter()
            .map(|(head, tail)| if head == u32::MAX { 0 } else { i64::from(head) + i64::from(tail) })
            .collect();
        let mut cuts = Vec::new();
        for (machine, load) in sole_loads(shop).into_iter().enumerate() {
            let offset = frame[machine];
            lower = lower.max(u32::try_from(load + offset).unwrap_or(u32::MAX));
            cuts.push(Cut { weights: Weights::One(machine as u32), offset });
        }
        if !shop.is_flexible() {
            return Self { lower, cuts: Vec::new(), tails };
        }
        let weights = multipliers(shop, &frame);
        let offset = weights.iter().zip(&frame).map(|(weight, frame)| weight * frame).sum();
        let shared = Cut { weights: Weights::Each(weights), offset };
        lower = lower.max(shared.bound(shop));
        cuts.push(shared);
        Self { lower, cuts, tails }
    }
}

impl Cut {
    /// The multiplier of one machine.
    pub(crate) fn weight(&self, machine: u32) -> i64 {
        match &self.weights {
            Weights::One(only) => i64::from(*only == machine),
            Weights::Each(weights) => weights[machine as usize],
        }
    }

    /// The multipliers' sum.
    pub(crate) fn slope(&self) -> i64 {
        match &self.weights {
            Weights::One(_) => 1,
            Weights::Each(weights) => weights.iter().sum(),
        }
    }

    /// The least makespan that the cut allows.
    fn bound(&self, shop: &Shop) -> u32 {
        let slope = self.slope();
        let least = |operation| {
            let choices = shop.alternatives(operation).iter();
            choices.map(|one| self.weight(one.machine) * i64::from(one.time)).min().unwrap_or(0)
        };
        let total: i64 = self.offset + (0..shop.operations()).map(least).sum::<i64>();
        u32::try_from((total + slope - 1) / slope).unwrap_or(u32::MAX)
    }
}

/// The work that each machine must do, because nothing else can.
fn sole_loads(shop: &Shop) -> Vec<i64> {
    let mut loads = vec![0; shop.machines];
    for operation in 0..shop.operations() {
        if let [only] = shop.alternatives(operation) {
            loads[only.machine as usize] += i64::from(only.time);
        }
    }
    loads
}

/// Least time before and after each operation along its job, and the longest job.
fn job_paths(shop: &Shop) -> (Vec<u32>, Vec<u32>, u32) {
    let (mut heads, mut tails) = (vec![0; shop.operations()], vec![0; shop.operations()]);
    let mut longest = 0;
    for job in 0..shop.jobs() {
        let range = shop.job(job);
        heads[range.start] = shop.earliest[range.start];
        for operation in range.clone().skip(1) {
            let ready = heads[operation - 1] + shop.least(operation - 1) + shop.rests[operation];
            heads[operation] = ready.max(shop.earliest[operation]);
        }
        for operation in range.clone().rev().skip(1) {
            tails[operation] = tails[operation + 1] + shop.least(operation + 1) + shop.rests[operation + 1];
        }
        let through = range.map(|one| heads[one] + shop.least(one) + tails[one]);
        longest = longest.max(through.max().unwrap_or(0));
    }
    (heads, tails, longest)
}

/// Multipliers that make the cut's bound large, rounded to whole numbers; all of them together at least 1.
fn multipliers(shop: &Shop, frame: &[i64]) -> Vec<i64> {
    let count = shop.machines;
    let mut weights = vec![1.0 / count as f64; count];
    let mut best = (f64::MIN, weights.clone());
    let mut loads = vec![0.0; count];
    let rounds = (STEPS / shop.choices.len().max(1)).clamp(20, 2000) as u32;
    for round in 0..rounds {
        let mut value = 0.0;
        for (load, &frame) in loads.iter_mut().zip(frame) {
            *load = frame as f64;
        }
        for operation in 0..shop.operations() {
            let mut least = (f64::MAX, 0, 0.0);
            for choice in shop.alternatives(operation) {
                let (machine, time) = (choice.machine as usize, f64::from(choice.time));
                if weights[machine] * time < least.0 {
                    least = (weights[machine] * time, machine, time);
                }
            }
            loads[least.1] += least.2;
        }
        value += loads.iter().zip(&weights).map(|(load, weight)| load * weight).sum::<f64>();
        if value > best.0 {
            best = (value, weights.clone());
        }
        // Multiplicative steps keep the multipliers positive; they shrink as 1/√round.
        let step = 0.5 / (f64::from(round) + 1.0).sqrt();
        let mut total = 0.0;
        for (weight, load) in weights.iter_mut().zip(&loads) {
            *weight *= (step * (load / value - 1.0)).clamp(-1.0, 1.0).exp();
            total += *weight;
        }
        weights.iter_mut().for_each(|weight| *weight /= total);
    }
    let mut rounded: Vec<i64> = best.1.iter().map(|weight| (weight * PARTS).round() as i64).collect();
    if rounded.iter().all(|&weight| weight == 0) {
        rounded[0] = 1;
    }
    rounded
}
