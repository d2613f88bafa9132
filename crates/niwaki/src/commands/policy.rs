//! Trained policies that schedule a shop; shared by `solve` and `bench shop`.

use anyhow::Context;
use niwaki_policies::{Decoded, Decoding};
use niwaki_shop::optimum;
use niwaki_shop::{Instance, Limits, Optimum, verify};
use niwaki_train::Trained;
use std::path::Path;
use std::time::Duration;

/// Flags that say how hard a policy tries.
#[derive(clap::Args, Clone, Copy)]
pub(crate) struct DecodeArgs {
    /// Schedules that a policy draws by chance, beside its likeliest one.
    #[arg(long, default_value_t = 128, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    samples: u32,
    /// Width of a policy's beam search; 0 for none.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=4096))]
    beam: u32,
    /// Let a policy also take its likeliest schedule from every first choice.
    #[arg(long)]
    multistart: bool,
}

impl DecodeArgs {
    pub(crate) const fn decoding(self, seed: u64) -> Decoding {
        Decoding {
            samples: self.samples as usize,
            beam: self.beam as usize,
            multistart: self.multistart,
            seed,
        }
    }
}

/// Reads the policy of a run's folder.
pub(crate) fn open(folder: &Path) -> anyhow::Result<Trained> {
    Trained::open(folder).with_context(|| format!("--policy {}", folder.display()))
}

/// Schedules an instance that the policy accepted; the result has passed the checker. The bound is the one that the exact
/// solver finds at once.
pub(crate) fn schedule(
    policy: &Trained,
    instance: &Instance,
    how: Decoding,
    tick: &mut dyn FnMut(usize),
) -> anyhow::Result<(Optimum, Decoded)> {
    let decoded = policy.decode(instance, how, tick)?;
    let verdict =
        verify(instance, &decoded.schedule).context("the checker refused the schedule that was found")?;
    anyhow::ensure!(
        verdict.makespan == decoded.outcome.makespan && verdict.late == decoded.outcome.late as usize,
        "the checker finds another outcome than the policy's construction"
    );
    let at_once = Limits::new(Duration::ZERO, how.seed);
    let lower = optimum::solve(instance, at_once, &mut |_| {}).lower;
    Ok((Optimum::new(lower, decoded.schedule.clone()), decoded))
}
