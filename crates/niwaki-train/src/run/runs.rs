//! Runs that train as one cohort, each in its folder: the one writer of `train` and of studies.

use super::folder::{CHECKPOINT, Folder, unsound};
use super::member::Member;
use super::{Summary, events, optima, space};
use crate::{Cohort, Device, Error, Recipe, Record, gather};
use niwaki_shop::Bounds;
use rayon::prelude::*;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How long readers of a curve wait for its last lines.
const FLUSH: Duration = Duration::from_millis(500);

/// How long runs go on at least before they are saved on the way. Most are done before, and pay nothing for it.
const SAVE: Duration = Duration::from_secs(60);

/// Of a cohort's time at most one part in so many is spent on saving it: checkpoints of pretrained models are gigabytes.
const WORK_PER_SAVE: u32 = 20;

/// Bytes per second at which a cohort is thought to be saved before it was.
const SAVED_PER_SECOND: f64 = 5e8;

/// Runs of one cohort at some iteration, with their files open.
pub struct Runs {
    cohort: Box<dyn Cohort>,
    members: Vec<Member>,
    device: String,
    bounds: Option<Vec<Bounds>>,
    flushed: Instant,
    saved: Instant,
    /// What saving takes: as it took last, or as it is thought to.
    saving: Duration,
    /// The iteration that the checkpoints are of; 0 where there are none.
    kept: usize,
}

impl Device {
    /// How results call it.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::Cpu => "cpu".to_owned(),
            #[cfg(feature = "cuda")]
            Self::Cuda(options) => format!("cuda {:?}", options.precision).to_lowercase(),
        }
    }

    /// The device that results call so; nothing where this program knows none of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|device| device.name() == name)
    }

    #[cfg(not(feature = "cuda"))]
    fn all() -> Vec<Self> {
        vec![Self::Cpu]
    }

    #[cfg(feature = "cuda")]
    fn all() -> Vec<Self> {
        use niwaki_nn::cuda::{Options, Precision};
        let cuda = |precision| Self::Cuda(Options { precision, ..Options::default() });
        vec![Self::Cpu, cuda(Precision::F32), cuda(Precision::Tf32), cuda(Precision::Bf16)]
    }
}

impl Runs {
    /// Goes to the folders' checkpoints, which must be of one iteration, or to the beginning where there are none. The
    /// first recipe must know its optima where shops are played.
    ///
    /// # Errors
    /// Where a file is damaged, the recipes do not belong together, or disk or device refuse.
    pub fn open(folders: Vec<Folder>, recipes: Vec<Recipe>, device: &Device) -> Result<Self, Error> {
        space::check(&folders, &recipes)?;
        let bounds = recipes.first().and_then(Recipe::bounds).map(<[_]>::to_vec);
        let mut cohort = gather(recipes.clone(), device)?;
        let mut saved = Vec::with_capacity(folders.len());
        for (member, folder) in folders.iter().enumerate() {
            let path = folder.file(CHECKPOINT);
            if path.exists() {
                cohort.restore(member, &path).map_err(|error| match error {
                    Error::Engine(error) => unsound(&path, error),
                    other => other,
                })?;
                saved.push(cohort.done());
            } else {
                saved.push(0);
            }
        }
        if saved.windows(2).any(|pair| pair[0] != pair[1]) {
            return Err(Error::Mixed);
        }
        let done = cohort.done();
        let open = |(folder, recipe): (Folder, &Recipe)| {
            bounds.as_deref().map_or(Ok(()), |bounds| optima::keep(&folder, bounds, done > 0))?;
            Member::open(folder, recipe, done)
        };
        let mut members: Vec<Member> =
            folders.into_iter().zip(&recipes).map(open).collect::<Result<_, _>>()?;
        if done == 0 {
            keep_policies(cohort.as_mut(), &mut members)?;
        }
        let mut bytes = 0;
        for recipe in &recipes {
            bytes += recipe.spec.checkpoint_bytes()?;
        }
        let saving = Duration::from_secs_f64(bytes as f64 / SAVED_PER_SECOND);
        let now = Instant::now();
        let device = device.name();
        Ok(Self { cohort, members, device, bounds, flushed: now, saved: now, saving, kept: done })
    }

    /// Iterations done.
    #[must_use]
    pub fn done(&self) -> usize {
        self.cohort.done()
    }

    /// The iteration from which another process would go on.
    #[must_use]
    pub fn kept(&self) -> usize {
        self.kept
    }

    /// The last record of a member.
    #[must_use]
    pub fn last(&self, member: usize) -> Option<&Record> {
        self.members.get(member).and_then(|member| member.curve.last())
    }

    /// Whether it is time to save runs on the way: so much was done since they were saved, or opened, that saving it is
    /// cheap.
    #[must_use]
    pub fn is_due(&self) -> bool {
        due(self.saved.elapsed(), self.saving)
    }

    /// Files that had been changed or removed and were written anew.
    pub fn mended(&self) -> impl Iterator<Item = PathBuf> {
        self.members.iter().filter(|member| member.mended).map(|member| member.folder.file(events::NAME))
    }

    /// One iteration of all members, with their records and trajectories.
    ///
    /// # Errors
    /// If training diverges, or device or disk refuse.
    pub fn advance(&mut self) -> Result<(), Error> {
        self.advance_unless(&|| false)
    }

    /// The same, left where `leave` says so: what was done of the iteration is lost.
    ///
    /// # Errors
    /// [`Error::Left`], or as [`Runs::advance`].
    pub fn advance_unless(&mut self, leave: &dyn Fn() -> bool) -> Result<(), Error> {
        let records = self.cohort.advance_unless(leave)?;
        let done = self.cohort.done();
        for (place, (member, record)) in self.members.iter_mut().zip(records).enumerate() {
            let batch = member.wants_batch(done).then(|| self.cohort.last_batch(place));
            member.push(record, batch.as_ref())?;
        }
        keep_policies(self.cohort.as_mut(), &mut self.members)?;
        if self.flushed.elapsed() >= FLUSH {
            self.members.iter_mut().try_for_each(|member| member.flush(false))?;
            self.flushed = Instant::now();
        }
        Ok(())
    }

    /// Everything that the checkpoints count on, then the checkpoints.
    ///
    /// # Errors
    /// If a member holds what is not finite, or device or disk refuse. Its old checkpoint is then still there, and the
    /// members that are finite are saved.
    pub fn save(&mut self) -> Result<(), Error> {
        let began = Instant::now();
        let saved = self.write();
        (self.saving, self.saved) = (began.elapsed(), Instant::now());
        saved
    }

    fn write(&mut self) -> Result<(), Error> {
        // On all cores: a disk takes many files at once in the time it takes to be sure of one.
        let bounds = self.bounds.as_deref();
        self.members.par_iter_mut().try_for_each(|member| {
            bounds.map_or(Ok(()), |bounds| optima::restore(&member.folder, bounds))?;
            member.flush(true)
        })?;
        self.flushed = Instant::now();
        let (iteration, mut lost) = (self.cohort.done(), None);
        let spec = &self.cohort.recipes()[0].spec;
        if iteration == spec.iterations && !spec.checkpoint.keep {
            // The records of the last iteration were made with the last weights: they are finite.
            return Ok(());
        }
        for (member, files) in self.members.iter().enumerate() {
            match self.cohort.save(member, &files.folder.file(CHECKPOINT)) {
                Err(Error::Engine(niwaki_nn::Error::NotFinite { tensor, .. })) => {
                    lost = lost.or(Some(Error::NotFinite { iteration, member, tensor }));
                }
                saved => saved?,
            }
        }
        self.kept = if lost.is_some() { self.kept } else { iteration };
        lost.map_or(Ok(()), Err)
    }

    /// What is said of a member whose training cannot go on, which its folder notes: it may go on from its last
    /// checkpoint with other learning rates.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn lost(&self, member: usize, iteration: usize, reason: String) -> Result<Error, Error> {
        let folder = &self.members.get(member).ok_or(Error::Mixed)?.folder;
        let after = folder.note_divergence(iteration)?;
        Ok(Error::Lost {
            folder: folder.path().to_owned(),
            seed: folder.identity().seed,
            iteration,
            after,
            reason,
        })
    }

    /// Says that all runs are done, after they were saved.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn finish(mut self) -> Result<Vec<Summary>, Error> {
        let (device, bounds) = (&self.device, self.bounds.as_deref());
        self.members.par_iter_mut().map(|member| member.finish(device, false, bounds)).collect()
    }

    /// Says that one member's run is done because it diverged, and gives the folders of the others back.
    ///
    /// # Errors
    /// If the disk refuses.
    pub fn diverged(mut self, member: usize) -> Result<Vec<Folder>, Error> {
        let mut one = self.members.remove(member);
        one.flush(true)?;
        one.finish(&self.device, true, self.bounds.as_deref())?;
        Ok(self.members.into_iter().map(|member| member.folder).collect())
    }
}

/// Keeps the policies as they are, for the members that are to keep them.
fn keep_policies(cohort: &mut dyn Cohort, members: &mut [Member]) -> Result<(), Error> {
    if !members.iter().any(Member::wants_policies) {
        return Ok(());
    }
    let tables = cohort.tables()?.ok_or(Error::Mixed)?;
    let done = cohort.done();
    members.iter_mut().zip(tables).try_for_each(|(member, table)| member.push_policy(done, table))
}

/// Whether runs are to be saved that were not for so long, where saving takes so long.
fn due(unsaved: Duration, saving: Duration) -> bool {
    unsaved >= SAVE.max(WORK_PER_SAVE * saving)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn saving_takes_a_small_part_of_the_time() {
        let seconds = Duration::from_secs;
        // A table is saved every minute, sixteen pretrained models that take a minute every twenty.
        let found = [(59, 0), (60, 0), (60, 3), (61, 4), (1199, 60), (1200, 60)]
            .map(|(unsaved, saving)| due(seconds(unsaved), seconds(saving)));
        assert_eq!(found, [false, true, true, false, false, true]);
    }
}
