//! One rollout: the trajectories of a population, and what they earned.
//!
//! A policy draws it, a trainer learns from it. Trajectories are contiguous, members outermost, and may differ in length.
//! Where all are equally long no offsets are kept. What a policy must load besides the actions (masks, states) is
//! derived from task and actions, so it is not part of a rollout.

use niwaki_correction::Rows;
use niwaki_tasks::Outcome;
use std::borrow::Cow;
use std::ops::Range;

/// How many trajectories each member has, and how long each of them is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RolloutShape {
    members: usize,
    lanes: usize,
    horizon: usize,
    /// `[member · lanes + 1]`; empty where every trajectory has `horizon` steps.
    offsets: Vec<usize>,
}

impl RolloutShape {
    /// `lanes` trajectories per member, all of `horizon` steps.
    #[must_use]
    pub const fn uniform(members: usize, lanes: usize, horizon: usize) -> Self {
        Self { members, lanes, horizon, offsets: Vec::new() }
    }

    /// `lanes` trajectories per member, each with its own length, at most `horizon`.
    ///
    /// Shapes: `lengths [member, lane]`
    #[must_use]
    pub fn ragged(lanes: usize, horizon: usize, lengths: impl IntoIterator<Item = usize>) -> Self {
        let (mut offsets, mut uniform) = (vec![0], true);
        for length in lengths {
            uniform &= length == horizon;
            offsets.push(offsets[offsets.len() - 1] + length);
        }
        let members = (offsets.len() - 1) / lanes.max(1);
        Self { members, lanes, horizon, offsets: if uniform { Vec::new() } else { offsets } }
    }

    /// Members.
    #[must_use]
    pub const fn members(&self) -> usize {
        self.members
    }

    /// Trajectories per member.
    #[must_use]
    pub const fn lanes(&self) -> usize {
        self.lanes
    }

    /// The most steps that a trajectory can have.
    #[must_use]
    pub const fn horizon(&self) -> usize {
        self.horizon
    }

    /// Whether all trajectories have as many steps as they can have.
    #[must_use]
    pub fn is_uniform(&self) -> bool {
        self.offsets.is_empty()
    }

    /// Where some lanes of a member lie among the steps of all members.
    #[must_use]
    pub fn steps(&self, member: usize, lanes: Range<usize>) -> Range<usize> {
        let start = |lane: usize| {
            let place = member * self.lanes + lane;
            self.offsets.get(place).copied().unwrap_or(place * self.horizon)
        };
        start(lanes.start)..start(lanes.end)
    }

    /// Where a member lies among the steps of all members.
    #[must_use]
    pub fn member(&self, member: usize) -> Range<usize> {
        self.steps(member, 0..self.lanes)
    }

    /// The lengths of some lanes of a member.
    pub fn lengths(&self, member: usize, lanes: Range<usize>) -> impl Iterator<Item = usize> {
        lanes.map(move |lane| self.steps(member, lane..lane + 1).len())
    }

    /// Some lanes of a member as the correction reads them.
    #[must_use]
    pub fn rows(&self, member: usize, lanes: Range<usize>) -> Rows<'_> {
        let first = member * self.lanes;
        match self.offsets.get(first + lanes.start..=first + lanes.end) {
            Some(offsets) => Rows::part(offsets),
            None => Rows::uniform(self.horizon),
        }
    }

    /// The shape of one member alone.
    #[must_use]
    pub fn of_member(&self, member: usize) -> Self {
        if self.is_uniform() {
            return Self::uniform(1, self.lanes, self.horizon);
        }
        Self::ragged(self.lanes, self.horizon, self.lengths(member, 0..self.lanes))
    }

    /// Some lanes of each member, in the order given.
    #[must_use]
    pub fn part(&self, lanes: &[Vec<usize>]) -> Self {
        let count = lanes.first().map_or(0, Vec::len);
        if self.is_uniform() {
            return Self::uniform(lanes.len(), count, self.horizon);
        }
        let chosen = lanes.iter().enumerate().flat_map(|(member, lanes)| {
            lanes.iter().map(move |&lane| self.steps(member, lane..lane + 1).len())
        });
        Self::ragged(count, self.horizon, chosen)
    }

    /// The entries of some lanes of each member, in the order given; none where `from` is empty.
    ///
    /// Shapes: `from [member, lane, step]`
    #[must_use]
    pub fn pick<T: Copy>(&self, lanes: &[Vec<usize>], from: &[T]) -> Vec<T> {
        let chosen = lanes.iter().enumerate().flat_map(|(member, lanes)| {
            lanes.iter().filter_map(move |&lane| from.get(self.steps(member, lane..lane + 1)))
        });
        chosen.flatten().copied().collect()
    }

    /// Leaves out of some lanes of a member what lies behind each one's end.
    ///
    /// Shapes: `padded [lane, horizon]`
    #[must_use]
    pub fn pack<T: Copy>(&self, member: usize, lanes: Range<usize>, padded: &[T]) -> Vec<T> {
        let rows = padded.chunks(self.horizon.max(1)).zip(self.lengths(member, lanes));
        rows.flat_map(|(row, length)| &row[..length]).copied().collect()
    }

    /// The way back: writes the steps of some lanes of a member with `padding` behind each one's end.
    ///
    /// Shapes: `packed [step]`, `padded [lane, horizon]`
    pub fn pad<T: Copy>(
        &self,
        member: usize,
        lanes: Range<usize>,
        packed: &[T],
        padding: T,
        padded: &mut [T],
    ) {
        let mut start = 0;
        for (row, length) in padded.chunks_mut(self.horizon.max(1)).zip(self.lengths(member, lanes)) {
            let (own, behind) = row.split_at_mut(length);
            own.copy_from_slice(&packed[start..start + length]);
            behind.fill(padding);
            start += length;
        }
    }
}

/// Trajectories and what they earned. Empty vectors are parts that the task or the device does not have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rollout {
    /// Where the trajectories lie.
    pub shape: RolloutShape,
    /// Choices of a step, open or not.
    pub choices: usize,
    /// The choices taken, `[member, lane, step]`.
    pub actions: Vec<i32>,
    /// Their log-probabilities as sampling saw them, `[member, lane, step]`; empty where the device chose.
    pub log_prob: Vec<f32>,
    /// Before each step, the makespan that was to be expected, over the instance's optimum: `[member, lane, step]`; empty where
    /// nobody estimates it.
    pub estimated: Vec<f32>,
    /// What the trajectories earned, `[member, lane]`.
    pub reward: Vec<f64>,
    /// How schedules turned out, `[member, lane]`; empty where the actions say all.
    pub outcome: Vec<Outcome>,
    /// The instance of each group of lanes, `[member, group]`; empty where a task has only one.
    pub instances: Vec<u32>,
}

impl Rollout {
    /// One member's rewards, `[lane]`.
    #[must_use]
    pub fn reward_of(&self, member: usize) -> &[f64] {
        let lanes = self.shape.lanes;
        &self.reward[member * lanes..(member + 1) * lanes]
    }

    /// The choices of a member's trajectories, one slice each.
    pub fn trajectories(&self, member: usize) -> impl Iterator<Item = &[i32]> {
        (0..self.shape.lanes).map(move |lane| &self.actions[self.shape.steps(member, lane..lane + 1)])
    }

    /// Lanes that share an instance and stay together.
    #[must_use]
    pub fn group(&self) -> usize {
        self.reward.len().checked_div(self.instances.len()).unwrap_or(1)
    }

    /// Some lanes of each member, in the order given; groups must be whole.
    #[must_use]
    pub fn part(&self, lanes: &[Vec<usize>]) -> Self {
        let group = self.group();
        let mut part = Self {
            shape: self.shape.part(lanes),
            choices: self.choices,
            actions: self.shape.pick(lanes, &self.actions),
            log_prob: self.shape.pick(lanes, &self.log_prob),
            estimated: self.shape.pick(lanes, &self.estimated),
            ..Self::default()
        };
        for (member, lanes) in lanes.iter().enumerate() {
            for lane in lanes.iter().map(|lane| member * self.shape.lanes + lane) {
                part.reward.extend(self.reward.get(lane));
                part.outcome.extend(self.outcome.get(lane));
                if lane.is_multiple_of(group) {
                    part.instances.extend(self.instances.get(lane / group));
                }
            }
        }
        part
    }

    /// The choices with −1 behind each trajectory's end, `[member, lane, horizon]`.
    #[must_use]
    pub fn padded_actions(&self) -> Cow<'_, [i32]> {
        if self.shape.is_uniform() {
            return Cow::Borrowed(&self.actions);
        }
        let (lanes, size) = (self.shape.lanes, self.shape.lanes * self.shape.horizon);
        let mut padded = vec![-1; self.shape.members * size];
        for (member, padded) in padded.chunks_exact_mut(size).enumerate() {
            let own = &self.actions[self.shape.member(member)];
            self.shape.pad(member, 0..lanes, own, -1, padded);
        }
        Cow::Owned(padded)
    }

    /// Takes `lanes` trajectories per member that were drawn side by side, `[member, lane, horizon]`: each ends before
    /// its first negative action, or with its first action `end`. Drops what lies behind. Returns whether there was any.
    pub fn cut(&mut self, lanes: usize, horizon: usize, end: Option<i32>) -> bool {
        let length = |row: &[i32]| {
            let over = |&action: &i32| action < 0 || Some(action) == end;
            match row.iter().position(over) {
                Some(place) => place + usize::from(row[place] >= 0),
                None => row.len(),
            }
        };
        let drawn = std::mem::take(&mut self.actions);
        self.shape = RolloutShape::ragged(lanes, horizon, drawn.chunks_exact(horizon.max(1)).map(length));
        if self.shape.is_uniform() {
            self.actions = drawn;
            return false;
        }
        let size = lanes * horizon;
        for (member, drawn) in drawn.chunks_exact(size.max(1)).enumerate() {
            self.actions.extend(self.shape.pack(member, 0..lanes, drawn));
        }
        for numbers in [&mut self.log_prob, &mut self.estimated] {
            let drawn = std::mem::take(numbers);
            for (member, drawn) in drawn.chunks_exact(size.max(1)).enumerate() {
                numbers.extend(self.shape.pack(member, 0..lanes, drawn));
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two members with three lanes of at most four steps; token 9 ends a trajectory.
    fn rollout() -> Rollout {
        let actions =
            [[1, 9, -1, -1], [2, 3, 4, 5], [9, -1, -1, -1], [6, 7, 8, 9], [1, 1, 1, 1], [5, 5, 9, -1]]
                .concat();
        let log_prob = (0..24).map(|place| -(place as f32)).collect();
        let reward = (0..6).map(f64::from).collect();
        let mut rollout =
            Rollout { actions, log_prob, reward, instances: (10..16).collect(), ..Rollout::default() };
        assert!(rollout.cut(3, 4, Some(9)));
        rollout
    }

    #[test]
    fn trajectories_end_where_they_end() {
        let rollout = rollout();
        let shape = &rollout.shape;
        assert_eq!(rollout.actions, [1, 9, 2, 3, 4, 5, 9, 6, 7, 8, 9, 1, 1, 1, 1, 5, 5, 9]);
        // Lane 1 of the second member is the padded row 4: places 16 to 19.
        assert_eq!(rollout.log_prob[11..15], [-16.0, -17.0, -18.0, -19.0]);
        assert_eq!((shape.member(0), shape.member(1), shape.steps(1, 1..3)), (0..7, 7..18, 11..18));
        assert_eq!(rollout.trajectories(1).map(<[i32]>::len).collect::<Vec<_>>(), [4, 4, 3]);
        let mut offsets = Vec::new();
        shape.rows(1, 1..3).offsets_into(7, &mut offsets).unwrap();
        assert_eq!(offsets, [0, 4, 7]);
        assert_eq!(shape.of_member(1), RolloutShape::ragged(3, 4, [4, 4, 3]));
        // Padded again, the device's draws are cut at the same places, whatever it drew behind them.
        let padded = rollout.padded_actions();
        assert_eq!(padded[..12], [1, 9, -1, -1, 2, 3, 4, 5, 9, -1, -1, -1]);
        let actions = padded.iter().map(|&action| if action < 0 { 3 } else { action }).collect();
        let mut again = Rollout { actions, ..rollout.clone() };
        again.log_prob.clear();
        assert!(again.cut(3, 4, Some(9)));
        assert_eq!((again.actions, &again.shape), (rollout.actions.clone(), shape));
    }

    #[test]
    fn parts_are_whole_trajectories() {
        let part = rollout().part(&[vec![2, 0], vec![1, 2]]);
        assert_eq!(part.actions, [9, 1, 9, 1, 1, 1, 1, 5, 5, 9]);
        assert_eq!((part.reward, part.instances), (vec![2.0, 0.0, 4.0, 5.0], vec![12, 10, 14, 15]));
        assert_eq!(part.shape, RolloutShape::ragged(2, 4, [1, 2, 4, 3]));
        let (shape, lanes) = (&part.shape, part.log_prob.len());
        assert_eq!((shape.members(), shape.lanes(), shape.horizon(), lanes), (2, 2, 4, 10));
    }

    #[test]
    fn equal_lengths_need_no_offsets() {
        let mut rollout = Rollout { actions: (0..12).collect(), ..Rollout::default() };
        assert!(!rollout.cut(3, 2, None));
        assert_eq!(rollout.shape, RolloutShape::uniform(2, 3, 2));
        assert_eq!((rollout.shape.member(1), rollout.shape.steps(1, 1..2)), (6..12, 8..10));
        assert!(matches!(rollout.padded_actions(), Cow::Borrowed(_)));
        assert_eq!(rollout.part(&[vec![1], vec![2]]).actions, [2, 3, 10, 11]);
    }

    #[test]
    fn packed_and_padded_are_each_others_way_back() {
        let shape = RolloutShape::ragged(2, 3, [1, 3, 2, 2]);
        let packed = shape.pack(1, 0..2, &[1, 2, 0, 3, 4, 0]);
        assert_eq!(packed, [1, 2, 3, 4]);
        let mut padded = [7; 6];
        shape.pad(1, 0..2, &packed, 0, &mut padded);
        assert_eq!(padded, [1, 2, 0, 3, 4, 0]);
    }
}
