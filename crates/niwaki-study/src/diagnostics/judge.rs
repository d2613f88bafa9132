//! Every statement of a study held against what was measured.

use super::Diagnostics;
use super::spec::{BoundClaim, FallingClaim, LowestClaim, MarginClaim, OrderClaim, ValueClaim, unclipped};
use crate::Error;
use crate::claim::{Judgement, Ours, Outcome, Printed, compare};
use niwaki_exact::diagnostics::{Spread, Summary};

impl Diagnostics {
    /// Holds every statement of the paper against what was measured.
    ///
    /// # Errors
    /// Where the file asks for a cell or a measure that its grid does not have, or prints a value that is not a number.
    pub fn judge(&self, summaries: &[Summary]) -> Result<Vec<Outcome>, Error> {
        let board = Board { study: self, summaries };
        let mut outcomes = Vec::new();
        for claim in &self.value {
            outcomes.push(board.value(claim)?);
        }
        for claim in &self.bound {
            outcomes.push(board.bound(claim)?);
        }
        for claim in &self.lowest {
            outcomes.push(board.lowest(claim)?);
        }
        for claim in &self.order {
            outcomes.push(board.order(claim)?);
        }
        for claim in &self.falling {
            outcomes.push(board.falling(claim)?);
        }
        for claim in &self.margin {
            outcomes.push(board.margin(claim)?);
        }
        Ok(outcomes)
    }
}

/// The measured summaries, asked by a study's words.
struct Board<'a> {
    study: &'a Diagnostics,
    summaries: &'a [Summary],
}

impl Board<'_> {
    fn senseless(&self, mend: String) -> Error {
        Error::Senseless { label: self.study.label.clone(), mend }
    }

    fn cell(&self, reward: &str, drift: f64, loss: &str) -> Result<&Summary, Error> {
        let surrogate = unclipped(loss)?;
        self.summaries
            .iter()
            .find(|row| row.reward == reward && row.drift == drift && row.surrogate == surrogate)
            .ok_or_else(|| self.senseless(format!("its grid has no {loss} at drift {drift} on {reward}")))
    }

    fn spread(&self, measure: &str, reward: &str, drift: f64, loss: &str) -> Result<Spread, Error> {
        self.cell(reward, drift, loss)?
            .get(measure)
            .ok_or_else(|| self.senseless(format!("nothing is measured under the name '{measure}'")))
    }

    fn value(&self, claim: &ValueClaim) -> Result<Outcome, Error> {
        let ours = self.spread(&claim.measure, &claim.reward, claim.drift, &claim.loss)?;
        let printed = Printed::of(&self.study.label, &claim.paper)?;
        let sem = claim
            .sem
            .as_deref()
            .map(|text| Printed::of(&self.study.label, text))
            .transpose()?
            .map(|sem| sem.value);
        let (sems, judgement) = compare(printed, sem, ours.mean, ours.sem);
        Ok(Outcome {
            group: format!("{}, {}, δ = {}", words(&claim.measure), claim.reward, claim.drift),
            statement: label(&claim.loss)?,
            paper: Some(printed.value),
            paper_sem: sem,
            ours: Ours::Number(ours.mean, ours.sem),
            sems,
            judgement,
            remark: claim.remark.clone(),
        })
    }

    fn bound(&self, claim: &BoundClaim) -> Result<Outcome, Error> {
        let mut worst: f64 = 0.0;
        for &drift in &self.study.drifts {
            worst = worst.max(self.spread(&claim.measure, &claim.reward, drift, &claim.loss)?.mean.abs());
        }
        Ok(Outcome {
            group: String::new(),
            statement: format!(
                "largest |{}| of {} over all drifts ({}) is below {:e}",
                words(&claim.measure),
                label(&claim.loss)?,
                claim.reward,
                claim.below
            ),
            paper: Some(Printed::of(&self.study.label, &claim.paper)?.value),
            paper_sem: None,
            ours: Ours::Number(worst, 0.0),
            sems: None,
            judgement: (worst < claim.below).into(),
            remark: String::new(),
        })
    }

    fn lowest(&self, claim: &LowestClaim) -> Result<Outcome, Error> {
        let mut best: Option<(&Summary, f64)> = None;
        let here = |row: &&Summary| row.reward == claim.reward && row.drift == claim.drift;
        for row in self.summaries.iter().filter(here) {
            let value = self
                .spread(&claim.measure, &claim.reward, claim.drift, &row.surrogate.correction.to_string())?
                .mean;
            if best.is_none_or(|(_, least)| value < least) {
                best = Some((row, value));
            }
        }
        let (row, least) =
            best.ok_or_else(|| self.senseless(format!("its grid has no drift {}", claim.drift)))?;
        let named = claim.losses.iter().map(|loss| unclipped(loss)).collect::<Result<Vec<_>, _>>()?;
        let labels = claim.losses.iter().map(|loss| label(loss)).collect::<Result<Vec<_>, _>>()?;
        Ok(Outcome {
            group: String::new(),
            statement: format!(
                "lowest {} ({}, δ = {}) is at {}",
                words(&claim.measure),
                claim.reward,
                claim.drift,
                labels.join(" or ")
            ),
            paper: None,
            paper_sem: None,
            ours: Ours::Words(format!("{} ({least:.4})", row.surrogate.correction.label())),
            sems: None,
            judgement: named.contains(&row.surrogate).into(),
            remark: claim.remark.clone(),
        })
    }

    fn order(&self, claim: &OrderClaim) -> Result<Outcome, Error> {
        let mut values = Vec::new();
        let mut names = Vec::new();
        for loss in &claim.losses {
            values.push(self.spread(&claim.measure, &claim.reward, claim.drift, loss)?.mean);
            names.push(label(loss)?);
        }
        let shown: Vec<String> = values.iter().map(|value| format!("{value:.4}")).collect();
        Ok(Outcome {
            group: String::new(),
            statement: format!(
                "{} falls in the order {} ({}, δ = {})",
                words(&claim.measure),
                names.join(" > "),
                claim.reward,
                claim.drift
            ),
            paper: None,
            paper_sem: None,
            ours: Ours::Words(shown.join(" > ")),
            sems: None,
            judgement: values.windows(2).all(|pair| pair[0] > pair[1]).into(),
            remark: claim.remark.clone(),
        })
    }

    fn falling(&self, claim: &FallingClaim) -> Result<Outcome, Error> {
        let mut values = Vec::new();
        for &drift in &self.study.drifts {
            values.push(self.spread(&claim.measure, &claim.reward, drift, &claim.loss)?.mean);
        }
        let shown: Vec<String> = values.iter().map(|value| format!("{value:.2e}")).collect();
        Ok(Outcome {
            group: String::new(),
            statement: format!(
                "{} of {} falls as drift grows ({})",
                words(&claim.measure),
                label(&claim.loss)?,
                claim.reward
            ),
            paper: None,
            paper_sem: None,
            ours: Ours::Words(shown.join(", ")),
            sems: None,
            judgement: values.windows(2).all(|pair| pair[0] > pair[1]).into(),
            remark: String::new(),
        })
    }

    fn margin(&self, claim: &MarginClaim) -> Result<Outcome, Error> {
        let ppo = self.spread("mse", &claim.reward, claim.drift, "ppo")?;
        let interior = |row: &&Summary| {
            let ends = matches!(row.surrogate.correction.name(), "ppo" | "full");
            row.reward == claim.reward && row.drift == claim.drift && !ends
        };
        let best = self.summaries.iter().filter(interior).min_by(|a, b| a.mse.mean.total_cmp(&b.mse.mean));
        let best = best.ok_or_else(|| self.senseless("its grid has no interior loss".to_owned()))?;
        let share = 1.0 - best.mse.mean / ppo.mean;
        // First-order error of a ratio; the two are paired by seed, so this errs on the wide side.
        let sem = (best.mse.sem / best.mse.mean).hypot(ppo.sem / ppo.mean) * (1.0 - share);
        let printed = claim.paper.as_deref().map(|text| Printed::of(&self.study.label, text)).transpose()?;
        let (sems, judgement) = match printed {
            Some(printed) => compare(printed, None, share, sem),
            None => (None, Judgement::from(share > 0.0)),
        };
        Ok(Outcome {
            group: String::new(),
            statement: format!(
                "share by which the best interior loss ({}) undercuts PPO's MSE ({}, δ = {})",
                best.surrogate.correction.label(),
                claim.reward,
                claim.drift
            ),
            paper: printed.map(|printed| printed.value),
            paper_sem: None,
            ours: Ours::Number(share, sem),
            sems,
            judgement,
            remark: claim.remark.clone(),
        })
    }
}

fn label(loss: &str) -> Result<String, Error> {
    Ok(unclipped(loss)?.correction.label())
}

fn words(measure: &str) -> &str {
    match measure {
        "bias_of_mean" => "|mean bias|",
        "absolute_bias" => "mean |bias|",
        "mse" => "MSE",
        "ess" => "ESS",
        "mean_kl" => "mean KL",
        other => other,
    }
}
