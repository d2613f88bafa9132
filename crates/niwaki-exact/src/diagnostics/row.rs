//! One measured cell, and its summary over seeds.

use crate::{Conditions, Drift, Error, Measurement, Process};
use niwaki_correction::Surrogate;
use niwaki_stats::{mean, sem};

/// One loss on one policy pair.
#[derive(Clone, Debug)]
pub struct Row {
    /// The process.
    pub process: Process,
    /// The reward's name.
    pub reward: String,
    /// Size of the perturbation (δ), or the share of the way between two given tables.
    pub drift: f64,
    /// Seed of the perturbation.
    pub seed: u64,
    /// The loss.
    pub surrogate: Surrogate,
    /// Bias, variance, direction and ESS.
    pub measured: Measurement,
    /// Trajectories in the batches whose update is judged.
    pub batch: u64,
    /// [`Measurement::alignment`] at that batch.
    pub alignment: f64,
    /// Mean cosine between the gradients of drawn batches and that of η; not a number where none were drawn.
    pub batch_cosine: f64,
    /// How far the two policies are apart.
    pub apart: Drift,
    /// Bias witness and the conditions.
    pub conditions: Conditions,
    /// Component of the reweighting channel along the gradient of η, relative to that gradient's norm.
    pub reweighting_along: f64,
    /// The same of the credit-routing channel.
    pub routing_along: f64,
}

/// A cell of the grid over its seeds: means, and standard errors where there are two seeds or more.
#[derive(Clone, Debug)]
pub struct Summary {
    /// The process.
    pub process: Process,
    /// The reward's name.
    pub reward: String,
    /// Size of the perturbation (δ).
    pub drift: f64,
    /// How many seeds.
    pub seeds: usize,
    /// The loss.
    pub surrogate: Surrogate,
    /// Trajectories in the batches whose update is judged.
    pub batch: u64,
    /// Alignment of such an update with the gradient of η.
    pub alignment: Spread,
    /// Mean cosine of drawn batches.
    pub batch_cosine: Spread,
    /// Trajectories in a batch whose gradient has as much noise as signal, of all pairs together; not a number where no
    /// pair has a gradient.
    pub noise_batch: f64,
    /// Signed bias.
    pub bias: Spread,
    /// Mean of |bias|: what one pair suffers, however the signs fall.
    pub absolute_bias: Spread,
    /// Variance of the single-trajectory estimate.
    pub variance: Spread,
    /// Mean squared error.
    pub mse: Spread,
    /// Cosine with the gradient of η.
    pub cosine: Spread,
    /// Normalised ESS.
    pub ess: Spread,
    /// D̄_KL.
    pub mean_kl: Spread,
    /// σ²T.
    pub total_drift: Spread,
    /// Σ|b_t|.
    pub dose: Spread,
    /// Reweighting along the gradient of η.
    pub reweighting_along: Spread,
    /// Credit routing along the gradient of η.
    pub routing_along: Spread,
    /// The strength that acted (interesting for the adaptive member).
    pub strength: Spread,
}

/// A mean over seeds and its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Mean over seeds.
    pub mean: f64,
    /// Standard error of the mean (ddof = 1); not a number for a single seed.
    pub sem: f64,
}

impl Spread {
    fn of(values: &[f64]) -> Result<Self, Error> {
        // A direction that does not exist (a zero gradient) stays what it is: not a number.
        if values.iter().any(|value| !value.is_finite()) {
            return Ok(Self { mean: f64::NAN, sem: f64::NAN });
        }
        Ok(Self { mean: mean(values)?, sem: if values.len() > 1 { sem(values)? } else { f64::NAN } })
    }
}

impl Summary {
    /// The summary's measured quantity by name, as studies and columns call it.
    #[must_use]
    pub fn get(&self, measure: &str) -> Option<Spread> {
        Some(match measure {
            "alignment" => self.alignment,
            "bias" => self.bias,
            "bias_of_mean" => Spread { mean: self.bias.mean.abs(), sem: self.bias.sem },
            "absolute_bias" => self.absolute_bias,
            "variance" => self.variance,
            "mse" => self.mse,
            "cosine" => self.cosine,
            "ess" => self.ess,
            "mean_kl" => self.mean_kl,
            "drift" => self.total_drift,
            "dose" => self.dose,
            _ => return None,
        })
    }

    /// Column names of [`Summary::values`], after those that say what was measured.
    pub const COLUMNS: [&str; 22] = [
        "bias",
        "variance",
        "mse",
        "cosine",
        "ess",
        "mean_kl",
        "absolute_bias",
        "bias_sem",
        "variance_sem",
        "mse_sem",
        "cosine_sem",
        "ess_sem",
        "sigma2_horizon",
        "dose",
        "reweighting_along_eta",
        "routing_along_eta",
        "strength",
        "alignment",
        "alignment_sem",
        "batch_cosine",
        "batch_cosine_sem",
        "noise_batch",
    ];

    /// The measured values, in the order of [`Summary::COLUMNS`].
    #[must_use]
    pub fn values(&self) -> [f64; 22] {
        [
            self.bias.mean,
            self.variance.mean,
            self.mse.mean,
            self.cosine.mean,
            self.ess.mean,
            self.mean_kl.mean,
            self.absolute_bias.mean,
            self.bias.sem,
            self.variance.sem,
            self.mse.sem,
            self.cosine.sem,
            self.ess.sem,
            self.total_drift.mean,
            self.dose.mean,
            self.reweighting_along.mean,
            self.routing_along.mean,
            self.strength.mean,
            self.alignment.mean,
            self.alignment.sem,
            self.batch_cosine.mean,
            self.batch_cosine.sem,
            self.noise_batch,
        ]
    }
}

/// Summarises rows over their seeds, in the order in which (reward, drift, loss) first appear.
///
/// # Errors
/// Where a statistic refuses its input.
pub fn summarise(rows: &[Row]) -> Result<Vec<Summary>, Error> {
    let same = |a: &Row, b: &Row| a.reward == b.reward && a.drift == b.drift && a.surrogate == b.surrogate;
    let mut cells: Vec<Vec<&Row>> = Vec::new();
    for row in rows {
        match cells.iter_mut().find(|cell| same(cell[0], row)) {
            Some(cell) => cell.push(row),
            None => cells.push(vec![row]),
        }
    }
    cells.iter().map(|cell| summary(cell)).collect()
}

fn summary(cell: &[&Row]) -> Result<Summary, Error> {
    let spread =
        |value: &dyn Fn(&Row) -> f64| Spread::of(&cell.iter().map(|row| value(row)).collect::<Vec<_>>());
    let total =
        |value: &dyn Fn(&Measurement) -> f64| cell.iter().map(|row| value(&row.measured)).sum::<f64>();
    let signal = total(&|measured| measured.gradient_norm.powi(2));
    let noise = total(&|measured| measured.gradient_variance);
    Ok(Summary {
        process: cell[0].process,
        reward: cell[0].reward.clone(),
        drift: cell[0].drift,
        seeds: cell.len(),
        surrogate: cell[0].surrogate,
        batch: cell[0].batch,
        alignment: spread(&|row| row.alignment)?,
        batch_cosine: spread(&|row| row.batch_cosine)?,
        noise_batch: if signal > 0.0 { noise / signal } else { f64::NAN },
        bias: spread(&|row| row.measured.bias)?,
        absolute_bias: spread(&|row| row.measured.bias.abs())?,
        variance: spread(&|row| row.measured.variance)?,
        mse: spread(&|row| row.measured.mse)?,
        cosine: spread(&|row| row.measured.cosine)?,
        ess: spread(&|row| row.measured.ess)?,
        mean_kl: spread(&|row| row.apart.mean_kl)?,
        total_drift: spread(&|row| row.apart.drift)?,
        dose: spread(&|row| row.conditions.dose)?,
        reweighting_along: spread(&|row| row.reweighting_along)?,
        routing_along: spread(&|row| row.routing_along)?,
        strength: spread(&|row| row.measured.rule.strength)?,
    })
}
