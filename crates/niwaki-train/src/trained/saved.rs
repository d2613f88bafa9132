//! What a run's folder says of the policy that it has saved.

use super::{Trained, TrainedGraph, TrainedSequences};
use crate::Error;
use crate::run::{CHECKPOINT, SPEC};
use crate::spec::{Spec, TaskKind};
use niwaki_nn::{Checkpoint, Layout, Real, Slice, Stored, checkpoint_state, checkpoint_state_of};
use niwaki_policies::Decoded;
use niwaki_shop::{Instance, Limits, Optimum, optimum, verify};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A policy as its run's last checkpoint has it.
#[derive(Clone, Debug)]
pub enum TrainedPolicy {
    /// One that schedules shops.
    Shops(Box<Trained>),
    /// One that schedules shops that it reads as graphs.
    Graphs(Box<TrainedGraph>),
    /// One over token sequences.
    Sequences(Box<TrainedSequences>),
}

impl TrainedPolicy {
    /// Reads the policy of a run's folder, which may still be training, or one that comes with the program (`builtin:NAME`).
    ///
    /// # Errors
    /// If the folder holds no run, or none that was saved yet, or no policy of that name comes with the program.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let saved = Saved::open(folder)?;
        Ok(match saved.spec.task_kind()? {
            TaskKind::Shop(_) if saved.spec.policy.kind.reads_graphs() => {
                Self::Graphs(Box::new(TrainedGraph::read(saved)?))
            }
            TaskKind::Shop(_) => Self::Shops(Box::new(Trained::read(saved)?)),
            _ => Self::Sequences(Box::new(TrainedSequences::read(saved)?)),
        })
    }
}

/// A parameter of a trained policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Tensor {
    /// A dotted name, e.g. `blocks.0.up.weight`.
    pub name: String,
    /// Its shape, row-major; a weight is `[in, out]`.
    pub shape: Vec<usize>,
    /// Its values, exact whatever the precision of the policy.
    pub values: Vec<f64>,
}

impl Tensor {
    /// The parameters of a layout, in the order in which the policy declared them.
    pub(super) fn all<F: Real>(layout: &Layout, parameters: &[F]) -> Vec<Self> {
        let one = |slice: &Slice| Self {
            name: slice.name.clone(),
            shape: slice.shape.clone(),
            values: parameters[slice.range()].iter().map(|value| value.to_f64()).collect(),
        };
        layout.slices().iter().map(one).collect()
    }
}

/// What was decoded, with the checker's word for it and the bound that the exact search finds at once.
pub(super) fn checked(instance: &Instance, decoded: &Decoded, seed: u64) -> Result<Optimum, Error> {
    let refuse = |reason: String| Error::Schedule { reason };
    let checked = verify(instance, &decoded.schedule).map_err(|fault| refuse(fault.to_string()))?;
    let (makespan, late) = (decoded.outcome.makespan, decoded.outcome.late as usize);
    if (checked.makespan, checked.late) != (makespan, late) {
        return Err(refuse(format!(
            "makespan {} and {} late jobs, where the construction had {makespan} and {late}",
            checked.makespan, checked.late
        )));
    }
    let lower = optimum::solve(instance, Limits::new(Duration::ZERO, seed), &mut |_| {}).lower;
    Ok(Optimum::new(lower, decoded.schedule.clone()))
}

/// A spec and a checkpoint: of a folder, or of the program.
pub(super) struct Saved {
    folder: PathBuf,
    pub(super) spec: Spec,
    /// A policy that comes with the program.
    built_in: Option<&'static BuiltIn>,
}

impl Saved {
    pub(super) fn open(folder: &Path) -> Result<Self, Error> {
        if let Some(name) = folder.to_str().and_then(|text| text.strip_prefix(BUILT_IN)) {
            let Some(built_in) = ALL.iter().find(|one| one.name == name) else {
                let known: Vec<String> = ALL.iter().map(|one| format!("{BUILT_IN}{}", one.name)).collect();
                let reason =
                    format!("no such policy comes with the program; expected {}", known.join(" or "));
                return Err(Error::OtherRun { path: folder.to_owned(), reason });
            };
            let spec = Spec::read(&folder.display().to_string(), built_in.spec, &[])?;
            return Ok(Self { folder: folder.to_owned(), spec, built_in: Some(built_in) });
        }
        let path = folder.join(SPEC);
        let text = niwaki_files::read_text(&path).map_err(|error| Error::OtherRun {
            path: path.clone(),
            reason: format!("{error}; expected the folder of a run"),
        })?;
        let spec = Spec::read(&path.display().to_string(), &text, &[])?;
        Ok(Self { folder: folder.to_owned(), spec, built_in: None })
    }

    /// A refusal that names a file of the folder.
    pub(super) fn refuse(&self, name: &str, reason: String) -> Error {
        Error::OtherRun { path: self.folder.join(name), reason }
    }

    /// The temperature at which its samples are best, as far as anybody has measured: 1 of a folder.
    pub(super) fn temperature(&self) -> f64 {
        self.built_in.map_or(1.0, |built_in| built_in.temperature)
    }

    /// Holds the spec against the checkpoint, which vouches for it: before anything is built by what the spec says.
    pub(super) fn vouch(&self) -> Result<(), Error> {
        let path = self.folder.join(CHECKPOINT);
        if self.built_in.is_none() && !path.exists() {
            let reason = "the run has saved no policy: let it go on, or train one that does not diverge";
            return Err(self.refuse(CHECKPOINT, reason.to_owned()));
        }
        let state = match self.built_in {
            Some(built_in) => checkpoint_state_of(built_in.checkpoint, &path)?,
            None => checkpoint_state(&path)?,
        };
        if state["spec"].as_str() != Some(self.spec.hash()?.as_str()) {
            return Err(self.refuse(CHECKPOINT, format!("it was saved by another run than that of {SPEC}")));
        }
        Ok(())
    }

    /// The parameters of the last checkpoint, and the iterations of training behind them.
    pub(super) fn parameters<F: Stored>(&self, layout: &Layout) -> Result<(Vec<F>, u64), Error> {
        self.vouch()?;
        let path = self.folder.join(CHECKPOINT);
        let kept = match self.built_in {
            Some(built_in) => Checkpoint::<F>::decode(layout, built_in.checkpoint, &path)?,
            None => Checkpoint::<F>::load(layout, &path)?,
        };
        Ok((kept.parameters, kept.state["iteration"].as_u64().unwrap_or_default()))
    }
}

/// What stands before the name of a policy that comes with the program.
const BUILT_IN: &str = "builtin:";

/// A policy that comes with the program: what `niwaki export` wrote of its run.
struct BuiltIn {
    name: &'static str,
    spec: &'static str,
    checkpoint: &'static [u8],
    /// At which its samples are best on drawn shops.
    temperature: f64,
}

/// All of them; `results/dispatchers/2026-11-18` says how they were trained and what they are worth.
const ALL: [BuiltIn; 2] = [
    BuiltIn {
        name: "flexible",
        spec: include_str!("../../models/flexible/spec.toml"),
        checkpoint: include_bytes!("../../models/flexible/checkpoint.safetensors"),
        temperature: 0.35,
    },
    BuiltIn {
        name: "jobs",
        spec: include_str!("../../models/jobs/spec.toml"),
        checkpoint: include_bytes!("../../models/jobs/checkpoint.safetensors"),
        temperature: 0.25,
    },
];
