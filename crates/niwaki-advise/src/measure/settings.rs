//! What the measurements depend on beside the data.

use crate::trajectory::Against;
use crate::{Error, verl};
use niwaki_correction::Clip;

/// What the measurements depend on beside the data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// The trainer's clip range.
    pub clip: Clip,
    /// ESS that a correction must keep.
    pub ess_floor: f64,
    /// Trajectories per update; the mean of the dump's iterations where it is not given.
    pub batch: Option<f64>,
    /// What the current policy is held against; the readers of trajectories take it.
    pub against: Against,
    /// verl's settings.
    pub verl: verl::Settings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            clip: Clip::PPO,
            ess_floor: 0.9,
            batch: None,
            against: Against::Old,
            verl: verl::Settings::default(),
        }
    }
}

impl Settings {
    /// Refuses settings that mean nothing.
    ///
    /// # Errors
    /// The first of them.
    pub fn check(&self) -> Result<(), Error> {
        let Self { clip, ess_floor, batch, against: _, verl } = self;
        Clip::new(clip.low, clip.high)?;
        let faults = [
            // Written so that what is not a number fails too.
            ("ess_floor", *ess_floor, *ess_floor > 0.0 && *ess_floor < 1.0, "must lie between 0 and 1"),
            (
                "batch",
                batch.unwrap_or(1.0),
                batch.is_none_or(|batch| batch >= 1.0),
                "holds no trajectory; give at least 1",
            ),
            (
                "threshold",
                verl.threshold.upper,
                verl.threshold.is_sound(),
                "must be a positive number, with a smaller one before it where there are two",
            ),
        ];
        match faults.into_iter().find(|(_, _, sound, _)| !sound) {
            Some((name, value, _, why)) => Err(Error::Setting { name, value, why }),
            None => Ok(()),
        }
    }
}
