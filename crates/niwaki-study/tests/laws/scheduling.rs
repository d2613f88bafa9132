//! The scheduling studies, each one whole at a size that a processor trains in a blink: from its file to its page.

use niwaki_page::Made;
use niwaki_study::claim::Ours;
use niwaki_study::training::{
    Board, Calibration, Endpoint, Plan, Results, Training, dose_points, judge, training_page,
};
use niwaki_study::{answering, find, studies};
use niwaki_train::spec::PolicyKind;
use std::path::Path;

/// Puts a small number in the place of a large one.
fn shrink(settings: &mut toml::Table) {
    let small = [
        ("task.jobs", 4),
        ("task.machines", 3),
        ("update.reuse", 2),
        ("warmup.reuse", 3),
        ("warmup.iterations", 2),
    ];
    for (key, most) in small {
        if let Some(value) = settings.get_mut(key) {
            *value = value.as_integer().unwrap_or_default().min(most).into();
        }
    }
    // Batches this small need not have the signal that the rule wants; its own laws measure strengths.
    for key in ["update.correction", "warmup.correction"] {
        if let Some(value) = settings.get_mut(key).filter(|value| value.as_str() == Some("tempered:rule")) {
            *value = "tempered:0.5".into();
        }
    }
}

/// A shipped study at four jobs, four iterations, two seeds and a network of eight units.
fn small(label: &str) -> Training {
    let mut study = find(label).unwrap().training().unwrap();
    let base = &mut study.base;
    base.iterations = 4;
    if base.task.kind != "two-orders" {
        base.task.jobs = Some(4);
    }
    if base.task.machines.is_some() {
        base.task.machines = Some(3);
    }
    (base.task.training, base.task.validation) = (Some(4), Some(4));
    if base.policy.kind == PolicyKind::Hgnn {
        // Erosion is measured from iteration 10 on.
        base.iterations = 10;
        (base.policy.width, base.policy.hidden) = (Some(2), Some(4));
    } else {
        (base.policy.width, base.policy.blocks, base.policy.heads) = (Some(8), 1, 2);
    }
    (base.rollout.lanes, base.rollout.group) = (8, 4);
    (base.update.reuse, base.evaluate.every) = (2, 2);
    study.arm.iter_mut().filter_map(|arm| arm.set.as_mut()).for_each(shrink);
    for cell in &mut study.cell {
        shrink(&mut cell.set);
        cell.seeds = None;
    }
    if let Some(pilot) = &mut study.pilot {
        (pilot.seeds, pilot.within) = (1, None);
    }
    study.seeds = 2;
    study
}

/// Runs the pilot where there is one, writes what it chose, and plans what is left.
pub(super) fn planned(study: Training, out: &Path) -> Plan {
    let Some(pilot) = study.pilot_study() else { return Plan::new(study, None).unwrap() };
    let refusal = Plan::new(study.clone(), None).unwrap_err().to_string();
    assert!(refusal.ends_with("its pilot has to choose before it can be planned"), "{refusal}");
    let plan = Plan::new(pilot, None).unwrap();
    crate::run(&plan, out);
    let results = Results::read(&plan, out).unwrap();
    let calibration = Calibration::choose(&study, &Board { plan: &plan, results: &results }).unwrap();
    let folder = out.join(study.folder());
    calibration.write(&folder).unwrap();
    assert!(folder.join("calibration.json").exists());
    Plan::new(study.calibrated(calibration).unwrap(), None).unwrap()
}

fn scheduling() -> impl Iterator<Item = &'static str> {
    let figures = ["fig:ktol", "fig:2order"];
    let labels = studies().iter().map(|study| study.label);
    labels.filter(move |label| label.contains("sched-") || figures.contains(label))
}

#[test]
fn every_study_goes_from_its_file_to_its_page() {
    let mut seen = 0;
    for label in scheduling() {
        let folder = tempfile::tempdir().unwrap();
        let plan = planned(small(label), folder.path());
        crate::run(&plan, folder.path());
        let results = Results::read(&plan, folder.path()).unwrap();
        assert_eq!(results.runs.len(), plan.runs.len(), "{label}");
        let board = Board { plan: &plan, results: &results };
        let outcomes = judge(&board).unwrap();
        let study = &plan.study;
        // Two seeds are too few for a correlation; everything else is judged.
        let stated = study.value.len() + study.lead.len() + study.trend.len() + study.order.len();
        let more = study.ratio.len() + study.tried.len() + 2 * usize::from(study.feasible.is_some());
        assert_eq!(outcomes.len(), stated + more, "{label}");
        let comparisons = board.comparisons().unwrap();
        let page = training_page(&board, &outcomes, &comparisons, Made::new("test")).unwrap().to_html();
        let titles =
            study.chart.iter().map(|chart| &chart.title).chain(study.early.iter().map(|early| &early.title));
        for title in titles {
            assert!(page.contains(&title.replace('\'', "&#39;")) || page.contains(title), "{label}");
        }
        assert_eq!(page.contains("id=\"pilot\""), study.chosen.is_some(), "{label}");
        assert_eq!(page.contains("id=\"dose\""), study.dose.is_some(), "{label}");
        seen += 1;
    }
    assert!(seen >= 12, "a shipped study was not found");
}

#[test]
fn the_blocks_of_a_table_are_found_by_its_label() {
    assert!(answering("tab:sched-win").unwrap().len() >= 3);
    assert!(answering("tab:sched-horizon").unwrap().len() >= 2);
    assert_eq!(answering("fig:hardwin").unwrap()[0].label, "tab:sched-win+hard");
    // The confirmation answers for itself alone: looking at the table must not look at the fresh seeds.
    assert_eq!(answering("tab:sched-win+confirm").unwrap().len(), 1);
    let fresh = Plan::new(find("tab:sched-win+confirm").unwrap().training().unwrap(), None).unwrap();
    let looked_at = Plan::new(find("tab:sched-win+hard").unwrap().training().unwrap(), None).unwrap();
    assert!(fresh.runs.iter().all(|run| (20_000..20_048).contains(&run.recipe.spec.seed)));
    for run in &fresh.runs {
        let twin = looked_at.runs.iter().find(|twin| (twin.arm, twin.cell) == (run.arm, run.cell)).unwrap();
        let with_seed = niwaki_train::Spec { seed: run.recipe.spec.seed, ..twin.recipe.spec.clone() };
        assert_eq!(with_seed, run.recipe.spec, "nothing but the seed differs");
    }
}

#[test]
fn pools_pair_by_cell_and_seed_and_arms_begin_alike() {
    let folder = tempfile::tempdir().unwrap();
    let plan = planned(small("tab:sched-win+warmup"), folder.path());
    crate::run(&plan, folder.path());
    let results = Results::read(&plan, folder.path()).unwrap();
    let board = Board { plan: &plan, results: &results };
    let (pooled, held) = (plan.cell(Some("pooled")).unwrap(), plan.arm("held").unwrap());
    let lead = |cell: usize| board.compare(held, 0, cell, Endpoint::GreedyAuc).unwrap().unwrap();
    // Equal numbers of seeds: the pooled mean is the mean of the two.
    assert!(
        (lead(pooled).decision.mean - (lead(0).decision.mean + lead(1).decision.mean) / 2.0).abs() < 1e-12
    );
    let signs = |cell: usize| (lead(cell).signs.wins, lead(cell).signs.losses, lead(cell).signs.ties);
    let (a, b, all) = (signs(0), signs(1), signs(pooled));
    assert_eq!(all, (a.0 + b.0, a.1 + b.1, a.2 + b.2));
    // Same instances, weights and draws for both arms of a seed.
    for (ppo, held) in board.runs(0, 0).iter().zip(board.runs(held, 0)) {
        assert_eq!(ppo.course.curve[0].batch_reward, held.course.curve[0].batch_reward);
        assert!(ppo.course.curve[0].first.is_empty(), "how often each job came first is not kept");
    }
}

#[test]
fn a_pilot_takes_what_is_nearest_and_leaves_out_what_is_outside() {
    let folder = tempfile::tempdir().unwrap();
    let mut study = small("tab:sched-horizon+calibrated");
    let pilot = study.pilot.as_mut().unwrap();
    pilot.values = vec![1.0, 100.0];
    // Every schedule is on time at a hundred times the optimum.
    pilot.aim = Some(1.0);
    let plan = planned(study.clone(), folder.path());
    let chosen = plan.study.chosen.as_ref().unwrap();
    assert_eq!(chosen.cells.len(), 4);
    for choice in &chosen.cells {
        assert_eq!(choice.tried[1].came, 1.0);
        // A tie goes to the first value; else the loose deadline is nearer.
        let wanted = if choice.tried[0].came == 1.0 { 1.0 } else { 100.0 };
        assert_eq!(choice.chosen, Some(wanted));
    }
    let deadline = |run: &niwaki_study::training::Planned| run.recipe.spec.task.deadline;
    assert!(plan.runs.iter().all(|run| deadline(run) == chosen.cells[run.cell].chosen));
    let text = std::fs::read_to_string(folder.path().join(study.folder()).join("calibration.json")).unwrap();
    assert_eq!(serde_json::from_str::<Calibration>(&text).unwrap(), *chosen);

    // A cell without an acceptable value is left out with what was claimed of it; without any cell nothing is left.
    let mut none = chosen.clone();
    none.cells[2].chosen = None;
    let left = study.clone().calibrated(none.clone()).unwrap();
    assert_eq!(left.cell.len(), 3);
    assert!(left.lead.iter().all(|claim| claim.cell.as_deref() != Some("J = 40")) && left.trend.is_empty());
    Plan::new(left, None).unwrap();
    none.cells.iter_mut().for_each(|choice| choice.chosen = None);
    let refusal = study.calibrated(none).unwrap_err().to_string();
    assert!(refusal.contains("no acceptable task.deadline"), "{refusal}");
}

#[test]
fn cells_that_a_pilot_cannot_tell_apart_are_measured_once() {
    let study = small("tab:sched-null+transformer");
    // Six cells have an aim and differ in nothing that the pilot leaves alone: one is measured, at 16 deadlines.
    assert_eq!(study.cell.iter().filter(|cell| cell.aim.is_some()).count(), 6);
    let pilot = Plan::new(study.pilot_study().unwrap(), None).unwrap();
    assert_eq!(pilot.runs.len(), 16);
    assert!(pilot.runs.iter().all(|run| run.recipe.spec.optimiser.rate == 0.0));
}

#[test]
fn dose_and_lead_are_paired_by_seed() {
    let folder = tempfile::tempdir().unwrap();
    let mut study = small("tab:sched-win+hard");
    study.seeds = 4;
    let plan = Plan::new(study, None).unwrap();
    crate::run(&plan, folder.path());
    let results = Results::read(&plan, folder.path()).unwrap();
    let board = Board { plan: &plan, results: &results };
    let points = dose_points(&board).unwrap();
    assert_eq!(points.len(), 3 * 4);
    let of = |arm: usize, cell: usize, seed: u64, endpoint: Endpoint| {
        let run = board.runs(arm, cell).into_iter().find(|run| run.seed == seed).unwrap();
        run.value(endpoint).unwrap()
    };
    for point in &points {
        let at = |arm: usize, endpoint: Endpoint| of(arm, point.cell, point.seed, endpoint);
        // Arms: PPO, control, corrected.
        assert_eq!(point.dose, at(1, Endpoint::Dose(50)));
        assert_eq!(point.lead[0], at(2, Endpoint::GreedyFirstHalf) - at(0, Endpoint::GreedyFirstHalf));
        assert_eq!(point.lead[1], at(2, Endpoint::GreedySecondHalf) - at(0, Endpoint::GreedySecondHalf));
    }
    // The leads stand beside the paper's, with seeds and p.
    let outcomes = judge(&board).unwrap();
    let lead = outcomes.iter().find_map(|outcome| match &outcome.ours {
        Ours::Lead(lead) if lead.paper == "+0.087" => Some(lead),
        _ => None,
    });
    let lead = lead.unwrap();
    assert_eq!((lead.paper_seeds.as_str(), lead.paper_p.as_str()), ("20/24", "0.0008"));
    assert!(lead.untied <= 4 && lead.wins <= lead.untied);
}

#[test]
fn the_dose_study_borrows_its_sixty_six_points() {
    // 4 horizons × 12 seeds and 3 deadlines × 6 seeds, with three arms each, all in the folders of other studies.
    let plan = Plan::new(find("fig:wincorr").unwrap().training().unwrap(), None).unwrap();
    assert_eq!(plan.runs.len(), 3 * (4 * 12 + 3 * 6));
    for label in ["tab:sched-horizon", "tab:sched-win+job"] {
        let lender = Plan::new(find(label).unwrap().training().unwrap(), None).unwrap();
        for run in &lender.runs {
            let lent = plan.runs.iter().find(|lent| lent.home == run.home).unwrap();
            assert_eq!(lent.hash, run.hash, "{}", run.home.display());
        }
    }
}
