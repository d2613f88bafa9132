//! From a plan to finished runs: cohorts on a device, resumed, shared with other processes.
//!
//! Knows files and cohorts; knows nothing of endpoints, claims or terminals.

use super::{Plan, Planned, optima, store};
use crate::Error;
use crate::report::Speed;
use niwaki_files::Digest;
use niwaki_shop::Bounds;
use niwaki_train::run::{self, Claim, Folder, Occupied, Runs};
use niwaki_train::spec::{Played, PolicyKind, cohort_of};
use niwaki_train::{Device, Recipe, Spec};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Cohorts that share a GPU. On an H200 six made 3,360 to 3,390 run-iterations per second of 216 hard flow shops, three
/// 2,950 to 3,190.
const AT_ONCE: usize = 6;

/// Cohorts of large models that share a GPU: a step of one fills it, so a second only covers what the host does, and more of them
/// would only end later, with more to lose where they are interrupted.
const LARGE_AT_ONCE: usize = 2;

/// How the runs of a plan are made.
pub struct Runner<'a> {
    /// The folder of all studies.
    pub out: &'a Path,
    /// Where networks train; tables always train on the processor.
    pub device: Device,
    /// Most members of a cohort on a GPU; an equal part of all that may train together if absent. On the processor
    /// runs train one by one, one per core.
    pub members: Option<usize>,
    /// Whether other processes may work in the same folder; where they cannot, no lock is asked for.
    pub shared: bool,
    /// Bounds on the optima of pools of shops that are known already.
    pub known: BTreeMap<String, Vec<Bounds>>,
    /// Called with the run-iterations that have just been done.
    pub tick: &'a (dyn Fn(u64) + Sync),
}

/// The clock and counters of one call.
struct Watch {
    began: Instant,
    first: Mutex<Option<f64>>,
    runs: AtomicU64,
    run_iterations: AtomicU64,
    /// Bounds on the optima of each pool of shops, sought once for all runs that share it.
    bounds: BTreeMap<String, Vec<Bounds>>,
}

/// How many cohorts of such runs share a GPU.
fn at_once(runs: &[&Planned]) -> usize {
    let large = runs.iter().any(|run| run.recipe.spec.policy.kind == PolicyKind::Decoder);
    if large { LARGE_AT_ONCE } else { AT_ONCE }
}

impl<'a> Runner<'a> {
    /// A runner in a folder that other processes may work in, too.
    #[must_use]
    pub fn new(out: &'a Path, device: Device) -> Self {
        Self { out, device, members: None, shared: true, known: BTreeMap::new(), tick: &|_| {} }
    }
}

impl Runner<'_> {
    /// Iterations of the runs that are not finished yet.
    ///
    /// # Errors
    /// If results on disk cannot be read.
    pub fn pending(&self, plan: &Plan) -> Result<u64, Error> {
        let mut pending = 0;
        for run in &plan.runs {
            if !run::is_finished(&self.out.join(&run.home), &run.identity())? {
                pending += run.recipe.spec.iterations as u64;
            }
        }
        Ok(pending)
    }

    /// Trains every run that is not finished yet and leaves the speed in the study's folder; nothing where all were.
    ///
    /// Runs that another process has in work are waited for at the end, and trained here if it dies. Those that are
    /// finished must be as they were written, all their files.
    ///
    /// # Errors
    /// If a file is damaged, or disk or device fail. Runs that were finished stay finished.
    pub fn run(&self, plan: &Plan) -> Result<Option<Speed>, Error> {
        let began = Instant::now();
        let home = self.out.join(plan.folder());
        if home.is_dir() {
            niwaki_files::sweep_dead(&home).map_err(|source| Error::Disk { path: home, source })?;
        }
        let unfinished = |run: &'_ &Planned| -> Result<bool, Error> {
            let folder = self.out.join(&run.home);
            if run::verify(&folder, &run.recipe)?.is_none() {
                return Ok(true);
            }
            run::restore_spec(&folder, &run.recipe.spec)?;
            Ok(false)
        };
        let all: Vec<&Planned> = plan.runs.iter().collect();
        let todo = all.par_iter().map(|run| Ok(unfinished(run)?.then_some(*run)));
        let todo: Vec<&Planned> = todo.collect::<Result<Vec<_>, Error>>()?.into_iter().flatten().collect();
        todo.iter().try_for_each(|run| run.recipe.check_ready())?;
        let watch = Watch {
            began,
            first: Mutex::new(None),
            runs: AtomicU64::new(0),
            run_iterations: AtomicU64::new(0),
            bounds: self.seek(&todo, &all)?,
        };
        let (alone, together) = self.cohorts(todo)?;
        let mut left = self.side_by_side(together, &watch)?;
        let leftovers = alone.par_iter().map(|run| self.cohort(&[run], &self.device, false, &watch));
        left.extend(leftovers.collect::<Result<Vec<_>, _>>()?.into_iter().flatten());
        for run in left {
            self.cohort(&[run], &self.device, true, &watch)?;
        }
        let seconds = watch.began.elapsed().as_secs_f64();
        let first = watch.first.into_inner().unwrap_or_default();
        let Some(start_up_seconds) = first else { return Ok(None) };
        let speed = Speed {
            runs: watch.runs.into_inner(),
            run_iterations: watch.run_iterations.into_inner(),
            seconds,
            start_up_seconds,
            device: self.device.name(),
            threads: rayon::current_num_threads(),
        };
        store::write_whole(&self.out.join(plan.folder()).join("speed.json"), &speed)?;
        Ok(Some(speed))
    }

    /// Runs that train alone, one per core, and the cohorts of a GPU, those with the most work last.
    fn cohorts<'p>(
        &self,
        todo: Vec<&'p Planned>,
    ) -> Result<(Vec<&'p Planned>, Vec<Vec<&'p Planned>>), Error> {
        let (mut alone, mut shared) = (Vec::new(), Vec::new());
        for run in todo {
            let tabular = run.recipe.spec.policy.kind == PolicyKind::Tabular;
            if tabular || matches!(self.device, Device::Cpu) {
                alone.push(run);
            } else {
                shared.push(run);
            }
        }
        let most =
            self.members.unwrap_or(usize::MAX).clamp(1, shared.len().div_ceil(at_once(&shared)).max(1));
        let mut together: Vec<Vec<&Planned>> = alike(shared)?
            .into_iter()
            .flat_map(|runs| {
                let equal = runs.len().div_ceil(runs.len().div_ceil(most));
                runs.chunks(equal).map(<[_]>::to_vec).collect::<Vec<_>>()
            })
            .collect();
        let epochs = |run: &&Planned| run.recipe.schedule.epochs(run.recipe.spec.iterations);
        together.sort_by_key(|cohort| cohort.iter().map(epochs).sum::<usize>());
        Ok((alone, together))
    }

    /// Trains cohorts on a GPU, a few at a time from the last on, so that one's device works while another's host does.
    /// Returns the runs that another process has.
    fn side_by_side<'p>(
        &self,
        cohorts: Vec<Vec<&'p Planned>>,
        watch: &Watch,
    ) -> Result<Vec<&'p Planned>, Error> {
        let count = cohorts.len().min(cohorts.iter().map(|runs| at_once(runs)).min().unwrap_or(1));
        let device = self.device.shared_by(count);
        let queue = Mutex::new(cohorts);
        let next = || queue.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let work = || {
            let mut left = Vec::new();
            while let Some(cohort) = next() {
                left.extend(self.cohort(&cohort, &device, false, watch)?);
            }
            Ok(left)
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..count).map(|_| scope.spawn(work)).collect();
            let ended = threads.into_iter().map(|thread| match thread.join() {
                Ok(left) => left,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            Ok(ended.collect::<Result<Vec<Vec<_>>, Error>>()?.concat())
        })
    }

    /// Trains the runs of a cohort that nobody else has, and returns the others.
    fn cohort<'p>(
        &self,
        runs: &[&'p Planned],
        device: &Device,
        wait: bool,
        watch: &Watch,
    ) -> Result<Vec<&'p Planned>, Error> {
        let (mut mine, mut others) = (Vec::new(), Vec::new());
        for &run in runs {
            let home = self.out.join(&run.home);
            let claim = if self.shared {
                Claim::take(&home, (!wait).then_some(Duration::ZERO))?
            } else {
                Some(Claim::private(&home)?)
            };
            match claim {
                None => others.push(run),
                // Another process may have finished it between the first look and the claim.
                Some(_) if run::is_finished(&home, &run.identity())? => {
                    (self.tick)(run.recipe.spec.iterations as u64)
                }
                Some(claim) => mine.push((run, Folder::enter(claim, &run.recipe.spec, Occupied::Replace)?)),
            }
        }
        while let Some((_, first)) = mine.first() {
            // Only those that were saved together go on together.
            let saved = first.saved()?;
            let (mut members, mut folders, mut later) = (Vec::new(), Vec::new(), Vec::new());
            for (run, folder) in mine {
                if folder.saved()? == saved {
                    members.push(run);
                    folders.push(folder);
                } else {
                    later.push((run, folder));
                }
            }
            if let Some((member, folders)) = self.train(&members, folders, device, watch)? {
                // The others go on without the one that diverged: results do not depend on company.
                members.remove(member);
                later.extend(members.into_iter().zip(folders));
            }
            mine = later;
        }
        Ok(others)
    }

    /// Trains a cohort to its end, or until a member diverges; then that one's place and the folders of the others are
    /// given back.
    fn train(
        &self,
        planned: &[&Planned],
        folders: Vec<Folder>,
        device: &Device,
        watch: &Watch,
    ) -> Result<Option<(usize, Vec<Folder>)>, Error> {
        let mut recipes: Vec<Recipe> = planned.iter().map(|run| run.recipe.clone()).collect();
        // A cohort plays the pool of its first member.
        let known = watch.bounds.get(&pool_of(&recipes[0].spec)?).cloned();
        recipes[0].prepare(known, &|_, _| {})?;
        let (iterations, count) = (recipes[0].spec.iterations, planned.len() as u64);
        let mut runs = Runs::open(folders, recipes, device)?;
        (self.tick)(runs.done() as u64 * count);
        let ended = loop {
            if runs.done() == iterations {
                break runs.save();
            }
            if let Err(error) = runs.advance() {
                break Err(error);
            }
            watch.first();
            watch.run_iterations.fetch_add(count, Ordering::Relaxed);
            (self.tick)(count);
            if runs.done() < iterations && runs.is_due() {
                match runs.save() {
                    // The next iteration says so too, whatever the clock; results must not depend on it.
                    Err(niwaki_train::Error::NotFinite { .. }) => {}
                    saved => saved?,
                }
            }
        };
        match ended {
            Ok(()) => {
                let finished = runs.finish()?.len() as u64;
                watch.runs.fetch_add(finished, Ordering::Relaxed);
                Ok(None)
            }
            Err(
                niwaki_train::Error::Diverged { member, .. } | niwaki_train::Error::NotFinite { member, .. },
            ) => {
                let others = runs.diverged(member)?;
                watch.runs.fetch_add(1, Ordering::Relaxed);
                Ok(Some((member, others)))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Bounds on the optima of every pool that some runs play: those that any run of the study has played before, so
    /// that paired runs are paid alike, or else sought.
    pub(crate) fn seek(
        &self,
        todo: &[&Planned],
        all: &[&Planned],
    ) -> Result<BTreeMap<String, Vec<Bounds>>, Error> {
        let shops = |run: &&&Planned| matches!(run.recipe.task, Played::Shops(_));
        let mut bounds = BTreeMap::new();
        for run in todo.iter().filter(shops) {
            let pool = pool_of(&run.recipe.spec)?;
            let known = self.known.get(&pool).cloned().unwrap_or_default();
            bounds.insert(pool, known);
        }
        for run in all.iter().filter(shops) {
            if let Some(missing) =
                bounds.get_mut(&pool_of(&run.recipe.spec)?).filter(|found| found.is_empty())
            {
                // A file that does not read belongs to another run, or is reported when its own run is opened.
                let known = run::known_optima(&self.out.join(&run.home), &run.identity());
                *missing = known.ok().flatten().unwrap_or_default();
            }
        }
        for run in todo.iter().filter(shops) {
            let pool = pool_of(&run.recipe.spec)?;
            if let Some(missing) = bounds.get_mut(&pool).filter(|found| found.is_empty()) {
                // Other studies may have played the same instances.
                let shelf = self.out.join("optima").join(format!("{}.json", Digest::of(&pool)));
                if let Some(known) = optima::read(&shelf, run.recipe.shops())? {
                    *missing = known;
                    continue;
                }
                let mut recipe = run.recipe.clone();
                recipe.prepare(None, &|_, _| {})?;
                *missing = recipe.bounds().unwrap_or_default().to_vec();
                optima::write(&shelf, missing)?;
            }
        }
        Ok(bounds)
    }
}

impl Watch {
    /// Notes when the first iteration was done.
    fn first(&self) {
        if let Ok(mut first) = self.first.lock() {
            first.get_or_insert_with(|| self.began.elapsed().as_secs_f64());
        }
    }
}

/// What two runs that play the same instances have in common.
pub(crate) fn pool_of(spec: &Spec) -> Result<String, Error> {
    let mut task = spec.task.clone();
    (task.deadline, task.reward, task.order, task.hidden) = (None, None, None, None);
    Ok(Spec { task, ..Spec::default() }.to_toml()?)
}

/// Runs that can train as one program: arms, deadlines and seeds do, other shapes and other reuse do not.
pub(crate) fn alike(runs: Vec<&Planned>) -> Result<Vec<Vec<&Planned>>, Error> {
    let mut alike: BTreeMap<String, Vec<&Planned>> = BTreeMap::new();
    for run in runs {
        alike.entry(cohort_of(&run.recipe.spec)?).or_default().push(run);
    }
    Ok(alike.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cohorts(label: &str) -> Vec<usize> {
        let plan = Plan::new(crate::find(label).unwrap().training().unwrap(), None).unwrap();
        let mut sizes: Vec<usize> = alike(plan.runs.iter().collect()).unwrap().iter().map(Vec::len).collect();
        sizes.sort_unstable();
        sizes
    }

    #[test]
    fn deadlines_share_a_pool_and_shapes_do_not() {
        let plan = |label: &str| Plan::new(crate::find(label).unwrap().training().unwrap(), None).unwrap();
        let pools = |plan: &Plan| {
            let pools = plan.runs.iter().map(|run| pool_of(&run.recipe.spec).unwrap());
            pools.collect::<std::collections::BTreeSet<_>>().len()
        };
        assert_eq!((pools(&plan("tab:sched-win+hard")), pools(&plan("tab:sched-horizon"))), (1, 4));
    }

    #[test]
    fn the_scheduling_studies_train_in_few_cohorts() {
        // PPO: 24 + 48 + 24 seeds. Control and corrected share their reuse: twice that.
        assert_eq!(cohorts("tab:sched-win+hard"), [96, 192]);
        // One reuse throughout, however long the warmup: nine arms, two deadlines, 48 seeds.
        assert_eq!(cohorts("tab:sched-win+warmup"), [864]);
        // PPO and the correction at the standard K beside the two at K = 31.
        assert_eq!(cohorts("tab:sched-win+easy"), [32, 32]);
        // Six values of K; two clips, three arms, 16 seeds.
        assert_eq!(cohorts("fig:ktol"), [96; 6]);
        // Three deadlines, six seeds.
        assert_eq!(cohorts("tab:sched-win+job"), [18, 36]);
        // Four shapes: PPO, and the two at K = 31.
        assert_eq!(cohorts("tab:sched-horizon"), [12, 12, 12, 12, 24, 24, 24, 24]);
    }
}
