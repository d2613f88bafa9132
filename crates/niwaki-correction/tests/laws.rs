//! Laws of the surrogate: a slow, obvious twin, central differences, and equalities to the bit.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up should fail loudly")]

mod parity;
mod twin;

use niwaki_correction::family::{Bound, Form, MEMBERS, Reads, TESTBED};
use niwaki_correction::surrogate::Mean;
use niwaki_correction::{Batch, Clip, Correction, Rows, Rule, Surrogate, Workspace};
use proptest::prelude::*;
use twin::Case;

/// Every member with parameters that make its bounds bind on some steps and not on others.
fn losses() -> impl Iterator<Item = &'static str> {
    MEMBERS.iter().flat_map(|member| member.tried).copied()
}

/// The switches of the objective.
fn switched(loss: &str) -> Vec<Surrogate> {
    switches(loss.parse().unwrap())
}

fn switches(plain: Surrogate) -> Vec<Surrogate> {
    let asymmetric = Clip { low: 0.1, high: 0.28, dual: None };
    let dual = Clip { low: 0.2, high: 0.2, dual: Some(1.3) };
    vec![
        plain,
        plain.without_clip(),
        plain.without_routing(),
        Surrogate { clip: Some(asymmetric), ..plain },
        Surrogate { clip: Some(dual), mean: Mean::Trajectories, ..plain },
        plain.without_clip().without_routing(),
    ]
}

#[test]
fn objective_and_cotangent_agree_with_the_twin() {
    // Ragged rows, masks, trajectory weights and behaviour log-probs in all combinations.
    let (mut flat, mut compared, mut steps) = (0, 0, 0);
    for seed in 0..24 {
        let case = Case::draw(seed);
        for loss in losses() {
            for surrogate in switched(loss) {
                let counts = case.check(&surrogate);
                flat += counts.0;
                compared += counts.1;
                steps += case.log_prob.len();
            }
        }
    }
    // Cases that lie on a kink of their own have no derivative to compare with; they must stay the exception.
    assert!(2 * compared > steps, "{compared} of {steps} cotangents compared");
    assert!(flat > 1000, "the cases hardly ever clip: {flat}");
}

/// Points of the normal form that no member names, drawn at random.
fn rules() -> Vec<Rule> {
    let reads = [
        Reads::Prefix,
        Reads::Window(2),
        Reads::Minimum,
        Reads::Step,
        Reads::SequenceMean,
        Reads::SequenceSum,
    ];
    let bounds = [
        Bound::Clamp(-0.2, f64::INFINITY),
        Bound::Clamp(-0.3, 0.1),
        Bound::Drop(-0.2, 0.3),
        Bound::Keep(-0.2, 0.3),
    ];
    let mut rules = Vec::new();
    for (reads, bound) in reads.iter().flat_map(|&reads| bounds.map(|bound| (reads, bound))) {
        for form in [Form::Multiply, Form::Replace, Form::Weigh] {
            let rule = Rule { reads, bound, form, ..Rule::tempered(0.7) };
            let by_batch = [
                Rule { self_normalised: true, ..rule },
                Rule { ess_floor: Some(0.97), ..rule },
                Rule { amplification: Some(1.3), ..rule },
            ];
            let growing = Rule { growing_clip: true, ..rule };
            let dual = Rule { dual: 1.15, ..rule };
            rules.extend(
                [rule, growing, dual].into_iter().chain(by_batch).filter(|rule| rule.check().is_ok()),
            );
        }
    }
    rules
}

#[test]
fn custom_rules_agree_with_the_twin() {
    let rules = rules();
    assert!(rules.len() > 100, "{}", rules.len());
    for (seed, rule) in (0..).zip(rules) {
        let custom = Surrogate::new(Correction::custom("mine", rule).unwrap());
        let case = Case::draw(seed);
        switches(custom).iter().for_each(|surrogate| _ = case.check(surrogate));
    }
}

#[test]
fn a_custom_rule_is_the_member_with_the_same_rule() {
    for (seed, loss) in (0..).zip(losses()) {
        let member: Surrogate = loss.parse().unwrap();
        let custom =
            Surrogate { correction: Correction::custom("mine", member.correction.rule()).unwrap(), ..member };
        let case = Case::draw(seed);
        assert_eq!(bits_of(&custom, &case), bits_of(&member, &case), "{loss}");
    }
}

/// Own bits of an evaluation.
fn bits(loss: &str, case: &Case) -> (u64, Vec<u64>) {
    bits_of(&loss.parse().unwrap(), case)
}

fn bits_of(surrogate: &Surrogate, case: &Case) -> (u64, Vec<u64>) {
    let mut workspace = Workspace::default();
    let evaluation = surrogate.evaluate(&case.batch(), &mut workspace).unwrap();
    (evaluation.objective.to_bits(), evaluation.cotangent.iter().map(|value| value.to_bits()).collect())
}

#[test]
fn members_coincide_to_the_bit() {
    for seed in 0..20 {
        let case = Case::draw(seed);
        for (one, other) in [
            ("tempered:0", "ppo"),
            ("tempered:1", "full"),
            ("truncated:11", "full"),
            ("truncated:inf", "full"),
            ("clipped:0.3,inf", "tempered:0.3"),
            ("clipped:0.3,0", "ppo"),
            ("adaptive:0", "full"),
        ] {
            assert_eq!(bits(one, &case), bits(other, &case), "{one} against {other}, seed {seed}");
        }
    }
}

#[test]
fn the_cotangent_alone_is_that_of_the_evaluation() {
    for seed in 0..8 {
        let case = Case::draw(seed);
        for surrogate in losses().flat_map(switched) {
            let (mut first, mut second) = (Workspace::default(), Workspace::default());
            let whole = surrogate.evaluate(&case.batch(), &mut first).unwrap().cotangent;
            let alone = surrogate.cotangent(&case.batch(), &mut second).unwrap();
            assert!(whole.iter().zip(alone).all(|(a, b)| a.to_bits() == b.to_bits()), "{surrogate:?}");
            assert_eq!(whole.len(), alone.len());
        }
    }
}

#[test]
fn at_the_rollout_policy_every_member_has_ppos_own_channel() {
    // ℓ = 0 everywhere: all factors are 1, and only the routed channel can differ.
    let case = Case::draw(3).at_the_rollout_policy();
    let ppo: Surrogate = "ppo".parse().unwrap();
    let (mut first, mut second) = (Workspace::default(), Workspace::default());
    let own = ppo.evaluate(&case.batch(), &mut first).unwrap().own;
    for name in TESTBED {
        let other: Surrogate = name.parse().unwrap();
        let evaluation = other.evaluate(&case.batch(), &mut second).unwrap();
        assert_eq!(evaluation.own, own, "{name}");
        assert_eq!(evaluation.diagnostics.drift, 0.0);
        assert!(evaluation.diagnostics.prefix_ess.iter().all(|&ess| (ess - 1.0).abs() < 1e-15));
    }
}

#[test]
fn f32_follows_f64() {
    // What is dropped at a bound, or chosen by rank, may fall on the other side in single precision.
    const CHOOSY: [&str; 8] =
        ["mis", "-k", "dppo", "-cov", "off-policy", "top-entropy", "kl-cov", "gmpo:0.1"];
    let narrow = |values: &[f64]| values.iter().map(|&value| value as f32).collect::<Vec<_>>();
    for seed in 0..10 {
        let case = Case::draw(seed);
        let offsets = case.offsets.clone();
        let [log_prob, rollout, advantage] =
            [&case.log_prob, &case.rollout, &case.advantage].map(|x| narrow(x));
        for loss in losses().filter(|loss| !CHOOSY.iter().any(|part| loss.contains(part))) {
            let surrogate: Surrogate = loss.parse::<Surrogate>().unwrap().without_clip();
            let (mut wide, mut slim) = (Workspace::default(), Workspace::default());
            let rows = Rows::ragged(&offsets);
            let expected = surrogate
                .evaluate(&Batch::new(rows, &case.log_prob, &case.rollout, &case.advantage), &mut wide)
                .unwrap();
            let came =
                surrogate.evaluate(&Batch::new(rows, &log_prob, &rollout, &advantage), &mut slim).unwrap();
            assert!((came.objective - expected.objective).abs() < 2e-6, "{loss}");
            for (&came, &expected) in came.cotangent.iter().zip(expected.cotangent) {
                assert!((f64::from(came) - expected).abs() < 2e-6, "{loss}: {came} for {expected}");
            }
        }
    }
}

/// Lengths that fill tiles, leave them ragged, and reach beyond what is worked on at a time.
const LONG: [usize; 21] = [150, 64, 65, 8, 9, 1, 0, 130, 128, 70, 16, 3, 40, 66, 150, 12, 90, 64, 64, 7, 149];

#[test]
fn long_ragged_batches_agree_with_plain_loops() {
    let mut offsets = vec![0];
    LONG.iter().for_each(|length| offsets.push(offsets[offsets.len() - 1] + length));
    let steps = offsets[LONG.len()];
    let wave =
        |scale: f64, pace: f64| (0..steps).map(|i| scale * (pace * i as f64).sin()).collect::<Vec<_>>();
    let (rollout, shift, advantage) = (wave(1.0, 0.9), wave(0.2, 1.7), wave(1.0, 0.3));
    let log_prob: Vec<f64> = rollout.iter().zip(&shift).map(|(old, shift)| old + shift).collect();
    let alpha = 0.3;
    let surrogate = "tempered:0.3".parse::<Surrogate>().unwrap().without_clip();
    let mut workspace = Workspace::default();
    let batch = Batch::new(Rows::ragged(&offsets), &log_prob, &rollout, &advantage);
    let came = surrogate.evaluate(&batch, &mut workspace).unwrap();

    let close = |came: f64, expected: f64, what: &str| {
        assert!((came - expected).abs() < 1e-12 * (1.0 + expected.abs()), "{what}: {came} for {expected}");
    };
    let (mut objective, mut moments, mut witness) = (0.0, vec![[0.0; 3]; 150], vec![0.0; 150]);
    for row in offsets.windows(2).map(|row| row[0]..row[1]) {
        let ell: Vec<f64> = row.clone().map(|i| log_prob[i] - rollout[i]).collect();
        let prefix = |t: usize| ell[..t].iter().sum::<f64>();
        let term = |t: usize| (alpha * prefix(t) + ell[t]).exp() * advantage[row.start + t] / steps as f64;
        for t in 0..ell.len() {
            objective += term(t);
            let routed = alpha * (t + 1..ell.len()).map(term).sum::<f64>();
            close(came.cotangent[row.start + t], term(t) + routed, "cotangent");
            let ratio = prefix(t).exp();
            (0..3).for_each(|power| moments[t][power] += ratio.powi(power as i32));
            witness[t] += (ratio - 1.0) * ell[t].exp() * advantage[row.start + t];
        }
    }
    close(came.objective, objective, "objective");
    for (t, [mass, first, second]) in moments.into_iter().enumerate() {
        close(came.diagnostics.prefix_ess[t], first * first / (mass * second), "prefix ESS");
        close(came.diagnostics.bias_witness[t], witness[t] / mass, "witness");
    }
    assert_eq!((came.diagnostics.steps, came.diagnostics.lanes), (steps, 20));
}

#[test]
fn a_trajectory_keeps_its_bits_wherever_it_lies() {
    // The trajectories of `LONG`, from another one on: other neighbours, other places in squares and tiles.
    let value = |lane: usize, t: usize, pace: f64| (pace * (lane * 151 + t) as f64).sin();
    let cotangents = |surrogate: &Surrogate, from: usize| {
        let order: Vec<usize> = (0..LONG.len()).map(|at| (at + from) % LONG.len()).collect();
        let mut offsets = vec![0];
        order.iter().for_each(|&lane| offsets.push(offsets[offsets.len() - 1] + LONG[lane]));
        let wave = |pace: f64| -> Vec<f64> {
            order.iter().flat_map(|&lane| (0..LONG[lane]).map(move |t| value(lane, t, pace))).collect()
        };
        let (rollout, advantage) = (wave(0.9), wave(0.3));
        let log_prob: Vec<f64> =
            rollout.iter().zip(wave(1.7)).map(|(old, shift)| old + 0.2 * shift).collect();
        let mut workspace = Workspace::default();
        let batch = Batch::new(Rows::ragged(&offsets), &log_prob, &rollout, &advantage);
        let came = surrogate.evaluate(&batch, &mut workspace).unwrap().cotangent.to_vec();
        let mut by_lane = vec![Vec::new(); LONG.len()];
        for (row, &lane) in offsets.windows(2).zip(&order) {
            by_lane[lane] = came[row[0]..row[1]].iter().map(|value| value.to_bits()).collect();
        }
        by_lane
    };
    for loss in ["ppo", "tempered:0.3", "truncated:4", "clipped:0.25,1", "minpro", "gspo", "cispo:0.2,0.1"] {
        let surrogate: Surrogate = loss.parse().unwrap();
        let expected = cotangents(&surrogate, 0);
        for from in [1, 5, 8, 17] {
            assert_eq!(cotangents(&surrogate, from), expected, "{loss}, from {from}");
        }
    }
}

#[test]
fn a_prefix_ratio_comes_back_from_where_products_lose_digits() {
    // One trajectory of three falls to e^−700 and climbs back to 1 by step 200: all three weigh the same there.
    let ell = |i: usize| match i {
        0..100 => -7.0,
        100..200 => 7.0,
        _ => 0.0,
    };
    let current: Vec<f64> = (0..3 * 210).map(ell).collect();
    let zeros = vec![0.0; 3 * 210];
    let ppo: Surrogate = "ppo".parse().unwrap();
    let mut workspace = Workspace::default();
    let batch = Batch::new(Rows::uniform(210), &current, &zeros, &zeros);
    let came = ppo.evaluate(&batch, &mut workspace).unwrap().diagnostics;
    assert!((came.prefix_ess[205] - 1.0).abs() < 1e-12, "{}", came.prefix_ess[205]);
    // At step 100 it weighs nothing: two of three are left.
    assert!((came.prefix_ess[100] - 2.0 / 3.0).abs() < 1e-12, "{}", came.prefix_ess[100]);
    assert_eq!(came.zero_signal, 1.0);
}

#[test]
fn bad_batches_are_refused_by_name() {
    let ppo: Surrogate = "ppo".parse().unwrap();
    let refuse =
        |batch: Batch<'_, f64>| ppo.evaluate(&batch, &mut Workspace::default()).unwrap_err().to_string();
    let (three, four) = ([-1.0; 3], [-1.0; 4]);
    assert_eq!(
        refuse(Batch::new(Rows::uniform(2), &four, &three, &four)),
        "rollout_log_prob has 3 values where the batch has 4"
    );
    assert_eq!(
        refuse(Batch::new(Rows::uniform(3), &four, &four, &four)),
        "row offsets must start at 0, never fall and end at the number of steps"
    );
    assert_eq!(
        refuse(Batch::new(Rows::uniform(2), &four, &[-1.0, f64::NAN, -1.0, -1.0], &four)),
        "rollout_log_prob[1] is not a finite number"
    );
    assert_eq!(refuse(Batch::new(Rows::uniform(2), &[], &[], &[])), "the batch has no steps of the policy");
    assert_eq!(
        refuse(Batch::new(Rows::uniform(2), &four, &four, &four).masked(&[false; 4])),
        "the batch has no steps of the policy"
    );
    assert_eq!(
        refuse(Batch::new(Rows::uniform(2), &four, &four, &four).weighted(&[0.0, 0.0])),
        "trajectory weights must be finite, not negative and not all zero"
    );
    // A value that is not finite at a step that does not count is no one's business.
    let batch = Batch::new(Rows::uniform(2), &four, &[-1.0, f64::NAN, -1.0, -1.0], &four);
    assert!(ppo.evaluate(&batch.masked(&[true, false, true, true]), &mut Workspace::default()).is_ok());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_batch_does_not_depend_on_the_order_of_its_trajectories(seed in 0_u64..1000) {
        let case = Case::draw(seed);
        let reversed = case.reversed();
        for loss in ["tempered:0.4", "self-normalised:1", "gspo", "minpro"] {
            let surrogate: Surrogate = loss.parse().unwrap();
            let (mut one, mut other) = (Workspace::default(), Workspace::default());
            let forward = surrogate.evaluate(&case.batch(), &mut one).unwrap();
            let backward = surrogate.evaluate(&reversed.batch(), &mut other).unwrap();
            prop_assert!((forward.objective - backward.objective).abs() < 1e-13);
            prop_assert!((forward.diagnostics.dose - backward.diagnostics.dose).abs() < 1e-12);
            prop_assert!((forward.diagnostics.ess - backward.diagnostics.ess).abs() < 1e-12);
        }
    }

    #[test]
    fn ess_lies_between_zero_and_one_and_falls_with_strength(seed in 0_u64..1000) {
        let case = Case::draw(seed);
        let mut last = 1.0 + 1e-12;
        for alpha in [0.0, 0.1, 0.3, 0.6, 1.0] {
            let surrogate = Surrogate::new(Correction::tempered(alpha).unwrap());
            let mut workspace = Workspace::default();
            let ess = surrogate.evaluate(&case.batch(), &mut workspace).unwrap().diagnostics.ess;
            prop_assert!(ess > 0.0 && ess <= last + 1e-12, "α = {alpha}: {ess} after {last}");
            last = ess;
        }
    }
}

/// Prefix ratios that vanish, or grow beyond all numbers, still have an effective sample size.
#[test]
fn the_prefix_ess_survives_ratios_beyond_the_scalars_range() {
    let surrogate: Surrogate = "tempered:0.1".parse().unwrap();
    for shift in [-400.0, 400.0] {
        let rollout = [-1.0; 4];
        // Two trajectories whose first steps moved alike: at the second step their weights are equal, the ESS is 1.
        let current = [-1.0 + shift, -1.0, -1.0 + shift, -1.0];
        let mut workspace = Workspace::default();
        let batch = Batch::new(Rows::uniform(2), &current, &rollout, &[0.5, 0.5, -0.5, -0.5]);
        let diagnostics = surrogate.evaluate(&batch, &mut workspace).unwrap().diagnostics;
        assert_eq!(diagnostics.prefix_ess, [1.0, 1.0], "shift {shift}");
    }
}

#[test]
fn joined_weights_agree_with_the_twin_and_with_their_parts() {
    for seed in 0..12 {
        let case = Case::draw(seed);
        for surrogate in switched("token-tis:1.1+mean-k1:0.95,1.05+token-k2:0.02") {
            case.check(&surrogate);
        }
        // A weight joined with a mask that keeps everything is the weight.
        for (joined, alone) in [
            ("token-tis:1.1+mean-k1:0,inf", "token-tis:1.1"),
            ("sequence-mis:0.7,1.3+token-k2:inf", "sequence-mis:0.7,1.3"),
            ("normalised-token-tis:1.1+max-k3:inf", "normalised-token-tis:1.1"),
        ] {
            near(joined, alone, &case, 1e-13);
        }
    }
    let refuse = |name: &str| name.parse::<Correction>().unwrap_err().to_string();
    assert_eq!(
        refuse("token-tis+ppo"),
        "a plus joins weights from outside, such as token-tis:2+mean-k1; 'ppo' is not one; write it alone"
    );
}

/// Two losses that say the same of a batch, to a tolerance.
fn near(one: &str, other: &str, case: &Case, tolerance: f64) {
    for (one, other) in switched(one).iter().zip(switched(other)) {
        let (mut first, mut second) = (Workspace::default(), Workspace::default());
        let one_said = one.evaluate(&case.batch(), &mut first).unwrap();
        let other_said = other.evaluate(&case.batch(), &mut second).unwrap();
        assert!((one_said.objective - other_said.objective).abs() < tolerance, "{one:?}");
        let pairs = one_said.cotangent.iter().zip(other_said.cotangent);
        assert!(pairs.into_iter().all(|(a, b)| (a - b).abs() < tolerance), "{one:?} against {other:?}");
        assert!((one_said.diagnostics.ess - other_said.diagnostics.ess).abs() < 1e-12, "{one:?}");
        assert!((one_said.diagnostics.clip_fraction - other_said.diagnostics.clip_fraction).abs() < 1e-12);
    }
}

#[test]
fn written_losses_meet_the_normal_form_where_they_should() {
    for seed in 0..16 {
        let case = Case::draw(seed);
        for (one, other) in [
            ("top-entropy:1", "ppo"),
            ("off-policy-mask:inf", "ppo"),
            ("kl-penalty:0", "ppo"),
            ("kl-corrected:0", "ppo"),
            ("sequence-clamp:0,1.2", "sequence-tis:1.2"),
            ("sequence-k2:inf", "mean-k1:0,inf"),
        ] {
            near(one, other, &case, 1e-13);
        }
    }
    for seed in (0..16).step_by(2) {
        // Without an engine of its own, and without a clip.
        let case = Case::draw(seed);
        let unclipped = |loss: &str| loss.parse::<Surrogate>().unwrap().without_clip();
        for (one, other) in [
            ("dro:0", "gpg"),
            ("gmpo:inf,inf", "gspo"),
            ("dppo-tv:inf,inf,1.1", "token-tis:1.1"),
            ("dppo-kl:inf,inf,1.1", "token-tis:1.1"),
            ("vespo:0,0,0,0", "gpg"),
            ("kl-cov:0,0", "ppo"),
            ("clip-cov:0.1,9,9", "ppo"),
        ] {
            let (mut first, mut second) = (Workspace::default(), Workspace::default());
            let one_said = unclipped(one).evaluate(&case.batch(), &mut first).unwrap().cotangent;
            let other_said = unclipped(other).evaluate(&case.batch(), &mut second).unwrap().cotangent;
            // VESPO holds its rate at 1e-4, which leaves as much of the ratio's distance from one.
            let tolerance = if one.starts_with("vespo") { 1e-4 } else { 1e-13 };
            let close = one_said.iter().zip(other_said).all(|(a, b)| (a - b).abs() < tolerance);
            assert!(close, "{one} against {other}, seed {seed}");
        }
    }
}

#[test]
fn at_the_rollout_policy_every_gate_is_open() {
    // ℓ = 0 and no penalty: the gradient of every loss that neither drops nor penalises is PPO's own.
    for seed in (0..8).step_by(2) {
        let case = Case::draw(seed).at_the_rollout_policy();
        for loss in
            ["sapo", "sapo:3,5", "vespo", "dppo-tv", "dppo-kl", "dro:0.5", "normalised-token-tis", "max-k3"]
        {
            let (mut first, mut second) = (Workspace::default(), Workspace::default());
            let came =
                loss.parse::<Surrogate>().unwrap().evaluate(&case.batch(), &mut first).unwrap().cotangent;
            let ppo = "ppo".parse::<Surrogate>().unwrap();
            let expected = ppo.evaluate(&case.batch(), &mut second).unwrap().cotangent;
            assert!(came.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-15), "{loss}");
        }
    }
}
