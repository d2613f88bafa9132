//! Tallies of one run added up.

use super::run::Measure;
use super::settings::Settings;
use crate::trajectory::{Chunk, Clock};
use thiserror::Error;

/// Why two tallies are not of one run.
#[derive(Clone, Debug, PartialEq, Error)]
#[non_exhaustive]
pub enum Differ {
    /// A setting that the sums depend on.
    #[error(
        "{name} is {other} there and {own} here; tallies of one run are measured under the same settings"
    )]
    Setting {
        /// Its name.
        name: &'static str,
        /// Here.
        own: String,
        /// There.
        other: String,
    },
    /// Another number of ranks.
    #[error("a batch is shared by {other} ranks there and by {own} here")]
    World {
        /// Here.
        own: u32,
        /// There.
        other: u32,
    },
    /// The same trajectories twice.
    #[error("rank {rank} of iteration {iteration} is in both; its trajectories would count twice")]
    Twice {
        /// The rank.
        rank: u32,
        /// The iteration.
        iteration: i64,
    },
    /// Advantages that would be others if they had been made of all rewards.
    #[error(
        "advantages of iteration {iteration} were made from rewards of one share alone; give advantages, or the same prompt's \
         trajectories to one rank and a group to each"
    )]
    Baselines {
        /// The iteration.
        iteration: i64,
    },
    /// The sampling engine's log-probs in one of them.
    #[error("behaviour_log_prob is in one of them and not in the other; verl's metrics compare with it")]
    Engines,
    /// Versions or ages of steps in one of them, or another kind.
    #[error("steps have {} there and {} here; give the same to every trajectory", of(*.other), of(*.own))]
    Clocks {
        /// Here.
        own: Option<Clock>,
        /// There.
        other: Option<Clock>,
    },
}

fn of(clock: Option<Clock>) -> &'static str {
    match clock {
        None => "neither versions nor ages",
        Some(Clock::Versions) => "versions",
        Some(Clock::Ages) => "ages",
    }
}

/// What of the settings the sums depend on, in words.
fn summed(settings: &Settings) -> [(&'static str, String); 5] {
    let Settings { clip, against, verl, .. } = settings;
    [
        ("clip", format!("({}, {})", clip.low, clip.high)),
        ("against", format!("{against:?}").to_lowercase()),
        ("rollout_is", format!("{:?}", verl.level).to_lowercase()),
        (
            "rollout_is_threshold",
            match verl.threshold.lower {
                Some(lower) => format!("{lower}_{}", verl.threshold.upper),
                None => verl.threshold.upper.to_string(),
            },
        ),
        ("rollout_rs", verl.rejection.to_string()),
    ]
}

impl Measure {
    /// Adds the sums of other trajectories. The order does not matter, and neither does how trajectories were shared out: the
    /// result is that of one measure of all of them. Of settings that no sum depends on, its own are kept.
    ///
    /// # Errors
    /// Where the two are not of one run; nothing is added then.
    pub fn merge(&mut self, other: &Self) -> Result<(), Differ> {
        self.check(other)?;
        let (own, other) = (&mut self.sums, &other.sums);
        own.folds.iter_mut().zip(&other.folds).for_each(|(own, other)| own.merge(other));
        for (number, iteration) in &other.iterations {
            match own.iterations.get_mut(number) {
                None => {
                    own.iterations.insert(*number, iteration.clone());
                }
                Some(own) => {
                    own.cell.merge(&iteration.cell);
                    own.rewards.merge(&iteration.rewards);
                    own.verl.merge(&iteration.verl);
                    own.lags.merge(&iteration.lags);
                    own.ranks.extend(&iteration.ranks);
                }
            }
        }
        own.places = own.places.min(other.places);
        let places = own.places;
        own.iterations.values_mut().for_each(|iteration| iteration.cell.places().limit_to(places));
        own.thin();
        own.groups.merge(&other.groups);
        own.log_ratios.merge(&other.log_ratios);
        own.trajectories += other.trajectories;
        own.thinned += other.thinned;
        own.left_out.earlier_uses += other.left_out.earlier_uses;
        own.left_out.unscored_steps += other.left_out.unscored_steps;
        own.engines |= other.engines;
        own.clock = own.clock.or(other.clock);
        own.world = own.world.or(other.world);
        own.ranks.extend(&other.ranks);
        Ok(())
    }

    /// Whether trajectories go with those that were added: either all have versions of their steps, or ages, or none has.
    ///
    /// # Errors
    /// Where they do not.
    pub fn goes_with(&self, chunk: &Chunk) -> Result<(), Differ> {
        let (own, other) = (self.sums.clock, chunk.clock);
        if self.sums.has_steps() && chunk.steps() > 0 && own != other {
            return Err(Differ::Clocks { own, other });
        }
        Ok(())
    }

    /// Whether another is of the same run.
    fn check(&self, other: &Self) -> Result<(), Differ> {
        let (own, other) = (&self.sums, &other.sums);
        for ((name, own), (_, other)) in summed(&own.settings).into_iter().zip(summed(&other.settings)) {
            if own != other {
                return Err(Differ::Setting { name, own, other });
            }
        }
        match (own.world, other.world) {
            (Some(own), Some(other)) if own != other => return Err(Differ::World { own, other }),
            _ => {}
        }
        if own.trajectories > 0 && other.trajectories > 0 && own.engines != other.engines {
            return Err(Differ::Engines);
        }
        if own.has_steps() && other.has_steps() && own.clock != other.clock {
            return Err(Differ::Clocks { own: own.clock, other: other.clock });
        }
        for (&iteration, here) in &own.iterations {
            let Some(there) = other.iterations.get(&iteration) else { continue };
            if let Some(&rank) = here.ranks.intersection(&there.ranks).next() {
                return Err(Differ::Twice { rank, iteration });
            }
            if here.rewards.own_baseline > 0 && there.rewards.own_baseline > 0 {
                return Err(Differ::Baselines { iteration });
            }
        }
        own.groups.made_apart(&other.groups).map_or(Ok(()), |iteration| Err(Differ::Baselines { iteration }))
    }
}
