//! The columns of a dump, and how values are rounded.

use super::parquet::{Column, Values, file};
use super::thin::kept;
use crate::keys::{is_blurred, number_of_key};
use crate::schema::Field;
use crate::trajectory::{Chunk, Clock};
use std::io;

/// Log-probs are rounded to a multiple of 2⁻²⁰. That is finer than single precision has them above 16, and a thousandth of the
/// log-ratios of the freshest data there is.
const FINEST: f64 = 1_048_576.0;

/// Bits of an advantage that are kept, the first one not counted: a part in a hundred thousand.
const ADVANTAGE_BITS: u32 = 15;

/// A dump as a file's bytes, and how much of it is there.
#[derive(Clone, Debug)]
pub struct Written {
    /// The file.
    pub bytes: Vec<u8>,
    /// Steps that it holds.
    pub steps: usize,
    /// The chance with which a trajectory kept its steps; 1 where all did.
    pub chance: f64,
}

/// Trajectories as a parquet file.
///
/// Of more steps than `budget` about that many are kept: whole groups, each with the same chance, which the file names. The others
/// keep their rewards, so that what is said of rewards and batches is said of all.
///
/// # Errors
/// Where memory cannot be written to.
pub fn parquet(chunk: &Chunk, budget: Option<u64>) -> io::Result<Written> {
    let (chance, kept) = kept(chunk, budget);
    let lanes = || chunk.lanes.iter().zip(chunk.offsets.windows(2)).zip(&kept);
    let mut offsets = vec![0];
    for ((_, row), &kept) in lanes() {
        offsets.push(offsets[offsets.len() - 1] + if kept { row[1] - row[0] } else { 0 });
    }
    // Where all were kept there is nothing to leave out.
    let steps = offsets[offsets.len() - 1];
    let listed = |values: &[f64], round: fn(f64) -> f32| {
        let own = lanes().filter(|(_, kept)| **kept).flat_map(|((_, row), _)| &values[row[0]..row[1]]);
        Values::Floats(own.map(|&value| round(value)).collect())
    };
    let ints = |values: &[i64], shown: fn(i64) -> i64| {
        let own = lanes().filter(|(_, kept)| **kept).flat_map(|((_, row), _)| &values[row[0]..row[1]]);
        Values::Ints(own.map(|&value| shown(value)).collect())
    };
    let mut columns = Vec::new();
    let mut put = |field: Field, values: Values| columns.push(Column { name: field.names()[0], values });
    let all = |of: fn(&crate::trajectory::Lane) -> f64| Values::Numbers(chunk.lanes.iter().map(of).collect());
    put(Field::Iteration, Values::Wholes(chunk.lanes.iter().map(|lane| lane.iteration).collect()));
    if chunk.lanes.iter().all(|lane| lane.group.is_some()) {
        let names = || chunk.lanes.iter().map(|lane| number_of_key(lane.group.unwrap_or_default()));
        put(
            Field::Group,
            if names().all(|name| name.fract() == 0.0 && !is_blurred(name)) {
                Values::Wholes(names().map(|name| name as i64).collect())
            } else {
                Values::Numbers(names().collect())
            },
        );
    }
    if chance < 1.0 {
        let chances = kept.iter().map(|&kept| if kept { chance } else { 0.0 });
        put(Field::Kept, Values::Numbers(chances.collect()));
    }
    if chunk.lanes.iter().any(|lane| lane.weight != 1.0) {
        put(Field::Weight, all(|lane| lane.weight));
    }
    if chunk.lanes.iter().all(|lane| lane.reward.is_some()) {
        put(Field::Reward, all(|lane| lane.reward.unwrap_or(f64::NAN)));
    }
    put(Field::OldLogProb, listed(&chunk.old, log_prob));
    put(Field::NewLogProb, listed(&chunk.new, log_prob));
    if !chunk.behaviour.is_empty() {
        put(Field::BehaviourLogProb, listed(&chunk.behaviour, log_prob));
    }
    match chunk.clock {
        Some(Clock::Versions) => {
            put(Field::Version, ints(&chunk.versions, |version| version));
            let newest = chunk.lanes.iter().filter_map(|lane| lane.trainer_version);
            if let Some(newest) = newest.chain(chunk.versions.iter().copied()).max() {
                put(Field::TrainerVersion, Values::Wholes(vec![newest; chunk.lanes.len()]));
            }
        }
        Some(Clock::Ages) => put(Field::Age, ints(&chunk.versions, |version| -version)),
        None => {}
    }
    // Advantages that were made of rewards are made again, from the rewards of all files.
    if !chunk.lanes.iter().all(|lane| lane.own_baseline) {
        let row = |row: &[usize]| &chunk.advantage[row[0]..row[1]];
        let constant = chunk.offsets.windows(2).all(|own| row(own).windows(2).all(|two| two[0] == two[1]));
        if constant {
            let first = chunk.offsets.windows(2).map(|own| row(own).first().copied().unwrap_or(0.0));
            put(Field::Advantage, Values::Numbers(first.collect()));
        } else {
            put(Field::Advantage, listed(&chunk.advantage, advantage));
        }
    }
    Ok(Written { bytes: file(&columns, &offsets)?, steps, chance })
}

/// A log-prob as it is written.
fn log_prob(value: f64) -> f32 {
    let rounded = ((value * FINEST).round() / FINEST) as f32;
    // What is below single precision's range stays a number.
    if rounded == f32::NEG_INFINITY { f32::MIN } else { rounded }
}

/// An advantage as it is written.
fn advantage(value: f64) -> f32 {
    let bits = (value as f32).clamp(f32::MIN, f32::MAX).to_bits();
    let spare = 23 - ADVANTAGE_BITS;
    // Half of what is cut off is added first; it may carry into the exponent, which is what rounding up does.
    let rounded = f32::from_bits((bits + (1 << (spare - 1))) >> spare << spare);
    if rounded.is_finite() { rounded } else { f32::from_bits(bits) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_by_hand() {
        // 2⁻²⁰ is 9.5 × 10⁻⁷, and half of it at most is lost.
        for value in [-0.3, -1.7, -1e-9, -12.345_678, -700.0] {
            let lost = (f64::from(log_prob(value)) - value).abs();
            assert!(lost <= 0.5 / FINEST + value.abs() * 6e-8, "{value}: {lost}");
        }
        assert!(log_prob(f64::NAN).is_nan());
        assert_eq!((log_prob(-1e60), log_prob(0.0)), (f32::MIN, 0.0));
        // A part in 2¹⁶ at most.
        for value in [1.0, -0.333_333, 1e-20, 7.9e7] {
            assert!((f64::from(advantage(value)) / value - 1.0).abs() <= 1.0 / 65_536.0, "{value}");
        }
        assert_eq!(advantage(0.0), 0.0);
        assert!(advantage(1e60).is_finite() && advantage(-1e60).is_finite());
    }
}
