//! Song's network: against its formula in plain loops, sampling against scoring, and what a graph network must not notice.

use niwaki_nn::{Cpu, DynEngine, Graph, Span, Value};
use niwaki_policies::{Draw, DrawRequest, GraphPolicy, GraphScratch, HgnnShape, Policy, Rollout};
use niwaki_shop::generate::{Size, Task, generate};
use niwaki_shop::{Alternative, Bounds, FlexibleShop, Instance, verify};
use niwaki_stream::Key;
use niwaki_tasks::GraphTask;

type Players = (GraphPolicy, Box<DynEngine>, GraphScratch);

/// Three jobs and two machines, drawn.
fn drawn(task: Task, count: u64) -> Vec<Instance> {
    (0..count).map(|index| generate(task, Size { jobs: 3, machines: 2 }, 4, index).unwrap()).collect()
}

fn graph(instances: Vec<Instance>, order: usize) -> GraphTask {
    let bounds = vec![Bounds { lower: 1, upper: 1 }; instances.len()];
    GraphTask::new(instances, bounds, 1, GraphTask::ORDERS[order].1).unwrap()
}

fn make(members: usize) -> impl Fn(&Graph, &[Value]) -> niwaki_nn::Result<Box<DynEngine>> {
    move |graph, outputs| Ok(Cpu::boxed(graph, outputs, members))
}

/// The network over a task, with weights from seeds.
fn players(task: &GraphTask, seeds: &[u64]) -> Players {
    let shape = HgnnShape { sizes: task.sizes(), width: 4, hidden: 12, critic: true };
    let policy = shape.policy().unwrap();
    let mut engine = make(seeds.len())(&policy.graph, &policy.heads().outputs()).unwrap();
    for (member, &seed) in seeds.iter().enumerate() {
        engine.set_parameters(member, &policy.initial_parameters(seed)).unwrap();
    }
    (policy, engine, GraphScratch::default())
}

fn uniforms(lanes: usize, horizon: usize, first: usize) -> Vec<f64> {
    (first..first + lanes)
        .flat_map(|lane| {
            let mut stream = Key::new(9, "law").lane(lane as u64).open();
            (0..horizon).map(move |_| stream.uniform())
        })
        .collect()
}

fn draw(
    (policy, engine, scratch): &mut Players,
    task: &GraphTask,
    instances: &[u32],
    uniforms: &[f64],
) -> Rollout {
    let lanes = instances.len() / engine.members();
    let how = if uniforms.is_empty() { Draw::Greedy } else { Draw::Sampled(uniforms) };
    let (request, mut rollout) = (DrawRequest { lanes, instances, how, score: true }, Rollout::default());
    let make = make(engine.members());
    policy.draw(engine.as_mut(), scratch, &make, task, request, &mut rollout).unwrap();
    rollout
}

/// Log-probabilities of given trajectories, packed.
fn score((policy, engine, _): &mut Players, task: &GraphTask, rollout: &Rollout) -> Vec<f32> {
    policy.load(engine.as_mut(), task, rollout).unwrap();
    engine.forward().unwrap();
    scored(engine.as_ref(), rollout)
}

fn scored(engine: &DynEngine, rollout: &Rollout) -> Vec<f32> {
    let shape = &rollout.shape;
    (0..shape.members())
        .flat_map(|member| shape.pack(member, 0..shape.lanes(), engine.output(member, 0)))
        .collect()
}

#[test]
fn sampled_replayed_and_scored_log_probabilities_have_the_same_bits() {
    for task in [Task::Sd1Even, Task::Sd1, Task::Sd2, Task::Sd1Windows, Task::JobShop] {
        for order in 0..3 {
            let view = graph(drawn(task, 4), order);
            let horizon = view.sizes().operations;
            let mut two = players(&view, &[0, 1]);
            let instances = [0, 3, 1, 2, 0, 2];
            let built = draw(&mut two, &view, &instances, &uniforms(6, horizon, 0));
            two.1.forward().unwrap();
            assert_eq!(scored(two.1.as_ref(), &built), built.log_prob, "{} {order}: scored", task.name());
            assert_eq!(score(&mut two, &view, &built), built.log_prob, "{} {order}: replayed", task.name());
            assert!(built.log_prob.iter().all(|log_prob| log_prob.is_finite() && *log_prob <= 0.0));
            for (lane, outcome) in built.outcome.iter().enumerate() {
                // A trajectory does not notice those drawn beside it, nor a member the others.
                let (member, seed) = (lane / 3, (lane / 3) as u64);
                let mut alone = players(&view, &[seed]);
                let single = draw(&mut alone, &view, &instances[lane..=lane], &uniforms(1, horizon, lane));
                let steps = built.shape.steps(member, lane % 3..lane % 3 + 1);
                assert_eq!(
                    (&single.actions[..], &single.log_prob[..]),
                    (&built.actions[steps.clone()], &built.log_prob[steps])
                );
                // And its schedule is what it says.
                let mut lanes = view.begin(&instances[lane..=lane]).unwrap();
                single.actions.iter().for_each(|&pair| lanes.choose(&[pair]).unwrap());
                let shop = Instance::Flexible(view.shops()[instances[lane] as usize].clone());
                assert_eq!(verify(&shop, &lanes.schedule(0)).unwrap().makespan, outcome.makespan);
            }
        }
    }
}

#[test]
fn greedy_takes_the_likeliest_open_pair() {
    let view = graph(drawn(Task::Sd1Even, 2), 1);
    let mut one = players(&view, &[3]);
    let built = draw(&mut one, &view, &[0, 1], &[]);
    assert_eq!(draw(&mut one, &view, &[0, 1], &[]), built);
    // No pair is likelier than the one taken: with k open, its probability is at least 1 / k.
    let mut lanes = view.begin(&[0, 1]).unwrap();
    let trajectories: Vec<&[i32]> = built.trajectories(0).collect();
    for step in 0..view.sizes().operations {
        for lane in 0..2 {
            let open = lanes.open(lane).count();
            let place = built.shape.steps(0, lane..lane + 1).start + step;
            assert!(built.log_prob[place] >= -(open as f32).ln() - 1e-5);
        }
        lanes.choose(&[trajectories[0][step], trajectories[1][step]]).unwrap();
    }
}

/// Log-probabilities of pairs given by their jobs and machines, under the weights of one seed.
fn scores_of(task: &GraphTask, pairs: &[(usize, usize)]) -> Vec<f32> {
    let machines = task.sizes().machines;
    let actions = pairs.iter().map(|(job, machine)| (job * machines + machine) as i32).collect();
    let mut rollout = Rollout { actions, instances: vec![0], reward: vec![0.0], ..Rollout::default() };
    rollout.actions.resize(task.sizes().operations, -1);
    rollout.cut(1, task.sizes().operations, None);
    score(&mut players(task, &[5]), task, &rollout)
}

fn close(a: &[f32], b: &[f32], within: f32) {
    assert_eq!(a.len(), b.len());
    for (place, (a, b)) in a.iter().zip(b).enumerate() {
        assert!((a - b).abs() < within, "step {place}: {a} {b}");
    }
}

/// The jobs of a flexible shop, each time passed through `time`.
fn jobs(shop: &FlexibleShop, time: impl Fn(u32) -> u32) -> Vec<Vec<Vec<Alternative>>> {
    let choice = |one: &Alternative| Alternative { time: time(one.time), ..*one };
    let operation = |at: usize| shop.alternatives(at).iter().map(choice).collect::<Vec<_>>();
    (0..shop.jobs()).map(|job| shop.job(job).map(operation).collect()).collect()
}

#[test]
fn jobs_in_another_order_other_units_and_larger_shops_beside_it_change_no_choice() {
    for order in 0..2 {
        let mut instances = drawn(Task::Sd1, 6);
        let Instance::Flexible(shop) = instances.remove(1) else { panic!("a flexible shop") };
        let view = |jobs: &[Vec<Vec<Alternative>>]| {
            graph(vec![Instance::Flexible(FlexibleShop::new(2, jobs).unwrap())], order)
        };
        let plain = view(&jobs(&shop, |time| time));
        let built = draw(&mut players(&plain, &[5]), &plain, &[0], &uniforms(1, shop.operations(), 0));
        let pairs: Vec<(usize, usize)> =
            built.actions.iter().map(|&pair| (pair as usize / 2, pair as usize % 2)).collect();
        let own = scores_of(&plain, &pairs);
        close(&own, &built.log_prob, 1e-7);

        // Jobs 0, 1, 2 become 2, 0, 1.
        let kept = jobs(&shop, |time| time);
        let turned = view(&[kept[1].clone(), kept[2].clone(), kept[0].clone()]);
        let moved: Vec<_> = pairs.iter().map(|(job, machine)| ((job + 2) % 3, *machine)).collect();
        close(&scores_of(&turned, &moved), &own, 1e-5);

        // Three times as long, all of them: z-scores change by what 1e-5 is to their deviations.
        close(&scores_of(&view(&jobs(&shop, |time| 3 * time)), &pairs), &own, 1e-3);

        // Beside a shop with more jobs and machines the rows are others, the numbers are not.
        let large = generate(Task::Sd2, Size { jobs: 5, machines: 4 }, 0, 0).unwrap();
        let both = graph(vec![Instance::Flexible(shop), large], order);
        assert_eq!((both.sizes().jobs, both.sizes().machines, both.sizes().operations), (5, 4, 20));
        close(&scores_of(&both, &pairs), &own, 1e-5);
    }
}

#[test]
fn a_forced_step_is_certain_and_teaches_nothing() {
    let view = graph(drawn(Task::Sd1Even, 1), 0);
    let horizon = view.sizes().operations;
    let mut one = players(&view, &[2]);
    let built = draw(&mut one, &view, &[0], &uniforms(1, horizon, 0));
    let mut lanes = view.begin(&[0]).unwrap();
    let mut forced = Vec::new();
    for &pair in &built.actions {
        forced.push(lanes.open(0).count() == 1);
        lanes.choose(&[pair]).unwrap();
    }
    assert!(forced.contains(&true) && forced.contains(&false));
    for (log_prob, forced) in built.log_prob.iter().zip(&forced) {
        assert_eq!(*log_prob == 0.0, *forced);
    }
    let engine = &mut one.1;
    let mut gradient = |which: bool| {
        engine
            .pull_back(&|_: Span, _: &[&[f32]], wanted: &mut [&mut [f32]]| {
                // Log-probability and entropy of the steps of one kind; nothing of the critic.
                for wanted in &mut wanted[..2] {
                    for (to, forced) in wanted.iter_mut().zip(&forced) {
                        *to = f32::from(u8::from(*forced == which));
                    }
                }
                wanted[2].fill(0.0);
            })
            .unwrap();
        engine.gradient(0).unwrap().iter().map(|part| part.abs()).fold(0.0, f32::max)
    };
    assert_eq!(gradient(true), 0.0);
    let taught = gradient(false);
    assert!(taught > 1e-5, "{taught}");
}

/// The network by its formula, in plain loops and f64: log-probabilities and values of a rollout's steps.
mod formula {
    use super::*;
    use niwaki_tasks::GraphLanes;

    type Rows = Vec<Vec<f64>>;

    pub(super) struct Network<'a> {
        pub(super) policy: &'a GraphPolicy,
        pub(super) flat: &'a [f32],
    }

    fn z_scores(rows: &Rows) -> Rows {
        let count = rows.len() as f64;
        let mut scored = rows.clone();
        for column in 0..rows[0].len() {
            let mean = rows.iter().map(|row| row[column]).sum::<f64>() / count;
            let spread = rows.iter().map(|row| (row[column] - mean).powi(2)).sum::<f64>() / (count - 1.0);
            scored.iter_mut().for_each(|row| row[column] = (row[column] - mean) / (spread.sqrt() + 1e-5));
        }
        scored
    }

    fn elu(z: f64) -> f64 {
        if z > 0.0 { z } else { z.exp() - 1.0 }
    }

    fn leaky(z: f64) -> f64 {
        if z > 0.0 { z } else { 0.2 * z }
    }

    fn dot(a: &[f64], b: &[f64]) -> f64 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    fn mean(rows: &Rows) -> Vec<f64> {
        (0..rows[0].len()).map(|i| rows.iter().map(|row| row[i]).sum::<f64>() / rows.len() as f64).collect()
    }

    impl Network<'_> {
        fn weight(&self, name: &str) -> Vec<f64> {
            let slices = self.policy.graph.layout().slices();
            let slice = slices.iter().find(|slice| slice.name == name).unwrap_or_else(|| panic!("{name}"));
            self.flat[slice.range()].iter().map(|&x| f64::from(x)).collect()
        }

        fn times(&self, name: &str, x: &[f64]) -> Vec<f64> {
            let matrix = self.weight(name);
            let out = matrix.len() / x.len();
            (0..out).map(|j| (0..x.len()).map(|i| x[i] * matrix[i * out + j]).sum()).collect()
        }

        fn layer(&self, name: &str, x: &[f64], function: fn(f64) -> f64) -> Vec<f64> {
            let bias = self.weight(&format!("{name}.bias"));
            let product = self.times(&format!("{name}.weight"), x);
            product.iter().zip(bias).map(|(z, bias)| function(z + bias)).collect()
        }

        fn perceptron(&self, name: &str, x: &[f64], function: fn(f64) -> f64) -> Vec<f64> {
            let inner = self.layer(&format!("{name}.0"), x, function);
            let inner = self.layer(&format!("{name}.1"), &inner, function);
            self.layer(&format!("{name}.2"), &inner, |z| z)
        }

        /// Logits of the open pairs, and the value.
        pub(super) fn state(&self, task: &GraphTask, lanes: &GraphLanes) -> (Vec<(usize, f64)>, f64) {
            let (features, on) = (task.sizes().features, task.sizes().machines);
            let mut operations =
                z_scores(&lanes.operations(0).chunks(features).map(<[f64]>::to_vec).collect());
            let mut machines = z_scores(&lanes.machines(0).map(Vec::from).collect());
            let times = z_scores(&lanes.arcs(0).iter().map(|&time| vec![time]).collect());
            let arc = |o: usize, m: usize| lanes.able(0)[o * on + m] == 1;
            let shop = &task.shops()[0];
            let job_of = |o: usize| (0..shop.jobs()).find(|&job| shop.job(job).contains(&o)).unwrap();
            for round in 0..2 {
                let name = |part: &str| format!("rounds.{round}.{part}");
                let (along, source) = (self.weight(&name("times")), self.weight(&name("source")));
                let target = self.weight(&name("target"));
                let s: Rows = operations.iter().map(|x| self.times(&name("operations.weight"), x)).collect();
                let d: Rows = machines.iter().map(|y| self.times(&name("machines.weight"), y)).collect();
                machines = (0..on)
                    .map(|m| {
                        let mut seen = vec![(leaky(2.0 * dot(&target, &d[m])), d[m].clone())];
                        for o in (0..s.len()).filter(|&o| arc(o, m)) {
                            let v: Vec<f64> =
                                s[o].iter().zip(&along).map(|(s, w)| s + w * times[o * on + m][0]).collect();
                            seen.push((leaky(dot(&source, &v) + dot(&target, &d[m])), v));
                        }
                        let total: f64 = seen.iter().map(|(score, _)| score.exp()).sum();
                        let at =
                            |i: usize| seen.iter().map(|(score, v)| score.exp() / total * v[i]).sum::<f64>();
                        (0..d[m].len()).map(|i| 1.0 / (1.0 + (-at(i)).exp())).collect()
                    })
                    .collect();
                let nothing = vec![0.0; operations[0].len()];
                let beside = |o: usize, other: Option<usize>| {
                    let same = other.filter(|&other| other < operations.len() && job_of(other) == job_of(o));
                    same.map_or(&nothing, |other| &operations[other])
                };
                let renewed = (0..operations.len()).map(|o| {
                    let mut gathered = vec![0.0; machines[0].len()];
                    for m in (0..on).filter(|&m| arc(o, m)) {
                        gathered.iter_mut().zip(&machines[m]).for_each(|(sum, y)| *sum += y);
                    }
                    let parts = [
                        self.perceptron(&name("arcs"), &gathered, elu),
                        self.perceptron(&name("after"), beside(o, Some(o + 1)), elu),
                        self.perceptron(&name("before"), beside(o, o.checked_sub(1)), elu),
                        self.perceptron(&name("self"), &operations[o], elu),
                    ];
                    let joined: Vec<f64> = parts.concat().into_iter().map(elu).collect();
                    self.perceptron(&name("join"), &joined, elu)
                });
                operations = renewed.collect();
            }
            let state = [mean(&operations), mean(&machines)].concat();
            let next: Vec<Option<usize>> = lanes.next(0).collect();
            let logit = |pair: usize| {
                let (u, y) = (&operations[next[pair / on].unwrap()], &machines[pair % on]);
                let parts = [
                    self.times("actor.0.operation.weight", u),
                    self.times("actor.0.machine.weight", y),
                    self.times("actor.0.state.weight", &state),
                    self.weight("actor.0.bias"),
                ];
                let first: Vec<f64> = (0..parts[0].len())
                    .map(|i| parts.iter().map(|part| part[i]).sum::<f64>().tanh())
                    .collect();
                self.layer("actor.2", &self.layer("actor.1", &first, f64::tanh), |z| z)[0]
            };
            let open = lanes.open(0).map(|pair| (pair, logit(pair))).collect();
            (open, self.perceptron("critic", &state, f64::tanh)[0])
        }
    }
}

#[test]
fn the_network_is_its_formula() {
    for (task, order) in [(Task::Sd1, 0), (Task::Sd1Windows, 1), (Task::JobShop, 2)] {
        let view = graph(drawn(task, 1), order);
        let horizon = view.sizes().operations;
        let mut one = players(&view, &[6]);
        let built = draw(&mut one, &view, &[0], &uniforms(1, horizon, 0));
        one.1.forward().unwrap();
        let flat = one.1.parameters(0).unwrap();
        let network = formula::Network { policy: &one.0, flat: &flat };
        let mut lanes = view.begin(&[0]).unwrap();
        for (step, &action) in built.actions.iter().enumerate() {
            let (open, value) = network.state(&view, &lanes);
            let total: f64 = open.iter().map(|(_, logit)| logit.exp()).sum();
            let chosen = open.iter().find(|(pair, _)| *pair == action as usize).unwrap().1;
            let entropy: f64 =
                open.iter().map(|(_, logit)| -(logit.exp() / total) * (logit - total.ln())).sum();
            let came: Vec<f64> = (0..3).map(|output| f64::from(one.1.output(0, output)[step])).collect();
            for (came, expected) in came.iter().zip([chosen - total.ln(), entropy, value]) {
                assert!(
                    (came - expected).abs() < 2e-5,
                    "{} step {step}: {came}, by the formula {expected}",
                    task.name()
                );
            }
            lanes.choose(&[action]).unwrap();
        }
    }
}
