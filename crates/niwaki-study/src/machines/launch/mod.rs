//! Launchers that only translate: a plan into what the schedulers that people have take.
//!
//! Each returns a text and runs nothing. Every one of them comes down to `niwaki cluster work --unit N`, so that what a scheduler
//! repeats, moves or duplicates is no matter. Paths and names travel as arguments of what is run, or encoded by the one
//! function of `encode.rs` that is lawful for the format.
//!
//! | module | what belongs there |
//! |---|---|
//! | `encode.rs` | words of the caller's as shells, YAML and Python take them |
//! | `slurm.rs` | a script that submits job arrays |
//! | `kubernetes.rs` | a manifest with an Indexed Job |
//! | `ray.rs` | a Python program for Ray |

mod encode;
mod kubernetes;
mod ray;
mod slurm;

pub use encode::{flag, shell};
pub use kubernetes::{Pods, kubernetes};
pub use ray::ray;
pub use slurm::slurm;

use super::split::Split;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::time::Duration;

/// What every launcher has to know.
#[derive(Clone, Debug)]
pub struct Launch<'a> {
    /// The program, as the machines find it.
    pub program: &'a str,
    /// The plan's file, as the machines find it.
    pub plan: &'a str,
    /// The store of its results, as the machines find it.
    pub out: &'a str,
    /// How often a unit may fail before it is left alone.
    pub attempts: u32,
    /// Most units at the same time, where there is a limit.
    pub at_once: Option<usize>,
    /// What each unit asks for.
    pub resources: Resources,
}

/// What a unit asks a scheduler for; the scheduler's own default where it says nothing. Units that train on a GPU ask for
/// one in any case.
#[derive(Clone, Debug, Default)]
pub struct Resources {
    /// The longest that an attempt may run; a unit that is not done by then is saved and queued again.
    pub time: Option<Duration>,
    /// Memory in MiB.
    pub memory: Option<u64>,
    /// Cores, and so many threads.
    pub cpus: Option<NonZeroUsize>,
    /// The kind of GPU, as the scheduler calls it.
    pub gpu: Option<String>,
}

impl Resources {
    /// The limit in whole seconds, at least one.
    fn seconds(&self) -> Option<u64> {
        self.time.map(|time| time.as_secs().max(1))
    }
}

/// Units that can be handed out together: the same device, and so many others before them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The units.
    pub units: Range<usize>,
    /// How many stages come before.
    pub depth: usize,
    /// Whether they need a GPU.
    pub gpu: bool,
}

impl Split {
    /// The plan in blocks of neighbours, none longer than `most`.
    #[must_use]
    pub fn blocks(&self, most: usize) -> Vec<Block> {
        let mut depths: Vec<usize> = Vec::with_capacity(self.units.len());
        let mut blocks: Vec<Block> = Vec::new();
        for (number, unit) in self.units.iter().enumerate() {
            let depth = unit.before().map(|before| depths[before] + 1).max().unwrap_or(0);
            depths.push(depth);
            let gpu = unit.device != "cpu";
            match blocks.last_mut() {
                Some(block)
                    if (block.depth, block.gpu) == (depth, gpu) && block.units.len() < most.max(1) =>
                {
                    block.units.end = number + 1;
                }
                _ => blocks.push(Block { units: number..number + 1, depth, gpu }),
            }
        }
        blocks
    }
}
