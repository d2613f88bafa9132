//! Units of work: the same bytes as one process, whichever workers have them, in whichever order and how often.

use super::{SMALL, files, run, small};
use niwaki_store::{FolderStore, Store};
use niwaki_study::machines::{Crew, Split, Splitting, Stage, State, Status, Terms, Worker, collect, leases};
use niwaki_study::{Asked, Contents, reproduce};
use niwaki_train::Device;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, SystemTime};

/// A study with a pilot and a strength by the rule.
const STAGED: &str = r#"
label = "tab:staged"
title = "A study in stages"
question = "Do stages wait for each other?"
seeds = 2
endpoints = ["final"]

[base]
iterations = 4
[base.task]
horizon = 3
[base.rollout]
lanes = 16

[[arm]]
name = "ppo"
[[arm]]
name = "by rule"
set = { "update.correction" = "tempered:rule" }

[[cell]]
name = "slow"
[[cell]]
name = "long"
set = { "task.horizon" = 6 }

[pilot]
arm = "ppo"
key = "optimiser.rate"
values = [0.5, 1.0]
endpoint = "final"
aim = 0.3
within = [0.0, 1.0]
seeds = 2
first_seed = 100
"#;

fn splitting(runs: Option<usize>) -> Splitting {
    Splitting {
        seeds: None,
        first_seed: None,
        device: Device::Cpu.name(),
        runs,
        speeds: BTreeMap::new(),
        model: None,
    }
}

fn split(text: &str, runs: Option<usize>) -> Split {
    Split::new(vec![text.to_owned()], &splitting(runs)).unwrap()
}

fn store(folder: &Path) -> Arc<dyn Store> {
    Arc::new(FolderStore::open(folder).unwrap())
}

fn terms(holder: &str) -> Terms {
    Terms {
        holder: holder.to_owned(),
        patience: Duration::from_secs(1),
        attempts: 2,
        scratch: PathBuf::from("nowhere"),
    }
}

/// The files of the studies' runs, without the records of plans.
fn results(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = files(folder);
    found.retain(|(name, _)| !name.starts_with(".plans"));
    found
}

#[test]
fn a_plan_is_stable_and_names_every_run_once() {
    let plan = split(SMALL, Some(3));
    assert_eq!(plan.to_json().unwrap(), split(SMALL, Some(3)).to_json().unwrap());
    assert_eq!(Split::read("plan.json", &plan.to_json().unwrap()).unwrap(), plan);
    // (3 + 3 + 2 seeds) × 2 cells = 16 runs in six units of at most three.
    assert_eq!(plan.units.len(), 6);
    let homes: BTreeSet<&String> = plan.units.iter().flat_map(|unit| &unit.runs).collect();
    assert_eq!(homes.len(), 16);
    assert_eq!(plan.units.iter().map(|unit| unit.run_iterations).sum::<u64>(), 96);
    assert!(plan.units.iter().all(|unit| unit.memory > 0 && unit.device == "cpu"));
    // A unit that is alike in another plan has the same name; another seed is another unit.
    let alone = split(SMALL, None);
    let more = Split::new(vec![SMALL.to_owned()], &Splitting { seeds: Some(4), ..splitting(None) }).unwrap();
    let names = |plan: &Split| plan.units.iter().map(|unit| unit.id.clone()).collect::<BTreeSet<_>>();
    assert_eq!((names(&alone).len(), names(&more).len()), (16, 24));
    assert!(names(&alone).is_subset(&names(&more)));
    // The same study twice is made once.
    let twice = Split::new(vec![SMALL.to_owned(); 2], &splitting(None)).unwrap();
    assert_eq!(names(&twice), names(&alone));
}

#[test]
fn plans_that_cannot_be_used_are_named() {
    let plan = split(SMALL, None);
    let text = plan.to_json().unwrap();
    let refusal = |text: &str| Split::read("plan.json", text).unwrap_err().to_string();
    assert!(refusal("{").starts_with("plan.json: it is not a plan of work"));
    assert!(refusal("{}").contains("it has no 'niwaki_plan'"));
    let other = text.replace("\"niwaki_plan\": 1", "\"niwaki_plan\": 9");
    assert_eq!(
        refusal(&other),
        "plan.json: it is a plan of version 9, and this program knows version 1; make it again"
    );
    assert!(
        refusal(&text.replace("\"run_iterations\": 6", "\"run_iterations\": 7"))
            .contains("not as it was written")
    );
    assert_eq!(plan.unit(16).unwrap_err().to_string(), "unit 16: the plan has the units 0 to 15");
    // A program that makes other runs of the text than the one that made the plan.
    let mut foreign = plan.clone();
    foreign.units[0].id = "0".repeat(16);
    let folder = tempfile::tempdir().unwrap();
    let worker = Worker::new(&foreign, store(folder.path()), folder.path());
    assert!(worker.check(0).unwrap_err().to_string().contains("use the same program, and the same files"));
    let diagnostics = niwaki_study::find("tab:diag-summary").unwrap().text.to_owned();
    let refused = Split::new(vec![diagnostics], &splitting(None)).unwrap_err().to_string();
    assert!(refused.contains("there is nothing to split"), "{refused}");
}

#[test]
fn units_in_any_order_and_twice_leave_the_bytes_of_one_process() {
    let (whole, parts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    run(&small(""), whole.path());
    let plan = split(SMALL, Some(3));
    let worker = Worker::new(&plan, store(parts.path()), parts.path());
    for number in (0..plan.units.len()).rev() {
        let worked = worker.work(number, 1, &|_| {}).unwrap();
        assert_eq!((worked.trained, worked.finished), (plan.units[number].runs.len(), 0));
        let again = worker.work(number, 2, &|_| {}).unwrap();
        assert_eq!((again.trained, again.finished), (0, plan.units[number].runs.len()));
    }
    assert!(results(parts.path()) == results(whole.path()));
    // Attempts leave nothing behind.
    let attempts = parts.path().join(".plans").join(&plan.id).join("work");
    assert_eq!(std::fs::read_dir(attempts).unwrap().count(), 0);
}

#[test]
fn attempts_side_by_side_leave_the_bytes_of_one() {
    let (whole, parts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    run(&small(""), whole.path());
    let plan = split(SMALL, Some(16));
    assert_eq!(plan.units.len(), 1);
    // Four attempts at the same unit at the same time, each in private: the first to end puts its runs in place.
    std::thread::scope(|scope| {
        for attempt in 1..=4 {
            let (plan, parts) = (&plan, parts.path());
            scope.spawn(move || Worker::new(plan, store(parts), parts).work(0, attempt, &|_| {}).unwrap());
        }
    });
    assert!(results(parts.path()) == results(whole.path()));
}

#[test]
fn what_one_process_left_unfinished_is_taken_over_or_gives_place() {
    let (whole, parts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let study = small("");
    run(&study, whole.path());
    run(&study, parts.path());
    // A run without its summary is one that was killed; one that is torn cannot be gone on with.
    let [killed, torn] = [&study.runs[0].home, &study.runs[1].home].map(|home| parts.path().join(home));
    std::fs::remove_file(killed.join("summary.json")).unwrap();
    std::fs::remove_file(torn.join("summary.json")).unwrap();
    std::fs::write(torn.join("curve.jsonl"), "{").unwrap();
    let plan = split(SMALL, Some(16));
    let worked = Worker::new(&plan, store(parts.path()), parts.path()).work(0, 1, &|_| {}).unwrap();
    assert_eq!((worked.trained, worked.finished), (2, 14));
    assert!(results(parts.path()) == results(whole.path()));
}

#[test]
fn stages_wait_for_each_other_and_end_like_one_process() {
    let (whole, parts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let report = |out: &Path, train: bool| {
        let workplace =
            train.then_some(niwaki_study::training::Workplace { device: Device::Cpu, members: None });
        let made = niwaki_page::Made::new("test");
        let asked = Asked { seeds: None, first_seed: None, out, workplace, made };
        reproduce(Contents::read("staged", STAGED).unwrap(), &asked, &|_| {}).unwrap()
    };
    let wanted = report(whole.path(), true);
    let plan = split(STAGED, None);
    let stages: Vec<Stage> = plan.units.iter().map(|unit| unit.stage).collect();
    // Two values × two cells × two seeds of the pilot; the probes; two arms × two cells × two seeds.
    assert_eq!(stages.iter().filter(|stage| **stage == Stage::Pilot).count(), 8);
    assert_eq!((stages[8], plan.units[8].after), (Stage::Strengths, Some([0, 8])));
    assert!(plan.units[9..].iter().all(|unit| unit.stage == Stage::Arms && unit.after == Some([8, 9])));
    let worker = Worker::new(&plan, store(parts.path()), parts.path());
    let waits = worker.work(16, 1, &|_| {}).unwrap_err().to_string();
    assert!(waits.starts_with("unit 16 (") && waits.contains(" waits for units 8 to 8: run "), "{waits}");
    let crew = Crew::new(&plan, store(parts.path()), terms("alone"));
    let standing = crew.all(&|_| {}).unwrap();
    assert!(standing.states.iter().all(|state| matches!(state, State::Done(1))));
    let came = report(parts.path(), false);
    let pages = |report: &niwaki_study::Report| report.files[0].clone();
    assert_eq!(pages(&came), pages(&wanted));
    assert!(results(parts.path()) == results(whole.path()));
}

#[test]
fn a_unit_that_always_fails_is_given_up_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let plan = split(SMALL, None);
    // A file stands where a run's folder should be.
    let home = folder.path().join(&plan.units[3].runs[0]);
    std::fs::create_dir_all(home.parent().unwrap()).unwrap();
    std::fs::write(&home, "in the way").unwrap();
    let crew = Crew::new(&plan, store(folder.path()), terms("one"));
    let standing = crew.all(&|_| {}).unwrap();
    assert_eq!(standing.given_up().collect::<Vec<_>>(), [(3, 2)]);
    assert_eq!(standing.count(|state| matches!(state, State::Done(_))), 15);
    let status = Status::of(&plan, &leases(&plan, store(folder.path()), &terms("two")), 2).unwrap();
    assert_eq!((status.done, status.failed.len(), status.run_iterations_done), (15, 1, 90));
    let failed = &status.failed[0];
    assert!(failed.given_up && failed.failures == 2 && failed.words.starts_with("unit 3 ("), "{failed:?}");
    assert!(failed.reason.contains(&home.display().to_string()), "{}", failed.reason);
    // What was in the way is still there; without it the unit can be worked on.
    assert_eq!(std::fs::read_to_string(&home).unwrap(), "in the way");
    std::fs::remove_file(&home).unwrap();
    assert_eq!(crew.one(3, &|_| {}).unwrap().trained, 1);
    assert!(crew.all(&|_| {}).unwrap().given_up().next().is_none());
}

#[test]
fn a_run_that_comes_out_otherwise_is_refused_and_both_are_kept() {
    let (whole, parts) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let study = small("");
    run(&study, whole.path());
    let plan = split(SMALL, None);
    let home = &plan.units[0].runs[0];
    let stands = parts.path().join(home);
    // Before this attempt ends, another process puts the run in place, with a curve that is longer by a byte.
    let other = |_| {
        if !stands.exists() {
            std::fs::create_dir_all(&stands).unwrap();
            for entry in std::fs::read_dir(whole.path().join(home)).unwrap().map(Result::unwrap) {
                std::fs::copy(entry.path(), stands.join(entry.file_name())).unwrap();
            }
            let curve = std::fs::read_to_string(stands.join("curve.jsonl")).unwrap();
            std::fs::write(stands.join("curve.jsonl"), curve + "\n").unwrap();
        }
    };
    let worker = Worker::new(&plan, store(parts.path()), parts.path());
    let refused = worker.work(0, 1, &other).unwrap_err();
    let niwaki_study::Error::Differs { file, ref left, .. } = refused else { panic!("{refused}") };
    assert_eq!(file, "curve.jsonl");
    let said = refused.to_string();
    assert!(said.starts_with(&format!(
        "run {home}: another process finished it with another curve.jsonl; that one stands"
    )));
    // What this attempt trained is left where it says, and is what one process makes of it.
    let [ours, wanted] =
        [left.as_path(), &whole.path().join(home)].map(|run| std::fs::read(run.join("curve.jsonl")).unwrap());
    assert!(ours == wanted && std::fs::read(stands.join("curve.jsonl")).unwrap() != wanted);
    // The same where the store is not a folder: the archive of another run stands in its place.
    let scratch = tempfile::tempdir().unwrap();
    let memory = Arc::new(Memory::default());
    let worker = Worker::new(&plan, memory.clone(), scratch.path());
    worker.work(1, 1, &|_| {}).unwrap();
    let foreign = memory.records.lock().unwrap().values().next().unwrap().clone();
    let archive =
        format!("{home}/{}.zip", study.runs.iter().find(|run| Path::new(home) == run.home).unwrap().hash);
    let other = |_| drop(memory.records.lock().unwrap().insert(archive.clone(), foreign.clone()));
    let refused = worker.work(0, 1, &other).unwrap_err();
    let niwaki_study::Error::Differs { file, ref left, .. } = refused else { panic!("{refused}") };
    assert_eq!(file, "summary.json");
    assert!(std::fs::read(left.join("curve.jsonl")).unwrap() == wanted);
    assert!(memory.records.lock().unwrap()[&archive].0 == foreign.0);
}

#[test]
fn the_model_of_a_study_travels_in_its_plan() {
    let text = niwaki_study::find("tab:v2-cell3-fatal-drift").unwrap().text.to_owned();
    let refused = Split::new(vec![text.clone()], &splitting(None)).unwrap_err().to_string();
    assert_eq!(refused, "study tab:v2-cell3-fatal-drift: it fine-tunes a pretrained model");
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../niwaki-lm/tests/fixtures/tiny-qwen2");
    let moved = tempfile::tempdir().unwrap();
    for entry in std::fs::read_dir(&fixture).unwrap().map(Result::unwrap) {
        std::fs::copy(entry.path(), moved.path().join(entry.file_name())).unwrap();
    }
    // The study's own record wants tokens that the tiny model lacks.
    let record = Path::new(env!("CARGO_MANIFEST_DIR")).join("../niwaki-lm/tests/fixtures/record.toml");
    let mut study: toml::Table = toml::from_str(&text).unwrap();
    let task = study["base"]["task"].as_table_mut().unwrap();
    task.insert("file".to_owned(), record.display().to_string().into());
    let text = toml::to_string(&study).unwrap();
    let made = |model: &Path| {
        let asked = Splitting { model: Some(model.to_owned()), ..splitting(None) };
        Split::new(vec![text.clone()], &asked).unwrap()
    };
    let (here, there) = (made(&fixture), made(moved.path()));
    // Units are named by the model's content; where it lies is the plan's.
    let names = |plan: &Split| plan.units.iter().map(|unit| unit.id.clone()).collect::<Vec<_>>();
    assert!(names(&here) == names(&there) && here.id != there.id);
    let read = Split::read("plan.json", &there.to_json().unwrap()).unwrap();
    let out = tempfile::tempdir().unwrap();
    Worker::new(&read, store(out.path()), out.path()).check(0).unwrap();
    // A model that was changed since makes other runs.
    let weights = moved.path().join("model.safetensors");
    let mut bytes = std::fs::read(&weights).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(&weights, bytes).unwrap();
    let refused = Worker::new(&read, store(out.path()), out.path()).check(0).unwrap_err().to_string();
    assert!(refused.contains("this program would make different runs from its study"), "{refused}");
}

#[test]
fn a_lease_that_ran_out_is_taken_over() {
    let folder = tempfile::tempdir().unwrap();
    let plan = split(SMALL, Some(8));
    let leases = leases(&plan, store(folder.path()), &terms("gone"));
    // A worker began and gave no further sign.
    drop(leases.begin(0, 1).unwrap().unwrap());
    let crew = Crew::new(&plan, store(folder.path()), terms("next"));
    let standing = crew.all(&|_| {}).unwrap();
    assert_eq!(standing.states, [State::Done(2), State::Done(1)]);
    assert_eq!(standing.survey.failures(0), 1);
}

#[test]
fn more_machines_take_less_time_until_the_longest_chain_is_left() {
    let mut plan = split(STAGED, None);
    // Eight pilots of 2 s, then the probes, then eight arms of 4 s.
    for unit in &mut plan.units {
        unit.seconds = Some(match unit.stage {
            Stage::Pilot => 2.0,
            Stage::Strengths => 1.0,
            Stage::Arms => 4.0,
        });
    }
    let scaling = plan.simulate(&[1, 4, 64], 0.0).unwrap();
    // One: 16 + 1 + 32. Four: 2 rounds of 2, 1, 2 rounds of 4. Many: 2 + 1 + 4.
    let seconds: Vec<f64> = scaling.simulated.iter().map(|simulated| simulated.seconds).collect();
    assert_eq!((scaling.work, scaling.chain, seconds), (49.0, 7.0, vec![49.0, 13.0, 7.0]));
    // 49 of 4 × 13 seconds are work.
    assert!((scaling.simulated[1].idle - 3.0 / 52.0).abs() < 1e-12 && scaling.simulated[0].idle == 0.0);
    plan.units[0].seconds = None;
    assert!(plan.simulate(&[1], 0.0).unwrap_err().to_string().contains("how long it takes is not known"));
}

/// What a store holds: bytes, and when they were written.
type Records = BTreeMap<String, (Vec<u8>, SystemTime)>;

/// A store that is not a folder, and that refuses every n-th time.
#[derive(Default)]
struct Memory {
    records: Mutex<Records>,
    calls: AtomicUsize,
    refuses: usize,
}

impl Memory {
    fn call(&self) -> Result<MutexGuard<'_, Records>, niwaki_store::Error> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        if self.refuses > 0 && call.is_multiple_of(self.refuses) {
            let source = std::io::Error::other("the line is cut");
            return Err(niwaki_store::Error::Disk { path: "memory".into(), source });
        }
        Ok(self.records.lock().unwrap())
    }
}

impl Store for Memory {
    fn name(&self) -> String {
        "memory".to_owned()
    }

    fn folder(&self) -> Option<&Path> {
        None
    }

    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, niwaki_store::Error> {
        Ok(self.call()?.get(name).map(|(bytes, _)| bytes.clone()))
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), niwaki_store::Error> {
        self.call()?.insert(name.to_owned(), (bytes.to_vec(), SystemTime::now()));
        Ok(())
    }

    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, niwaki_store::Error> {
        let mut records = self.call()?;
        let free = !records.contains_key(name);
        if free {
            records.insert(name.to_owned(), (bytes.to_vec(), SystemTime::now()));
        }
        Ok(free)
    }

    fn list(&self, under: &str) -> Result<Vec<String>, niwaki_store::Error> {
        let under = format!("{under}/");
        Ok(self.call()?.keys().filter_map(|name| name.strip_prefix(&under).map(ToOwned::to_owned)).collect())
    }

    fn written(&self, name: &str) -> Result<Option<SystemTime>, niwaki_store::Error> {
        Ok(self.call()?.get(name).map(|(_, written)| *written))
    }
}

#[test]
fn a_store_that_is_no_folder_and_fails_now_and_then_loses_nothing() {
    let folders = [(); 3].map(|()| tempfile::tempdir().unwrap());
    let [whole, scratch, collected] = folders.each_ref().map(tempfile::TempDir::path);
    let report = |out: &Path, train: bool| {
        let workplace =
            train.then_some(niwaki_study::training::Workplace { device: Device::Cpu, members: None });
        let made = niwaki_page::Made::new("test");
        let asked = Asked { seeds: None, first_seed: None, out, workplace, made };
        reproduce(Contents::read("staged", STAGED).unwrap(), &asked, &|_| {}).unwrap()
    };
    report(whole, true);
    let plan = split(STAGED, None);
    let memory = Arc::new(Memory { refuses: 23, ..Memory::default() });
    let work = || {
        let terms = Terms { scratch: scratch.to_owned(), attempts: 1000, ..terms("one") };
        Crew::new(&plan, memory.clone(), terms).all(&|_| {})
    };
    // The process ends where the store refuses it a claim, and is started again, as launchers do.
    let mut starts = 1;
    while let Err(refused) = work() {
        assert!(refused.to_string().contains("the line is cut"), "{refused}");
        starts += 1;
        assert!(starts < 100, "{refused}");
    }
    let quiet = Memory { records: Mutex::new(memory.records.lock().unwrap().clone()), ..Memory::default() };
    let Contents::Training(study) = Contents::read("staged", STAGED).unwrap() else { panic!("it trains") };
    collect(&study, None, None, Arc::new(quiet), collected).unwrap();
    report(collected, false);
    assert!(results(collected) == results(whole));
    assert!(memory.calls.load(Ordering::Relaxed) > 100);
}
