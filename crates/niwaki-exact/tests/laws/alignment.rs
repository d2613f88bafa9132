//! Alignment at N: the moments of one trajectory's gradient, against batches that are drawn and against what they must be.

use crate::golden::{REWARDS, VARIANTS};
use crate::support::{CLIPS, fixture_tables, losses, noise, unclipped};
use niwaki_correction::Surrogate;
use niwaki_exact::{
    AdvantageSource, Batches, Error, Measurement, Pair, Payoff, Process, Reward, Table, Workspace,
};

#[test]
fn by_hand() {
    // Three tokens, one step, uniform, the first pays: A = (⅔, −⅓, −⅓) and |z|² = ⅔. E|g|² = ⅓·⅔·(4 + 1 + 1)/9 = 4/27,
    // ∇η = (2, −1, −1)/9 with |∇η|² = 2/27, so the trace is 2/27 as well and A(N) = 1/√(1 + 1/N).
    let process = Process::new(3, 1).unwrap();
    let table = Table::uniform(process);
    let payoff = Payoff::from_table(process, vec![1.0, 0.0, 0.0]).unwrap();
    let pair = Pair::new(&table, &table, &payoff).unwrap();
    let ppo = pair.measure(&unclipped("ppo"), &mut Workspace::default()).unwrap();
    assert!((ppo.gradient_variance - 2.0 / 27.0).abs() < 1e-15, "{ppo:?}");
    for batch in [2, 3, 256] {
        let by_hand = 1.0 / (1.0 + 1.0 / batch as f64).sqrt();
        assert!((ppo.alignment(batch).unwrap() - by_hand).abs() < 1e-15);
    }
    for batch in [0, 1] {
        assert_eq!(ppo.alignment(batch), Err(Error::Batch(batch)));
        assert_eq!(pair.batches(&unclipped("ppo"), batch as usize, 3, 1), Err(Error::Batch(batch)));
    }
}

#[test]
fn it_grows_with_the_batch_to_the_cosine() {
    for process in [Process::new(3, 4).unwrap(), Process::new(4, 6).unwrap()] {
        let (old, new) = fixture_tables(process);
        let mut workspace = Workspace::default();
        for (_, reward) in REWARDS {
            let pair = Pair::new(&old, &new, &reward.payoff(process).unwrap()).unwrap();
            for (_, loss) in VARIANTS {
                let came = pair.measure(&unclipped(loss), &mut workspace).unwrap();
                let at = |batch: u64| came.alignment(batch).unwrap();
                assert!((at(u64::MAX) - came.cosine).abs() < 1e-12, "{reward}, {loss}");
                let grows = [2, 3, 16, 256, 4096, 1 << 40].windows(2).all(|two| at(two[0]) < at(two[1]));
                assert!(grows && at(2) > 0.0 && at(1 << 40) < came.cosine, "{reward}, {loss}: {came:?}");
            }
        }
    }
}

/// How many standard errors what was drawn lies from what is exact.
fn away(drawn: &[f64], exact: f64) -> f64 {
    let mean = niwaki_stats::mean(drawn).unwrap();
    let error = niwaki_stats::sem(drawn).unwrap();
    let off = (mean - exact).abs();
    if off <= 1e-12 * exact.abs() { 0.0 } else { off / error }
}

#[test]
fn moments_are_those_of_batches_that_are_drawn() {
    let process = Process::new(3, 4).unwrap();
    let names: Vec<&str> = losses().filter(|name| !unclipped(name).correction.rule().coupled()).collect();
    let mut workspace = Workspace::default();
    let (mut off, mut tests, mut furthest) = (0, 0, 0.0_f64);
    for case in 0..50_usize {
        let old = noise(process.edges(), 1000 + case as u64, 0.3);
        let by = noise(process.edges(), 2000 + case as u64, 0.5);
        let new: Vec<f64> = old.iter().zip(by).map(|(old, by)| old + by).collect();
        let (old, new) = (Table::new(process, &old).unwrap(), Table::new(process, &new).unwrap());
        let payoff = Reward::LADDER[case % 4].payoff(process).unwrap();
        let source = [AdvantageSource::Exact, AdvantageSource::Returns][case / 4 % 2];
        let pair = Pair::with_advantages(&old, &new, &payoff, source).unwrap();
        for (index, batch) in [16, 64, 256].into_iter().enumerate() {
            let loss = names[(3 * case + index) % names.len()];
            let surrogate = Surrogate { clip: CLIPS[(case + index) % 3], ..unclipped(loss) };
            let came = pair.measure(&surrogate, &mut workspace).unwrap();
            let drawn = pair.batches(&surrogate, batch, 100, 7 + case as u64).unwrap();
            let along = if came.cosine.is_nan() { 0.0 } else { came.cosine * came.gradient_norm };
            let square = came.gradient_norm.powi(2) + came.gradient_variance / batch as f64;
            for (what, drawn, exact) in [("along", &drawn.along, along), ("square", &drawn.square, square)] {
                let away = away(drawn, exact);
                // 300 tests: all but about one in ten thousand runs stay within 4.9 standard errors, each of them.
                assert!(away < 4.9, "case {case}, {loss}, N = {batch}, {source:?}: {what} is {away} away");
                (tests, off, furthest) = (tests + 1, off + usize::from(away > 2.0), furthest.max(away));
            }
        }
    }
    // Of 300 draws 14 are expected beyond two standard errors, and more than 26 in one of a thousand runs.
    assert!(
        tests == 300 && off <= 26,
        "{off} of {tests} beyond two standard errors, the furthest {furthest}"
    );
}

#[test]
fn a_loss_without_a_gradient_is_the_last() {
    let process = Process::new(4, 4).unwrap();
    let (old, new) = fixture_tables(process);
    let pair = Pair::new(&old, &new, &Reward::LateOnly.payoff(process).unwrap()).unwrap();
    let mut workspace = Workspace::default();
    let mut measure = |loss: &str| pair.measure(&unclipped(loss), &mut workspace).unwrap();
    let nothing = measure("max-k3:0.0000001");
    assert!(nothing.cosine.is_nan() && nothing.mse < measure("ppo").mse, "the least error of all");
    let at = |measured: &Measurement| measured.alignment(256).unwrap();
    assert_eq!(at(&nothing), 0.0);
    for loss in ["ppo", "full", "gspo", "tempered:0.25"] {
        assert!(at(&measure(loss)) > 0.0, "{loss}");
    }
    // Batches without a gradient count as 0, and are no less batches.
    let drawn = pair.batches(&unclipped("max-k3:0.0000001"), 16, 5, 1).unwrap();
    assert_eq!(drawn, Batches { along: vec![0.0; 5], square: vec![0.0; 5] });
    assert_eq!(drawn.mean_cosine(), 0.0);
    // A reward that pays nothing has no direction.
    let flat = Payoff::from_table(process, vec![0.0; process.sequences()]).unwrap();
    let flat = Pair::new(&old, &new, &flat).unwrap();
    let measured = flat.measure(&unclipped("ppo"), &mut Workspace::default()).unwrap();
    assert_eq!(measured.alignment(2), Ok(0.0));
}
