//! One trajectory as a reader found it.

use crate::error::Fault;
use crate::schema::Field;

/// No value is larger than this in size: squares of squares of it can still be summed.
pub(super) const LARGEST: f64 = 1e60;

/// The smallest chance with which steps may have been kept: each counts for as many as it stands for.
const RAREST: f64 = 1e-9;

/// Fields that hold numbers, one or many; they come first in the schema.
const LISTS: usize = 9;

/// What the policy as it is now is held against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Against {
    /// The policy that the batch was drawn from, as the trainer computes it.
    #[default]
    Old,
    /// The same policy as the sampling engine computed it: what the data was truly drawn from.
    Behaviour,
}

/// What tells how old the policy was that sampled a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Its version.
    Versions,
    /// How many versions it was behind.
    Ages,
}

/// How a field came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Came {
    /// Not at all, or as null.
    #[default]
    Absent,
    /// As one number.
    One,
    /// As a list.
    Many,
}

/// One trajectory as a reader found it. Its buffers are reused from row to row.
#[derive(Clone, Debug, Default)]
pub struct Record {
    values: [Vec<f64>; LISTS],
    came: [Came; LISTS],
    /// Key of the group, see [`crate::keys`].
    pub group: Option<u64>,
    /// Batch of the run.
    pub iteration: Option<i64>,
    /// How many updates had used the trajectory before.
    pub age: Option<i64>,
    /// How much the trajectory counts.
    pub weight: Option<f64>,
    /// Chance with which its steps were kept.
    pub kept: Option<f64>,
    /// Version of the policy that was trained on it.
    pub trainer_version: Option<i64>,
}

impl Record {
    /// Empties the record and keeps its memory.
    pub fn clear(&mut self) {
        self.values.iter_mut().for_each(Vec::clear);
        self.came = [Came::Absent; LISTS];
        (self.group, self.iteration, self.age) = (None, None, None);
        (self.weight, self.kept, self.trainer_version) = (None, None, None);
    }

    /// Whether the row has a field.
    #[must_use]
    pub fn has(&self, field: Field) -> bool {
        match field {
            Field::Group => self.group.is_some(),
            Field::Iteration => self.iteration.is_some(),
            Field::Age => self.age.is_some() || self.came(field) != Came::Absent,
            Field::Weight => self.weight.is_some(),
            Field::Kept => self.kept.is_some(),
            Field::TrainerVersion => self.trainer_version.is_some(),
            Field::Length | Field::Offsets => false,
            _ => self.came(field) != Came::Absent,
        }
    }

    /// The buffer of a field of numbers, emptied and marked.
    ///
    /// # Panics
    /// For a field that holds no numbers: a broken law of the readers.
    pub fn fill(&mut self, field: Field, came: Came) -> &mut Vec<f64> {
        let at = field.index();
        assert!(at < LISTS, "{field} is no field of numbers");
        self.came[at] = came;
        self.values[at].clear();
        &mut self.values[at]
    }

    /// Forgets a field of numbers.
    pub fn forget(&mut self, field: Field) {
        self.came[field.index()] = Came::Absent;
    }

    /// How a field of numbers came.
    #[must_use]
    pub fn came(&self, field: Field) -> Came {
        self.came[field.index()]
    }

    /// The values of a field of numbers.
    #[must_use]
    pub fn values(&self, field: Field) -> &[f64] {
        &self.values[field.index()]
    }

    /// The reward of the whole trajectory.
    ///
    /// # Errors
    /// Where it is not finite.
    pub fn reward(&self) -> Result<Option<f64>, Fault> {
        if self.came(Field::Reward) == Came::Absent {
            return Ok(None);
        }
        let values = self.values(Field::Reward);
        let faults = values.iter().enumerate();
        match faults.filter_map(|(index, &value)| unsound(Field::Reward, index, value)).next() {
            Some(fault) => Err(fault),
            None => Ok(Some(values.iter().sum())),
        }
    }

    /// The weight, 1 unless told otherwise.
    ///
    /// # Errors
    /// Where it is negative or not finite.
    pub fn weight(&self) -> Result<f64, Fault> {
        let weight = self.weight.unwrap_or(1.0);
        if weight >= 0.0 {
            return unsound(Field::Weight, 0, weight).map_or(Ok(weight), Err);
        }
        let came = weight.to_string();
        Err(Fault::Kind { field: Field::Weight, expected: "a finite number that is not negative", came })
    }

    /// What tells how old its steps are.
    #[must_use]
    pub fn clock(&self) -> Option<Clock> {
        match (self.came(Field::Version), self.came(Field::Age)) {
            (Came::Absent, Came::Absent) => None,
            (Came::Absent, _) => Some(Clock::Ages),
            _ => Some(Clock::Versions),
        }
    }

    /// The chance with which the steps were kept, 1 unless told otherwise.
    ///
    /// # Errors
    /// Where it is not a chance.
    pub fn kept(&self) -> Result<f64, Fault> {
        let kept = self.kept.unwrap_or(1.0);
        if (0.0..=1.0).contains(&kept) && (kept == 0.0 || kept >= RAREST) {
            return Ok(kept);
        }
        let came = kept.to_string();
        Err(Fault::Kind {
            field: Field::Kept,
            expected: "0, or a chance of at least 1e-9 and at most 1",
            came,
        })
    }

    /// The field that holds the rollout policy's log-probs.
    pub(super) fn old_field(&self, against: Against) -> Result<Field, Fault> {
        if against == Against::Behaviour {
            let (field, near) = (Field::BehaviourLogProb, None);
            return if self.came(field) == Came::Absent {
                Err(Fault::Missing { field, near })
            } else {
                Ok(field)
            };
        }
        [Field::OldLogProb, Field::BehaviourLogProb]
            .into_iter()
            .find(|&field| self.came(field) != Came::Absent)
            .ok_or(Fault::Missing { field: Field::OldLogProb, near: None })
    }
}

/// What is wrong with a value that is not finite, or too large to be summed.
pub(super) fn unsound(field: Field, index: usize, value: f64) -> Option<Fault> {
    match value {
        _ if !value.is_finite() => Some(Fault::NotFinite { field, index, value }),
        _ if value.abs() > LARGEST => Some(Fault::TooLarge { field, index, value, most: LARGEST }),
        _ => None,
    }
}
