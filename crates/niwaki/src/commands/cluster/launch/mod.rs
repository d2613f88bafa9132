//! `niwaki cluster launch`: a plan handed to the machines at hand.

mod follow;
mod local;

use crate::{places, terminal};
use anyhow::{Context, bail, ensure};
use clap::{Args, Subcommand};
use niwaki_files::Digest;
use niwaki_store::Store;
use niwaki_study::machines::launch::{Launch, Pods, Resources, kubernetes, ray, slurm};
use niwaki_study::machines::{Split, Status, Terms, leases};
use std::io::Write;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use follow::Follow;
pub(in crate::commands) use local::Local;

/// What every command about a plan is given.
#[derive(Args, Clone)]
pub(crate) struct PlanArgs {
    /// The plan, as `niwaki cluster split` wrote it: a file, or an object of a bucket.
    #[arg(long, value_name = "FILE", default_value = "plan.json")]
    pub(in crate::commands) plan: PathBuf,
    /// Where all machines put results: a folder, or a bucket (s3://, gs://, az://) and a prefix in it. Finished
    /// results in it are kept.
    #[arg(long, value_name = "STORE", default_value = "runs")]
    pub(in crate::commands) out: String,
    /// How often a unit may fail before it is given up.
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(in crate::commands) attempts: u32,
}

impl PlanArgs {
    /// The plan itself.
    pub(super) fn read(&self) -> anyhow::Result<Split> {
        let text = places::read(&self.plan).with_context(|| {
            format!("cannot read {}; make it with niwaki cluster split", self.plan.display())
        })?;
        Ok(Split::read(&self.plan.display().to_string(), &text)?)
    }

    /// The store of its results.
    pub(super) fn store(&self) -> anyhow::Result<Arc<dyn Store>> {
        niwaki_store::open(&self.out).with_context(|| format!("--out {}", self.out))
    }

    /// How this process claims.
    pub(super) fn terms(&self, lease: u64) -> Terms {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
        let host = host.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_else(|| "machine".to_owned());
        // The name becomes part of a record's.
        let host: String = host
            .trim()
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' })
            .collect();
        let holder = format!("{host}-{}", std::process::id());
        // Processes that share a bucket go on from each other's attempts; those of another bucket must not.
        let scratch = std::env::temp_dir().join(format!("niwaki-{}", Digest::of(&self.out)));
        Terms { holder, patience: Duration::from_secs(lease), attempts: self.attempts, scratch }
    }
}

/// How far a plan is.
pub(super) fn status(plan: &PlanArgs) -> anyhow::Result<Status> {
    let split = plan.read()?;
    Ok(Status::of(&split, &leases(&split, plan.store()?, &plan.terms(60)), plan.attempts)?)
}

#[derive(Args)]
pub(crate) struct Launching {
    #[command(subcommand)]
    launcher: Launcher,
}

#[derive(Subcommand)]
enum Launcher {
    /// Start several processes on this machine: one per GPU, or one per core.
    Local(Local),
    /// Submit Slurm job arrays, with dependencies, requeued on preemption.
    Slurm(Slurm),
    /// Create an Indexed Job on Kubernetes.
    Kubernetes(Kubernetes),
    /// Run the units as Ray tasks.
    Ray(Ray),
}

/// What the launchers for other machines share.
#[derive(Args)]
struct Elsewhere {
    #[command(flatten)]
    plan: PlanArgs,
    /// Print what would be submitted, and stop.
    #[arg(long)]
    dry_run: bool,
    /// Largest number of units at the same time.
    #[arg(long, value_name = "N")]
    at_once: Option<usize>,
    /// Path of the program on those machines; that of this program if absent.
    #[arg(long, value_name = "FILE")]
    program: Option<String>,
    /// Memory of a unit, e.g. 16G or 800M.
    #[arg(long, value_name = "SIZE", value_parser = mebibytes)]
    mem: Option<u64>,
    /// Cores of a unit, and as many threads.
    #[arg(long, value_name = "N")]
    cpus: Option<NonZeroUsize>,
    /// The kind of GPU, as the scheduler calls it, e.g. h100; one in Kubernetes is a resource, e.g. nvidia.com/gpu. A unit that
    /// needs a GPU takes one.
    #[arg(long, value_name = "KIND")]
    gpu: Option<String>,
}

/// The longest that an attempt may run, for the launchers whose schedulers have such limits.
#[derive(Args)]
struct Limit {
    /// The longest that an attempt may run, e.g. 4h; a unit that is not done by then is saved and queued again.
    #[arg(long, value_name = "TIME", value_parser = limit)]
    time: Option<Duration>,
}

#[derive(Args)]
struct Slurm {
    #[command(flatten)]
    elsewhere: Elsewhere,
    #[command(flatten)]
    limit: Limit,
    /// Further options of sbatch, after --: e.g. -- --partition=gpu --account=lab.
    #[arg(last = true, value_name = "OPTION")]
    options: Vec<String>,
}

#[derive(Args)]
struct Kubernetes {
    #[command(flatten)]
    elsewhere: Elsewhere,
    #[command(flatten)]
    limit: Limit,
    /// The image that holds the program.
    #[arg(long, value_name = "IMAGE")]
    image: String,
    /// A claim on a volume that every pod can write; it is mounted at --out.
    #[arg(long, value_name = "CLAIM")]
    volume: Option<String>,
    /// A Secret whose keys become the pods' environment, e.g. the account of a bucket.
    #[arg(long, value_name = "NAME")]
    secret: Option<String>,
}

#[derive(Args)]
struct Ray {
    #[command(flatten)]
    elsewhere: Elsewhere,
    /// The Python that has Ray.
    #[arg(long, value_name = "FILE", default_value = "python3")]
    python: String,
}

impl Launching {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        match self.launcher {
            Launcher::Local(local) => local.run(),
            Launcher::Slurm(Slurm { elsewhere, limit, options }) => {
                let script =
                    elsewhere.text(true, limit.time, |split, launch| Ok(slurm(split, launch, &options)))?;
                elsewhere.submit(&script, "bash", &[], false)
            }
            Launcher::Kubernetes(Kubernetes { elsewhere, limit, image, volume, secret }) => {
                let pods = Pods { image: &image, volume: volume.as_deref(), secret: secret.as_deref() };
                let manifest = elsewhere
                    .text(false, limit.time, |split, launch| Ok(kubernetes(split, launch, &pods)?))?;
                elsewhere.submit(&manifest, "kubectl", &["apply", "-f", "-"], false)
            }
            Launcher::Ray(Ray { elsewhere, python }) => {
                let program = elsewhere.text(true, None, |split, launch| Ok(ray(split, launch)))?;
                elsewhere.submit(&program, &python, &["-"], true)
            }
        }
    }
}

impl Elsewhere {
    /// What is submitted. Where the machines see the files of this one, paths are made whole.
    fn text(
        &self,
        whole: bool,
        time: Option<Duration>,
        translate: impl FnOnce(&Split, &Launch<'_>) -> anyhow::Result<String>,
    ) -> anyhow::Result<String> {
        ensure!(self.at_once != Some(0), "--at-once 0 runs nothing; give at least 1");
        let split = self.plan.read()?;
        let program = match &self.program {
            Some(program) => program.clone(),
            None if whole => this_program()?,
            None => "niwaki".to_owned(),
        };
        let (plan, out) = (text_of(&self.plan.plan)?, self.plan.out.clone());
        let (plan, out) = if whole { (absolute(&plan)?, absolute(&out)?) } else { (plan, out) };
        let launch = Launch {
            program: &program,
            plan: &plan,
            out: &out,
            attempts: self.plan.attempts,
            at_once: self.at_once,
            resources: Resources { time, memory: self.mem, cpus: self.cpus, gpu: self.gpu.clone() },
        };
        translate(&split, &launch)
    }

    /// Prints a text, or gives it to the program that takes it, and follows the plan where that works on it until its end.
    fn submit(
        &self,
        text: &str,
        program: &str,
        arguments: &[&str],
        follows: bool,
    ) -> anyhow::Result<ExitCode> {
        if self.dry_run {
            terminal::say(text.trim_end());
            return Ok(ExitCode::SUCCESS);
        }
        let follow = if follows { Some((self.plan.read()?, self.plan.store()?)) } else { None };
        let child = Command::new(program).args(arguments).stdin(Stdio::piped()).spawn();
        let mut child = child
            .with_context(|| format!("cannot run {program}; --dry-run prints what it would be given"))?;
        if let Some(mut input) = child.stdin.take() {
            input
                .write_all(text.as_bytes())
                .with_context(|| format!("{program} did not take what it was given"))?;
        }
        let ended = match &follow {
            None => child.wait(),
            Some((split, store)) => {
                let leases = leases(split, store.clone(), &self.plan.terms(60));
                let mut follow = Follow::new(&self.plan, split);
                loop {
                    match child.try_wait() {
                        Ok(None) => {}
                        Ok(Some(ended)) => break Ok(ended),
                        Err(error) => break Err(error),
                    }
                    std::thread::sleep(Duration::from_millis(200));
                    follow.look(&leases);
                }
            }
        };
        let ended = ended.with_context(|| format!("cannot wait for {program}"))?;
        if !ended.success() {
            bail!(
                "{program} ended with {ended}; what it began goes on, and the same command begins the rest"
            );
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// A limit of time, which is not 0.
fn limit(text: &str) -> anyhow::Result<Duration> {
    let limit = crate::commands::solve::duration(text)?;
    ensure!(!limit.is_zero(), "a unit needs time; give e.g. 4h");
    Ok(limit)
}

/// A size such as `800M` or `16G`, in MiB.
fn mebibytes(text: &str) -> anyhow::Result<u64> {
    let mend = || format!("expected a size such as 800M or 16G, got {text}");
    let (number, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let scale = match unit {
        "M" | "MB" | "Mi" | "MiB" => 1,
        "G" | "GB" | "Gi" | "GiB" => 1 << 10,
        "T" | "TB" | "Ti" | "TiB" => 1 << 20,
        _ => bail!(mend()),
    };
    let size = number.parse::<u64>().ok().and_then(|number| number.checked_mul(scale));
    // Ray is given bytes.
    size.filter(|size| (1..1 << 40).contains(size)).with_context(mend)
}

/// Where this program is.
fn this_program() -> anyhow::Result<String> {
    let program = std::env::current_exe().context("cannot tell where this program is; give --program")?;
    text_of(&program)
}

/// A path as text: other characters in place of its own would name another file.
fn text_of(path: &Path) -> anyhow::Result<String> {
    let text = path.to_str().with_context(|| format!("{} is not UTF-8 text; rename it", path.display()))?;
    Ok(text.to_owned())
}

/// A path as other processes find it; a bucket is found by its own name.
fn absolute(path: &str) -> anyhow::Result<String> {
    if places::is_bucket(path) || path.starts_with("file://") {
        return Ok(path.to_owned());
    }
    let whole =
        std::path::absolute(Path::new(path)).with_context(|| format!("cannot tell where {path} is"))?;
    text_of(&whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_limits_are_read_or_refused() {
        let read = ["800M", "16G", "2TiB"].map(|text| mebibytes(text).unwrap());
        assert_eq!(read, [800, 16 << 10, 2 << 20]);
        for wrong in ["", "16", "G", "0G", "1.5G", "-1G", "16 G", "99999999999999999999G", "9999999T", "1K"] {
            assert!(mebibytes(wrong).is_err(), "{wrong}");
        }
        assert_eq!(limit("4h").unwrap(), Duration::from_secs(4 * 3600));
        assert!(limit("0s").is_err() && limit("x").is_err());
    }
}
