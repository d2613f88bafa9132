//! Probability of improvement: how often a run of one arm beats a run of another.
//!
//! Two designs. Unpaired (as in rliable): any run against any run of the same task. Paired: runs that share a seed
//! against each other. Ties count half in both, and tasks weigh the same.

use crate::bootstrap::Bootstrap;
use crate::describe::mean_of;
use crate::error::{Error, check_lengths};
use crate::interval::Interval;
use crate::scores::Scores;
use crate::sign_test::SignTest;

/// `first [runs, tasks], second [runs', tasks] -> scalar`. P(X > Y) + P(X = Y)/2 over all pairs of a run of the
/// first arm and a run of the second on the same task, averaged over tasks.
///
/// # Errors
/// Arms with different numbers of tasks.
pub fn probability_of_improvement(first: Scores<'_>, second: Scores<'_>) -> Result<f64, Error> {
    check_lengths("tasks of first", first.tasks(), "tasks of second", second.tasks())?;
    Ok(unpaired(first, second))
}

/// `first [runs, tasks], second [runs', tasks] -> interval`. Percentile interval of
/// [`probability_of_improvement`], with both arms resampled independently within each task.
///
/// # Errors
/// Arms with different numbers of tasks; settings out of range.
pub fn probability_of_improvement_interval(
    first: Scores<'_>,
    second: Scores<'_>,
    bootstrap: &Bootstrap,
) -> Result<Interval, Error> {
    check_lengths("tasks of first", first.tasks(), "tasks of second", second.tasks())?;
    let (mut drawn_first, mut drawn_second) = (Vec::new(), Vec::new());
    let sorted = bootstrap.replicates(|draws| {
        let first = first.resample(draws, &mut drawn_first);
        unpaired(first, second.resample(draws, &mut drawn_second))
    })?;
    Ok(bootstrap.percentile_of_sorted(&sorted))
}

/// `first [runs, tasks], second [runs, tasks] -> scalar`. The share of (run, task) pairs in which the first arm is
/// greater, ties counted half.
///
/// # Errors
/// Arms of different shapes.
pub fn paired_probability_of_improvement(first: Scores<'_>, second: Scores<'_>) -> Result<f64, Error> {
    check_lengths("runs of first", first.runs(), "runs of second", second.runs())?;
    check_lengths("tasks of first", first.tasks(), "tasks of second", second.tasks())?;
    // Every task has the same number of pairs, so the mean over tasks is the share over all.
    SignTest::of_pairs(first.values(), second.values()).map(|s| s.probability_of_improvement())
}

/// `first [runs, tasks], second [runs, tasks] -> interval`. Percentile interval of
/// [`paired_probability_of_improvement`], with pairs resampled within each task.
///
/// # Errors
/// Arms of different shapes; settings out of range.
pub fn paired_probability_of_improvement_interval(
    first: Scores<'_>,
    second: Scores<'_>,
    bootstrap: &Bootstrap,
) -> Result<Interval, Error> {
    paired_probability_of_improvement(first, second)?;
    let outcomes: Vec<f64> =
        first.values().iter().zip(second.values()).map(|(a, b)| half_ties(a > b, a == b)).collect();
    Scores::new(&outcomes, first.runs(), first.tasks())?.interval(bootstrap, |s| s.mean())
}

/// 1 for a win, 1/2 for a tie, 0 for a loss.
fn half_ties(win: bool, tie: bool) -> f64 {
    f64::from(u8::from(win)) + 0.5 * f64::from(u8::from(tie))
}

/// The unpaired share, for arms known to have the same tasks.
fn unpaired(first: Scores<'_>, second: Scores<'_>) -> f64 {
    let mut rivals = Vec::with_capacity(second.runs());
    let shares: Vec<f64> = (0..first.tasks())
        .map(|task| {
            rivals.clear();
            rivals.extend(second.task(task));
            rivals.sort_unstable_by(f64::total_cmp);
            // Twice the number of rivals beaten, with ties counted once: integers, hence exact.
            let doubled: usize = first
                .task(task)
                .map(|x| rivals.partition_point(|&y| y < x) + rivals.partition_point(|&y| y <= x))
                .sum();
            0.5 * doubled as f64 / (first.runs() * second.runs()) as f64
        })
        .collect();
    mean_of(&shares)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worked_by_hand() {
        let first = [3.0, 0.0, 1.0, 5.0];
        let second = [2.0, 0.0, 3.0, 9.0];
        let (x, y) = (Scores::new(&first, 2, 2).unwrap(), Scores::new(&second, 2, 2).unwrap());
        // Task 0: 3 > 2, 3 = 3, 1 < 2, 1 < 3: 1.5 of 4. Task 1: 0 = 0, 0 < 9, 5 > 0, 5 < 9: 1.5 of 4.
        assert_eq!(probability_of_improvement(x, y), Ok(0.375));
        // Pair by pair: 3 > 2, 0 = 0, 1 < 3, 5 < 9: 1.5 of 4.
        assert_eq!(paired_probability_of_improvement(x, y), Ok(0.375));
        // The arms may differ in runs only when they are not paired.
        let one = Scores::new(&first[..2], 1, 2).unwrap();
        assert_eq!(probability_of_improvement(one, y), Ok((0.75 + 0.25) / 2.0));
        assert!(matches!(paired_probability_of_improvement(one, y), Err(Error::Lengths { .. })));
        let narrow = Scores::new(&first, 4, 1).unwrap();
        assert!(matches!(probability_of_improvement(narrow, y), Err(Error::Lengths { .. })));
    }

    #[test]
    fn signed_zeros_are_ties() {
        let (x, y) = ([0.0, -0.0], [-0.0, 0.0]);
        let (x, y) = (Scores::new(&x, 2, 1).unwrap(), Scores::new(&y, 2, 1).unwrap());
        assert_eq!(probability_of_improvement(x, y), Ok(0.5));
    }
}
