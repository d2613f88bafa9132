//! What only graph networks and their critic have: held sets, fresh advantages, graded rewards, gaps, a first measurement.

use super::resume::{files, train_until};
use super::{curve, with};
use niwaki_train::record::LastBatch;
use niwaki_train::run::Ending;

/// Song's recipe, small: a critic of standardised returns, minibatches of whole trajectories, held sets, Adam.
const RECIPE: [&str; 13] = [
    "task.draw=sd1-even",
    "rollout.lanes=6",
    "rollout.group=1",
    "rollout.hold=2",
    "advantage.standard_returns=true",
    "advantage.fresh=true",
    "advantage.lambda=1",
    "update.minibatches=2",
    "update.value=1",
    "update.entropy=0.01",
    "optimiser.kind=adam",
    "optimiser.rate=0.01",
    "evaluate.initial=true",
];

#[test]
fn a_correction_of_no_strength_is_ppo_bit_for_bit() {
    let none = curve(&with("hgnn", &[&RECIPE[..], &["update.correction=tempered:0"]].concat()));
    assert_eq!(none, curve(&with("hgnn", &RECIPE)));
    let some = curve(&with("hgnn", &[&RECIPE[..], &["update.correction=tempered:0.5"]].concat()));
    assert_ne!(none[4].drift, some[4].drift);
}

#[test]
fn stopped_after_every_iteration_it_ends_with_the_same_bytes() {
    // Three sets of two instances, held for two iterations each.
    let recipe =
        with("hgnn", &[&RECIPE[..], &["rollout.lanes=2", "dump.every=2", "checkpoint.every=2"]].concat());
    let folder = tempfile::tempdir().unwrap();
    let (whole, cut) = (folder.path().join("whole"), folder.path().join("cut"));
    let Ending::Done(summary) = train_until(&recipe, &whole, usize::MAX) else { panic!("not done") };
    for last in 1..5 {
        assert_eq!(train_until(&recipe, &cut, last), Ending::Stopped { iteration: last });
    }
    assert_eq!(train_until(&recipe, &cut, usize::MAX), Ending::Done(summary));
    assert!(files(&whole) == files(&cut));
}

#[test]
fn fresh_advantages_are_the_rollouts_until_the_critic_has_moved() {
    let run = |fresh: &str, reuse: &str| {
        let more = ["advantage.fresh=".to_owned() + fresh, "update.reuse=".to_owned() + reuse];
        let more: Vec<&str> = more.iter().map(String::as_str).collect();
        let one = ["update.minibatches=1", "iterations=1"];
        curve(&with("hgnn", &[&RECIPE[..], &more, &one].concat())).remove(0)
    };
    // One step: return minus the estimate of the only pass, in f32 once and in f64 once.
    let (fresh, kept) = (run("true", "1"), run("false", "1"));
    assert!((fresh.drift - kept.drift).abs() < 1e-3 * kept.drift, "{} {}", fresh.drift, kept.drift);
    assert!((fresh.gradient_norm - kept.gradient_norm).abs() < 1e-4 * kept.gradient_norm);
    let (fresh, kept) = (run("true", "6"), run("false", "6"));
    assert!((fresh.gradient_norm - kept.gradient_norm).abs() > 1e-4 * kept.gradient_norm);
}

#[test]
fn the_untrained_policy_is_measured_and_gaps_are_told() {
    let all = curve(&with("hgnn", &RECIPE));
    let initial = all[0].initial.unwrap();
    assert!(initial.eta.is_some() && initial.greedy.is_some() && initial.gap.unwrap() >= 0.0);
    assert!(all[1..].iter().all(|record| record.initial.is_none()));
    for record in &all {
        // Every second iteration, and the last.
        let measured = record.iteration % 2 == 0 || record.iteration == 5;
        assert_eq!((record.greedy.is_some(), record.gap.is_some()), (measured, measured));
    }
    // A policy that learns nothing stays what it was.
    let still = curve(&with("hgnn", &[&RECIPE[..], &["optimiser.rate=0"]].concat()));
    assert_eq!((still[4].greedy, still[4].gap), (initial.greedy, initial.gap));
}

#[test]
fn graded_rewards_sink_below_the_gap_where_rests_are_too_long() {
    let run = |draw: &str| {
        let draw = format!("task.draw={draw}");
        let more = [draw.as_str(), "task.reward=graded", "optimiser.rate=0"];
        let settings: Vec<&str> = super::small("hgnn")
            .into_iter()
            .filter(|setting| !setting.starts_with("task.deadline"))
            .collect();
        let record = curve(&super::recipe(&[&settings[..], &RECIPE[1..], &more].concat())).remove(4);
        (record.greedy.unwrap(), record.gap.unwrap())
    };
    // Without windows nothing is violated: one minus the gap.
    let (greedy, gap) = run("sd1-even");
    assert!((greedy - (1.0 - gap)).abs() < 1e-12, "{greedy} {gap}");
    let (greedy, gap) = run("sd1-windows");
    assert!(greedy <= 1.0 - gap + 1e-12, "{greedy} {gap}");
}

#[test]
fn labels_alone_are_learned() {
    let settings: Vec<&str> =
        super::small("dual").into_iter().filter(|setting| !setting.starts_with("task.deadline")).collect();
    let first = |kind: &str| {
        let kind = format!("advantage.kind={kind}");
        let more = [kind.as_str(), "task.reward=makespan", "optimiser.kind=adam", "optimiser.rate=0.01"];
        let recipe = super::recipe(&[&settings[..], &more, &["update.reuse=2"]].concat());
        let group = recipe.spec.rollout.group;
        let mut cohort = super::cohort(&[recipe]);
        let record = cohort.advance().unwrap().remove(0);
        (cohort.last_batch(0), record, group)
    };
    // The first rollouts are the same.
    let ((labels, record, group), (all, of_all, _)) = (first("best"), first("group"));
    assert_eq!(record.batch_reward, of_all.batch_reward);
    assert_eq!(labels.shape.lanes() * group, all.shape.lanes());
    assert!(labels.advantage.iter().all(|&advantage| advantage == 1.0) && record.zero_signal == 0.0);
    for (place, rewards) in all.reward.chunks(group).enumerate() {
        let best = rewards.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let lane = place * group + rewards.iter().position(|&reward| reward == best).unwrap();
        assert_eq!(labels.reward[place], best);
        let steps =
            |batch: &LastBatch, lane: usize| batch.rollout[batch.shape.steps(0, lane..lane + 1)].to_vec();
        assert_eq!(steps(&labels, place), steps(&all, lane));
    }
    // They are likelier than before.
    assert!(labels.log_prob.iter().sum::<f64>() > labels.rollout.iter().sum::<f64>());
    let mut refused = with("dual", &[]).spec;
    refused.advantage.kind = niwaki_train::spec::AdvantageKind::Best;
    refused.update.minibatches = 2;
    assert!(
        refused
            .check()
            .unwrap_err()
            .to_string()
            .starts_with("update.minibatches: what is learned of a group")
    );
    refused.update.minibatches = 1;
    refused.dump.every = 1;
    let line = refused.check().unwrap_err().to_string();
    assert_eq!(line, "dump.every: advantage.kind = 'best' learns labels, not ratios; leave it out");
}

#[test]
fn labels_can_be_improved_before_they_are_learned() {
    let settings: Vec<&str> =
        super::small("dual").into_iter().filter(|setting| !setting.starts_with("task.deadline")).collect();
    let more =
        ["task.draw=l2d", "task.jobs=4", "task.machines=4", "task.order=active", "advantage.kind=best"];
    let rest = ["task.reward=makespan", "optimiser.kind=adam", "optimiser.rate=0.01"];
    let recipe = |moves: &str| super::recipe(&[&settings[..], &more, &rest, &[moves]].concat());
    let first = |moves: &str| {
        let mut cohort = super::cohort(&[recipe(moves)]);
        let record = cohort.advance().unwrap().remove(0);
        (cohort.last_batch(0), record)
    };
    let ((plain, record), (better, improved)) =
        (first("advantage.improve=0"), first("advantage.improve=500"));
    // What was drawn and earned is the same; what is learned is not, and is likelier afterwards.
    assert_eq!((record.batch_reward, plain.reward), (improved.batch_reward, better.reward));
    assert_ne!(plain.rollout, better.rollout);
    assert!(better.log_prob.iter().sum::<f64>() > better.rollout.iter().sum::<f64>());
    assert_eq!(first("advantage.improve=500").0.log_prob, better.log_prob, "the same again");
    let mut refused = recipe("advantage.improve=500").spec;
    refused.advantage.kind = niwaki_train::spec::AdvantageKind::Group;
    let line = refused.check().unwrap_err().to_string();
    assert!(line.starts_with("advantage.improve: what is improved are the labels of"), "{line}");
}

#[test]
fn job_shops_are_drawn_for_graphs_too() {
    let settings = super::small("dual").into_iter().filter(|setting| !setting.starts_with("task.deadline"));
    let more =
        ["task.draw=l2d", "task.jobs=3", "task.machines=3", "task.reward=makespan", "advantage.kind=group"];
    let settings: Vec<&str> = settings.chain(more).collect();
    let last = curve(&super::recipe(&settings)).pop().unwrap();
    // Minus the makespan over the optimum.
    let (greedy, gap) = (last.greedy.unwrap(), last.gap.unwrap());
    assert!(gap >= 0.0 && (greedy + 1.0 + gap).abs() < 1e-12, "{greedy} {gap}");
}

#[test]
fn a_network_goes_on_from_trained_weights() {
    let settings: Vec<&str> =
        super::small("dual").into_iter().filter(|setting| !setting.starts_with("task.deadline")).collect();
    let from = |start: &str, more: &[&str]| {
        let start = format!("policy.start={start}");
        let own = [
            "policy.width=64",
            "policy.hidden=128",
            "policy.bounds=true",
            "task.reward=makespan",
            "evaluate.initial=true",
        ];
        super::recipe(&[&settings[..], &own, &[&start], more].concat())
    };
    let first = |recipe: &niwaki_train::Recipe| curve(recipe)[0].initial.unwrap();
    let shipped = from("builtin:flexible", &["advantage.kind=group"]);
    // The content of the weights is part of the run, their place is not.
    assert_eq!(shipped.spec.policy.digest.as_ref().unwrap().len(), 16);
    let (gap, again) =
        (first(&shipped), first(&from("builtin:flexible", &["advantage.kind=group", "seed=7"])));
    assert_eq!(gap.gap, again.gap, "no seed has a say in what is not drawn");
    // A critic that the weights do without is drawn; the schedules are the same.
    let judged = ["advantage.kind=critic", "advantage.shaped=true", "advantage.lambda=0.9"];
    let judged = from("builtin:flexible", &judged);
    assert_eq!(first(&judged).gap, gap.gap);
    assert!(
        curve(&judged).iter().all(|record| record.batch_reward < -0.9),
        "minus the makespan over the optimum"
    );

    let refusal = |change: &dyn Fn(&mut niwaki_train::Spec)| {
        let mut spec = shipped.spec.clone();
        change(&mut spec);
        spec.check().unwrap_err().to_string()
    };
    let narrow = refusal(&|spec| spec.policy.width = Some(32));
    assert!(
        narrow.starts_with("policy.start: '") && narrow.contains("give both the same kind, width"),
        "{narrow}"
    );
    let other = refusal(&|spec| spec.policy.digest = Some("0123456789abcdef".to_owned()));
    assert!(other.starts_with("policy.digest: the weights in builtin:flexible are now those of "), "{other}");
    let none = refusal(&|spec| spec.policy.start = Some("nowhere".into()));
    assert!(none.starts_with("policy.start: nowhere/spec.toml: "), "{none}");
    let alone = refusal(&|spec| spec.policy.start = None);
    assert_eq!(alone, "policy.digest: it belongs to policy.start; leave it out");
    let shaped = refusal(&|spec| spec.advantage.shaped = true);
    assert_eq!(shaped, "advantage.shaped: only advantage.kind = 'critic' knows it; leave it out");
}
