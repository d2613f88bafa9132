//! The paper's identities.

use crate::support::{assert_near, fixture_tables, listed, losses, noise, unclipped};
use niwaki_correction::{Correction, Surrogate};
use niwaki_exact::{AdvantageSource, Measurement, Pair, Payoff, Process, Reward, Spread, Table, Workspace};

/// Fixture policies on every reward of the ladder, at two sizes, and a wide pair.
fn each_pair(mut visit: impl FnMut(&str, &Pair<'_>, &mut Workspace)) {
    let mut workspace = Workspace::default();
    for (vocab, horizon) in [(3, 4), (4, 6), (2, 7)] {
        let process = Process::new(vocab, horizon).unwrap();
        let (old, near) = fixture_tables(process);
        let far = Table::new(process, &noise(process.edges(), 5, 1.5)).unwrap();
        for reward in Reward::LADDER {
            let payoff = reward.payoff(process).unwrap();
            for (name, new) in [("near", &near), ("far", &far)] {
                let pair = Pair::new(&old, new, &payoff).unwrap();
                visit(&format!("{process}, {reward}, {name}"), &pair, &mut workspace);
            }
        }
    }
}

#[test]
fn the_full_correction_is_unbiased_and_points_along_the_return() {
    each_pair(|what, pair, workspace| {
        let full = pair.measure(&unclipped("full"), workspace).unwrap();
        assert!(full.bias.abs() < 1e-15, "{what}: {:e}", full.bias);
        assert!((full.cosine - 1.0).abs() < 1e-12, "{what}: {}", full.cosine);
        let gradient = pair.gradient(&unclipped("full"), workspace).unwrap();
        assert_near(what, &gradient, pair.eta_gradient(), 1e-12);
        let difference = pair.new_values().eta() - pair.old_values().eta();
        assert!((pair.improvement() - difference).abs() < 1e-15);
    });
}

#[test]
fn members_that_are_the_same_are_so_to_the_bit() {
    let bits = |measured: &Measurement| {
        let Measurement { mean, bias, variance, mse, cosine, gradient_norm, ess, .. } = measured;
        [mean, bias, variance, mse, cosine, gradient_norm, ess].map(|value| value.to_bits())
    };
    each_pair(|what, pair, workspace| {
        let last = pair.process().horizon() - 1;
        let (longest, longer) = (format!("truncated:{last}"), format!("truncated:{}", last + 5));
        let same = [
            ("tempered:0", "ppo"),
            ("tempered:1", "full"),
            (longest.as_str(), "full"),
            (longer.as_str(), "full"),
            ("truncated:inf", "full"),
            ("clipped:0.25,inf", "tempered:0.25"),
            ("clipped:0.7,inf", "tempered:0.7"),
            ("ctpo", "full"),
            ("adaptive:0", "full"),
        ];
        for (one, other) in same {
            let mut measure = |loss| pair.measure(&unclipped(loss), workspace).unwrap();
            assert_eq!(bits(&measure(one)), bits(&measure(other)), "{what}: {one} and {other}");
            let one = pair.gradient(&unclipped(one), workspace).unwrap();
            assert_eq!(one, pair.gradient(&unclipped(other), workspace).unwrap());
        }
    });
}

#[test]
fn a_normalised_full_correction_is_the_full_correction() {
    // E[R_t] = 1, so the exact normaliser is 1: the self-normalised bias is an artefact of small batches only.
    each_pair(|what, pair, workspace| {
        let full = pair.measure(&unclipped("full"), workspace).unwrap();
        let normalised = pair.measure(&unclipped("self-normalised:1"), workspace).unwrap();
        assert_near(what, &[normalised.variance], &[full.variance], 1e-12);
        assert!(normalised.bias.abs() < 1e-15, "{what}");
    });
}

#[test]
fn a_custom_rule_is_measured_as_the_member_with_the_same_rule() {
    each_pair(|what, pair, workspace| {
        for loss in losses().map(unclipped) {
            let mine = Correction::custom("mine", loss.correction.rule()).unwrap();
            let custom = Surrogate { correction: mine, ..loss };
            let [mine, member] = [custom, loss].map(|loss| pair.measure(&loss, workspace).unwrap());
            // As text: a direction that does not exist is not a number, which equals nothing.
            assert_eq!(format!("{mine:?}"), format!("{member:?}"), "{what}, {loss:?}");
        }
    });
}

#[test]
fn the_error_splits_into_bias_and_variance_and_positions_into_the_mean() {
    each_pair(|what, pair, workspace| {
        for loss in niwaki_correction::family::TESTBED {
            let came = pair.measure(&unclipped(loss), workspace).unwrap();
            assert_near(what, &[came.mse], &[came.bias * came.bias + came.variance], 1e-15);
            let by_position: f64 = came.mean_at.iter().sum();
            assert!((by_position - came.mean).abs() < 1e-15, "{what}, {loss}");
            assert!(came.ess > 0.0 && came.ess <= 1.0 + 1e-15, "{what}, {loss}: {}", came.ess);
        }
    });
}

#[test]
fn the_bias_witness_is_a_covariance_and_sums_to_what_ppo_omits() {
    each_pair(|what, pair, workspace| {
        let conditions = pair.conditions();
        let ppo = pair.measure(&unclipped("ppo"), workspace).unwrap();
        let total: f64 = conditions.bias_witness.iter().sum();
        assert!((total + ppo.bias).abs() < 1e-15, "{what}: {total:e} and {:e}", ppo.bias);
        for (b, covariance) in conditions.bias_witness.iter().zip(&conditions.bias_witness_covariance) {
            assert!((b - covariance).abs() < 1e-15, "{what}: {b:e} and {covariance:e}");
        }
        assert_eq!(conditions.bias_witness[0], 0.0);
    });
}

#[test]
fn the_prefix_ratio_has_mean_one_and_no_mean_score() {
    for (vocab, horizon) in [(3, 4), (2, 5)] {
        let process = Process::new(vocab, horizon).unwrap();
        let (old, new) = fixture_tables(process);
        for t in 0..horizon {
            // Listed: E[R_t] and the table E[R_t S_t].
            let (mut mean, mut score) = (0.0, vec![0.0; process.edges()]);
            for (chance, edges) in listed(&old) {
                let log_ratio: f64 =
                    edges[..t].iter().map(|&edge| new.log_prob()[edge] - old.log_prob()[edge]).sum();
                mean += chance * log_ratio.exp();
                edges[..t].iter().for_each(|&edge| score[edge] += chance * log_ratio.exp());
            }
            new.pull_back(&mut score);
            assert!((mean - 1.0).abs() < 1e-14, "E[R] at {t}: {mean}");
            assert!(score.iter().all(|score| score.abs() < 1e-14), "E[R S] at {t}");
        }
        let drift = Pair::new(&old, &new, &Reward::LateOnly.payoff(process).unwrap()).unwrap().drift();
        // χ² = E[R²] − 1 and ESS = 1 / E[R²] where E[R] = 1; the last position's step adds the sequence's.
        assert!(drift.chi2_sequence > 1.0 / drift.prefix_ess_at[horizon - 1] - 1.0);
        assert_eq!(drift.prefix_ess_at[0], 1.0);
    }
}

#[test]
fn drift_is_the_variance_that_the_prefix_accumulates() {
    // Var(Σ m_i) = σ²T exactly for the centred terms m_i = ℓ_i − E[ℓ_i | s_i].
    let process = Process::new(3, 4).unwrap();
    let (old, new) = fixture_tables(process);
    let ell: Vec<f64> = new.log_prob().iter().zip(old.log_prob()).map(|(new, old)| new - old).collect();
    let centre = |edge: usize| {
        let row = edge / 3 * 3..edge / 3 * 3 + 3;
        ell[edge] - row.map(|edge| old.prob()[edge] * ell[edge]).sum::<f64>()
    };
    let variance: f64 = listed(&old)
        .into_iter()
        .map(|(chance, edges)| chance * edges.into_iter().map(centre).sum::<f64>().powi(2))
        .sum();
    let drift = Pair::new(&old, &new, &Reward::LateOnly.payoff(process).unwrap()).unwrap().drift();
    assert!((drift.drift - variance).abs() < 1e-14, "{} and {variance}", drift.drift);
}

#[test]
fn the_spread_within_states_is_the_drift_and_the_others_are_those_of_listed_trajectories() {
    for (vocab, horizon) in [(3, 4), (2, 5), (4, 1)] {
        let process = Process::new(vocab, horizon).unwrap();
        let (old, new) = fixture_tables(process);
        let spread = Spread::between(&old, &new).unwrap();
        let ell = |edge: usize| new.log_prob()[edge] - old.log_prob()[edge];
        let variance = |of: &dyn Fn(&[usize]) -> f64| -> f64 {
            let all = listed(&old);
            let mean: f64 = all.iter().map(|(chance, edges)| chance * of(edges)).sum();
            all.iter().map(|(chance, edges)| chance * (of(edges) - mean).powi(2)).sum()
        };
        let across: f64 = (0..horizon).map(|t| variance(&|edges| ell(edges[t]))).sum();
        let prefix = variance(&|edges| edges[..horizon - 1].iter().map(|&edge| ell(edge)).sum());
        let drift = Pair::new(&old, &new, &Reward::LateOnly.payoff(process).unwrap()).unwrap().drift().drift;
        assert!((spread.conditional - drift).abs() < 1e-14, "{} and {drift}", spread.conditional);
        assert!((spread.across - across).abs() < 1e-14, "{} and {across}", spread.across);
        assert!((spread.prefix - prefix).abs() < 1e-14, "{} and {prefix}", spread.prefix);
        // The law of total variance; at one step there is one state, and no prefix.
        assert!(if horizon == 1 { spread.prefix == 0.0 } else { spread.across > spread.conditional });
    }
}

#[test]
fn nothing_differs_at_the_rollout_policy_unless_the_advantage_is_off_centre() {
    let process = Process::new(4, 5).unwrap();
    let table = Table::new(process, &noise(process.edges(), 7, 0.4)).unwrap();
    let mut workspace = Workspace::default();
    for reward in Reward::LADDER {
        let payoff = reward.payoff(process).unwrap();
        for (source, silent) in [(AdvantageSource::Exact, true), (AdvantageSource::Returns, false)] {
            let pair = Pair::with_advantages(&table, &table, &payoff, source).unwrap();
            for loss in ["full", "tempered:0.25", "truncated:2", "clipped:0.25,1"] {
                let channels = pair.channels(&unclipped(loss), &mut workspace).unwrap();
                assert_eq!(channels.reweighting_total.norm, 0.0, "{reward}, {loss}");
                let routed = channels.routing_total.norm / pair.eta_gradient_norm();
                let as_expected = if silent { routed < 1e-14 } else { routed > 0.1 };
                assert!(as_expected, "{reward}, {source:?}, {loss}: {routed:e}");
            }
        }
    }
}

#[test]
fn late_only_follows_its_closed_form() {
    // Uniform rollouts, late-only, T = 6: E[MSE] ≈ 3/16 · c(2) · c(2α)⁵ with c(s) = E[(4π)^s] over the noise.
    // It neglects the spread of the bias and treats rows as independent draws: within 6% over 25 seeds.
    let process = Process::new(4, 6).unwrap();
    let (old, payoff) = (Table::uniform(process), Reward::LateOnly.payoff(process).unwrap());
    let mut workspace = Workspace::default();
    let alphas = [0.0, 0.1, 0.25, 0.5];
    let mut measured = [0.0; 4];
    let mut powers = [0.0; 5]; // c at 2 and at 2α
    for seed in 0..25 {
        let new = Table::new(process, &noise(process.edges(), 100 + seed, 1.0)).unwrap();
        let pair = Pair::new(&old, &new, &payoff).unwrap();
        let share = 1.0 / (25.0 * process.edges() as f64);
        for (power, s) in powers.iter_mut().zip([2.0, 0.0, 0.2, 0.5, 1.0]) {
            *power += new.prob().iter().map(|prob| (4.0 * prob).powf(s)).sum::<f64>() * share;
        }
        for (mse, alpha) in measured.iter_mut().zip(alphas) {
            let loss = Surrogate::new(Correction::tempered(alpha).unwrap()).without_clip();
            *mse += pair.measure(&loss, &mut workspace).unwrap().mse / 25.0;
        }
    }
    for index in 0..4 {
        let closed = 3.0 / 16.0 * powers[0] * powers[index + 1].powi(5);
        let off = measured[index] / closed - 1.0;
        assert!(off.abs() < 0.06, "α = {}: {} against {closed}", alphas[index], measured[index]);
    }
    // α = ½ equals PPO (c(0) = c(1) = 1), and the minimum lies between.
    assert!(measured[2] < 0.75 * measured[0] && (measured[3] / measured[0] - 1.0).abs() < 0.1);
}

#[test]
fn a_factor_whose_square_overflows_does_no_harm_where_nothing_varies() {
    // The first token is taken by e^-400 at first and by a half later: R = e^400 / 2 after it, where both choices pay ½.
    let process = Process::new(2, 2).unwrap();
    let old = Table::new(process, &[400.0, 0.0, 0.0, 0.0, 0.0, 0.0]).unwrap();
    let new = Table::uniform(process);
    let payoff = Payoff::from_table(process, vec![1.0, 0.0, 0.5, 0.5]).unwrap();
    let pair = Pair::new(&old, &new, &payoff).unwrap();
    let measured = pair.measure(&unclipped("full"), &mut Workspace::default()).unwrap();
    assert!(measured.bias.abs() < 1e-15 && measured.variance.is_finite(), "{measured:?}");
}

#[test]
fn a_member_that_drops_every_step_has_no_sample() {
    // Ratios 2·0.9 and 2·0.1: both outside of 1 ± 0.1, alone and along the sequence.
    let process = Process::new(2, 1).unwrap();
    let (old, new) = (Table::uniform(process), Table::new(process, &[9.0_f64.ln(), 0.0]).unwrap());
    let pair = Pair::new(&old, &new, &Reward::LateOnly.payoff(process).unwrap()).unwrap();
    for loss in ["token-mis:0.9,1.1", "sequence-mis:0.9,1.1"] {
        let measured = pair.measure(&unclipped(loss), &mut Workspace::default()).unwrap();
        assert_eq!((measured.ess, measured.mean, measured.variance), (0.0, 0.0, 0.0), "{loss}");
        assert!(measured.cosine.is_nan(), "{loss}");
    }
}

#[test]
fn policies_too_far_apart_are_refused_in_one_line() {
    // Ratios of e^600 at every step: the second one overflows.
    let process = Process::new(2, 3).unwrap();
    let tilt = |by: f64| (0..process.edges()).map(|edge| if edge % 2 == 0 { by } else { 0.0 }).collect();
    let (low, high): (Vec<f64>, Vec<f64>) = (tilt(-600.0), tilt(600.0));
    let (old, new) = (Table::new(process, &low).unwrap(), Table::new(process, &high).unwrap());
    let pair = Pair::new(&old, &new, &Reward::LateOnly.payoff(process).unwrap()).unwrap();
    let refused = pair.measure(&unclipped("full"), &mut Workspace::default()).unwrap_err();
    assert!(refused.to_string().ends_with("is not a finite number; the two policies are too far apart"));
}
