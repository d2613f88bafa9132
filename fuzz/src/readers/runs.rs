//! Every file of a finished run's folder, changed among the others as they were written.
//!
//! Here returning is not enough: a folder whose files no longer vouch for each other must be refused, or read as the run
//! that it was.

use super::{MEGABYTE, Read, Reader, folder, sealed, seeds, text};
use niwaki_files::Digest;
use niwaki_train::run::{
    CHECKPOINT, CURVE, DUMP, EVENTS, Ending, Finished, Folder, Identity, OPTIMA, Occupied, SPEC, SUMMARY,
    Summary, known_optima, read_curve, timeless_events, train, verify,
};
use niwaki_train::{Device, Recipe, Spec, Trained};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use tempfile::TempDir;

pub(super) const SEQUENCE: &str =
    "iterations = 3\n[task]\nhorizon = 3\nvocab = 3\n[rollout]\nlanes = 8\n[dump]\nevery = 1\n";
const SHOP: &str = "iterations = 2\n[task]\nkind = \"flow-shop\"\nmachines = 2\njobs = 3\ntraining = 2\nvalidation = 1\n\
    [policy]\nkind = \"pointer\"\nwidth = 4\nheads = 1\nblocks = 1\nhidden = 4\n\
    [rollout]\nlanes = 4\ngroup = 2\n[advantage]\nkind = \"group\"\n[update]\nreuse = 1\n";

pub(super) fn readers() -> Vec<Reader> {
    let of_run = |name, spec, file: &'static str, share, read: fn(Played, &'static str) -> Read| {
        let played = Played::new(spec).expect("a small run trains");
        let seed = fs::read(played.folder().join(file)).expect("a run leaves its files");
        let seeds = [vec![seed], seeds(name, &[], &["jsonl", "json", "toml", "safetensors"])].concat();
        Reader { name, seeds, read: read(played, file), floor: 4 * MEGABYTE, factor: 200, share }
    };
    vec![
        of_run("run.curve", SEQUENCE, CURVE, 4, vouched),
        of_run("run.dump", SEQUENCE, DUMP, 4, vouched),
        of_run("run.summary", SEQUENCE, SUMMARY, 4, vouched),
        of_run("run.checkpoint", SEQUENCE, CHECKPOINT, 4, vouched),
        of_run("run.optima", SHOP, OPTIMA, 2, vouched),
        of_run("run.spec", SEQUENCE, SPEC, 1, owned),
        of_run("run.events", SEQUENCE, EVENTS, 1, mended),
        of_run("policy.checkpoint", SHOP, CHECKPOINT, 2, policy),
        of_run("policy.spec", SHOP, SPEC, 2, policy),
        of_run("forged.checkpoint", SHOP, CHECKPOINT, 2, forged_policy),
        of_run("forged.curve", SEQUENCE, CURVE, 40, forged_curve),
        of_run("forged.summary", SEQUENCE, SUMMARY, 40, forged_document),
        of_run("forged.optima", SHOP, OPTIMA, 40, forged_document),
    ]
}

/// A finished run in a folder of its own.
struct Played {
    home: TempDir,
    recipe: Recipe,
    finished: Finished,
}

impl Played {
    fn new(spec: &str) -> Result<Self, Box<dyn std::error::Error>> {
        let (home, recipe) = (folder()?, Spec::read("small", spec, &[])?.check()?);
        run(&recipe, home.path())?;
        let finished = verify(home.path(), &recipe)?.ok_or("the run is not finished")?;
        Ok(Self { home, recipe, finished })
    }

    fn folder(&self) -> &Path {
        self.home.path()
    }

    fn put(&self, file: &str, bytes: &[u8]) -> PathBuf {
        let path = self.folder().join(file);
        fs::write(&path, bytes).expect("a folder for temporary files takes a small file");
        path
    }
}

fn run(recipe: &Recipe, folder: &Path) -> Result<Ending, niwaki_train::Error> {
    train(recipe, &Device::Cpu, folder, &AtomicBool::new(false), &|_, _| {}, |_| {})
}

/// A file that the others vouch for: it is as it was written, or it is refused.
fn vouched(played: Played, file: &'static str) -> Read {
    let written = fs::read(played.folder().join(file)).unwrap_or_default();
    Box::new(move |bytes, _| {
        played.put(file, bytes);
        match verify(played.folder(), &played.recipe) {
            Ok(Some(finished)) => {
                assert!(bytes == written, "{file} was changed and nothing noticed it");
                assert!(finished == played.finished, "another run came of the same files");
                true
            }
            Ok(None) | Err(_) => false,
        }
    })
}

/// The spec says whose a folder is: it is that run's, or it is refused and left alone.
fn owned(played: Played, file: &'static str) -> Read {
    Box::new(move |bytes, _| {
        let path = played.put(file, bytes);
        let taken = Folder::open(played.folder(), &played.recipe.spec, Occupied::Refuse);
        if taken.is_err() {
            assert!(fs::read(path).is_ok_and(|now| now == bytes), "a spec was refused and changed");
        }
        taken.is_ok()
    })
}

/// Events follow from the curve: whatever stands there is mended, and the run stays finished.
fn mended(played: Played, file: &'static str) -> Read {
    let written = fs::read(played.folder().join(file)).unwrap_or_default();
    let timeless = timeless_events(&written);
    Box::new(move |bytes, _| {
        let path = played.put(file, bytes);
        let ended = run(&played.recipe, played.folder());
        assert!(matches!(ended, Ok(Ending::Done(_))), "{ended:?}");
        assert!(timeless_events(&fs::read(path).unwrap_or_default()) == timeless, "events were not mended");
        true
    })
}

/// What `solve --policy` takes.
fn policy(played: Played, file: &'static str) -> Read {
    Box::new(move |bytes, _| {
        played.put(file, bytes);
        Trained::open(played.folder()).is_ok()
    })
}

/// A checkpoint that vouches for numbers which no run wrote.
fn forged_policy(played: Played, file: &'static str) -> Read {
    Box::new(move |bytes, _| {
        played.put(file, &sealed::checkpoint(bytes));
        Trained::open(played.folder()).is_ok()
    })
}

/// Lines that vouch for a curve which no run made.
fn forged_curve(played: Played, file: &'static str) -> Read {
    let identity = Identity::of(&played.recipe.spec).expect("a spec has a name");
    let chain = seal(&identity, file);
    Box::new(move |bytes, _| {
        let Some(text) = text(bytes) else { return false };
        played.put(file, sealed::lines(text, chain).as_bytes());
        read_curve(played.folder(), &identity)
            .is_ok_and(|curve| Summary::of(&played.recipe.spec, &curve, false).is_ok())
    })
}

/// A document that vouches for a summary or for optima which no run had.
fn forged_document(played: Played, file: &'static str) -> Read {
    let identity = Identity::of(&played.recipe.spec).expect("a spec has a name");
    let chain = seal(&identity, file);
    Box::new(move |bytes, _| {
        let Some(text) = text(bytes) else { return false };
        played.put(file, sealed::document(text, chain).as_bytes());
        let optima = known_optima(played.folder(), &identity);
        verify(played.folder(), &played.recipe).is_ok_and(|found| found.is_some()) && optima.is_ok()
    })
}

/// What the checksums of a run's file begin with.
fn seal(identity: &Identity, file: &str) -> Digest {
    Digest::of(format!("{file} {} {}\n", identity.spec, identity.seed))
}
