//! Trained policies that schedule a shop; shared by `solve` and `bench shop`.

use crate::device::{DeviceArgs, Place};
use anyhow::{Context, bail};
use niwaki_policies::{Decoded, Decoding};
use niwaki_shop::{Instance, Optimum};
use niwaki_train::{Error, GraphScheduler, Trained, TrainedPolicy};
use std::path::Path;

/// Flags that say how hard a policy tries.
#[derive(clap::Args, Clone, Copy)]
pub(crate) struct DecodeArgs {
    /// Number of schedules that the policy samples, in addition to its likeliest one; 128 if absent.
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    samples: Option<u32>,
    /// What the policy's log-probabilities are divided by when it samples, e.g. 0.5 to stay nearer to what is likeliest [default: 1; 0.35 for builtin:flexible and 0.25 for builtin:jobs].
    #[arg(long, value_parser = temperature)]
    temperature: Option<f64>,
    /// Width of the policy's beam search; 0, for none, if absent.
    #[arg(long, value_parser = clap::value_parser!(u32).range(0..=4096))]
    beam: Option<u32>,
    /// Also try the policy's likeliest schedule after every possible first choice.
    #[arg(long)]
    multistart: bool,
    /// Where a graph network schedules, the CPU if absent; a pointer always does on the CPU.
    #[arg(long, value_enum)]
    device: Option<Place>,
}

impl DecodeArgs {
    /// Refuses flags that nothing heeds where there is no policy.
    pub(crate) fn check_alone(self) -> anyhow::Result<()> {
        let given = [
            ("--samples", self.samples.is_some()),
            ("--temperature", self.temperature.is_some()),
            ("--beam", self.beam.is_some()),
            ("--multistart", self.multistart),
            ("--device", self.device.is_some()),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((flag, _)) => {
                bail!("{flag}: it tells a policy how to schedule; add --policy RUN or leave it out")
            }
            None => Ok(()),
        }
    }

    /// How a policy tries.
    pub(crate) fn decoding(self, seed: u64, policy: &Scheduler) -> Decoding {
        Decoding {
            samples: self.samples.unwrap_or(128) as usize,
            beam: self.beam.unwrap_or(0) as usize,
            multistart: self.multistart,
            seed,
            temperature: self.temperature.unwrap_or_else(|| policy.temperature()),
        }
    }
}

/// A temperature that samples can be drawn at.
fn temperature(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| (0.001..=1000.0).contains(number));
    number.ok_or_else(|| "expected a number between 0.001 and 1000".to_owned())
}

/// A policy that schedules shops.
pub(crate) enum Scheduler {
    Pointer(Box<Trained>),
    Graph(Box<GraphScheduler>),
}

impl Scheduler {
    /// Iterations of training behind it.
    pub(crate) fn iteration(&self) -> u64 {
        match self {
            Self::Pointer(policy) => policy.iteration(),
            Self::Graph(policy) => policy.trained.iteration(),
        }
    }

    /// The temperature at which it samples unless told otherwise.
    fn temperature(&self) -> f64 {
        match self {
            Self::Pointer(_) => 1.0,
            Self::Graph(policy) => policy.trained.temperature(),
        }
    }

    /// The instance as one of the kind that the policy schedules.
    pub(crate) fn accept(&self, instance: Instance) -> Result<Instance, Error> {
        match self {
            Self::Pointer(policy) => policy.accept(instance),
            Self::Graph(policy) => policy.trained.accept(instance),
        }
    }

    /// Steps that scheduling tells of at most.
    pub(crate) fn steps(&self, instance: &Instance, how: Decoding) -> usize {
        match self {
            Self::Pointer(policy) => policy.steps(instance, how),
            Self::Graph(policy) => policy.trained.steps(instance, how),
        }
    }

    /// The best schedule of an instance that was accepted.
    pub(crate) fn schedule(
        &mut self,
        instance: &Instance,
        how: Decoding,
        tick: &mut (dyn FnMut(usize) + Send),
    ) -> Result<(Optimum, Decoded), Error> {
        match self {
            Self::Pointer(policy) => policy.schedule(instance, how, tick),
            Self::Graph(policy) => policy.schedule(instance, how, tick),
        }
    }
}

/// Reads the policy of a run's folder.
pub(crate) fn open(folder: &Path, decode: DecodeArgs) -> anyhow::Result<Scheduler> {
    let named = || format!("--policy {}", folder.display());
    let policy = match TrainedPolicy::open(folder).with_context(named)? {
        TrainedPolicy::Graphs(policy) => {
            let device = DeviceArgs::of(decode.device.unwrap_or(Place::Cpu)).choose()?;
            return Ok(Scheduler::Graph(Box::new(policy.on(device))));
        }
        TrainedPolicy::Shops(policy) => policy,
        // One over tokens is refused in the words of those that schedule.
        TrainedPolicy::Sequences(_) => Box::new(Trained::open(folder).with_context(named)?),
    };
    if decode.device == Some(Place::Cuda) {
        bail!(
            "--device cuda: {} holds a pointer, which schedules on the CPU; leave the flag out",
            folder.display()
        );
    }
    Ok(Scheduler::Pointer(policy))
}
