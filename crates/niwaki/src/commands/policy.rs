//! Trained policies that schedule a shop; shared by `solve` and `bench shop`.

use anyhow::Context;
use niwaki_policies::Decoding;
use niwaki_train::Trained;
use std::path::Path;

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
