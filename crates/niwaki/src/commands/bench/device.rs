//! `niwaki bench device`: is this GPU computing what the CPU computes, and where does a step's time go?

use crate::device::Precision;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Members of the cohort that is timed.
    #[arg(long, default_value_t = 120)]
    members: usize,
    /// Lanes per member.
    #[arg(long, default_value_t = 256)]
    lanes: usize,
    /// Update steps of the soak; memory must not grow and every norm must be a number.
    #[arg(long, default_value_t = 200)]
    soak: usize,
    /// Skip the comparisons.
    #[arg(long)]
    skip_checks: bool,
    /// Compare only ops with this in the name of their case, and time nothing.
    #[arg(long, value_name = "TEXT", conflicts_with = "skip_checks")]
    only: Option<String>,
    /// Time in this precision instead of tf32, and compare in it alone.
    #[arg(long, value_enum)]
    precision: Option<Precision>,
}

#[cfg(not(feature = "cuda"))]
impl Args {
    pub(crate) fn run(self) -> anyhow::Result<std::process::ExitCode> {
        let Self { members, lanes, soak, skip_checks, only, precision } = self;
        let checks = only.unwrap_or_else(|| (!skip_checks).to_string());
        let asked = format!("{members} × {lanes}, soak {soak}, checks {checks}, {precision:?}");
        anyhow::bail!(
            "bench device ({asked}): this binary was built without CUDA; build with --features cuda"
        )
    }
}

#[cfg(feature = "cuda")]
mod with_cuda {
    use super::super::pointer;
    use super::{Args, Precision};
    use crate::terminal::{self, say_format};
    use anyhow::{Result, bail};
    use clap::ValueEnum;
    use niwaki_exact::Reward;
    use niwaki_nn::cuda::{Cuda, check};
    use niwaki_nn::{Engine, Optimiser, Span, initialise};
    use niwaki_policies::{CausalShape, Draw, Extras, Rollout, TokenPolicy};
    use niwaki_stream::Key;
    use niwaki_tasks::Ladder;
    use std::collections::BTreeMap;
    use std::process::ExitCode;
    use std::time::Instant;

    const HORIZON: usize = 8;

    /// Members of the cohort of pointers that is timed: the paper's hard flow shops with 24 seeds.
    const POINTERS: usize = 216;

    impl Args {
        pub(crate) fn run(self) -> Result<ExitCode> {
            let start = Instant::now();
            if self.members == 0 || self.lanes == 0 {
                bail!("--members and --lanes must be at least 1");
            }
            if let Some(name) = &self.only {
                return Ok(if compare_some(name, self.precision)? {
                    ExitCode::SUCCESS
                } else {
                    ExitCode::FAILURE
                });
            }
            let policy = CausalShape::testbed(4, HORIZON).policy(Extras::default())?;
            let precision = self.precision.unwrap_or(Precision::Tf32);
            let options = crate::device::options(precision);
            let mut engine = Cuda::new(&policy.graph, &[policy.log_prob], self.members, &options)?;
            say_format!("{}", engine.device_name());
            self.load(&policy, &mut engine)?;
            if let Some(notice) = engine.notice() {
                say_format!("{notice}");
            }
            self.step(&mut engine)?;
            say_format!(
                "first step {:.2} s after the start, {} kernel files compiled",
                start.elapsed().as_secs_f64(),
                engine.compiled()
            );
            self.time(&mut engine, precision)?;
            self.profile(&policy, &mut engine)?;
            pointer::time(POINTERS)?;
            let limits = engine.limits()?;
            say_format!(
                "device limit: {:.0} TFLOP/s (an 8192³ {} product), {:.2} TB/s (a 1 GiB copy)",
                limits.product / 1e12,
                crate::device::name(precision),
                limits.copy / 1e12
            );
            let steady = self.soak(&mut engine)?;
            drop(engine);
            let agree = self.skip_checks || compare_all(&policy, self.precision)?;
            Ok(if steady && agree { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }

        fn load(&self, policy: &TokenPolicy, engine: &mut Cuda) -> Result<()> {
            engine.set_items(self.lanes)?;
            let mut stream = Key::new(1, "bench").open();
            let count = self.members * self.lanes * HORIZON;
            let actions: Vec<i32> = (0..count).map(|_| stream.below(policy.vocab as u64) as i32).collect();
            policy.load_actions(engine, &actions, &[])?;
            for member in 0..self.members {
                engine.set_parameters(member, &initialise(policy.graph.layout(), member as u64))?;
            }
            Ok(())
        }

        /// One update of every member; the norms of their gradients.
        fn step(&self, engine: &mut Cuda) -> Result<Vec<f64>> {
            let count = (self.lanes * HORIZON) as f32;
            let surrogate = |span: Span, _seen: &[&[f32]], cotangents: &mut [&mut [f32]]| {
                for (lane, cotangent) in span.items.zip(cotangents[0].chunks_exact_mut(HORIZON)) {
                    cotangent.fill((lane % 7) as f32 / count - 3.0 / count);
                }
            };
            engine.pull_back(&surrogate)?;
            Ok(engine.step(&Optimiser::normalised_sgd(), &vec![1e-4; self.members])?)
        }

        fn time(&self, engine: &mut Cuda, precision: Precision) -> Result<()> {
            let mut times = Vec::new();
            for repeat in 0..55 {
                let start = Instant::now();
                self.step(engine)?;
                if repeat >= 5 {
                    times.push(start.elapsed().as_secs_f64() * 1e3);
                }
            }
            times.sort_by(f64::total_cmp);
            say_format!(
                "update step, {} members × {} lanes × {HORIZON} steps, {}: median {:.3} ms, least {:.3}, 90% below {:.3}, of {}",
                self.members,
                self.lanes,
                crate::device::name(precision),
                times[times.len() / 2],
                times[0],
                times[times.len() * 9 / 10],
                times.len()
            );
            Ok(())
        }

        fn profile(&self, policy: &TokenPolicy, engine: &mut Cuda) -> Result<()> {
            let uniforms = vec![0.5; self.members * self.lanes * HORIZON];
            let task = Ladder::new(Reward::LateOnly, policy.vocab, HORIZON)?;
            let (how, mut rollout) = (Draw::Sampled(&uniforms), Rollout::default());
            for _ in 0..2 {
                policy.sample(engine, &task, self.lanes, how, &mut rollout)?;
            }
            let clock = Instant::now();
            policy.sample(engine, &task, self.lanes, how, &mut rollout)?;
            say_format!("one rollout of {HORIZON} rows: {:.2} ms", 1e3 * clock.elapsed().as_secs_f64());
            self.load(policy, engine)?;
            engine.profile()?;
            let launches = [
                ("forward and backward", engine.profile()?),
                ("a rollout that chooses its own tokens", engine.profile_choices()?),
            ];
            for (what, launches) in launches {
                show_launches(what, launches);
            }
            Ok(())
        }

        fn soak(&self, engine: &mut Cuda) -> Result<bool> {
            let (before, total) = engine.device_memory()?;
            let bar = terminal::progress(self.soak as u64, "steps");
            let (start, mut numbers, mut least) = (Instant::now(), true, before);
            for step in 0..self.soak {
                let norms = self.step(engine)?;
                numbers &= norms.iter().all(|norm| norm.is_finite());
                if step % 100 == 0 {
                    least = least.min(engine.device_memory()?.0);
                }
                bar.inc(1);
            }
            bar.finish_and_clear();
            let seconds = start.elapsed().as_secs_f64();
            let after = engine.device_memory()?.0;
            say_format!(
                "soak: {} steps in {seconds:.1} s, all norms {}; device memory {} MB in use, {} bytes more at the end and {} at the worst",
                self.soak,
                if numbers { "numbers" } else { "NOT NUMBERS" },
                (total - after) >> 20,
                before.abs_diff(after),
                before.abs_diff(least.min(after)),
            );
            Ok(numbers && after >= before && least >= before)
        }
    }

    /// Prints launches by label.
    pub(in super::super) fn show_launches(what: &str, launches: Vec<(&'static str, f32)>) {
        let mut longest = launches.clone();
        longest.sort_by(|a, b| b.1.total_cmp(&a.1));
        longest.truncate(8);
        let mut sums: BTreeMap<&str, (usize, f32)> = BTreeMap::new();
        for (label, took) in launches {
            let sum = sums.entry(label).or_default();
            *sum = (sum.0 + 1, sum.1 + took);
        }
        say_format!("{what}, launch by launch (the overlap of launches not counted):");
        let total: f32 = sums.values().map(|sum| sum.1).sum();
        let long: Vec<String> = longest.iter().map(|(label, took)| format!("{label} {took:.3}")).collect();
        say_format!("    {total:.3} ms in all; the longest: {}", long.join(", "));
        for (label, (launches, took)) in sums {
            say_format!("    {label:<16} {launches:>3} launches {took:>7.3} ms");
        }
    }

    /// All precisions, or the one that is asked for.
    fn precisions(only: Option<Precision>) -> impl Iterator<Item = Precision> {
        Precision::value_variants().iter().copied().filter(move |&one| only.is_none_or(|only| only == one))
    }

    fn tell(precision: Precision, outcome: &check::Outcome) {
        say_format!(
            "{} {precision:?} {:<62} outputs {:.1e}, gradient {:.1e}, at most {:.0e}",
            if outcome.passes() { "ok  " } else { "FAIL" },
            outcome.name,
            outcome.outputs,
            outcome.gradient,
            outcome.limit
        );
    }

    fn sum_up<'a>(precision: Precision, outcomes: impl Iterator<Item = &'a check::Outcome>) -> bool {
        let passed: Vec<bool> = outcomes.map(check::Outcome::passes).collect();
        let failed = passed.iter().filter(|&&passes| !passes).count();
        say_format!("{precision:?}: {} comparisons, {failed} failed", passed.len());
        failed == 0
    }

    /// Ops whose cases have such a name.
    fn compare_some(name: &str, only: Option<Precision>) -> Result<bool> {
        let mut all = true;
        for precision in precisions(only) {
            let outcomes =
                check::ops(&crate::device::options(precision), name, |outcome| tell(precision, outcome))?;
            if outcomes.is_empty() {
                bail!("--only {name}: no case has this in its name; a run without it lists them");
            }
            all &= sum_up(precision, outcomes.iter());
        }
        Ok(all)
    }

    /// Every op, law and optimiser, then the whole transformer, in every precision or one.
    fn compare_all(policy: &TokenPolicy, only: Option<Precision>) -> Result<bool> {
        let mut all = true;
        for precision in precisions(only) {
            let options = crate::device::options(precision);
            let tell = |outcome: &check::Outcome| tell(precision, outcome);
            let outcomes = check::run(&options, tell)?;
            let outputs = [policy.log_prob, policy.entropy, policy.logits];
            let whole =
                check::compare("the testbed transformer, 3 × 64", &policy.graph, &outputs, 3, 64, &options)?;
            tell(&whole);
            let mut last = vec![whole];
            if let Some(choosing) = policy.choosing() {
                let name = "the testbed transformer's choices follow its logits";
                last.push(check::choices(
                    name,
                    &policy.graph,
                    choosing,
                    policy.beginning(),
                    (3, 64),
                    &options,
                )?);
                last.iter().skip(1).for_each(&tell);
            }
            let built = pointer::compare(&options)?;
            built.iter().for_each(&tell);
            last.extend(built);
            all &= sum_up(precision, outcomes.iter().chain(&last));
        }
        Ok(all)
    }
}

#[cfg(feature = "cuda")]
pub(super) use with_cuda::show_launches;
