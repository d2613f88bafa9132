//! The spread of an update's log-ratio over all states, where the policies before and after it are known everywhere.
//!
//! The batch alone shows the variance across trajectories. The printed drift is a variance within states, which needs what a
//! policy says of the choices that were not taken.

use crate::player::Player;
use crate::{Error, Recipe, Record};
use niwaki_exact::{Process, Spread, Table};

/// Policies before an update whose spread is wanted; one place per member.
pub(crate) type Before = Option<Vec<Vec<f64>>>;

/// What every member says before the update of an iteration, counted from 0, if its spread is to be measured.
pub(crate) fn before<P: Player>(player: &mut P, recipe: &Recipe, iteration: usize) -> Result<Before, Error> {
    let evaluate = &recipe.spec.evaluate;
    let due = (iteration + 1).is_multiple_of(evaluate.every) || iteration + 1 == recipe.spec.iterations;
    if evaluate.drift && due { player.tables() } else { Ok(None) }
}

/// Puts the spread of each member into its record. A policy whose probabilities underflow has none.
pub(crate) fn fill<P: Player>(
    before: Before,
    player: &mut P,
    recipe: &Recipe,
    records: &mut [Record],
) -> Result<(), Error> {
    let (Some(before), Some(task)) = (before, recipe.tokens()) else { return Ok(()) };
    let (Some(after), Ok(process)) = (player.tables()?, Process::new(task.vocab(), task.horizon())) else {
        return Ok(());
    };
    for ((record, before), after) in records.iter_mut().zip(&before).zip(&after) {
        let table = |logits: &[f64]| Table::new(process, logits);
        let spread = table(before).and_then(|old| Spread::between(&old, &table(after)?)).ok();
        record.conditional_drift = spread.map(|spread| spread.conditional);
        record.prefix_variance = spread.map(|spread| spread.prefix);
    }
    Ok(())
}
