//! The pretrained studies from file to page, with a tiny model, a small record and few of them in a batch.

use crate::scheduling::planned;
use niwaki_page::Made;
use niwaki_study::find;
use niwaki_study::training::{Board, Endpoint, Results, Training, judge, training_page};

fn small(label: &str) -> Training {
    let mut study = find(label).unwrap().training().unwrap();
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../niwaki-lm/tests/fixtures");
    study.base.policy.model = Some(format!("{fixtures}/tiny-qwen2").into());
    study.base.task.file = Some(format!("{fixtures}/record.toml").into());
    (study.base.rollout.lanes, study.base.update.minibatches, study.base.update.reuse) = (16, 2, 1);
    study.seeds = 2;
    study.arm.iter_mut().for_each(|arm| arm.seeds = None);
    let pilot = study.pilot.as_mut().unwrap();
    (pilot.seeds, pilot.values) = (1, vec![1e-3, 3e-3]);
    study
}

#[test]
fn a_pretrained_study_goes_from_its_file_to_its_page() {
    for label in ["tab:pretrained-summary", "tab:v2-cell3-fatal-drift"] {
        let folder = tempfile::tempdir().unwrap();
        let plan = planned(small(label), folder.path());
        crate::run(&plan, folder.path());
        let results = Results::read(&plan, folder.path()).unwrap();
        assert_eq!(results.runs.len(), plan.runs.len(), "{label}");
        let board = Board { plan: &plan, results: &results };
        let outcomes = judge(&board).unwrap();
        let study = &plan.study;
        assert_eq!(outcomes.len(), study.value.len() + study.lead.len() + study.order.len(), "{label}");
        // One rate for all cells, since the pilot sets what they differ in.
        let rates: Vec<f64> = plan.runs.iter().map(|run| run.recipe.spec.optimiser.rate).collect();
        assert!(rates.iter().all(|rate| *rate == rates[0]) && [1e-3, 3e-3].contains(&rates[0]), "{rates:?}");
        let at = |name: &str, arm: &str| {
            let endpoint = Endpoint::try_from(name.to_owned()).unwrap();
            board.estimate(plan.arm(arm).unwrap(), 0, endpoint).unwrap().map(|found| found.value)
        };
        assert!(at("batch:20", "ppo").is_some() && at("mean:2-8", "tempered:0.1").is_some(), "{label}");
        // Nothing of a gigabyte is left behind.
        let kept = plan
            .runs
            .iter()
            .filter(|run| folder.path().join(&run.home).join("checkpoint.safetensors").exists());
        assert_eq!(kept.count(), 0, "{label}");
        let comparisons = board.comparisons().unwrap();
        let page = training_page(&board, &outcomes, &comparisons, Made::new("test")).unwrap().to_html();
        assert!(page.contains("id=\"pilot\"") && page.contains("mean of batches, 2-8"), "{label}");
    }
}

#[test]
fn what_has_no_model_is_planned_and_not_trained() {
    let mut study = small("tab:v2-cell3-fatal-drift");
    study.base.policy.model = None;
    let plan = niwaki_study::training::Plan::new(study.pilot_study().unwrap(), None).unwrap();
    let refusal = plan.runs[0].recipe.check_ready().unwrap_err().to_string();
    assert!(refusal.starts_with("policy.model: policy 'decoder' starts from one"), "{refusal}");
}
