use super::*;
use crate::{Measured, Record};

fn run(etas: &[f64]) -> Course {
    let record =
        |(place, &eta): (usize, &f64)| Record { iteration: place + 1, eta: Some(eta), ..Record::default() };
    Course {
        iterations: etas.len(),
        curve: etas.iter().enumerate().map(record).collect(),
        ..Course::default()
    }
}

#[test]
fn endpoints_of_a_small_curve() {
    let run = run(&[0.2, 0.3, 0.4, 0.96, 0.94, 0.97, 0.97, 0.98, 0.99, 1.0]);
    // 0.3 is not above 0.3. At iteration 4 it is high but 4 is no multiple of 5, at 5 it is low: 10.
    assert_eq!(Endpoint::BreakThrough.of(&run), Some(3.0));
    assert_eq!(Endpoint::Solved.of(&run), Some(10.0));
    assert_eq!(Endpoint::At(4).of(&run), Some(0.96));
    assert_eq!(Endpoint::At(11).of(&run), None);
    assert_eq!((Endpoint::Final.of(&run), Endpoint::Success.of(&run)), (Some(1.0), Some(1.0)));
    // 0.2 + 0.3 + 0.4 + 0.96 + 0.94 + 0.97 + 0.97 + 0.98 + 0.99 + 1 = 7.71
    assert!((Endpoint::Auc.of(&run).unwrap() - 0.771).abs() < 1e-12);
    assert_eq!(Endpoint::GreedyAuc.of(&run), None);
}

#[test]
fn what_never_happens_counts_as_one_after_the_last() {
    let low = run(&[0.25; 7]);
    assert_eq!((Endpoint::Solved.of(&low), Endpoint::BreakThrough.of(&low)), (Some(8.0), Some(8.0)));
}

#[test]
fn the_mean_curve_decides_when_a_cell_is_solved() {
    // Alone: 5 and 10. The mean at 5 is (1 + 0.8)/2 = 0.9, at 10 it is 1.
    let (early, late) = (run(&[1.0; 10]), run(&[0.8, 0.8, 0.8, 0.8, 0.8, 1.0, 1.0, 1.0, 1.0, 1.0]));
    assert_eq!(Endpoint::Solved.over(&[&early, &late]), Some(10.0));
    assert_eq!(Endpoint::Final.over(&[&early, &late]), Some(1.0));
}

#[test]
fn a_run_that_diverged_counts_as_nothing_from_there_on() {
    let mut run = run(&[0.5, 0.6]);
    run.iterations = 4;
    assert_eq!(run.points(Judged::Eta), [(1, 0.5), (2, 0.6), (3, 0.0), (4, 0.0)]);
    // Makespans are paid as returns below zero: nothing would be the best of them.
    let late =
        |eta: Option<f64>, iteration| Record { iteration, eta, batch_reward: -2.0, ..Record::default() };
    run.curve = vec![late(Some(-1.5), 1), late(Some(-1.25), 2)];
    assert_eq!(run.points(Judged::Eta), [(1, -1.5), (2, -1.25), (3, -1.5), (4, -1.5)]);
    assert_eq!((Endpoint::Final.of(&run), Endpoint::Auc.of(&run)), (Some(-1.5), Some(-1.4375)));
    assert_eq!(Endpoint::BatchAuc.of(&run), Some(-2.0));
}

#[test]
fn halves_doses_and_drifts() {
    let record = |place: usize, greedy: Option<f64>, drift: f64| Record {
        iteration: place,
        greedy,
        drift,
        rollout_dose: place as f64,
        zero_signal: if place > 3 { 1.0 } else { 0.0 },
        ..Record::default()
    };
    let curve = vec![
        record(1, None, 4.0),
        record(2, Some(0.2), 1.0),
        record(3, None, 9.0),
        record(4, Some(0.4), 2.0),
        record(5, None, 3.0),
        record(6, Some(0.9), 5.0),
    ];
    let mut run = Course { iterations: 6, curve, ..Course::default() };
    // Three points: the first half is 0.2, the rest (0.4 + 0.9)/2.
    assert_eq!(Endpoint::GreedyFirstHalf.of(&run), Some(0.2));
    assert!((Endpoint::GreedySecondHalf.of(&run).unwrap() - 0.65).abs() < 1e-12);
    // (1 + 2 + 3 + 4)/4; drifts sorted 1, 2, 3, 4, 5, 9.
    assert_eq!(Endpoint::Dose(4).of(&run), Some(2.5));
    assert_eq!((Endpoint::FirstDrift.of(&run), Endpoint::Drift.of(&run)), (Some(4.0), Some(3.5)));
    // Iterations 4 to 6 of 6.
    assert_eq!(Endpoint::ZeroSignal.of(&run), Some(0.5));
    // Over runs the drift is a median, too: of 3.5, 3.5 and 1000.
    let wild = Course { curve: vec![record(1, None, 1000.0)], ..run.clone() };
    assert_eq!(Endpoint::Drift.over(&[&run, &wild, &run]), Some(3.5));
    run.curve[0].rollout_dose = f64::MAX;
    assert_eq!(Endpoint::Dose(4).of(&run), None, "an overflow is no dose");
    assert!(!Endpoint::Drift.ranks() && Endpoint::GreedyAuc.ranks());
}

#[test]
fn a_run_is_silent_until_one_trajectory_has_an_advantage() {
    let record = |zero_signal: f64| Record { zero_signal, ..Record::default() };
    let run = Course { iterations: 3, curve: [1.0, 1.0, 0.875].map(record).to_vec(), ..Course::default() };
    let silent = |count: usize| Endpoint::Silent(count).of(&run);
    assert_eq!((silent(1), silent(2), silent(3), silent(4)), (Some(1.0), Some(1.0), Some(0.0), None));
}

#[test]
fn batches_are_those_of_the_policy_after_so_many_iterations() {
    let record = |place: usize, reward: f64, first: [f64; 3]| Record {
        iteration: place,
        batch_reward: reward,
        eta: Some(place as f64),
        drift: 4.0 / place as f64,
        first: first.to_vec(),
        ..Record::default()
    };
    let curve = vec![
        record(1, 0.5, [1.0, 0.0, 0.0]),
        record(2, 0.25, [0.5, 0.25, 0.25]),
        record(3, 0.75, [0.0, 0.5, 0.5]),
    ];
    let run = Course { iterations: 4, curve, ..Course::default() };
    let of = |name: &str| Endpoint::try_from(name.to_owned()).unwrap().of(&run);
    // After one iteration the second batch is drawn; the run diverged in its fourth, and there is no fifth.
    assert_eq!((of("batch:0"), of("batch:1"), of("batch:1-2")), (Some(0.5), Some(0.25), Some(0.5)));
    assert_eq!((of("batch:3"), of("batch:4"), of("batch:3-4")), (Some(0.0), None, None));
    assert_eq!((of("first:1+2@1"), of("first:0@2")), (Some(0.5), Some(0.0)));
    // Half of a batch is not more than half.
    assert_eq!((of("commits:1+2@1"), of("commits:1+2@2"), of("commits:0@4")), (Some(0.0), Some(1.0), None));
    assert_eq!((of("mean:2-3"), of("mean:3-5")), (Some(2.5), None));
    // The first update's drift is 4.
    assert_eq!((of("strength"), of("first-drift")), (Some(0.25), Some(4.0)));
    for wrong in ["batch:", "batch:3-2", "first:2", "first:64@1", "mean:a"] {
        assert!(Endpoint::try_from(wrong.to_owned()).is_err(), "{wrong}");
    }
}

#[test]
fn names_go_round() {
    for name in [
        "final",
        "auc",
        "at:50",
        "solved",
        "break-through",
        "success",
        "greedy-auc",
        "dose:50",
        "silent:50",
        "drift",
        "mean:2-8",
        "batch:2-8",
        "batch:5",
        "greedy-mean:0-50",
        "erosion:10-50",
        "gap-final",
        "first:2+3@10",
        "commits:0+1@20",
        "first-conditional-drift",
        "first-prefix-variance",
        "strength",
    ] {
        assert_eq!(Endpoint::try_from(name.to_owned()).unwrap().to_string(), name);
    }
    let refusal = Endpoint::try_from("sucess".to_owned()).unwrap_err();
    assert_eq!(
        refusal,
        "unknown endpoint 'sucess'; the nearest valid one is 'success' (or at:N, dose:N, silent:N, mean:A-B, greedy-mean:A-B, erosion:A-B, batch:A-B, first:T+T@N, commits:T+T@N)"
    );
}

#[test]
fn early_levels_count_the_untrained_policy_and_gaps_are_better_small() {
    let record = |place: usize, greedy: Option<f64>| Record {
        iteration: place,
        greedy,
        gap: greedy.map(|greedy| 1.0 - greedy),
        ..Record::default()
    };
    let mut curve = vec![record(1, None), record(2, Some(0.8)), record(3, None), record(4, Some(0.4))];
    curve[0].initial = Some(Measured { greedy: Some(0.6), ..Measured::default() });
    let run = Course { iterations: 4, curve, ..Course::default() };
    let of =
        |name: &str| Endpoint::try_from(name.to_owned()).unwrap().of(&run).map(|value| (value * 1e6).round());
    // (0.6 + 0.8)/2 less 0.4.
    assert_eq!((of("greedy-mean:0-2"), of("greedy-mean:1-4")), (Some(7e5), Some(6e5)));
    assert_eq!((of("erosion:0-2"), of("gap-final"), of("greedy-mean:5-9")), (Some(3e5), Some(6e5), None));
    assert!(Endpoint::GapFinal.falls() && !Endpoint::GapFinal.counts());
    // The curve that AUC is the mean of begins after the first update, as it does without that measurement.
    assert_eq!(run.points(Judged::Likeliest), [(2, 0.8), (4, 0.4)]);
}
