//! The policy: for each dial a softmax over faces that has seen the face before it.

use crate::task::{DIALS, Draws, FACES};

/// Logits `[dial][face before][face]`; the first dial has seen nothing and uses row 0.
pub(crate) struct Dials {
    logits: Vec<[[f64; FACES]; FACES]>,
}

impl Dials {
    pub(crate) fn new() -> Self {
        Self { logits: vec![[[0.0; FACES]; FACES]; DIALS] }
    }

    /// Probabilities of a dial's faces after what was turned before it.
    pub(crate) fn faces(&self, before: &[usize]) -> [f64; FACES] {
        let row = self.logits[before.len()][before.last().copied().unwrap_or(0)];
        let most = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights = row.map(|logit| (logit - most).exp());
        let sum: f64 = weights.iter().sum();
        weights.map(|weight| weight / sum)
    }

    pub(crate) fn sample(&self, draws: &mut Draws) -> [usize; DIALS] {
        let mut lane = [0; DIALS];
        for dial in 0..DIALS {
            let faces = self.faces(&lane[..dial]);
            let mut left = draws.uniform();
            lane[dial] = faces
                .iter()
                .position(|prob| {
                    left -= prob;
                    left < 0.0
                })
                .unwrap_or(FACES - 1);
        }
        lane
    }

    /// Log-probs of every step, trajectory after trajectory.
    pub(crate) fn log_probs(&self, lanes: &[[usize; DIALS]]) -> Vec<f64> {
        let step = |lane: &[usize; DIALS], dial: usize| self.faces(&lane[..dial])[lane[dial]].ln();
        lanes.iter().flat_map(|lane| (0..DIALS).map(move |dial| step(lane, dial))).collect()
    }

    /// Takes a step along a gradient with respect to the log-probs: ∂log softmax(face) / ∂logit is `[it is this one] − prob`.
    pub(crate) fn climb(&mut self, lanes: &[[usize; DIALS]], cotangent: &[f64], rate: f64) {
        let mut gradient = vec![[[0.0; FACES]; FACES]; DIALS];
        for (lane, weights) in lanes.iter().zip(cotangent.chunks_exact(DIALS)) {
            for dial in 0..DIALS {
                let faces = self.faces(&lane[..dial]);
                let before = if dial == 0 { 0 } else { lane[dial - 1] };
                for face in 0..FACES {
                    let here = f64::from(u8::from(face == lane[dial]));
                    gradient[dial][before][face] += weights[dial] * (here - faces[face]);
                }
            }
        }
        let norm =
            gradient.iter().flatten().flatten().map(|value| value * value).sum::<f64>().sqrt().max(1e-12);
        for (logit, value) in
            self.logits.iter_mut().flatten().flatten().zip(gradient.iter().flatten().flatten())
        {
            *logit += rate * value / norm;
        }
    }
}
