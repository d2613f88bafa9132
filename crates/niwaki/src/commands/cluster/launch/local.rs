//! Several processes on one machine, each with a GPU of its own or a share of the cores.

use super::super::{status, work};
use super::{Follow, PlanArgs};
use crate::terminal;
use anyhow::{Context, bail, ensure};
use niwaki_study::machines::launch::{flag, shell};
use niwaki_study::machines::{Standing, leases};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// How often the processes are looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Processes that one machine is asked to start at most.
const MOST: usize = 1024;

/// What says which GPUs a process sees.
const VISIBLE: &str = "CUDA_VISIBLE_DEVICES";

#[derive(clap::Args)]
pub(crate) struct Local {
    #[command(flatten)]
    pub(crate) plan: PlanArgs,
    /// Processes; one per visible GPU where the plan needs GPUs, else one per core.
    #[arg(long, value_name = "N")]
    pub(crate) workers: Option<usize>,
    /// Cores of each process, and as many threads; all cores are shared out if absent.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) cpus: Option<u16>,
    /// Seconds after which others may take over a unit whose worker has not renewed its lease.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(crate) lease: u64,
    /// Print the processes that would be started, and stop.
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// A process that is to be started: the GPU that it sees, and its threads.
#[derive(Debug, PartialEq, Eq)]
struct Post {
    gpu: Option<String>,
    threads: usize,
}

impl Local {
    pub(crate) fn run(self) -> anyhow::Result<ExitCode> {
        ensure!(self.workers != Some(0), "--workers 0 runs nothing; give at least 1");
        if let Some(workers) = self.workers.filter(|workers| *workers > MOST) {
            bail!("--workers {workers} is more than one machine starts; give at most {MOST}");
        }
        let split = self.plan.read()?;
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let gpus = if split.units.iter().any(|unit| unit.device != "cpu") {
            let visible = visible();
            ensure!(
                !visible.is_empty(),
                "the plan needs a GPU and none is visible here; name some with {VISIBLE}, e.g. {VISIBLE}=0,1"
            );
            visible
        } else {
            Vec::new()
        };
        let posts = posts(self.workers, self.cpus.map(usize::from), cores, &gpus);
        if self.dry_run {
            for post in &posts {
                terminal::say(&self.line(post)?);
            }
            return Ok(ExitCode::SUCCESS);
        }
        // A refusal comes before any process.
        let store = self.plan.store()?;
        let asked = Arc::new(AtomicBool::new(false));
        let stop = asked.clone();
        ctrlc::set_handler(move || stop.store(true, Ordering::Relaxed))
            .context("cannot watch for signals")?;
        let mut children = Vec::new();
        for post in &posts {
            children.push(Some(self.start(post)?));
        }
        let leases = leases(&split, store, &self.plan.terms(self.lease));
        // As often as a unit may fail, so may the process that works on it.
        let mut restarts = posts.len() * self.plan.attempts as usize;
        let mut follow = Follow::new(&self.plan, &split);
        while children.iter().any(Option::is_some) {
            std::thread::sleep(LOOK);
            follow.look(&leases);
            if asked.load(Ordering::Relaxed) {
                return stop_all(children);
            }
            for (child, post) in children.iter_mut().zip(&posts) {
                let Some(ended) = child.as_mut().map(Child::try_wait).transpose()?.flatten() else {
                    continue;
                };
                *child = None;
                let over = Standing::of(&split, &leases, self.plan.attempts)?.is_over();
                if over || ended.success() {
                    continue;
                }
                // It was killed, or the machine refused it something: another goes on.
                if restarts == 0 {
                    bail!(
                        "its processes end before the plan does ({ended}); niwaki cluster status says how far it is"
                    );
                }
                restarts -= 1;
                *child = Some(self.start(post)?);
            }
        }
        drop(follow);
        status::show(&super::status(&self.plan)?);
        let standing = Standing::of(&split, &leases, self.plan.attempts)?;
        work::given_up(&self.plan, &standing).map_or(Ok(ExitCode::SUCCESS), Err)
    }

    fn command(&self, post: &Post) -> anyhow::Result<Command> {
        let mut command = Command::new(super::this_program()?);
        // A name that begins like a flag is still that of a file.
        let dashed = self.plan.plan.to_string_lossy().starts_with('-');
        let plan = if dashed { Path::new(".").join(&self.plan.plan) } else { self.plan.plan.clone() };
        command.args(["cluster", "work", "--claim", "--quiet", "--plan"]).arg(plan);
        command.args(flag("--out", &self.plan.out)).args(["--lease", &self.lease.to_string()]);
        command.args(["--attempts", &self.plan.attempts.to_string()]);
        command.env("RAYON_NUM_THREADS", post.threads.to_string());
        if let Some(gpu) = &post.gpu {
            command.env(VISIBLE, gpu);
        }
        Ok(command)
    }

    fn start(&self, post: &Post) -> anyhow::Result<Child> {
        let mut command = self.command(post)?;
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.spawn().context("cannot start a process of this program")
    }

    /// The command as one would type it.
    fn line(&self, post: &Post) -> anyhow::Result<String> {
        let command = self.command(post)?;
        let set = command.get_envs().filter_map(|(name, value)| {
            Some(format!("{}={}", name.to_string_lossy(), shell(&value?.to_string_lossy())))
        });
        let words = std::iter::once(command.get_program())
            .chain(command.get_args())
            .map(|word| shell(&word.to_string_lossy()));
        Ok(set.chain(words).collect::<Vec<_>>().join(" "))
    }
}

/// One process per GPU, or as many as there are cores for; more than there are GPUs take turns on them, and all share the
/// cores.
fn posts(workers: Option<usize>, cpus: Option<usize>, cores: usize, gpus: &[String]) -> Vec<Post> {
    let room = (cores / cpus.unwrap_or(1)).max(1);
    let count = workers.unwrap_or(if gpus.is_empty() { room } else { gpus.len() });
    let threads = cpus.unwrap_or((cores / count).max(1));
    let gpu = |worker: usize| gpus.get(worker % gpus.len().max(1)).cloned();
    (0..count).map(|worker| Post { gpu: gpu(worker), threads }).collect()
}

/// The GPUs of a list as CUDA reads it: those before the first that is none.
fn listed(list: &str) -> Vec<String> {
    let names = list.split(',').map(str::trim);
    names.take_while(|gpu| !gpu.is_empty() && !gpu.starts_with('-')).map(ToOwned::to_owned).collect()
}

/// The GPUs that this process sees.
fn visible() -> Vec<String> {
    if let Ok(list) = std::env::var(VISIBLE) {
        return listed(&list);
    }
    let found = std::fs::read_dir("/proc/driver/nvidia/gpus").map_or(0, Iterator::count);
    (0..found).map(|gpu| gpu.to_string()).collect()
}

/// Asks every process to stop, which says so to the others at work on the plan.
fn stop_all(mut children: Vec<Option<Child>>) -> anyhow::Result<ExitCode> {
    for child in children.iter_mut().flatten() {
        let asked = Command::new("kill").arg(child.id().to_string()).status();
        if !asked.is_ok_and(|asked| asked.success()) {
            // Nothing is lost: every file is whole at any moment.
            let _ = child.kill();
        }
    }
    for child in children.iter_mut().flatten() {
        child.wait().context("cannot wait for a process")?;
    }
    terminal::say("stopped; the same command goes on from there");
    Ok(ExitCode::from(130))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_are_spread_over_the_gpus_that_are_visible() {
        let on = |workers, cpus, cores, list: &str| {
            let posts = posts(workers, cpus, cores, &listed(list)).into_iter();
            posts.map(|post| (post.gpu.unwrap_or_default(), post.threads)).collect::<Vec<_>>()
        };
        let named = |posts: &[(&str, usize)]| {
            posts.iter().map(|(gpu, threads)| ((*gpu).to_owned(), *threads)).collect::<Vec<_>>()
        };
        assert_eq!(on(None, None, 16, "0,1,GPU-7a"), named(&[("0", 5), ("1", 5), ("GPU-7a", 5)]));
        assert_eq!(on(Some(5), None, 4, "2, 3"), named(&[("2", 1), ("3", 1), ("2", 1), ("3", 1), ("2", 1)]));
        assert_eq!(on(Some(1), None, 8, "0,1"), named(&[("0", 8)]));
        assert_eq!(on(None, None, 2, ""), named(&[("", 1), ("", 1)]));
        assert_eq!(on(None, Some(4), 9, ""), named(&[("", 4), ("", 4)]));
        assert_eq!(on(None, Some(4), 2, ""), named(&[("", 4)]));
        assert_eq!(on(None, Some(3), 16, "0,1"), named(&[("0", 3), ("1", 3)]));
        // CUDA sees nothing from the first that is none.
        assert_eq!((listed("1,-1,0"), listed("-1")), (vec!["1".to_owned()], Vec::new()));
    }
}
