//! Trajectories checked, and packed to the policy's own steps.

use super::record::{Against, Came, Clock, LARGEST, Record, unsound};
use super::uses::Baselines;
use crate::error::Fault;
use crate::keys::is_blurred;
use crate::read::limits::LONGEST;
use crate::schema::Field;

/// Log-probs may exceed zero by this much: sums of rounded exponentials do.
const ROUNDING: f64 = 1e-4;

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
    /// Chance with which its steps were kept; 0 where they were left out, so that it has a reward and no steps.
    pub kept: f64,
    /// Its reward.
    pub reward: Option<f64>,
    /// Version of the policy that was trained on it; without versions of steps none.
    pub trainer_version: Option<i64>,
    /// Whether its advantage was made of rewards, from the mean of those that were there.
    pub own_baseline: bool,
}

/// A bounded number of trajectories, packed to the policy's own steps.
///
/// Shapes: `old`, `new`, `advantage` `[steps]`; `behaviour`, `versions` `[steps]` or empty; `offsets [lanes + 1]`.
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
    /// Versions of the policies that sampled; of ages what they are below 0. Empty where the dump has neither.
    pub versions: Vec<i64>,
    /// Where trajectories start.
    pub offsets: Vec<usize>,
    /// What trajectories are beside their steps.
    pub lanes: Vec<Lane>,
    /// What was read beside them.
    pub left_out: LeftOut,
    /// What the versions are.
    pub clock: Option<Clock>,
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
            versions: Vec::new(),
            clock: None,
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
        self.versions.clear();
        self.clock = None;
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
        if record.kept()? == 0.0 {
            return self.push_left_out(record);
        }
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
        let listed = [
            Field::NewLogProb,
            Field::BehaviourLogProb,
            Field::Advantage,
            Field::Mask,
            Field::ToolMask,
            Field::Version,
            Field::Age,
        ];
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
        self.push_versions(record, start, |index| all || kept(index))?;
        self.end(record, reward, record.came(Field::Advantage) == Came::Absent)
    }

    /// Checks and adds the versions of the steps from `start` on, those that were `kept`.
    fn push_versions(
        &mut self,
        record: &Record,
        start: usize,
        kept: impl Fn(usize) -> bool,
    ) -> Result<(), Fault> {
        let clock = record.clock();
        if start > 0 && self.clock != clock {
            return Err(Fault::Clocks { came: clock, first: self.clock });
        }
        self.clock = clock;
        if record.trainer_version.is_some() && clock != Some(Clock::Versions) {
            let came = "no version of a step".to_owned();
            return Err(Fault::Kind { field: Field::TrainerVersion, expected: "beside version", came });
        }
        let Some(clock) = clock else { return Ok(()) };
        let field = match clock {
            Clock::Versions if record.came(Field::Age) != Came::Absent => return Err(Fault::TwoClocks),
            Clock::Versions => Field::Version,
            Clock::Ages => Field::Age,
        };
        let (values, steps) = (record.values(field), self.old.len() - start);
        let sound = |value: f64| value >= 0.0 && value.fract() == 0.0 && !is_blurred(value);
        let mut before: Option<f64> = None;
        let listed = record.came(field) == Came::Many;
        let places = if listed { 0..values.len() } else { 0..1 };
        for index in places.filter(|&index| !listed || kept(index)) {
            let value = values[index];
            if !sound(value) {
                return Err(Fault::Count { field, index, value });
            }
            let later =
                |before: f64| if clock == Clock::Versions { value >= before } else { value <= before };
            if let Some(before) = before.filter(|&before| !later(before)) {
                return Err(Fault::Older { field, index, value, before });
            }
            before = Some(value);
            let version = if clock == Clock::Versions { value as i64 } else { -(value as i64) };
            self.versions.extend(std::iter::repeat_n(version, if listed { 1 } else { steps }));
        }
        match (record.trainer_version, before, clock) {
            (Some(trainer), Some(newest), Clock::Versions) if (trainer as f64) < newest => {
                Err(Fault::Newer { trainer: trainer as f64, newest })
            }
            _ => Ok(()),
        }
    }

    /// Adds a trajectory whose steps a thinned dump left out.
    fn push_left_out(&mut self, record: &Record) -> Result<(), Fault> {
        let listed = [Field::OldLogProb, Field::NewLogProb, Field::BehaviourLogProb];
        if let Some(field) = listed.into_iter().find(|&field| !record.values(field).is_empty()) {
            let came = format!("0 beside {} values of {field}", record.values(field).len());
            return Err(Fault::Kind { field: Field::Kept, expected: "above 0 where steps are there", came });
        }
        self.end(record, record.reward()?, false)
    }

    /// Ends the trajectory whose steps were added last.
    fn end(&mut self, record: &Record, reward: Option<f64>, own_baseline: bool) -> Result<(), Fault> {
        self.offsets.push(self.old.len());
        self.lanes.push(Lane {
            iteration: record.iteration.unwrap_or(0),
            group: record.group,
            weight: record.weight()?,
            kept: record.kept()?,
            trainer_version: record.trainer_version,
            reward,
            own_baseline,
        });
        Ok(())
    }

    /// Adds the trajectories of another chunk.
    ///
    /// # Errors
    /// Where one of them has groups, rewards, advantages, versions or the sampling engine's log-probs and the other has not; nothing
    /// is added then.
    pub fn append(&mut self, other: &Self) -> Result<(), Fault> {
        let scored = |chunk: &Self| (chunk.steps() > 0).then_some(!chunk.behaviour.is_empty());
        if scored(self).zip(scored(other)).is_some_and(|(own, more)| own != more) {
            return Err(Fault::Missing { field: Field::BehaviourLogProb, near: None });
        }
        // What only some have would be lost where all are written together.
        type Has = fn(&Lane) -> bool;
        let each: [(Field, Has); 3] = [
            (Field::Group, |lane| lane.group.is_some()),
            (Field::Reward, |lane| lane.reward.is_some()),
            (Field::Advantage, |lane| !lane.own_baseline),
        ];
        for (field, has) in each {
            let (own, more) = (self.lanes.first().map(has), other.lanes.first().map(has));
            if own.zip(more).is_some_and(|(own, more)| own != more) {
                return Err(Fault::Missing { field, near: None });
            }
        }
        if self.steps() > 0 && other.steps() > 0 && self.clock != other.clock {
            return Err(Fault::Clocks { came: other.clock, first: self.clock });
        }
        self.clock = self.clock.or(other.clock);
        let start = self.steps();
        self.old.extend_from_slice(&other.old);
        self.new.extend_from_slice(&other.new);
        self.behaviour.extend_from_slice(&other.behaviour);
        self.advantage.extend_from_slice(&other.advantage);
        self.versions.extend_from_slice(&other.versions);
        self.offsets.extend(other.offsets[1..].iter().map(|offset| start + offset));
        self.lanes.extend_from_slice(&other.lanes);
        self.left_out.earlier_uses += other.left_out.earlier_uses;
        self.left_out.unscored_steps += other.left_out.unscored_steps;
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
