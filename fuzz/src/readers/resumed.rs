//! Every file of a run that is not finished, changed before the same command goes on: it is refused and left alone, or the
//! run ends with the bytes of one that nobody disturbed.

use super::runs::SEQUENCE;
use super::{MEGABYTE, Read, Reader, folder};
use niwaki_train::run::{CHECKPOINT, CURVE, DUMP, Ending, SUMMARY, TURNS, Told, train};
use niwaki_train::{Device, Error, Recipe, Spec};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;

/// Weights that a decay multiplies by −10⁹ with every step overflow soon.
const WILD: &str = "iterations = 8\n[task]\nhorizon = 3\nvocab = 3\n[rollout]\nlanes = 8\n[policy]\nkind = \"bag\"\n\
    width = 4\n[update]\nreuse = 1\n[checkpoint]\nevery = 1\n[optimiser]\nkind = \"adam\"\nrate = 1.0\ndecay = 1e9\n";

pub(super) fn readers() -> Vec<Reader> {
    let of_run = |name, begun: fn() -> Begun, file: &'static str, share| {
        let begun = begun();
        let seeds = vec![begun.kept[file].clone()];
        Reader { name, seeds, read: resumed(begun, file), floor: 8 * MEGABYTE, factor: 200, share }
    };
    vec![
        of_run("halfway.checkpoint", Begun::halfway, CHECKPOINT, 1),
        of_run("halfway.curve", Begun::halfway, CURVE, 1),
        of_run("halfway.dump", Begun::halfway, DUMP, 1),
        of_run("diverged.turns", Begun::diverged, TURNS, 1),
    ]
}

type Files = BTreeMap<String, Vec<u8>>;

/// A run that has not come to its end, and what it is when it has.
struct Begun {
    home: TempDir,
    recipe: Recipe,
    kept: Files,
    whole: Files,
}

impl Begun {
    /// A run that was stopped after its first iteration.
    fn halfway() -> Self {
        let recipe = recipe(SEQUENCE);
        Self::new(recipe.clone(), |folder| {
            let stop = AtomicBool::new(false);
            let tell = |_: Told<'_>| stop.store(true, Ordering::Relaxed);
            let ended = train(&recipe, &Device::Cpu, folder, &stop, &|_, _| {}, tell);
            assert!(matches!(ended, Ok(Ending::Stopped { .. })), "{ended:?}");
        })
    }

    /// A run that diverged, and goes on with another rate.
    fn diverged() -> Self {
        let tame = WILD.replace("rate = 1.0\ndecay = 1e9", "rate = 0.01\ndecay = 0.0");
        Self::new(recipe(&tame), |folder| {
            let ended = go_on(&recipe(WILD), folder);
            assert!(matches!(ended, Err(Error::Lost { .. })), "{ended:?}");
        })
    }

    fn new(recipe: Recipe, begin: impl FnOnce(&Path)) -> Self {
        let home = folder().expect("a folder for temporary files");
        begin(home.path());
        let kept = files(home.path());
        let ended = go_on(&recipe, home.path());
        assert!(matches!(ended, Ok(Ending::Done(_))), "{ended:?}");
        let whole = results(home.path());
        Self { home, recipe, kept, whole }
    }

    /// The folder as it was when the run was stopped, but for one file.
    fn put(&self, file: &str, bytes: &[u8]) {
        for name in files(self.home.path()).keys() {
            fs::remove_file(self.home.path().join(name)).expect("a folder of our own");
        }
        for (name, kept) in &self.kept {
            let content = if name == file { bytes } else { kept };
            fs::write(self.home.path().join(name), content).expect("a folder of our own");
        }
    }
}

fn recipe(spec: &str) -> Recipe {
    Spec::read("small", spec, &[]).and_then(|spec| spec.check()).expect("a sound spec")
}

fn go_on(recipe: &Recipe, folder: &Path) -> Result<Ending, Error> {
    train(recipe, &Device::Cpu, folder, &AtomicBool::new(false), &|_, _| {}, |_| {})
}

fn files(folder: &Path) -> Files {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let read =
        |entry: fs::DirEntry| Some((entry.file_name().into_string().ok()?, fs::read(entry.path()).ok()?));
    entries.filter_map(read).collect()
}

/// What must be equal; the events tell the time.
fn results(folder: &Path) -> Files {
    let mut files = files(folder);
    files.retain(|name, _| [CHECKPOINT, CURVE, DUMP, SUMMARY, TURNS].contains(&name.as_str()));
    files
}

fn resumed(begun: Begun, file: &'static str) -> Read {
    Box::new(move |bytes, _| {
        begun.put(file, bytes);
        match go_on(&begun.recipe, begun.home.path()) {
            Ok(_) => assert!(
                results(begun.home.path()) == begun.whole,
                "{file} was changed and another run came of it"
            ),
            Err(_) => {
                let now = fs::read(begun.home.path().join(file)).unwrap_or_default();
                assert!(now == bytes, "{file} was refused and changed");
                return false;
            }
        }
        true
    })
}
