//! `niwaki bench decoder`: a pretrained model on records, step by step and prefix by prefix.

use crate::device::{DeviceArgs, Place};
use crate::terminal::say_format;
use anyhow::{Result, ensure};
use niwaki_lm::{Model, RecordPolicy, RecordScratch};
use niwaki_nn::{Cpu, DynEngine, Graph, Optimiser, Span, Value};
use niwaki_policies::{Draw, DrawRequest, MakeEngine, Policy, Rollout};
use niwaki_stream::Key;
use niwaki_tasks::Record;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// A Hugging Face folder or a GGUF file.
    #[arg(long, value_name = "PATH")]
    model: PathBuf,
    #[command(flatten)]
    device: DeviceArgs,
    /// Members of the cohort.
    #[arg(long, default_value_t = 1)]
    members: usize,
    /// Records of a minibatch, which share one prompt.
    #[arg(long, default_value_t = 8)]
    records: usize,
    /// Measured runs of eight steps, after three to warm up.
    #[arg(long, default_value_t = 20)]
    steps: usize,
}

/// Steps of a run, as many as an epoch of 64 records has in minibatches of eight.
const RUN: usize = 8;

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        ensure!(
            self.members > 0 && self.records > 0 && self.steps > 0,
            "--members, --records and --steps must be at least 1"
        );
        let (began, record) = (Instant::now(), Record::of_the_paper()?);
        let policy =
            RecordPolicy::new(&Model::open(&self.model)?, &record, Some("neutral"), self.records, 1.0)?;
        let members = self.members;
        match self.device.device {
            Place::Cpu => {
                self.device.choose()?;
                self.measure(began, &policy, &record, &move |graph: &Graph, outputs: &[Value]| {
                    Ok(Cpu::boxed(graph, outputs, members))
                })?;
            }
            #[cfg(feature = "cuda")]
            Place::Cuda => {
                let options = self.device.options();
                let make = move |graph: &Graph, outputs: &[Value]| {
                    let engine = niwaki_nn::cuda::Cuda::new(graph, outputs, members, &options)?;
                    Ok(Box::new(engine) as Box<DynEngine>)
                };
                let engine: Box<dyn std::any::Any> = self.measure(began, &policy, &record, &make)?;
                let Ok(mut engine) = engine.downcast::<niwaki_nn::cuda::Cuda>() else {
                    anyhow::bail!("a GPU's engine was asked for");
                };
                engine.profile()?;
                super::device::show_launches("a step, forward and backward", engine.profile()?);
                let (free, total) = engine.device_memory()?;
                say_format!("device memory {} MB in use", (total - free) >> 20);
            }
            #[cfg(not(feature = "cuda"))]
            Place::Cuda => {
                self.device.choose()?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Times draws, which enumerate every prefix, and update steps; returns the engine that stepped.
    fn measure(
        &self,
        began: Instant,
        policy: &RecordPolicy,
        record: &Record,
        make: &MakeEngine,
    ) -> Result<Box<DynEngine>> {
        let (task, slots) = (record.task(Some("two-branch"))?, policy.horizon());
        let mut engine = make(policy.graph(), &policy.heads().outputs())?;
        for member in 0..self.members {
            engine.set_parameters(member, &policy.initial_parameters(0))?;
        }
        let mut stream = Key::new(3, "bench").open();
        let uniforms: Vec<f64> = (0..self.members * self.records * slots).map(|_| stream.uniform()).collect();
        let (mut scratch, mut rollout) = (RecordScratch::default(), Rollout::default());
        let request =
            DrawRequest { lanes: self.records, instances: &[], how: Draw::Sampled(&uniforms), score: true };
        let mut draw = |engine: &mut DynEngine| -> Result<f64> {
            let clock = Instant::now();
            policy.draw(engine, &mut scratch, make, &task, request, &mut rollout)?;
            Ok(1e3 * clock.elapsed().as_secs_f64())
        };
        let count = (self.records * slots) as f32;
        let forward_ended = Mutex::new(Instant::now());
        let surrogate = |_: Span, seen: &[&[f32]], cotangents: &mut [&mut [f32]]| {
            *forward_ended.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
            for (to, &from) in cotangents[0].iter_mut().zip(seen[0]) {
                *to = from / count;
            }
        };
        let adam = Optimiser::adam().clipped(1.0);
        let rates = vec![1e-7; self.members];
        let update = |engine: &mut DynEngine| -> Result<()> {
            engine.pull_back(&surrogate)?;
            engine.step(&adam, &rates)?;
            Ok(())
        };
        // Milliseconds of a step in a run of steps, all of which are over at its end; of a step that is waited for, its forward pass,
        // and an optimiser's step alone.
        let steps = |engine: &mut DynEngine| -> Result<[f64; 4]> {
            let run = Instant::now();
            for _ in 0..RUN {
                update(engine)?;
            }
            engine.synchronize()?;
            let run = run.elapsed() / RUN as u32;
            let clock = Instant::now();
            update(engine)?;
            engine.synchronize()?;
            let alone = clock.elapsed();
            let ended = *forward_ended.lock().unwrap_or_else(PoisonError::into_inner);
            let again = Instant::now();
            engine.step(&adam, &rates)?;
            engine.synchronize()?;
            let times = [run, alone, ended.duration_since(clock), again.elapsed()];
            Ok(times.map(|took| 1e3 * took.as_secs_f64()))
        };
        draw(engine.as_mut())?;
        update(engine.as_mut())?;
        engine.synchronize()?;
        say_format!("first step {:.2} s after the start", began.elapsed().as_secs_f64());
        let mut times = [const { Vec::new() }; 5];
        for repeat in 0..self.steps + 2 {
            let drawn = draw(engine.as_mut())?;
            let [run, alone, forward, optimiser] = steps(engine.as_mut())?;
            if repeat >= 2 {
                let all = [drawn, run, alone, forward, optimiser];
                times.iter_mut().zip(all).for_each(|(times, took)| times.push(took));
            }
        }
        times.iter_mut().for_each(|times| times.sort_by(f64::total_cmp));
        let [draws, steps, singles, forwards, optimisers] = &times;
        say_format!(
            "{} members × {} records, {} rows an item: all prefixes and a draw median {:.2} ms, least {:.2}; update step median {:.2} ms, least {:.2}, of {} runs of {RUN}",
            self.members,
            self.records,
            policy.graph().tallest(),
            draws[draws.len() / 2],
            draws[0],
            steps[steps.len() / 2],
            steps[0],
            self.steps
        );
        say_format!(
            "a step that is waited for {:.2} ms: forward {:.2}, optimiser {:.2}, medians",
            singles[singles.len() / 2],
            forwards[forwards.len() / 2],
            optimisers[optimisers.len() / 2]
        );
        Ok(engine)
    }
}
