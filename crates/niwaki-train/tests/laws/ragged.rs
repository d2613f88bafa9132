//! Trajectories of different lengths: against twins that are padded to one length, and items that are single steps.

use super::{curve, curves, with};
use niwaki_correction::{Batch, Rows, Surrogate, Workspace};
use niwaki_nn::{Cpu, DynEngine, Graph, Index, Init, Optimiser, Storage, Value};
use niwaki_policies::{Draw, DrawRequest, Error as PolicyError, Heads, Item, MakeEngine, Policy, Rollout};
use niwaki_tasks::Sequence;
use niwaki_train::player::{
    Cotangents, Neural, Player, RolloutRequest, Scores, TableInit, Tables, TokenEnvironment,
};
use niwaki_train::run::{self, Trajectory};
use niwaki_train::spec::Played;
use niwaki_train::trainer::Trainer;
use niwaki_train::update::{LossTerms, TrainingBatch};
use niwaki_train::{Device, Recipe, Record};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

const HORIZON: usize = 5;
const END: usize = 3;

/// Token 3 ends a sequence; one that starts with 0 and was ended in an even number of steps is paid.
///
/// Its padded twin goes on to the horizon and leaves only token 3 open once that was chosen, so it is the same process
/// with steps at its end that nobody chooses.
#[derive(Clone, Copy, Debug)]
struct Stops {
    padded: bool,
}

impl Sequence for Stops {
    fn vocab(&self) -> usize {
        4
    }
    fn horizon(&self) -> usize {
        HORIZON
    }
    fn masked(&self) -> bool {
        true
    }
    fn open(&self, prefix: &[usize], open: &mut [bool]) {
        open.fill(true);
        if prefix.contains(&END) {
            open[..END].fill(false);
        }
    }
    fn end(&self) -> Option<usize> {
        (!self.padded).then_some(END)
    }
    fn reward(&self, tokens: &[usize]) -> f64 {
        let ended = tokens.iter().position(|&token| token == END);
        f64::from(u8::from(tokens[0] == 0 && ended.is_some_and(|place| place % 2 == 1)))
    }
}

/// A small recipe of a policy on that task.
fn stops(policy: &str, padded: bool, more: &[&str]) -> Recipe {
    let horizon = format!("task.horizon={HORIZON}");
    let recipe = with(policy, &[&[horizon.as_str()], more].concat());
    Recipe { task: Played::Tokens(Arc::new(Stops { padded })), ..recipe }
}

const TOKEN_POLICIES: [&str; 3] = ["tabular", "bag", "causal"];

/// Under PPO the padded twin's gradient is the ragged one times a number: its extra steps have probability one, so they
/// add to the count and to nothing else. A normalised step is then the same.
#[test]
fn a_ragged_run_is_the_padded_one() {
    for policy in TOKEN_POLICIES {
        for more in [
            &["update.minibatches=4"][..],
            &["advantage.kind=group", "rollout.group=8"],
            &["evaluate.greedy=true"],
        ] {
            let settings = [&["iterations=6", "update.reuse=3"], more].concat();
            // Minibatches have counts of their own, and a step of fixed length forgets them all the same.
            let [ragged, padded] = [false, true].map(|padded| curve(&stops(policy, padded, &settings)));
            for (ragged, padded) in ragged.iter().zip(&padded) {
                let close = |what: &str, ragged: f64, padded: f64| {
                    assert!((ragged - padded).abs() < 2e-3, "{policy} {what}: {ragged}, padded {padded}");
                };
                close("eta", ragged.eta.unwrap_or(0.0), padded.eta.unwrap_or(0.0));
                close("greedy", ragged.greedy.unwrap_or(0.0), padded.greedy.unwrap_or(0.0));
                close("batch", ragged.batch_reward, padded.batch_reward);
                assert_eq!(ragged.first, padded.first, "{policy}");
                // A batch without a signal does not move either of them.
                assert_eq!(ragged.drift > 0.0, padded.drift > 0.0, "{policy}");
                // Steps that nobody chooses have no entropy.
                assert!(ragged.entropy >= padded.entropy, "{policy}");
            }
            let moved = |record: &Record| record.drift > 0.0 && record.batch_reward > 0.0;
            let shorter = ragged.iter().zip(&padded).any(|(ragged, padded)| ragged.entropy > padded.entropy);
            assert!(ragged.iter().any(moved) && shorter, "{policy}: nothing happened, the law is empty");
        }
    }
}

/// The exact return of a table does not mind what a process does after its end.
#[test]
fn exact_values_of_both_twins_are_the_same() {
    let settings = ["advantage.kind=exact", "update.correction=ppo", "optimiser.rate=1.0", "iterations=8"];
    let [ragged, padded] = [false, true].map(|padded| curve(&stops("tabular", padded, &settings)));
    for (ragged, padded) in ragged.iter().zip(&padded) {
        assert!((ragged.eta.unwrap() - padded.eta.unwrap()).abs() < 1e-10);
    }
    assert!(ragged.last().unwrap().eta > ragged[0].eta);
}

/// What the trainer hands to the correction is what a padded batch with a mask gives, for every kind of loss.
#[test]
fn cotangents_are_those_of_a_masked_batch() {
    let names = [
        "ppo",
        "tempered:0.4",
        "full",
        "truncated:2",
        "clipped:0.5,1",
        "self-normalised",
        "adaptive:0.8",
        "by-length:1.5",
        "outside:0.4",
    ];
    let init = TableInit { scale: 0.4, prime: None, critic: true, reference: false };
    let mut player = Tables::new(Arc::new(Stops { padded: false }), &[3, 4], init).unwrap();
    let mut rollout = Rollout::default();
    player.roll_out(request(), 24, &mut rollout).unwrap();
    player.score().unwrap();
    let wave = |place: usize, scale: f64| scale * (1.0 + 2.3 * place as f64).sin();
    let scores: Vec<f64> = (0..2).flat_map(|member| player.scores(member).log_prob.to_vec()).collect();
    let steps = scores.len();
    assert!(steps < 2 * 24 * HORIZON, "all trajectories went to the horizon, the law is empty");
    let batch = TrainingBatch {
        shape: rollout.shape.clone(),
        rollout_log_prob: scores.iter().enumerate().map(|(place, log)| log + wave(place, 0.2)).collect(),
        advantage: (0..steps).map(|place| wave(7 * place, 1.0)).collect(),
        target: (0..steps).map(|place| wave(5 * place, 0.5)).collect(),
        ..TrainingBatch::default()
    };
    for name in names {
        let surrogate: Surrogate = name.parse().unwrap();
        let terms = LossTerms { surrogate, entropy: 0.03, reference_kl: 0.0, value: 0.7, fresh: false };
        let asked = Asked::of(&batch, &mut player, terms);
        for member in 0..2 {
            let shape = &rollout.shape;
            let own = shape.member(member);
            let padded = |from: &[f64], padding: f64| {
                let mut to = vec![0.0; 24 * HORIZON];
                shape.pad(member, 0..24, &from[own.clone()], padding, &mut to);
                to
            };
            let mask: Vec<bool> = padded(&vec![1.0; steps], 0.0).iter().map(|&kept| kept == 1.0).collect();
            // Whatever stands behind an end is not looked at.
            let (now, then) = (padded(&scores, -3.0), padded(&batch.rollout_log_prob, -1.0));
            let advantage = padded(&batch.advantage, 9.0);
            let twin = Batch::new(Rows::uniform(HORIZON), &now, &then, &advantage).masked(&mask);
            let mut workspace = Workspace::default();
            let expected = surrogate.cotangent(&twin, &mut workspace).unwrap();
            let expected = shape.pack(member, 0..24, expected);
            assert_eq!(asked.log_prob[member].len(), expected.len());
            for (came, expected) in asked.log_prob[member].iter().zip(&expected) {
                assert!((came - expected).abs() < 1e-15, "{name}: {came} {expected}");
            }
            // Entropy and value are means over the member's own steps.
            let count = own.len() as f64;
            assert!(asked.entropy[member].iter().all(|&asked| asked == 0.03 / count));
            for (place, &came) in asked.value[member].iter().enumerate() {
                let missed = batch.target[own.start + place] - player.scores(member).value[place];
                assert!((came - 0.7 * missed / count).abs() < 1e-15);
            }
        }
    }
}

fn request() -> RolloutRequest {
    RolloutRequest::batch(0)
}

/// The cotangents that a batch asks of a player, `[member][step]`.
struct Asked {
    log_prob: [Vec<f64>; 2],
    entropy: [Vec<f64>; 2],
    value: [Vec<f64>; 2],
}

impl Asked {
    fn of(batch: &TrainingBatch<f64>, player: &mut Tables, terms: LossTerms) -> Self {
        let mut spy = Spy { inner: player, asked: std::sync::Mutex::default() };
        batch.pull_back(&mut spy, &batch.settle(&[terms, terms]), 0).unwrap();
        let mut asked = spy.asked.into_inner().unwrap();
        asked.sort_by_key(|(member, _)| *member);
        let pick = |which: usize| [0, 1].map(|member: usize| asked[member].1[which].clone());
        Self { log_prob: pick(0), entropy: pick(1), value: pick(2) }
    }
}

/// A player that notes the cotangents it is given.
struct Spy<'a> {
    inner: &'a mut Tables,
    asked: std::sync::Mutex<Vec<(usize, [Vec<f64>; 3])>>,
}

impl Player for Spy<'_> {
    type Scalar = f64;

    fn members(&self) -> usize {
        self.inner.members()
    }
    fn roll_out(
        &mut self,
        request: RolloutRequest,
        lanes: usize,
        rollout: &mut Rollout,
    ) -> Result<(), niwaki_train::Error> {
        self.inner.roll_out(request, lanes, rollout)
    }
    fn load(&mut self, rollout: &Rollout) -> Result<(), niwaki_train::Error> {
        self.inner.load(rollout)
    }
    fn score(&mut self) -> Result<(), niwaki_train::Error> {
        self.inner.score()
    }
    fn pull_back(&mut self, loss: &niwaki_train::player::Loss<'_, f64>) -> Result<(), niwaki_train::Error> {
        self.inner.pull_back(&|span, scores: Scores<'_, f64>, wanted: Cotangents<'_, f64>| {
            let Cotangents { log_prob, entropy, value } = wanted;
            let member = span.member;
            loss(
                span,
                scores,
                Cotangents { log_prob: &mut *log_prob, entropy: &mut *entropy, value: &mut *value },
            );
            self.asked.lock().unwrap().push((member, [log_prob.to_vec(), entropy.to_vec(), value.to_vec()]));
        })
    }
    fn scores(&self, member: usize) -> Scores<'_, f64> {
        self.inner.scores(member)
    }
    fn reference(&mut self, rollout: &Rollout) -> Result<Vec<f64>, niwaki_train::Error> {
        self.inner.reference(rollout)
    }
    fn step(&mut self, optimiser: &Optimiser, rates: &[f64]) -> Result<Vec<f64>, niwaki_train::Error> {
        self.inner.step(optimiser, rates)
    }
    fn layout(&self) -> &niwaki_nn::Layout {
        self.inner.layout()
    }
    fn checkpoint(&self, member: usize) -> Result<niwaki_nn::Checkpoint<f64>, niwaki_train::Error> {
        self.inner.checkpoint(member)
    }
    fn set_checkpoint(
        &mut self,
        member: usize,
        checkpoint: &niwaki_nn::Checkpoint<f64>,
    ) -> Result<(), niwaki_train::Error> {
        self.inner.set_checkpoint(member, checkpoint)
    }
}

#[test]
fn ragged_members_do_not_notice_each_other_and_learn() {
    for policy in TOKEN_POLICIES {
        let settings = ["update.reuse=3", "update.reference_kl=0.01", "update.entropy=0.001"];
        let members =
            [("seed=1", "ppo"), ("seed=2", "tempered:0.25"), ("seed=1", "full")].map(|(seed, arm)| {
                let correction = format!("update.correction={arm}");
                stops(policy, false, &[&settings[..], &[seed, &correction]].concat())
            });
        let together = curves(&members);
        for (member, together) in members.iter().zip(&together) {
            assert_eq!(curve(member), *together, "{policy}");
        }
        let critic = ["advantage.kind=critic", "iterations=40", "optimiser.rate=0.3"];
        let trained = curve(&stops(policy, false, &critic));
        let earned = |part: &[Record]| part.iter().map(|record| record.batch_reward).sum::<f64>() / 5.0;
        // At random about one in ten is paid.
        assert!(earned(&trained[35..]) > earned(&trained[..5]) + 0.1, "{policy}");
    }
}

#[test]
fn a_dump_of_ragged_trajectories_holds_what_the_curve_measured() {
    let recipe = stops("tabular", false, &["dump.every=5", "update.correction=full"]);
    let folder = tempfile::tempdir().unwrap();
    run::train(&recipe, &Device::Cpu, folder.path(), &AtomicBool::new(false), &|_, _| {}, |_| {}).unwrap();
    let text = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    // A line's check vouches for it and is none of its fields.
    let plain = |line: &str| -> serde_json::Value {
        let mut value: serde_json::Value = serde_json::from_str(line).unwrap();
        value.as_object_mut().unwrap().remove("check").unwrap();
        value
    };
    let record: Record = serde_json::from_value(plain(text(run::CURVE).lines().last().unwrap())).unwrap();
    let dump: Vec<Trajectory> =
        text(run::DUMP).lines().map(|line| serde_json::from_value(plain(line)).unwrap()).collect();
    let lengths: Vec<usize> = dump.iter().map(|one| one.advantage.len()).collect();
    assert!(dump.len() == 32 && lengths.iter().any(|&length| length < HORIZON));
    let mut offsets = vec![0];
    offsets.extend(lengths.iter().scan(0, |end, length| {
        *end += length;
        Some(*end)
    }));
    let gather = |field: fn(&Trajectory) -> &Vec<f64>| -> Vec<f64> {
        dump.iter().flat_map(|trajectory| field(trajectory).clone()).collect()
    };
    let (old, new) = (gather(|one| &one.old_log_prob), gather(|one| &one.new_log_prob));
    let advantage = gather(|one| &one.advantage);
    let batch = Batch::new(Rows::ragged(&offsets), &new, &old, &advantage);
    let surrogate: Surrogate = "full".parse().unwrap();
    let mut workspace = Workspace::default();
    let measured = surrogate.evaluate(&batch, &mut workspace).unwrap().diagnostics;
    assert_eq!((measured.drift, measured.dose), (record.drift, record.dose));
}

/// Logits from the position and the last token, and a value from the position; an item is a trajectory or one step.
struct Markov {
    graph: Graph,
    item: Item,
    inputs: [Index; 3],
    heads: Heads,
}

impl Markov {
    fn new(item: Item) -> Self {
        let rows = if item == Item::Step { 1 } else { HORIZON };
        let mut graph = Graph::new();
        let last = graph.indices("last", rows, 5);
        let place = graph.indices("place", rows, HORIZON);
        let actions = graph.indices("actions", rows, 4);
        let normal = Init::Normal { deviation: 0.5 };
        let by_last = graph.param("last.weight", &[5, 4], normal).unwrap();
        let by_place = graph.param("place.weight", &[HORIZON, 4], normal).unwrap();
        let values = graph.param("value.weight", &[HORIZON, 1], Init::Zeros).unwrap();
        let (from_last, from_place) =
            (graph.embed(by_last, last).unwrap(), graph.embed(by_place, place).unwrap());
        let logits = graph.add(from_last, from_place).unwrap();
        let value = graph.embed(values, place).unwrap();
        let (log_prob, entropy) = graph.pick_log_prob(logits, actions, None).unwrap();
        let heads = Heads { log_prob, entropy, logits: None, value: Some(value) };
        Self { graph, item, inputs: [last, place, actions], heads }
    }

    /// Last token, place and action of the steps of a trajectory, in `rows` rows.
    fn rows(actions: &[i32], rows: usize) -> Vec<[i32; 3]> {
        let row = |step: usize| {
            let last = if step == 0 { 4 } else { actions[step - 1] };
            [last, step as i32, actions[step]]
        };
        (0..actions.len()).map(row).chain(std::iter::repeat([0, 0, -1])).take(rows).collect()
    }
}

impl Policy for Markov {
    type View = dyn Sequence;
    type Scratch = ();

    fn graph(&self) -> &Graph {
        &self.graph
    }
    fn heads(&self) -> Heads {
        self.heads
    }
    fn item(&self) -> Item {
        self.item
    }
    fn horizon(&self) -> usize {
        HORIZON
    }
    fn single(&self) -> Result<Self, PolicyError> {
        Ok(Self::new(self.item))
    }

    /// Draws from the parameters themselves, as the program's formula says.
    fn draw(
        &self,
        engine: &mut DynEngine,
        (): &mut (),
        _make: &MakeEngine,
        task: &Self::View,
        request: DrawRequest<'_>,
        rollout: &mut Rollout,
    ) -> Result<(), PolicyError> {
        let Draw::Sampled(uniforms) = request.how else { panic!("only draws are asked for here") };
        let slices = self.graph.layout().slices();
        rollout.actions.clear();
        for (member, uniforms) in uniforms.chunks_exact(request.lanes * HORIZON).enumerate() {
            let flat = engine.parameters(member)?;
            let (by_last, by_place) = (&flat[slices[0].range()], &flat[slices[1].range()]);
            for uniforms in uniforms.chunks_exact(HORIZON) {
                let mut last = 4;
                for (step, &uniform) in uniforms.iter().enumerate() {
                    let weight = |token: usize| {
                        f64::from(by_last[4 * last + token] + by_place[4 * step + token]).exp()
                    };
                    let all: f64 = (0..4).map(weight).sum();
                    let under = |token: usize| (0..=token).map(weight).sum::<f64>() > uniform * all;
                    last = (0..4).find(|&token| under(token)).unwrap_or(3);
                    rollout.actions.push(last as i32);
                }
            }
        }
        rollout.choices = 4;
        rollout.cut(request.lanes, HORIZON, task.end().map(|end| end as i32));
        self.load(engine, task, rollout)
    }

    fn load(&self, engine: &mut DynEngine, _task: &Self::View, rollout: &Rollout) -> Result<(), PolicyError> {
        let members = 0..rollout.shape.members();
        let most = members.clone().map(|member| rollout.shape.member(member).len()).max().unwrap_or(0);
        let items = if self.item == Item::Step { most } else { rollout.shape.lanes() };
        let mut rows = Vec::new();
        for member in members {
            let before = rows.len();
            for actions in rollout.trajectories(member) {
                let count = if self.item == Item::Step { actions.len() } else { HORIZON };
                rows.extend(Self::rows(actions, count));
            }
            if self.item == Item::Step {
                rows.resize(before + items, [0, 0, -1]);
            }
        }
        engine.set_items(items)?;
        for (place, &input) in self.inputs.iter().enumerate() {
            let column: Vec<i32> = rows.iter().map(|row| row[place]).collect();
            engine.load_indices(input, &column)?;
        }
        Ok(())
    }
}

/// Whether a program's item is a trajectory or one step is nobody's business: trajectories are never cut, whatever the
/// engine's blocks are.
#[test]
fn items_that_are_steps_train_like_items_that_are_trajectories() {
    // 600 lanes make several blocks of items of either kind.
    let settings =
        ["rollout.lanes=600", "advantage.kind=critic", "update.reference_kl=0.05", "evaluate.lanes=0"];
    let train = |item: Item, more: &[&str]| {
        let recipes: Vec<Recipe> = [("seed=1", "full"), ("seed=2", "self-normalised")]
            .map(|(seed, arm)| {
                let correction = format!("update.correction={arm}");
                stops("bag", false, &[&settings[..], more, &[seed, &correction]].concat())
            })
            .to_vec();
        let make = |graph: &Graph, outputs: &[Value]| Ok(Cpu::boxed(graph, outputs, 2));
        let environment = TokenEnvironment(Arc::new(Stops { padded: false }));
        let player =
            Neural::new(Markov::new(item), environment, vec![1, 2], true, Storage::Whole, Box::new(make))
                .unwrap();
        let mut trainer = Trainer::new(player, recipes).unwrap();
        let records: Vec<Vec<Record>> = (0..5).map(|_| trainer.advance().unwrap()).collect();
        (records, trainer.last_batch(1))
    };
    for more in [&[][..], &["update.minibatches=3"]] {
        let (steps, last) = train(Item::Step, more);
        let (trajectories, same) = train(Item::Trajectories(1), more);
        assert!(!last.shape.is_uniform());
        assert_eq!((&last.shape, &last.reward), (&same.shape, &same.reward));
        for (step, trajectory) in last.log_prob.iter().zip(&same.log_prob) {
            assert!((step - trajectory).abs() < 1e-4, "{step} {trajectory}");
        }
        for (steps, trajectories) in steps.iter().flatten().zip(trajectories.iter().flatten()) {
            assert!((steps.drift - trajectories.drift).abs() < 1e-4 && steps.drift > 0.0);
            assert_eq!(steps.batch_reward, trajectories.batch_reward);
        }
    }
}
