//! What a finished schedule pays.

use crate::Error;

/// Parts of one in which a deadline is counted.
const PARTS: f64 = 10_000.0;

/// How a finished construction turned out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// When the last job is done.
    pub makespan: u32,
    /// Jobs that missed their due dates.
    pub late: u32,
    /// By how much rests exceed their most, in all.
    pub violation: u64,
}

/// What a schedule pays.
///
/// Paper: `sec:sched-null`
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Payment {
    /// One if `makespan ≤ deadline · optimum`, else nothing. The deadline has at most four decimals, and the
    /// comparison is made in whole numbers.
    Deadline(f64),
    /// `−makespan / optimum`.
    Makespan,
    /// One if no job is late, else nothing.
    DueDates,
    /// `1[violation = 0] − (makespan − optimum) / optimum − violation / optimum`. Paper: `app:sched-driftdial`
    Graded,
}

impl Payment {
    /// Refuses a deadline that cannot be met or counted.
    ///
    /// # Errors
    /// If it is not from 1 to 100, or has more than four decimals.
    pub fn check(self) -> Result<(), Error> {
        if let Self::Deadline(deadline) = self {
            let parts = deadline * PARTS;
            if !(1.0..=100.0).contains(&deadline) || (parts - parts.round()).abs() > 1e-6 {
                return Err(Error::Deadline { came: deadline });
            }
        }
        Ok(())
    }

    /// What an outcome pays where `optimum` is the best known makespan.
    #[must_use]
    pub fn pay(self, outcome: Outcome, optimum: u32) -> f64 {
        let one = |paid: bool| f64::from(u8::from(paid));
        match self {
            Self::Deadline(deadline) => one(outcome.makespan <= latest(deadline, optimum)),
            Self::Makespan => -f64::from(outcome.makespan) / f64::from(optimum.max(1)),
            Self::DueDates => one(outcome.late == 0),
            Self::Graded => {
                let (optimum, violation) = (f64::from(optimum.max(1)), outcome.violation as f64);
                one(outcome.violation == 0) - (f64::from(outcome.makespan) - optimum + violation) / optimum
            }
        }
    }
}

/// The last whole time at which `makespan ≤ deadline · optimum` holds.
fn latest(deadline: f64, optimum: u32) -> u32 {
    let parts = (deadline * PARTS).round() as u64;
    (parts * u64::from(optimum) / PARTS as u64) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deadline_is_decided_in_whole_numbers() {
        let paid = |payment: Payment| payment.pay(Outcome { makespan: 9, late: 1, violation: 0 }, 7);
        // 1.2857 · 7 = 8.9999 < 9 and 1.2858 · 7 = 9.0006.
        assert_eq!(paid(Payment::Deadline(1.2857)), 0.0);
        assert_eq!(paid(Payment::Deadline(1.2858)), 1.0);
        assert_eq!((paid(Payment::Makespan), paid(Payment::DueDates)), (-9.0 / 7.0, 0.0));
        assert_eq!(Payment::DueDates.pay(Outcome { makespan: 9, ..Outcome::default() }, 0), 1.0);
        // 12 where 10 are possible: 1 − 0.2; with 3 units of rest too many, 0 − 0.2 − 0.3.
        let graded = |violation| Payment::Graded.pay(Outcome { makespan: 12, late: 0, violation }, 10);
        assert!((graded(0) - 0.8).abs() < 1e-15 && (graded(3) + 0.5).abs() < 1e-15);
        // 1.05 · 20 is 21 and not the 20.999… of the nearest double; 1.1 · 10 is 11.
        assert_eq!((latest(1.05, 20), latest(1.1, 10), latest(1.0, 7)), (21, 11, 7));
        assert_eq!(
            Payment::Deadline(0.9).check().unwrap_err().to_string(),
            "deadline 0.9 is not a factor from 1 to 100 with at most four decimals"
        );
        assert!(Payment::Deadline(1.00005).check().is_err() && Payment::Makespan.check().is_ok());
    }
}
