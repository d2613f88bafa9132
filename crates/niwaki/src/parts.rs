//! What a program brings to the command: tasks and losses of its own.

use anyhow::Context;
use niwaki_correction::{Correction, Rule};
use niwaki_tasks::Sequence;
use std::fmt::Display;
use std::panic::UnwindSafe;

/// Tasks and losses of your own, for [`crate::main_with`].
///
/// ```no_run
/// use niwaki::{Parts, main_with};
/// use niwaki_correction::{Rule, family::Reads};
/// # use niwaki_tasks::{Choice, Terminal};
///
/// fn main() -> std::process::ExitCode {
///     let three_back = Rule { reads: Reads::Window(3), ..Rule::tempered(0.5) };
///     main_with(
///         Parts::default()
///             .task("mine", |vocab, horizon| Choice::new(vocab, horizon, Terminal::Chosen, 0))
///             .loss("three-back", three_back),
///     )
/// }
/// ```
#[derive(Default)]
pub struct Parts(Vec<Box<dyn FnOnce() -> anyhow::Result<()> + UnwindSafe>>);

impl Parts {
    /// A token task: specs name it as `task.kind` and hand it `task.vocab` and `task.horizon`.
    #[must_use]
    pub fn task<T: Sequence + 'static, E: Display>(
        mut self,
        name: &'static str,
        make: impl Fn(usize, usize) -> Result<T, E> + UnwindSafe + Send + Sync + 'static,
    ) -> Self {
        self.0.push(Box::new(move || Ok(niwaki_train::task(name, make)?)));
        self
    }

    /// A loss: specs, arms of a sweep and `oracle --losses` name it like a member of the family.
    #[must_use]
    pub fn loss(mut self, name: &'static str, rule: Rule) -> Self {
        let register = move || Correction::register(name, rule).map(|_| ()).context("cannot add a loss");
        self.0.push(Box::new(register));
        self
    }

    pub(crate) fn register(self) -> anyhow::Result<()> {
        self.0.into_iter().try_for_each(|part| part())
    }
}
