//! The pointer policy on a GPU: hard flow shops and job shops, built and scored on the device.

use super::device::show_launches;
use crate::terminal::say_format;
use anyhow::{Result, ensure};
use niwaki_nn::cuda::{Cuda, Options, Precision, check};
use niwaki_nn::{Cpu, Engine, Graph, Optimiser, Span, Value, initialise};
use niwaki_policies::{Draw, Observed, PointerPolicy, PointerShape, Rollout, Sampler};
use niwaki_shop::construct::JobOrder;
use niwaki_shop::generate::Size;
use niwaki_stream::Key;
use niwaki_tasks::{Construction, Generator, Reading, Shop, ShopPool, Source};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Trajectories per instance.
const GROUP: usize = 16;

/// Instances per member.
const INSTANCES: usize = 16;

fn hard_task() -> Result<Arc<dyn Construction>> {
    let size = Size { machines: 7, jobs: 20 };
    let drawn = Generator { shop: Shop::Flow, size, training: 48, validation: 1, seed: 5 };
    let (source, reading) = (Source::Generated(drawn), Reading::default());
    let pool = ShopPool { source, patience: Duration::from_secs(10), reading };
    Ok(pool.build(&|_, _| {})?)
}

/// The paper's job shop under an order.
fn job_task(order: JobOrder) -> Result<Arc<dyn Construction>> {
    let drawn = Generator { shop: Shop::Job, size: Shop::Job.size(), training: 48, validation: 1, seed: 5 };
    let (source, reading) = (Source::Generated(drawn), Reading { order, hidden: false });
    Ok(ShopPool { source, patience: Duration::from_secs(10), reading }.build(&|_, _| {})?)
}

fn policy(task: &dyn Construction, residual: bool, bound: f64) -> Result<PointerPolicy> {
    let shape = PointerShape {
        candidates: task.candidates(),
        horizon: task.horizon(),
        features: task.features(),
        context: task.context(),
        group: GROUP,
        width: 64,
        heads: 4,
        blocks: 2,
        hidden: 128,
        residual,
        bound,
    };
    Ok(shape.policy()?)
}

fn uniforms(lanes: usize, steps: usize) -> Vec<f64> {
    let mut stream = Key::new(3, "uniforms").open();
    (0..lanes * steps).map(|_| stream.uniform()).collect()
}

/// Times rollouts and update steps on flow shops and on job shops, and says where a step's time goes.
pub(super) fn time(members: usize) -> Result<()> {
    time_on("flow shops", hard_task()?, false, members)?;
    time_on("job shops", job_task(JobOrder::Machine)?, true, members)
}

fn time_on(name: &str, task: Arc<dyn Construction>, residual: bool, members: usize) -> Result<()> {
    let policy = policy(task.as_ref(), residual, 10.0)?;
    let steps = task.horizon();
    let mut engine = Cuda::new(&policy.graph, &policy.outputs(), members, &Options::default())?;
    for member in 0..members {
        engine.set_parameters(member, &initialise(policy.graph.layout(), member as u64))?;
    }
    let instances: Vec<u32> = (0..members * INSTANCES).map(|at| (at % 48) as u32).collect();
    let (drawn, mut built) = (uniforms(instances.len() * GROUP, steps), Rollout::default());
    let count = (INSTANCES * GROUP * steps) as f32;
    let surrogate = |_: Span, seen: &[&[f32]], cotangents: &mut [&mut [f32]]| {
        let [log_prob, entropy] = cotangents else { return };
        for (to, &from) in log_prob.iter_mut().zip(seen[0]) {
            *to = from / count;
        }
        entropy.fill(0.0);
    };
    let mut times = [Vec::new(), Vec::new()];
    for repeat in 0..25 {
        let clock = Instant::now();
        policy.construct(&mut engine, task.as_ref(), &instances, Draw::Sampled(&drawn), &mut built)?;
        let rollout = clock.elapsed().as_secs_f64();
        let clock = Instant::now();
        engine.pull_back(&surrogate)?;
        engine.step(&Optimiser::normalised_sgd(), &vec![1e-4; members])?;
        let step = clock.elapsed().as_secs_f64();
        if repeat >= 5 {
            times[0].push(1e3 * rollout);
            times[1].push(1e3 * step);
        }
    }
    times.iter_mut().for_each(|times| times.sort_by(f64::total_cmp));
    let [rollout, step] = &times;
    say_format!(
        "{name}, {members} members × {INSTANCES} × {GROUP} lanes × {steps} steps, tf32: rollout median {:.3} ms, least {:.3}; update step median {:.3} ms, least {:.3}, of {}",
        rollout[rollout.len() / 2],
        rollout[0],
        step[step.len() / 2],
        step[0],
        step.len()
    );
    engine.profile()?;
    show_launches(&format!("{name}, forward and backward"), engine.profile()?);
    show_launches(&format!("{name}, a rollout"), engine.profile_extension()?);
    Ok(())
}

/// Every kind of schedule that the device builds by itself, with and without the query in the glimpse and a bound on the logits,
/// as [`compare_on`] does.
pub(super) fn compare(options: &Options) -> Result<Vec<check::Outcome>> {
    let mut outcomes = Vec::new();
    for (residual, bound) in [(false, 10.0), (true, 10.0), (false, 0.0)] {
        let glimpse = if residual { "residual" } else { "plain" };
        let reading = if bound > 0.0 { glimpse.to_owned() } else { format!("{glimpse}, no bound") };
        let task = hard_task()?;
        let flow = policy(task.as_ref(), residual, bound)?;
        outcomes.push(compare_on(&format!("flow shop, {reading}"), task, &flow, options)?);
        for (name, order) in Reading::ORDERS {
            let name = format!("job shop, {name}, {reading}");
            let task = job_task(order)?;
            let policy = policy(task.as_ref(), residual, bound)?;
            outcomes.push(compare_on(&name, task, &policy, options)?);
        }
    }
    Ok(outcomes)
}

/// Schedules that the device builds by itself against those that the CPU builds step by step: the share of trajectories
/// that differ, and how far what was left loaded is from what the same choices load.
fn compare_on(
    name: &str,
    task: Arc<dyn Construction>,
    policy: &PointerPolicy,
    options: &Options,
) -> Result<check::Outcome> {
    const MEMBERS: usize = 3;
    let horizon = task.horizon();
    let mut device = Cuda::new(&policy.graph, &policy.outputs(), MEMBERS, options)?;
    let make = |graph: &Graph, outputs: &[Value]| Ok(Cpu::boxed(graph, outputs, MEMBERS));
    let mut host = make(&policy.graph, &policy.outputs())?;
    for member in 0..MEMBERS {
        let weights = initialise(policy.graph.layout(), member as u64);
        device.set_parameters(member, &weights)?;
        host.set_parameters(member, &weights)?;
    }
    let instances: Vec<u32> = (0..48).collect();
    let drawn = uniforms(instances.len() * GROUP, horizon);
    let mut sampler = Sampler::new(policy, GROUP, &make)?;
    let mut different = 0.0_f64;
    for how in [Draw::Sampled(&drawn), Draw::Greedy] {
        let (mut here, mut there) = (Rollout::default(), Rollout::default());
        ensure!(
            policy.construct(&mut device, task.as_ref(), &instances, how, &mut there)?,
            "nothing was built"
        );
        sampler.draw(host.as_ref(), task.as_ref(), &instances, how, &mut here, &mut Observed::default())?;
        let lanes = here.actions.chunks_exact(horizon).zip(there.actions.chunks_exact(horizon));
        let share = lanes.clone().filter(|(here, there)| here != there).count() as f64 / lanes.len() as f64;
        different = different.max(share);
        let (observed, outcome) = Observed::replay(task.as_ref(), &instances, GROUP, &there.actions)?;
        ensure!(outcome == there.outcome, "the device's makespans are not those of its schedules");
        let score = |device: &mut Cuda| -> Result<Vec<f32>> {
            device.forward()?;
            Ok((0..MEMBERS).flat_map(|member| device.output(member, 0).to_vec()).collect())
        };
        let left = score(&mut device)?;
        policy.load_observed(&mut device, &there.actions, &observed)?;
        ensure!(left == score(&mut device)?, "a construction left something else loaded than its choices");
    }
    // A trajectory differs from its first choice within rounding of a running sum on: twenty chances each in the flow
    // shop, twice as many in the job shop.
    let limit = match options.precision {
        Precision::F32 => 0.02,
        Precision::Tf32 => 0.5,
        Precision::Bf16 => 0.95,
    };
    let name = format!("schedules built on the device, share that differs: {name}");
    Ok(check::Outcome { name, outputs: different, gradient: 0.0, limit })
}
