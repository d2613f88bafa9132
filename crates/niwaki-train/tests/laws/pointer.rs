//! What only shops and their pointer policy have: measured strengths, instances, payments.

use super::{cohort, curve, curves, with};

#[test]
fn members_with_other_deadlines_share_a_cohort_and_nothing_else() {
    let members = ["1.01", "1.2"].map(|deadline| {
        let deadline = format!("task.deadline={deadline}");
        with("pointer", &[&deadline, "seed=3"])
    });
    let together = curves(&members);
    // The first batch is the same, and is paid less where the deadline is tighter.
    assert_eq!(together[0][0].first, together[1][0].first);
    assert!(together[0][0].batch_reward < together[1][0].batch_reward);
    for (member, together) in members.iter().zip(&together) {
        assert_eq!(curve(member), *together);
    }
}

#[test]
fn a_measured_strength_is_the_rules_and_leaves_the_first_batch_alone() {
    let settings = ["update.reuse=6", "optimiser.rate=0.5"];
    let plain = with("pointer", &settings);
    let ruled = with(
        "pointer",
        &[&settings[..], &["warmup.iterations=3", "warmup.correction=tempered:rule"]].concat(),
    );
    let mut ruled = cohort(&[ruled]);
    let first = ruled.advance().unwrap().remove(0);
    let alpha = first.alpha.unwrap();
    // The probe is the update that PPO would have made: its drift after the last step gives min(1, 1/σ²T).
    let mut ppo = cohort(&[plain]);
    ppo.advance().unwrap();
    assert_eq!(ppo.last_batch(0).rollout, ruled.last_batch(0).rollout);
    assert!(alpha > 0.0 && alpha <= 1.0, "{alpha}");
    let fixed = with(
        "pointer",
        &[&settings[..], &["warmup.iterations=3", &format!("warmup.correction=tempered:{alpha}")]].concat(),
    );
    let fixed = curve(&fixed);
    let mut all = vec![first];
    all.extend((1..5).map(|_| ruled.advance().unwrap().remove(0)));
    for (ruled, fixed) in all.iter().zip(&fixed) {
        assert_eq!(ruled.alpha.is_some(), ruled.iteration <= 3);
        assert_eq!(niwaki_train::Record { alpha: None, ..ruled.clone() }, *fixed);
    }
}

#[test]
fn minibatches_keep_groups_whole() {
    let curve = curve(&with("pointer", &["update.minibatches=2", "update.reuse=2"]));
    assert!(
        curve
            .iter()
            .all(|record| record.drift.is_finite() && record.greedy.is_none_or(|g| (0.0..=1.0).contains(&g)))
    );
}
