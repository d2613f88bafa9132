//! The reward on an enumerable process: what the policy is worth, exactly.

use crate::policy::Dials;
use crate::task::{self, DIALS, FACES};
use niwaki_exact::{Error, Payoff, Process, Table, Values};

/// The lock as a process: every sequence of faces.
pub(crate) fn process() -> Result<Process, Error> {
    Process::new(FACES, DIALS)
}

/// Its rewards, sequence by sequence.
pub(crate) fn payoff(process: Process) -> Result<Payoff, Error> {
    Payoff::from_fn(process, task::reward)
}

/// The policy as a table over prefixes.
pub(crate) fn table(process: Process, policy: &Dials) -> Result<Table, Error> {
    let mut logits = vec![0.0; process.edges()];
    let mut put = |before: &[usize]| {
        let row = process.row(before);
        for (face, prob) in policy.faces(before).into_iter().enumerate() {
            logits[FACES * row + face] = prob.ln();
        }
    };
    put(&[]);
    // Every prefix of every sequence.
    process.each_sequence(|_, lane| (1..DIALS).for_each(|dial| put(&lane[..dial])));
    Table::new(process, &logits)
}

/// The policy's expected reward, without sampling.
pub(crate) fn expected(policy: &Dials) -> Result<f64, Error> {
    let process = process()?;
    Ok(Values::new(&table(process, policy)?, &payoff(process)?)?.eta())
}
