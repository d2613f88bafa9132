//! A finished run, read back: its files vouch for each other, or the one that does not is named.

use super::dump::{self, PolicyTable, Trajectory};
use super::folder::{CHECKPOINT, CURVE, DUMP, Identity, POLICIES, SPEC, SUMMARY, damaged, disk, unsound};
use super::lines::Chain;
use super::summary::Summary;
use super::{OPTIMA, check, lines, optima};
use crate::spec::Spec;
use crate::{Error, Recipe, Record};
use niwaki_files::{read_own, read_text};
use std::io;
use std::path::Path;

/// A finished run.
#[derive(Clone, Debug, PartialEq)]
pub struct Finished {
    /// What it came to.
    pub summary: Summary,
    /// One record per iteration done.
    pub curve: Vec<Record>,
}

impl Finished {
    /// Reads the finished run of a folder; nothing where that run is not finished there.
    ///
    /// # Errors
    /// Where its summary or its curve is not as it was written, or the disk refuses.
    pub fn read(folder: &Path, identity: &Identity) -> Result<Option<Self>, Error> {
        let Some(summary) = summary(folder, identity)? else { return Ok(None) };
        let path = folder.join(CURVE);
        let (curve, last) =
            lines::read_whole(&path, summary.done, Chain::new(identity, CURVE, &|done| done))?;
        lines::check_numbers(&path, &curve)?;
        if last != summary.curve {
            return Err(damaged(&path, format!("it is not the curve that {SUMMARY} was made of")));
        }
        Ok(Some(Self { summary, curve }))
    }
}

/// Whether a folder's summary says that this run is finished there.
///
/// # Errors
/// Where the summary is not as it was written, or the disk refuses.
pub fn is_finished(folder: &Path, identity: &Identity) -> Result<bool, Error> {
    Ok(summary(folder, identity)?.is_some())
}

/// Reads a finished run and holds every file of it against the others; nothing where that run is not finished there. The
/// checkpoint may be missing: it takes the most room, and the results do not need it.
///
/// # Errors
/// Where a file is not as it was written, or the disk refuses.
pub fn verify(folder: &Path, recipe: &Recipe) -> Result<Option<Finished>, Error> {
    let identity = Identity::within(folder, &recipe.spec)?;
    let Some(finished) = Finished::read(folder, &identity)? else { return Ok(None) };
    let done = finished.summary.done;
    let known = optima::known(folder, &identity)?;
    if known.as_deref().map(optima::unproven) != finished.summary.unproven {
        let what =
            if known.is_some() { "they are not the optima" } else { "it is missing, and held the optima" };
        return Err(damaged(&folder.join(OPTIMA), format!("{what} that {SUMMARY} was made of")));
    }
    if recipe.spec.dump.every > 0 {
        let (path, count) = (folder.join(DUMP), dump::kept_until(recipe, done));
        let (_, last) = lines::read_whole::<Trajectory>(
            &path,
            count,
            Chain::new(&identity, DUMP, &|done| dump::kept_until(recipe, done)),
        )?;
        if finished.summary.dump.as_ref() != Some(&last) {
            return Err(damaged(&path, format!("it is not the dump that {SUMMARY} was made of")));
        }
    }
    if recipe.spec.dump.policies {
        let (path, count) = (folder.join(POLICIES), dump::policies_until(done));
        let chain = Chain::new(&identity, POLICIES, &dump::policies_until);
        let (kept, last) = lines::read_whole::<PolicyTable>(&path, count, chain)?;
        dump::check_policies(&path, &kept)?;
        if finished.summary.policies.as_ref() != Some(&last) {
            return Err(damaged(&path, format!("they are not the policies that {SUMMARY} was made of")));
        }
    }
    let path = folder.join(CHECKPOINT);
    if path.exists() {
        let state = niwaki_nn::checkpoint_state(&path).map_err(|error| unsound(&path, error))?;
        let whose = (state["spec"].as_str(), state["seed"].as_u64(), state["iteration"].as_u64());
        if whose != (Some(&identity.spec), Some(identity.seed), Some(done as u64)) {
            return Err(damaged(&path, format!("it was not saved by this run at iteration {done}")));
        }
    }
    Ok(Some(finished))
}

/// The summary of a folder, if it is of this run.
fn summary(folder: &Path, identity: &Identity) -> Result<Option<Summary>, Error> {
    let path = folder.join(SUMMARY);
    let text = match read_own(&path) {
        Ok(bytes) => String::from_utf8(bytes).unwrap_or_default(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(disk(&path, source)),
    };
    let refuse = |reason: &str| damaged(&path, reason.to_owned());
    let claimed: Summary =
        check::unchecked(&text).ok_or_else(|| refuse("it is not a summary of this version"))?;
    let summary: Summary = check::read_document(&text, claimed.identity().chain(SUMMARY))
        .ok_or_else(|| refuse("it is not as it was written"))?;
    if summary.identity() == *identity {
        return Ok(Some(summary));
    }
    // A run that takes another's place removes its summary before it writes its spec.
    let spec = read_text(&folder.join(SPEC)).ok().and_then(|text| Spec::read(SPEC, &text, &[]).ok());
    match spec.map(|spec| Identity::of(&spec)).transpose()? {
        Some(theirs) if theirs == *identity => {
            Err(refuse("it was written by another run than the spec beside it"))
        }
        _ => Ok(None),
    }
}
