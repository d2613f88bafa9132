//! Gradients of batches that are drawn, as a trainer sees them.
//!
//! Nothing of the enumeration is used but the advantages: trajectories are drawn, and the loss is asked what it says of a
//! batch of them. So members that look at the whole batch look at this one, not at all trajectories.

use super::steps::Steps;
use crate::sum::{dot, norm};
use crate::{Error, Pair};
use niwaki_correction::{Surrogate, Workspace};
use niwaki_stream::{Key, Stream, by_chance};

/// The gradients of several batches.
///
/// Shapes: `[batches]` each
#[derive(Clone, Debug, PartialEq)]
pub struct Batches {
    /// Component along the gradient of η; 0 where that vanishes.
    pub along: Vec<f64>,
    /// Square of the norm.
    pub square: Vec<f64>,
}

impl Batches {
    /// Cosine of each batch's gradient with the gradient of η; 0 for a batch without a gradient.
    #[must_use]
    pub fn cosines(&self) -> Vec<f64> {
        let cosine = |(&along, &square): (&f64, &f64)| if along == 0.0 { 0.0 } else { along / square.sqrt() };
        self.along.iter().zip(&self.square).map(cosine).collect()
    }

    /// Mean of the cosines; not a number without a batch.
    #[must_use]
    pub fn mean_cosine(&self) -> f64 {
        self.cosines().iter().sum::<f64>() / self.along.len() as f64
    }
}

impl Pair<'_> {
    /// Draws batches from the rollout policy and takes the loss's gradient of each. All losses see the same trajectories: the
    /// seed alone decides them.
    ///
    /// # Errors
    /// Below two trajectories in a batch, or where the loss refuses a batch.
    pub fn batches(
        &self,
        surrogate: &Surrogate,
        batch: usize,
        batches: usize,
        seed: u64,
    ) -> Result<Batches, Error> {
        if batch < 2 {
            return Err(Error::Batch(batch as u64));
        }
        let horizon = self.process().horizon();
        let (mut work, mut drawn, entropy) = (Workspace::default(), Steps::default(), self.entropies());
        let mut gradient = vec![0.0; self.process().edges()];
        let mut found = Batches { along: Vec::with_capacity(batches), square: Vec::with_capacity(batches) };
        for index in 0..batches {
            let mut stream = Key::new(seed, "oracle batch").iteration(index as u64).open();
            drawn.clear();
            (0..batch).for_each(|_| drawn.push(self, &self.draw(&mut stream), &entropy));
            let cotangent = surrogate.cotangent(&drawn.batch(horizon), &mut work)?;
            gradient.fill(0.0);
            for (&edge, cotangent) in drawn.edges.iter().zip(cotangent) {
                // The objective is a mean over steps, a trajectory's estimate a sum.
                gradient[edge] += horizon as f64 * cotangent;
            }
            self.new.pull_back(&mut gradient);
            let along = dot(&gradient, self.eta_gradient());
            found.along.push(if along == 0.0 { 0.0 } else { along / self.eta_gradient_norm() });
            found.square.push(norm(&gradient).powi(2));
        }
        Ok(found)
    }

    /// A trajectory of the rollout policy, by the edges of its steps.
    fn draw(&self, stream: &mut Stream) -> Vec<usize> {
        let (process, vocab) = (self.process(), self.process().vocab());
        let mut row = 0;
        let step = |_| {
            let prob = &self.old.prob()[vocab * row..vocab * (row + 1)];
            let edge = vocab * row + by_chance(prob.iter().copied(), stream.uniform());
            row = edge + 1;
            edge
        };
        (0..process.horizon()).map(step).collect()
    }
}
