//! `niwaki bench engine`: one update step (forward, backward, N-SGD) of the testbed transformer.

use super::meter::{median, peak_memory, processor_seconds};
use super::peer::{Peer, Start};
use crate::device::{DeviceArgs, Place};
use crate::terminal::{self, say_format};
use anyhow::{Result, bail};
use niwaki_nn::limits::{Limits, measure_limits, product_operations, wall};
use niwaki_nn::{Cpu, DynEngine, Optimiser, Span, initialise};
use niwaki_policies::{CausalShape, Extras, TokenPolicy};
use niwaki_stream::Key;
use niwaki_train::spec::{MEMORY, block_parameters, bytes_in_words, times};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    device: DeviceArgs,
    /// Members of the population.
    #[arg(long, default_value_t = 1)]
    members: usize,
    /// Lanes per member.
    #[arg(long, default_value_t = 256)]
    lanes: usize,
    /// Steps per lane.
    #[arg(long, default_value_t = 8)]
    horizon: usize,
    /// Measured steps, after two to warm up.
    #[arg(long, default_value_t = 15)]
    repeats: usize,
    /// Also run the peers under benches/peers, step by step in turn, and print the ratios.
    #[arg(long)]
    peers: bool,
    /// The Python that has the peers installed.
    #[arg(long, default_value = "python3")]
    python: PathBuf,
}

/// Wall and processor seconds of each measured step.
#[derive(Default)]
struct Times {
    wall: Vec<f64>,
    processor: Vec<f64>,
}

impl Times {
    fn push(&mut self, [wall, processor]: [f64; 2]) {
        self.wall.push(wall);
        self.processor.push(processor);
    }
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        if self.members == 0 || self.lanes == 0 || self.horizon == 0 || self.repeats == 0 {
            bail!("--members, --lanes, --horizon and --repeats must be at least 1");
        }
        self.check_size()?;
        let policy = CausalShape::testbed(4, self.horizon).policy(Extras::default())?;
        self.device.choose()?;
        match self.device.device {
            Place::Cpu => {
                let engine = Cpu::boxed(&policy.graph, &[policy.log_prob], self.members);
                self.measure(&policy, engine, |_, _| Ok(vec![]))
            }
            Place::Cuda => self.measure_cuda(&policy),
        }
    }

    /// Refuses sizes that no machine holds, before anything is made.
    fn check_size(&self) -> Result<()> {
        let CausalShape { width, hidden, blocks, .. } = CausalShape::testbed(4, 8);
        // Parameters and gradients; a token, an action, a log-probability and a cotangent per step.
        let parameters =
            block_parameters(blocks, width, hidden).saturating_add(times(&[self.horizon, width]));
        let batch = times(&[self.lanes, self.horizon]).saturating_mul(16);
        let taken = parameters.saturating_mul(8).saturating_add(batch).saturating_mul(self.members as u128);
        if taken > MEMORY {
            let (members, lanes, horizon) = (self.members, self.lanes, self.horizon);
            let (taken, limit) = (bytes_in_words(taken), bytes_in_words(MEMORY));
            bail!(
                "--members {members} with --lanes {lanes} and --horizon {horizon} need about {taken} of memory and the \
                 limit is {limit}; give smaller numbers"
            );
        }
        Ok(())
    }

    #[cfg(not(feature = "cuda"))]
    fn measure_cuda(&self, _policy: &TokenPolicy) -> Result<ExitCode> {
        bail!("--device cuda was not built in")
    }

    #[cfg(feature = "cuda")]
    fn measure_cuda(&self, policy: &TokenPolicy) -> Result<ExitCode> {
        use niwaki_nn::cuda::Cuda;
        let options = self.device.options();
        let engine = Cuda::new(&policy.graph, &[policy.log_prob], self.members, &options)?;
        self.measure(policy, Box::new(engine), |engine, rate| {
            let engine: &dyn std::any::Any = engine;
            let Some(engine) = engine.downcast_ref::<Cuda>() else { bail!("a GPU's engine was asked for") };
            let limits = engine.limits()?;
            let (free, total) = engine.device_memory()?;
            let mut lines = vec![
                engine.device_name(),
                format!(
                    "limit of the device: {:.0} TFLOP/s (an 8192³ product), {:.2} TB/s (a 1 GiB copy); niwaki's share of \
                     the former {:.0}%",
                    limits.product / 1e12,
                    limits.copy / 1e12,
                    100.0 * rate / limits.product
                ),
                format!("    device memory in use {:.0} MB of {:.0} MB", (total - free) as f64 / 1e6, total as f64 / 1e6),
            ];
            lines.extend(engine.notice().map(ToOwned::to_owned));
            Ok(lines)
        })
    }

    /// `about` says what is to be known of the engine's device, given the operations per second that were reached.
    fn measure(
        &self,
        policy: &TokenPolicy,
        mut engine: Box<DynEngine>,
        about: impl Fn(&DynEngine, f64) -> Result<Vec<String>>,
    ) -> Result<ExitCode> {
        self.load(policy, engine.as_mut())?;
        let mut peers = if self.peers { self.start_peers()? } else { Vec::new() };
        let (mut ours, mut theirs) = (Times::default(), Vec::new());
        theirs.resize_with(peers.len(), Times::default);
        let mut limits = Vec::new();
        let bar = terminal::progress(self.repeats as u64, "steps");
        for _ in 0..2 {
            self.step(engine.as_mut())?;
        }
        // The yardsticks below need more memory than the engine.
        let peak = peak_memory();
        for _ in 0..self.repeats {
            limits.extend((self.device.device == Place::Cpu).then(|| measure_limits(clock())));
            ours.push(self.step(engine.as_mut())?);
            for ((_, processes), times) in peers.iter_mut().zip(&mut theirs) {
                times.push(step_together(processes)?);
            }
            bar.inc(1);
        }
        bar.finish_and_clear();
        self.print(policy, &ours, &limits, peak);
        for line in about(engine.as_ref(), self.work(policy) / median(&ours.wall))? {
            say_format!("{line}");
        }
        for ((name, processes), times) in peers.iter_mut().zip(&theirs) {
            let ratio = |ours: &[f64], theirs: &[f64]| {
                median(&ours.iter().zip(theirs).map(|(ours, theirs)| theirs / ours).collect::<Vec<_>>())
            };
            say_format!(
                "{name} {}: {:.1} ms wall, {:.1} ms processor: niwaki is {:.2} times as fast (wall), {:.2} (processor)",
                processes[0].version,
                1e3 * median(&times.wall),
                1e3 * median(&times.processor),
                ratio(&ours.wall, &times.wall),
                ratio(&ours.processor, &times.processor),
            );
            let memory: Vec<[f64; 2]> = processes.iter_mut().map(Peer::memory).collect::<Result<_>>()?;
            let total = |place: usize| memory.iter().map(|pair| pair[place]).sum::<f64>() / 1e6;
            say_format!(
                "    peak memory {:.0} MB, of which {:.0} MB after its imports",
                total(0),
                total(0) - total(1)
            );
        }
        Ok(ExitCode::SUCCESS)
    }

    /// Noise in every input and PyTorch's initial weights.
    fn load(&self, policy: &TokenPolicy, engine: &mut DynEngine) -> Result<()> {
        engine.set_items(self.lanes)?;
        let mut stream = Key::new(1, "bench").open();
        let count = self.members * self.lanes * self.horizon;
        let actions: Vec<i32> = (0..count).map(|_| stream.below(policy.vocab as u64) as i32).collect();
        policy.load_actions(engine, &actions, &[])?;
        for member in 0..self.members {
            engine.set_parameters(member, &initialise(policy.graph.layout(), member as u64))?;
        }
        Ok(())
    }

    /// One update of every member: wall and processor seconds.
    fn step(&self, engine: &mut DynEngine) -> Result<[f64; 2]> {
        let (horizon, count) = (self.horizon, (self.lanes * self.horizon) as f32);
        let surrogate = |span: Span, _seen: &[&[f32]], cotangents: &mut [&mut [f32]]| {
            for (lane, cotangent) in span.items.zip(cotangents[0].chunks_exact_mut(horizon)) {
                cotangent.fill((lane % 7) as f32 / count - 3.0 / count);
            }
        };
        let (wall, processor) = (wall(), processor_seconds());
        engine.pull_back(&surrogate)?;
        engine.step(&Optimiser::normalised_sgd(), &vec![0.01; self.members])?;
        let spent = processor_seconds().zip(processor).map_or(f64::NAN, |(after, before)| after - before);
        Ok([wall(), spent])
    }

    /// Operations in the products of one update of every member.
    fn work(&self, policy: &TokenPolicy) -> f64 {
        self.members as f64 * self.lanes as f64 * product_operations(&policy.graph, true)
    }

    fn print(&self, policy: &TokenPolicy, ours: &Times, limits: &[Limits], peak: Option<f64>) {
        let work = self.work(policy);
        say_format!(
            "testbed transformer, {} parameters, {} member(s) × {} lanes × {} steps: forward, backward, N-SGD",
            policy.graph.layout().parameters(),
            self.members,
            self.lanes,
            self.horizon
        );
        let (wall, processor) = (median(&ours.wall), median(&ours.processor));
        // On a device the host's processor only waits.
        let spent = match self.device.device {
            Place::Cpu => {
                format!(
                    ", {:.1} ms processor ({:.1} GFLOP/s per core)",
                    1e3 * processor,
                    work / processor / 1e9
                )
            }
            Place::Cuda => String::new(),
        };
        say_format!(
            "niwaki: {:.2} ms wall ({:.1} GFLOP/s){spent}, median of {}",
            1e3 * wall,
            work / wall / 1e9,
            self.repeats
        );
        if !limits.is_empty() {
            let shares: Vec<f64> = ours
                .processor
                .iter()
                .zip(limits)
                .map(|(seconds, limit)| work / seconds / limit.product)
                .collect();
            say_format!(
                "limit of one core: {:.1} GFLOP/s (a 1024³ product), {:.1} GB/s (a 64 MiB copy); niwaki's share of the former {:.0}%",
                median(&limits.iter().map(|limit| limit.product).collect::<Vec<_>>()) / 1e9,
                median(&limits.iter().map(|limit| limit.copy).collect::<Vec<_>>()) / 1e9,
                100.0 * median(&shares)
            );
        }
        if let Some(peak) = peak {
            say_format!("    peak memory {:.0} MB", peak / 1e6);
        }
    }

    /// The peers that are installed; of PyTorch on the CPU one process with one thread for each core in use, which is
    /// its best arrangement. Says how to get the others.
    fn start_peers(&self) -> Result<Vec<(&'static str, Vec<Peer>)>> {
        let device = match self.device.device {
            Place::Cpu => "cpu",
            Place::Cuda => "cuda",
        };
        let cores = match self.device.device {
            Place::Cpu => rayon::current_num_threads().min(self.members),
            Place::Cuda => 1,
        };
        let mut peers = Vec::new();
        for (name, package, processes) in [("PyTorch", "torch", cores), ("JAX", "jax", 1)] {
            let mut running = Vec::new();
            let line = terminal::waiting(format!("waiting for {name} to start and warm up"));
            for process in 0..processes {
                let members = self.members / processes + usize::from(process < self.members % processes);
                let threads = cores / processes;
                let arguments = format!(
                    "--device {device} --members {members} --threads {threads} --lanes {} --horizon {}",
                    self.lanes, self.horizon
                );
                let script = PathBuf::from(format!("benches/peers/engine_{package}.py"));
                let arguments = arguments.split(' ').map(str::to_owned).collect();
                running.extend(Peer::start(&Start { python: &self.python, script, arguments })?);
            }
            line.finish_and_clear();
            if running.len() == processes {
                peers.push((name, running));
            } else {
                say_format!(
                    "{name} does not run under {0}: `{0} -m pip install {package}`, or name another with --python",
                    self.python.display()
                );
            }
        }
        Ok(peers)
    }
}

/// The calling process's processor seconds, or the wall clock where the system does not say.
fn clock() -> impl Fn() -> f64 {
    let wall = wall();
    move || processor_seconds().unwrap_or_else(&wall)
}

/// One step of all processes of a peer at once: wall seconds of the slowest, processor seconds of all.
fn step_together(processes: &mut [Peer]) -> Result<[f64; 2]> {
    processes.iter_mut().try_for_each(Peer::begin)?;
    let mut total = [0.0_f64; 2];
    for process in processes {
        let [wall, processor] = process.end()?;
        total = [total[0].max(wall), total[1] + processor];
    }
    Ok(total)
}
