//! The update's gradient, its minibatches, and exact values, each against a slow twin.

use super::{curve, recipe, with};
use niwaki_correction::{Batch, Rows, Surrogate, Workspace};
use niwaki_exact::{Process, Reward, Table, Values};
use niwaki_policies::{Rollout, RolloutShape};
use niwaki_train::player::{Loss, Player, RolloutRequest, Scores, TableInit, Tables};
use niwaki_train::update::{LossTerms, TrainingBatch};
use niwaki_train::{Device, Error, gather};
use std::path::Path;
use std::sync::Mutex;

const LANES: usize = 24;
const HORIZON: usize = 4;

fn tables(init: TableInit) -> Tables {
    Tables::new(recipe(&["task.horizon=4"]).tokens().unwrap(), &[3], init).unwrap()
}

/// Logits, then values where there is a critic.
fn parameters(player: &Tables, path: &Path) -> Vec<f64> {
    player.save(0, path, serde_json::Value::Null).unwrap();
    stored(path, "logits").into_iter().chain(stored_or_none(path, "values")).collect()
}

fn stored(path: &Path, name: &str) -> Vec<f64> {
    let found = stored_or_none(path, name);
    assert!(!found.is_empty());
    found
}

/// A tensor of a safetensors file, read by hand: the header says where it lies.
fn stored_or_none(path: &Path, name: &str) -> Vec<f64> {
    let bytes = std::fs::read(path).unwrap();
    let header = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let entries: serde_json::Value = serde_json::from_slice(&bytes[8..8 + header]).unwrap();
    let Some(place) = entries[name]["data_offsets"].as_array() else { return Vec::new() };
    let [start, end] = [0, 1].map(|side| 8 + header + place[side].as_u64().unwrap() as usize);
    let scalars = bytes[start..end].chunks_exact(8);
    scalars.map(|scalar| f64::from_le_bytes(scalar.try_into().unwrap())).collect()
}

/// One whole update by a step of plain gradient ascent of length 1 is the gradient; it must be the slope of objective
/// + entropy bonus − reference penalty − value loss, computed here from a softmax of its own.
#[test]
fn the_whole_updates_gradient_is_the_objectives_slope() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table");
    let init = TableInit { scale: 0.4, prime: None, critic: true, reference: true };
    let mut player = tables(init);
    let mut rollout = Rollout::default();
    let request = RolloutRequest::batch(0);
    player.roll_out(request, LANES, &mut rollout).unwrap();
    player.load(&rollout).unwrap();
    player.score().unwrap();
    let terms = LossTerms {
        surrogate: "tempered:0.6".parse::<Surrogate>().unwrap(),
        entropy: 0.03,
        reference_kl: 0.2,
        value: 0.7,
        fresh: false,
    };
    // Any rollout probabilities and targets will do; these are off policy on both sides.
    let wave = |place: usize, scale: f64| scale * (1.0 + 2.3 * place as f64).sin();
    let rollout_log_prob: Vec<f64> =
        player.scores(0).log_prob.iter().enumerate().map(|(place, log)| log + wave(place, 0.15)).collect();
    let steps = rollout_log_prob.len();
    let batch = TrainingBatch {
        shape: RolloutShape::uniform(1, LANES, HORIZON),
        rollout_log_prob,
        advantage: (0..steps).map(|place| wave(7 * place, 1.0)).collect(),
        reference_log_prob: (0..steps).map(|place| -1.2 + wave(3 * place, 0.3)).collect(),
        target: (0..steps).map(|place| wave(5 * place, 0.5)).collect(),
        ..TrainingBatch::default()
    };
    let at = parameters(&player, &path);
    let edges = Process::new(4, HORIZON).unwrap().edges();
    let mut rows = Vec::new();
    for lane in rollout.trajectories(0) {
        let mut row = 0;
        for &action in lane {
            rows.push((row, action as usize));
            row = 4 * row + 1 + action as usize;
        }
    }
    let worth = |parameters: &[f64]| {
        let count = steps as f64;
        let (mut log_prob, mut others) = (Vec::new(), 0.0);
        for (place, &(row, action)) in rows.iter().enumerate() {
            let logits = &parameters[4 * row..4 * row + 4];
            let total: f64 = logits.iter().map(|logit| logit.exp()).sum();
            let log = |token: usize| logits[token] - total.ln();
            log_prob.push(log(action));
            let entropy: f64 = (0..4).map(|token| -log(token).exp() * log(token)).sum();
            let ahead = batch.reference_log_prob[place] - log(action);
            let penalty = ahead.exp() - ahead - 1.0;
            let missed = batch.target[place] - parameters[edges + row];
            others +=
                terms.entropy * entropy - terms.reference_kl * penalty - terms.value * 0.5 * missed * missed;
        }
        let shown = Batch::new(Rows::uniform(HORIZON), &log_prob, &batch.rollout_log_prob, &batch.advantage);
        let mut workspace = Workspace::default();
        terms.surrogate.evaluate(&shown, &mut workspace).unwrap().objective + others / count
    };
    batch.pull_back(&mut player, &[terms], 0).unwrap();
    player.step(&niwaki_nn::Optimiser::sgd(), &[1.0]).unwrap();
    let moved = parameters(&player, &path);
    let mut checked = 0;
    for place in 0..at.len() {
        let gradient = moved[place] - at[place];
        if gradient == 0.0 && place % 11 != 0 {
            continue;
        }
        let shifted = |by: f64| {
            let mut parameters = at.clone();
            parameters[place] += by;
            worth(&parameters)
        };
        let slope = (shifted(1e-6) - shifted(-1e-6)) / 2e-6;
        assert!((slope - gradient).abs() < 1e-8, "{place}: slope {slope}, gradient {gradient}");
        checked += usize::from(gradient != 0.0);
    }
    assert!(checked > 100, "only {checked} parameters moved");
}

/// A player that notes what it is asked to score.
struct Notes {
    inner: Tables,
    loaded: Mutex<Vec<Vec<i32>>>,
}

impl Player for Notes {
    type Scalar = f64;

    fn members(&self) -> usize {
        self.inner.members()
    }
    fn roll_out(
        &mut self,
        request: RolloutRequest,
        lanes: usize,
        rollout: &mut Rollout,
    ) -> Result<(), Error> {
        self.inner.roll_out(request, lanes, rollout)?;
        // Mark each lane: after the second token the first two digits count the lane.
        for (lane, tokens) in rollout.actions.chunks_exact_mut(HORIZON).enumerate() {
            tokens[0] = (lane / 4 % 4) as i32;
            tokens[1] = (lane % 4) as i32;
            tokens[2] = (lane / 16 % 4) as i32;
        }
        self.load(rollout)
    }
    fn load(&mut self, rollout: &Rollout) -> Result<(), Error> {
        self.loaded.lock().unwrap().push(rollout.actions.clone());
        self.inner.load(rollout)
    }
    fn score(&mut self) -> Result<(), Error> {
        self.inner.score()
    }
    fn pull_back(&mut self, loss: &Loss<'_, f64>) -> Result<(), Error> {
        self.inner.pull_back(loss)
    }
    fn scores(&self, member: usize) -> Scores<'_, f64> {
        self.inner.scores(member)
    }
    fn reference(&mut self, rollout: &Rollout) -> Result<Vec<f64>, Error> {
        self.inner.reference(rollout)
    }
    fn step(&mut self, optimiser: &niwaki_nn::Optimiser, rates: &[f64]) -> Result<Vec<f64>, Error> {
        self.inner.step(optimiser, rates)
    }
    fn exact_returns(&mut self) -> Result<Option<Vec<f64>>, Error> {
        self.inner.exact_returns()
    }
    fn exact_advantage(&self, member: usize, rollout: &Rollout) -> Option<Vec<f64>> {
        self.inner.exact_advantage(member, rollout)
    }
    fn layout(&self) -> &niwaki_nn::Layout {
        self.inner.layout()
    }
    fn checkpoint(&self, member: usize) -> Result<niwaki_nn::Checkpoint<f64>, Error> {
        self.inner.checkpoint(member)
    }
    fn set_checkpoint(
        &mut self,
        member: usize,
        checkpoint: &niwaki_nn::Checkpoint<f64>,
    ) -> Result<(), Error> {
        self.inner.set_checkpoint(member, checkpoint)
    }
    fn save(&self, member: usize, path: &Path, state: serde_json::Value) -> Result<(), Error> {
        // The notes leave by the only door that a trainer opens.
        std::fs::write(path, serde_json::to_string(&*self.loaded.lock().unwrap()).unwrap()).unwrap();
        let _ = (member, state);
        Ok(())
    }
}

#[test]
fn minibatches_are_whole_trajectories_and_each_epoch_sees_each_once() {
    const EPOCHS: usize = 3;
    const PARTS: usize = 4;
    let recipe = with("tabular", &["update.minibatches=4", "update.reuse=3"]);
    let init = TableInit { scale: 0.1, prime: None, critic: false, reference: false };
    let inner = Tables::new(recipe.tokens().unwrap(), &[0], init).unwrap();
    let player = Notes { inner, loaded: Mutex::default() };
    let mut trainer = niwaki_train::trainer::Trainer::new(player, vec![recipe]).unwrap();
    trainer.advance().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("notes");
    trainer.save(0, &path).unwrap();
    let loaded: Vec<Vec<i32>> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    // The whole batch, the parts of all epochs, the whole batch again for the record.
    assert_eq!(loaded.len(), 1 + EPOCHS * PARTS + 1);
    let lanes = |of: &[i32]| -> Vec<Vec<i32>> { of.chunks_exact(HORIZON).map(<[i32]>::to_vec).collect() };
    let mut whole = lanes(&loaded[0]);
    let mut orders = Vec::new();
    for epoch in loaded[1..=EPOCHS * PARTS].chunks_exact(PARTS) {
        assert!(epoch.iter().all(|part| part.len() == 32 / PARTS * HORIZON));
        let seen: Vec<Vec<i32>> = epoch.iter().flat_map(|part| lanes(part)).collect();
        let mut sorted = seen.clone();
        sorted.sort();
        whole.sort();
        assert_eq!(sorted, whole);
        orders.push(seen);
    }
    assert_ne!(orders[0], orders[1], "each epoch has its own order");
    assert_eq!(loaded.last(), loaded.first());
}

#[test]
fn the_exact_eta_is_the_oracles() {
    let recipe = with("tabular", &["policy.scale=0.5", "update.correction=tempered:0.25"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table");
    let mut cohort = gather(vec![recipe], &Device::Cpu).unwrap();
    let process = Process::new(4, HORIZON).unwrap();
    let payoff = Reward::TwoBranch.payoff(process).unwrap();
    for _ in 0..5 {
        let record = cohort.advance().unwrap().remove(0);
        cohort.save(0, &path).unwrap();
        let table = Table::new(process, &stored(&path, "logits")).unwrap();
        let eta = Values::new(&table, &payoff).unwrap().eta();
        assert!((record.eta.unwrap() - eta).abs() < 1e-14);
    }
}

#[test]
fn the_exact_advantages_are_the_oracles_on_the_rollout_policy() {
    let recipe = with("tabular", &["policy.scale=0.5", "advantage.kind=exact"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("table");
    let mut cohort = gather(vec![recipe], &Device::Cpu).unwrap();
    cohort.save(0, &path).unwrap();
    cohort.advance().unwrap();
    let batch = cohort.last_batch(0);
    let process = Process::new(4, HORIZON).unwrap();
    let table = Table::new(process, &stored(&path, "logits")).unwrap();
    let values = Values::new(&table, &Reward::TwoBranch.payoff(process).unwrap()).unwrap();
    // The exact advantage of each edge of each trajectory, found by its log-probability from the root.
    for (log_prob, advantage) in
        batch.rollout.chunks_exact(HORIZON).zip(batch.advantage.chunks_exact(HORIZON))
    {
        let mut row = 0;
        for (log_prob, advantage) in log_prob.iter().zip(advantage) {
            let logits = &stored(&path, "logits")[4 * row..4 * row + 4];
            let total: f64 = logits.iter().map(|logit| logit.exp()).sum();
            let chosen = (0..4).find(|&token| (logits[token] - total.ln() - log_prob).abs() < 1e-12).unwrap();
            assert!((values.advantage()[4 * row + chosen] - advantage).abs() < 1e-14);
            row = 4 * row + 1 + chosen;
        }
    }
}

#[test]
fn drift_is_that_of_the_whole_update() {
    for policy in super::POLICIES {
        // The one step that there is has moved the policy, unless it had nothing to go by or no length.
        let moved = curve(&with(policy, &["update.reuse=1", "update.correction=full"]));
        assert!(moved.iter().all(|record| (record.drift > 0.0) == (record.gradient_norm > 0.0)), "{policy}");
        assert!(moved.iter().any(|record| record.drift > 0.0), "{policy}");
        let still = curve(&with(policy, &["update.reuse=1", "update.correction=full", "optimiser.rate=0"]));
        assert!(still.iter().all(|record| record.drift == 0.0 && record.clip_fraction == 0.0), "{policy}");
    }
}
