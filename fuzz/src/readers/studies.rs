//! Files beside the runs of a study.

use super::{MEGABYTE, Read, Reader, folder, seeds};
use niwaki_page::Made;
use niwaki_study::Contents;
use niwaki_study::training::{Board, Plan, Results, Runner, Strength, judge, training_page};
use niwaki_train::Device;
use std::fs;
use tempfile::TempDir;

const STUDY: &str = "label = \"mine\"\ntitle = \"My study\"\nquestion = \"?\"\nseeds = 2\nendpoints = [\"final\"]\n\
    [base]\niterations = 2\n[base.task]\nhorizon = 2\n[[arm]]\nname = \"ppo\"\n[[arm]]\nname = \"full\"\n\
    [compare]\nagainst = [\"ppo\"]\nendpoints = [\"final\"]\n";

pub(super) fn readers() -> Vec<Reader> {
    let (home, plan) = trained();
    let speed =
        fs::read(home.path().join(plan.folder()).join("speed.json")).expect("a study leaves its speed");
    vec![
        Reader {
            name: "study.strengths",
            seeds: seeds("study.strengths", &[], &["json"]),
            read: Box::new(|bytes, at| {
                fs::write(at.join("strengths.json"), bytes).is_ok()
                    && Strength::read(at).is_ok_and(|strengths| !strengths.is_empty())
            }),
            floor: MEGABYTE,
            factor: 200,
            share: 3,
        },
        Reader {
            name: "study.speed",
            seeds: vec![speed],
            read: reported(home, plan),
            floor: 8 * MEGABYTE,
            factor: 200,
            share: 1,
        },
    ]
}

/// A study that was trained, and its folder.
fn trained() -> (TempDir, Plan) {
    let home = folder().expect("a folder for temporary files");
    let Ok(Contents::Training(study)) = Contents::read("mine", STUDY) else { panic!("a sound study") };
    let plan = Plan::new(*study, None).expect("a sound plan");
    let runner = Runner::new(home.path(), Device::Cpu);
    runner.run(&plan).expect("a small study trains");
    (home, plan)
}

/// The speed is no result: whatever its file holds, the report comes.
fn reported(home: TempDir, plan: Plan) -> Read {
    let file = home.path().join(plan.folder()).join("speed.json");
    Box::new(move |bytes, _| {
        fs::write(&file, bytes).expect("a folder of our own");
        let results = Results::read(&plan, home.path()).expect("the runs are as they were");
        let board = Board { plan: &plan, results: &results };
        let outcomes = judge(&board).expect("a study without claims");
        let comparisons = board.comparisons().expect("two arms");
        let page = training_page(&board, &outcomes, &comparisons, Made::new("fuzz"));
        assert!(page.is_ok_and(|page| page.to_html().contains("My study")), "no page came");
        results.speed.is_some()
    })
}
