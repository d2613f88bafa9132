//! Trajectories on their way in: what a reader found, and what the measurements take.
//!
//! Owns every check of a trajectory's values and the packing to the policy's own steps; knows nothing of files.

use crate::error::Fault;
use crate::read::limits::LONGEST;
use crate::schema::Field;
use std::collections::BTreeMap;

/// Log-probs may exceed zero by this much: sums of rounded exponentials do.
const ROUNDING: f64 = 1e-4;

/// No value is larger than this in size: squares of squares of it can still be summed.
const LARGEST: f64 = 1e60;

/// Fields that hold numbers, one or many; they come first in the schema.
const LISTS: usize = 7;

/// What the policy as it is now is held against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Against {
    /// The policy that the batch was drawn from, as the trainer computes it.
    #[default]
    Old,
    /// The same policy as the sampling engine computed it: what the data was truly drawn from.
    Behaviour,
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
}

impl Record {
    /// Empties the record and keeps its memory.
    pub fn clear(&mut self) {
        self.values.iter_mut().for_each(Vec::clear);
        self.came = [Came::Absent; LISTS];
        (self.group, self.iteration, self.age, self.weight) = (None, None, None, None);
    }

    /// Whether the row has a field.
    #[must_use]
    pub fn has(&self, field: Field) -> bool {
        match field {
            Field::Group => self.group.is_some(),
            Field::Iteration => self.iteration.is_some(),
            Field::Age => self.age.is_some(),
            Field::Weight => self.weight.is_some(),
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

    /// The field that holds the rollout policy's log-probs.
    fn old_field(&self, against: Against) -> Result<Field, Fault> {
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
fn unsound(field: Field, index: usize, value: f64) -> Option<Fault> {
    match value {
        _ if !value.is_finite() => Some(Fault::NotFinite { field, index, value }),
        _ if value.abs() > LARGEST => Some(Fault::TooLarge { field, index, value, most: LARGEST }),
        _ => None,
    }
}

/// Mean rewards, the baseline where a dump has rewards and no advantages.
#[derive(Clone, Debug, Default)]
pub struct Baselines {
    /// By iteration and group: weighted sum of rewards, and weight.
    sums: BTreeMap<(i64, Option<u64>), (f64, f64)>,
}

impl Baselines {
    /// Adds a trajectory's reward.
    ///
    /// # Errors
    /// Where there is none, or it is not finite.
    pub fn add(&mut self, record: &Record) -> Result<(), Fault> {
        let reward = record.reward()?.ok_or(Fault::NoAdvantage)?;
        let weight = record.weight()?;
        let (sum, mass) = self.sums.entry((record.iteration.unwrap_or(0), record.group)).or_default();
        *sum += weight * reward;
        *mass += weight;
        Ok(())
    }

    /// Reward minus the mean reward of the trajectory's group, or of its iteration where it has no group.
    fn advantage(&self, record: &Record, reward: f64) -> f64 {
        let key = (record.iteration.unwrap_or(0), record.group);
        self.sums.get(&key).map_or(0.0, |(sum, mass)| if *mass > 0.0 { reward - sum / mass } else { 0.0 })
    }
}

/// The last use of each batch, where a dump holds several of the same trajectories.
#[derive(Clone, Debug, Default)]
pub struct LastUses {
    ages: BTreeMap<i64, i64>,
}

impl LastUses {
    /// Looks at a trajectory.
    pub fn add(&mut self, record: &Record) {
        let age = self.ages.entry(record.iteration.unwrap_or(0)).or_insert(i64::MIN);
        *age = (*age).max(record.age.unwrap_or(0));
    }

    /// Whether its batch was used again after this.
    #[must_use]
    pub fn is_earlier(&self, record: &Record) -> bool {
        let last = self.ages.get(&record.iteration.unwrap_or(0));
        last.is_some_and(|&last| record.age.unwrap_or(0) < last)
    }
}

/// What was read and does not count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Trajectories that were used again later.
    pub earlier_uses: usize,
    /// Steps that the sampling engine gave no log-prob for.
    pub unscored_steps: usize,
}

/// What a trajectory is beside its steps.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lane {
    /// Batch of the run; 0 where the dump does not say.
    pub iteration: i64,
    /// Key of its group.
    pub group: Option<u64>,
    /// How much it counts.
    pub weight: f64,
    /// Its reward.
    pub reward: Option<f64>,
    /// Whether its advantage was made of rewards, from the mean of those that were there.
    pub own_baseline: bool,
}

/// A bounded number of trajectories, packed to the policy's own steps.
///
/// Shapes: `old`, `new`, `advantage` `[steps]`; `behaviour` `[steps]` or empty; `offsets [lanes + 1]`.
#[derive(Clone, Debug)]
pub struct Chunk {
    /// Log-probs of the rollout policy.
    pub old: Vec<f64>,
    /// Log-probs of the policy as it is now.
    pub new: Vec<f64>,
    /// Log-probs of the sampling engine; empty where the dump has none.
    pub behaviour: Vec<f64>,
    /// Advantages.
    pub advantage: Vec<f64>,
    /// Where trajectories start.
    pub offsets: Vec<usize>,
    /// What trajectories are beside their steps.
    pub lanes: Vec<Lane>,
    /// What was read beside them.
    pub left_out: LeftOut,
    against: Against,
}

impl Default for Chunk {
    fn default() -> Self {
        Self::new(Against::Old)
    }
}

impl Chunk {
    /// An empty chunk.
    #[must_use]
    pub fn new(against: Against) -> Self {
        Self {
            against,
            old: Vec::new(),
            new: Vec::new(),
            behaviour: Vec::new(),
            advantage: Vec::new(),
            offsets: vec![0],
            lanes: Vec::new(),
            left_out: LeftOut::default(),
        }
    }

    /// Empties the chunk and keeps its memory.
    pub fn clear(&mut self) {
        for values in [&mut self.old, &mut self.new, &mut self.behaviour, &mut self.advantage] {
            values.clear();
        }
        self.offsets.truncate(1);
        self.lanes.clear();
        self.left_out = LeftOut::default();
    }

    /// Number of steps.
    #[must_use]
    pub fn steps(&self) -> usize {
        self.old.len()
    }

    /// Checks a trajectory and adds its steps. A trajectory without a step of the policy is counted and empty.
    ///
    /// # Errors
    /// The first fault of the record; the chunk is then unusable.
    pub fn push(&mut self, record: &Record, baselines: Option<&Baselines>) -> Result<(), Fault> {
        let old_field = record.old_field(self.against)?;
        let many = |field: Field| match record.came(field) {
            Came::Many => Ok(()),
            Came::One => Err(Fault::Kind { field, expected: "a list", came: "one number".to_owned() }),
            Came::Absent => Err(Fault::Missing { field, near: None }),
        };
        many(old_field)?;
        many(Field::NewLogProb)?;
        let steps = record.values(old_field).len();
        if steps > LONGEST {
            return Err(Fault::TooLong { steps: steps as u64, most: LONGEST as u64 });
        }
        let fits = |field: Field| {
            let came = record.values(field).len();
            if came == steps {
                return Ok(());
            }
            Err(Fault::Length { field, came, against: old_field, expected: steps })
        };
        let listed =
            [Field::NewLogProb, Field::BehaviourLogProb, Field::Advantage, Field::Mask, Field::ToolMask];
        for field in listed.into_iter().filter(|&field| record.came(field) == Came::Many) {
            fits(field)?;
        }
        let masks = [Field::Mask, Field::ToolMask].into_iter().filter(|&f| record.came(f) != Came::Absent);
        let masks: Vec<Field> = masks.collect();
        for &mask in &masks {
            many(mask)?;
            let sound = |value: &f64| *value == 0.0 || *value == 1.0;
            if let Some(index) = record.values(mask).iter().position(|value| !sound(value)) {
                return Err(Fault::MaskValue { field: mask, index, value: record.values(mask)[index] });
            }
        }
        // A token that the sampling engine gave no score for (TRL writes NaN) is unknown to what reads that score.
        let scores = record.values(Field::BehaviourLogProb);
        let scored = record.came(Field::BehaviourLogProb) == Came::Many;
        let unknown = |index: usize| scored && scores[index].is_nan();
        let taken = |index: usize| masks.iter().all(|&mask| record.values(mask)[index] == 1.0);
        let unscored =
            if scored { (0..steps).filter(|&index| taken(index) && unknown(index)).count() } else { 0 };
        let of_engine = old_field == Field::BehaviourLogProb;
        let kept = |index: usize| taken(index) && !(of_engine && unknown(index));
        let all = masks.is_empty() && !(of_engine && unscored > 0);
        self.left_out.unscored_steps += unscored;
        let pack = |field: Field, into: &mut Vec<f64>| {
            let values = record.values(field);
            if all {
                into.extend_from_slice(values);
            } else {
                into.extend((0..steps).filter(|&index| kept(index)).map(|index| values[index]));
            }
        };
        let check = |field: Field, sound: fn(f64) -> bool, packed: &[f64]| {
            // One pass without branches over what was packed; the place is looked for only if it failed.
            if packed.iter().fold(true, |fine, &value| fine & sound(value)) {
                return Ok(());
            }
            let values = record.values(field);
            let index = (0..steps).find(|&index| (all || kept(index)) && !sound(values[index]));
            let index = index.unwrap_or_default();
            let value = values[index];
            Err(unsound(field, index, value).unwrap_or(Fault::Positive { field, index, value }))
        };
        fn log_prob(value: f64) -> bool {
            (-LARGEST..=ROUNDING).contains(&value)
        }
        let start = self.old.len();
        pack(old_field, &mut self.old);
        check(old_field, log_prob, &self.old[start..])?;
        pack(Field::NewLogProb, &mut self.new);
        check(Field::NewLogProb, log_prob, &self.new[start..])?;
        if of_engine {
            // The engine's log-probs were read above, in the place of the rollout's: with them the current policy is
            // compared, as verl does in its bypass mode.
        } else if record.came(Field::BehaviourLogProb) == Came::Absent {
            if !self.behaviour.is_empty() {
                return Err(Fault::Missing { field: Field::BehaviourLogProb, near: None });
            }
        } else {
            many(Field::BehaviourLogProb)?;
            if self.behaviour.len() != start {
                // An earlier trajectory had none.
                return Err(Fault::Kind {
                    field: Field::BehaviourLogProb,
                    expected: "in every trajectory or in none",
                    came: "the first".to_owned(),
                });
            }
            pack(Field::BehaviourLogProb, &mut self.behaviour);
            check(
                Field::BehaviourLogProb,
                |value| value.is_nan() || log_prob(value),
                &self.behaviour[start..],
            )?;
        }
        let reward = record.reward()?;
        match (record.came(Field::Advantage), reward, baselines) {
            (Came::Many, ..) => {
                pack(Field::Advantage, &mut self.advantage);
                check(Field::Advantage, |value| value.abs() <= LARGEST, &self.advantage[start..])?;
            }
            (Came::One, ..) => {
                let value = record.values(Field::Advantage)[0];
                if let Some(fault) = unsound(Field::Advantage, 0, value) {
                    return Err(fault);
                }
                self.advantage.resize(self.old.len(), value);
            }
            (Came::Absent, Some(reward), Some(baselines)) => {
                self.advantage.resize(self.old.len(), baselines.advantage(record, reward));
            }
            (Came::Absent, Some(_), None) => {
                return Err(Fault::Missing { field: Field::Advantage, near: None });
            }
            (Came::Absent, None, _) => return Err(Fault::NoAdvantage),
        }
        self.offsets.push(self.old.len());
        self.lanes.push(Lane {
            iteration: record.iteration.unwrap_or(0),
            group: record.group,
            weight: record.weight()?,
            reward,
            own_baseline: record.came(Field::Advantage) == Came::Absent,
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(fields: &[(Field, &[f64])]) -> Record {
        let mut record = Record::default();
        for (field, values) in fields {
            record.fill(*field, Came::Many).extend_from_slice(values);
        }
        record
    }

    #[test]
    fn masked_steps_are_packed_away_unseen() {
        let nan = f64::NAN;
        let record = record(&[
            (Field::OldLogProb, &[-1.0, nan, -3.0]),
            (Field::NewLogProb, &[-1.5, 7.0, -2.5]),
            (Field::Advantage, &[1.0, nan, 2.0]),
            (Field::Mask, &[1.0, 1.0, 1.0]),
            (Field::ToolMask, &[1.0, 0.0, 1.0]),
        ]);
        let mut chunk = Chunk::default();
        chunk.push(&record, None).unwrap();
        assert_eq!((chunk.old, chunk.new), (vec![-1.0, -3.0], vec![-1.5, -2.5]));
        assert_eq!((chunk.advantage, chunk.offsets), (vec![1.0, 2.0], vec![0, 2]));
    }

    #[test]
    fn faults_name_field_and_index() {
        let refuse = |fields: &[(Field, &[f64])]| {
            Chunk::default().push(&record(fields), None).unwrap_err().to_string()
        };
        let (old, new) = (Field::OldLogProb, Field::NewLogProb);
        let advantage = (Field::Advantage, &[1.0, 1.0][..]);
        assert_eq!(
            refuse(&[(old, &[-1.0, -1.0]), (new, &[-1.0]), advantage]),
            "new_log_prob has 1 values where old_log_prob has 2"
        );
        assert_eq!(
            refuse(&[(old, &[-1.0, f64::NAN]), (new, &[-1.0, -1.0]), advantage]),
            "old_log_prob[1] is NaN; every value at a step of the policy must be finite"
        );
        assert_eq!(
            refuse(&[(old, &[-1.0, -1.0]), (new, &[0.5, -1.0]), advantage]),
            "new_log_prob[0] is 0.5; the logarithm of a probability is at most 0"
        );
        assert_eq!(
            refuse(&[(old, &[-1.0, -1.0]), (new, &[-1.0, -1.0]), advantage, (Field::Mask, &[1.0, 2.0])]),
            "mask[1] is 2; a mask holds 0 and 1"
        );
        assert_eq!(
            refuse(&[(old, &[-1.0]), (new, &[-1.0])]),
            "neither advantage nor reward; one of them must be there"
        );
        assert!(refuse(&[(new, &[-1.0])]).starts_with("no old_log_prob (nor old_log_probs,"));
    }

    #[test]
    fn rewards_become_advantages_by_group() {
        // Group 1 holds rewards 1 and 0 (mean ½), group 2 holds 3 alone: advantages ½, −½, 0.
        let mut baselines = Baselines::default();
        let row = |group: u64, reward: f64| {
            let mut record = record(&[(Field::OldLogProb, &[-1.0]), (Field::NewLogProb, &[-1.0])]);
            record.fill(Field::Reward, Came::One).push(reward);
            record.group = Some(group);
            record
        };
        let rows = [row(1, 1.0), row(1, 0.0), row(2, 3.0)];
        rows.iter().for_each(|row| baselines.add(row).unwrap());
        let mut chunk = Chunk::default();
        rows.iter().for_each(|row| chunk.push(row, Some(&baselines)).unwrap());
        assert_eq!(chunk.advantage, [0.5, -0.5, 0.0]);
    }
}
