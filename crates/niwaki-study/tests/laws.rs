//! The paper's table is reproduced, and results do not depend on threads.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should fail loudly")]

use niwaki_study::claim::{Judgement, Ours};
use niwaki_study::diagnostics::{Diagnostics, Grid, Policies, summarise};
use niwaki_study::find;

fn study(label: &str) -> Diagnostics {
    find(label).unwrap().diagnostics().unwrap()
}

#[test]
fn the_summary_table_is_reproduced() {
    // The paper's 25 seeds: every MSE within two standard errors, cosines and ESS within 0.02.
    let study = study("tab:diag-summary");
    let summaries = summarise(&study.grid(None).unwrap().run(|| {}).unwrap()).unwrap();
    let outcomes = study.judge(&summaries).unwrap();
    let mut counted = 0;
    for outcome in &outcomes {
        let Ours::Number(ours, _) = outcome.ours else { continue };
        let paper = outcome.paper.unwrap();
        if outcome.group.starts_with("MSE") {
            assert!(outcome.sems.unwrap().abs() < 2.0, "{outcome:?}");
        } else if outcome.group.starts_with("cosine") || outcome.group.starts_with("ESS") {
            assert!((ours - paper).abs() <= 0.02, "{outcome:?}");
        } else {
            continue;
        }
        counted += 1;
    }
    assert_eq!(counted, 21, "seven losses, three quantities each");
    // The floor of the full correction's bias, and the place of the lowest MSE.
    for outcome in outcomes.iter().filter(|outcome| outcome.group.is_empty()) {
        assert_eq!(outcome.judgement, Judgement::Agrees, "{outcome:?}");
    }
}

#[test]
fn rows_do_not_depend_on_threads_or_on_company() {
    let grid = study("app:diagnostics").grid(Some(2)).unwrap();
    let run = |threads: usize, grid: &Grid| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| grid.run(|| {})).unwrap()
    };
    let bits = |rows: Vec<niwaki_study::diagnostics::Row>| {
        rows.into_iter()
            .map(|row| (row.measured.mse.to_bits(), row.measured.cosine.to_bits()))
            .collect::<Vec<_>>()
    };
    let alone = Grid { drifts: vec![0.3], ..grid.clone() };
    assert_eq!(bits(run(1, &grid)), bits(run(3, &grid)));
    let among: Vec<_> = run(2, &grid).into_iter().filter(|row| row.drift == 0.3).collect();
    assert_eq!(bits(run(2, &alone)), bits(among));
}

#[test]
fn given_tables_are_taken_to_the_bit() {
    let drawn = study("tab:diag-summary").grid(Some(1)).unwrap();
    let edges = drawn.process.edges();
    let old: Vec<f64> = (0..edges).map(|j| 0.1 * (j as f64).sin()).collect();
    let new: Vec<f64> = (0..edges).map(|j| (j as f64).cos()).collect();
    let given = Grid { policies: Policies::Given { old: old.clone(), new }, drifts: vec![1.0, 0.5], ..drawn };
    let rows = given.run(|| {}).unwrap();
    assert!(rows[0].apart.mean_kl > rows[rows.len() - 1].apart.mean_kl, "half the way is nearer");
    let same = Grid { policies: Policies::Given { new: old.clone(), old }, drifts: vec![1.0], ..given };
    assert!(same.run(|| {}).unwrap().iter().all(|row| row.apart.mean_kl == 0.0));
}

#[test]
fn empty_axes_and_odd_drifts_are_refused() {
    let grid = study("tab:diag-summary").grid(Some(1)).unwrap();
    let refuse = |grid: Grid| grid.run(|| {}).unwrap_err().to_string();
    assert_eq!(refuse(grid.with_losses(vec![])), "the list of losses is empty; name at least one");
    assert_eq!(refuse(grid.at(&[])), "the list of drifts is empty; name at least one");
    assert_eq!(refuse(grid.at(&[f64::NAN])), "drift NaN is not a positive number");
}
