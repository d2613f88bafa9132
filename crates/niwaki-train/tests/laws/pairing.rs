//! Arms with one seed share everything but the loss; nobody's results depend on the company.

use super::{POLICIES, cohort, curve, curves, with};
use niwaki_correction::{Correction, Rule};
use std::fs;

/// A member's checkpoint after some iterations, but for the header that names its spec.
fn parameters(recipes: &[niwaki_train::Recipe], member: usize, iterations: usize) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("member");
    let mut cohort = cohort(recipes);
    for _ in 0..iterations {
        cohort.advance().unwrap();
    }
    cohort.save(member, &path).unwrap();
    let bytes = fs::read(path).unwrap();
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    bytes[8 + header..].to_vec()
}

#[test]
fn no_correction_is_ppo_bit_for_bit() {
    for policy in POLICIES {
        let arms = ["ppo", "tempered:0", "tempered:0.25"].map(|arm| {
            let correction = format!("update.correction={arm}");
            with(policy, &[&correction, "update.reuse=3"])
        });
        let [ppo, none, some] = [0, 1, 2].map(|arm| curve(&arms[arm]));
        assert_eq!(ppo, none, "{policy}");
        assert_ne!(ppo, some, "{policy}: a correction that changes nothing would make this law empty");
        let after = |arm: usize| parameters(&arms[arm..=arm], 0, 5);
        assert!(after(0) == after(1), "{policy}: parameters");
        assert!(after(0) != after(2), "{policy}: parameters");
    }
}

#[test]
fn a_custom_rule_trains_as_the_member_with_the_same_rule() {
    let named = with("tabular", &["update.correction=tempered:0.25", "update.reuse=3"]);
    let mut custom = with("tabular", &["update.correction=ppo", "update.reuse=3"]);
    assert_ne!(curve(&custom), curve(&named));
    let mine = Correction::custom("mine", Rule::tempered(0.25)).unwrap();
    (custom.schedule.first.correction, custom.schedule.rest.correction) = (mine, mine);
    assert_eq!(curve(&custom), curve(&named));
}

#[test]
fn paired_arms_agree_until_the_first_corrected_step() {
    for policy in POLICIES {
        let arm = |correction: &str, more: &[&str]| {
            let correction = format!("update.correction={correction}");
            with(policy, &[&[correction.as_str()], more].concat())
        };
        // All log-ratios are zero in the first epoch, so with one epoch per batch the correction never acts.
        let once = ["update.reuse=1"];
        assert_eq!(curve(&arm("ppo", &once))[0].batch_reward, curve(&arm("full", &once))[0].batch_reward);
        assert!(parameters(&[arm("ppo", &[])], 0, 0) == parameters(&[arm("full", &[])], 0, 0));
        let mut pair = [arm("ppo", &[]), arm("full", &[])].map(|recipe| cohort(&[recipe]));
        let [ppo, full] = pair.each_mut().map(|cohort| {
            let record = cohort.advance().unwrap().remove(0);
            (cohort.last_batch(0), record)
        });
        assert_eq!((&ppo.0.rollout, &ppo.0.reward), (&full.0.rollout, &full.0.reward), "{policy}");
        assert_eq!((ppo.1.first, ppo.1.last), (full.1.first, full.1.last), "{policy}");
        let [ppo, full] = pair.each_mut().map(|cohort| {
            cohort.advance().unwrap();
            cohort.last_batch(0)
        });
        assert_ne!(
            ppo.rollout, full.rollout,
            "{policy}: four epochs of the full correction change something"
        );
    }
}

#[test]
fn a_member_alone_is_the_member_in_a_crowd_in_any_order() {
    for policy in POLICIES {
        let members = [
            with(policy, &["seed=1"]),
            with(policy, &["seed=2", "update.correction=tempered:0.25"]),
            with(policy, &["seed=1", "update.correction=full", "optimiser.rate=0.7"]),
        ];
        let together = curves(&members);
        for (member, curve_together) in members.iter().zip(&together) {
            assert_eq!(&curve(member), curve_together, "{policy}");
        }
        let turned = [2, 0, 1].map(|member: usize| members[member].clone());
        let expected = [2, 0, 1].map(|member: usize| together[member].clone());
        assert_eq!(curves(&turned), expected, "{policy}");
        assert!(parameters(&members, 1, 3) == parameters(&members[1..2], 0, 3), "{policy}");
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    for policy in POLICIES {
        let members =
            [with(policy, &["seed=1"]), with(policy, &["seed=2", "update.correction=tempered:0.25"])];
        let on = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| (curves(&members), parameters(&members, 1, 3)))
        };
        assert!(on(1) == on(2), "{policy}");
    }
}
