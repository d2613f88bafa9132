//! The dual network: sampling against scoring, parts of a rollout, times in another unit; and what dispatching finds.

use niwaki_nn::{Cpu, DynEngine, Graph, Value};
use niwaki_policies::{
    Decoding, Dispatcher, Draw, DrawRequest, DualShape, GraphPolicy, GraphScratch, Policy, Rollout,
};
use niwaki_shop::generate::{Size, Task, generate};
use niwaki_shop::{Alternative, Bounds, FlexibleShop, Instance, verify};
use niwaki_stream::Key;
use niwaki_tasks::{GraphSizes, GraphTask, Outcome};

fn graph(instances: Vec<Instance>, order: usize) -> GraphTask {
    let bounds = vec![Bounds { lower: 1, upper: 1 }; instances.len()];
    GraphTask::new(instances, bounds, 1, GraphTask::ORDERS[order].1).unwrap()
}

/// Shops of several sizes and kinds.
fn mixed(count: u64) -> Vec<Instance> {
    (0..count).map(|index| generate(Task::Mixed, Size { jobs: 4, machines: 3 }, 2, index).unwrap()).collect()
}

fn make(members: usize) -> impl Fn(&Graph, &[Value]) -> niwaki_nn::Result<Box<DynEngine>> {
    move |graph, outputs| Ok(Cpu::boxed(graph, outputs, members))
}

/// A small network, which sees bounds or not.
fn network(sizes: GraphSizes, bounds: bool) -> GraphPolicy {
    DualShape { sizes, width: 4, hidden: 6, critic: true, bounds }.policy().unwrap()
}

fn player(task: &GraphTask, seed: u64, bounds: bool) -> (GraphPolicy, Box<DynEngine>) {
    let policy = network(task.sizes(), bounds);
    let mut engine = make(1)(&policy.graph, &policy.heads().outputs()).unwrap();
    engine.set_parameters(0, &policy.initial_parameters(seed)).unwrap();
    (policy, engine)
}

fn draw(task: &GraphTask, seed: u64, instances: &[u32], sampled: bool, bounds: bool) -> Rollout {
    let ((policy, mut engine), mut rollout) = (player(task, seed, bounds), Rollout::default());
    let mut stream = Key::new(seed, "law").open();
    let uniforms: Vec<f64> = (0..instances.len() * policy.horizon()).map(|_| stream.uniform()).collect();
    let how = if sampled { Draw::Sampled(&uniforms) } else { Draw::Greedy };
    let request = DrawRequest { lanes: instances.len(), instances, how, score: false };
    policy
        .draw(engine.as_mut(), &mut GraphScratch::default(), &make(1), task, request, &mut rollout)
        .unwrap();
    rollout
}

fn scored(policy: &GraphPolicy, engine: &mut DynEngine, rollout: &Rollout) -> Vec<f32> {
    engine.forward().unwrap();
    let lanes = rollout.shape.lanes();
    debug_assert_eq!(policy.horizon(), rollout.shape.horizon());
    rollout.shape.pack(0, 0..lanes, engine.output(0, 0))
}

#[test]
fn sampled_and_replayed_log_probabilities_have_the_same_bits_and_parts_are_those_of_the_whole() {
    for (order, bounds) in [(0, false), (1, false), (2, false), (0, true), (1, true), (2, true)] {
        let task = graph(mixed(4), order);
        let (policy, mut engine) = player(&task, 1, bounds);
        let (mut scratch, mut rollout) = (GraphScratch::default(), Rollout::default());
        let uniforms = vec![0.4; 4 * policy.horizon()];
        let how = Draw::Sampled(&uniforms);
        let request = DrawRequest { lanes: 4, instances: &[0, 1, 2, 3], how, score: true };
        policy.draw(engine.as_mut(), &mut scratch, &make(1), &task, request, &mut rollout).unwrap();
        assert!(!rollout.shape.is_uniform(), "shops of several sizes");
        // Where nobody keeps what is seen, steps with one way to go are not looked at, which changes nothing.
        let (request, mut blind) = (DrawRequest { score: false, ..request }, Rollout::default());
        policy
            .draw(engine.as_mut(), &mut GraphScratch::default(), &make(1), &task, request, &mut blind)
            .unwrap();
        assert_eq!((&blind.actions, &blind.log_prob), (&rollout.actions, &rollout.log_prob));
        assert!(rollout.log_prob.contains(&0.0), "some steps have one way to go");
        assert_eq!(scored(&policy, engine.as_mut(), &rollout), rollout.log_prob);
        policy.load(engine.as_mut(), &task, &rollout).unwrap();
        assert_eq!(scored(&policy, engine.as_mut(), &rollout), rollout.log_prob);
        rollout.reward = vec![0.0; 4];
        for lanes in [[vec![2]], [vec![3, 0]], [vec![0, 1, 2, 3]]] {
            let part = rollout.part(&lanes);
            policy.load_part(engine.as_mut(), &mut scratch, &task, &rollout, &lanes).unwrap();
            assert_eq!(scored(&policy, engine.as_mut(), &part), part.log_prob, "kept: {lanes:?}");
            // What was drawn in between is not taken for it.
            let mut other = GraphScratch::default();
            policy.load_part(engine.as_mut(), &mut other, &task, &rollout, &lanes).unwrap();
            assert_eq!(scored(&policy, engine.as_mut(), &part), part.log_prob, "played again: {lanes:?}");
        }
        // Nor are the same choices in other shops: there they are played, as far as they can be.
        let others = Rollout { instances: vec![1, 0, 3, 2], ..rollout.clone() };
        let all = [vec![0, 1, 2, 3]];
        let loaded = policy.load_part(engine.as_mut(), &mut scratch, &task, &others, &all);
        assert!(loaded.is_err() || scored(&policy, engine.as_mut(), &others) != rollout.log_prob);
    }
}

#[test]
fn times_in_another_unit_change_nothing() {
    let times = |factor: u32| {
        let mut stream = Key::new(3, "law").open();
        let jobs: Vec<Vec<Vec<Alternative>>> = (0..4)
            .map(|_| {
                let operation = |stream: &mut niwaki_stream::Stream| {
                    let both = (0..2)
                        .map(|machine| Alternative { machine, time: factor * (1 + stream.below(9) as u32) });
                    both.collect::<Vec<_>>()
                };
                (0..3).map(|_| operation(&mut stream)).collect()
            })
            .collect();
        graph(vec![Instance::Flexible(FlexibleShop::new(2, &jobs).unwrap())], 1)
    };
    for bounds in [false, true] {
        let [plain, thrice] = [1, 3].map(|factor| draw(&times(factor), 5, &[0], true, bounds));
        assert_eq!(plain.actions, thrice.actions);
        for (one, other) in plain.log_prob.iter().zip(&thrice.log_prob) {
            assert!((one - other).abs() < 1e-4, "{one} {other}");
        }
    }
}

#[test]
fn dispatching_keeps_the_best_of_all_ways() {
    let task = graph(vec![generate(Task::Sd1, Size { jobs: 5, machines: 3 }, 1, 0).unwrap()], 1);
    let policy = player(&task, 4, false).0;
    let parameters = policy.initial_parameters(4);
    let mut steps = 0;
    let mut dispatcher = Dispatcher::new(policy.clone(), &parameters, 150, &make(1)).unwrap();
    let mut find = |how: Decoding| {
        let mut tick = |more: usize| steps += more;
        dispatcher.dispatch(&task, how, &mut tick).unwrap()
    };
    let none = Decoding::default();
    let greedy = find(none);
    assert_eq!((greedy.tried, greedy.way), (1, "greedy"));
    assert_eq!(
        greedy.outcome,
        draw(&task, 4, &[0], false, false).outcome[0],
        "as a rollout takes the likeliest"
    );
    // A beam of one is greedy; a wider one is no worse than the best of what it keeps, and greedy stands beside it.
    assert_eq!(find(Decoding { beam: 1, ..none }).outcome, greedy.outcome);
    let shop = Instance::Flexible(task.shops()[0].clone());
    let ways = [
        (Decoding { samples: 150, ..none }, 151),
        (Decoding { beam: 4, ..none }, 5),
        (Decoding { multistart: true, ..none }, 1 + task.begin(&[0]).unwrap().open(0).count()),
    ];
    for (how, tried) in ways {
        let found = find(how);
        assert_eq!(found.tried, tried);
        assert!(found.outcome.makespan <= greedy.outcome.makespan);
        assert_eq!(verify(&shop, &found.schedule).unwrap().makespan, found.outcome.makespan);
        assert_eq!(find(how), found, "the same again");
    }
    assert!(steps > 0);
    let broken = vec![f32::NAN; policy.graph.layout().len()];
    let mut broken = Dispatcher::new(policy, &broken, 1, &make(1)).unwrap();
    let refused = broken.dispatch(&task, none, &mut |_| {}).unwrap_err().to_string();
    assert!(refused.contains("its weights are broken"), "{refused}");
}

/// The best of what a rollout draws with the numbers that a dispatcher's samples have: it looks at every lane by itself.
fn best_drawn(task: &GraphTask, policy: &GraphPolicy, parameters: &[f32], how: Decoding) -> Outcome {
    let mut uniforms = Vec::new();
    for sample in 0..how.samples {
        let mut stream = Key::new(how.seed, "decode").lane(sample as u64).open();
        uniforms.extend((0..policy.horizon()).map(|_| stream.uniform()));
    }
    let draw = |lanes: usize, how: Draw<'_>| {
        let mut engine = make(1)(&policy.graph, &policy.heads().outputs()).unwrap();
        let mut rollout = Rollout::default();
        engine.set_parameters(0, parameters).unwrap();
        let request = DrawRequest { lanes, instances: &vec![0; lanes], how, score: false };
        policy
            .draw(engine.as_mut(), &mut GraphScratch::default(), &make(1), task, request, &mut rollout)
            .unwrap();
        rollout.outcome
    };
    let all = [draw(1, Draw::Greedy), draw(how.samples, Draw::Sampled(&uniforms))].concat();
    all.into_iter().min_by_key(|outcome| outcome.makespan).unwrap()
}

#[test]
fn states_that_lanes_share_are_looked_at_once_which_changes_nothing() {
    for (order, seed, bounds) in [(1, 0, false), (1, 1, true), (0, 2, false), (2, 3, false), (2, 4, true)] {
        let task = graph(vec![generate(Task::Sd1, Size { jobs: 4, machines: 3 }, 3, seed).unwrap()], order);
        let policy = player(&task, 6, bounds).0;
        let parameters = policy.initial_parameters(6);
        let how = Decoding { samples: 40, seed, ..Decoding::default() };
        let mut dispatcher = Dispatcher::new(policy.clone(), &parameters, 150, &make(1)).unwrap();
        let found = dispatcher.dispatch(&task, how, &mut |_| {}).unwrap();
        assert_eq!(found.outcome, best_drawn(&task, &policy, &parameters, how), "order {order}, seed {seed}");
    }
}

#[test]
fn a_dispatcher_takes_shops_with_fewer_operations_and_no_others() {
    let task = graph(vec![generate(Task::Sd1, Size { jobs: 5, machines: 3 }, 1, 0).unwrap()], 1);
    let parameters = player(&task, 4, false).0.initial_parameters(4);
    let how = Decoding { samples: 20, beam: 2, ..Decoding::default() };
    let with_room = |more: usize| {
        let sizes = GraphSizes { operations: task.sizes().operations + more, ..task.sizes() };
        Dispatcher::new(network(sizes, false), &parameters, 20, &make(1)).unwrap()
    };
    let exact = with_room(0).dispatch(&task, how, &mut |_| {}).unwrap();
    let mut roomy = with_room(20);
    assert_eq!(roomy.dispatch(&task, how, &mut |_| {}).unwrap(), exact);
    // The next shop is scheduled as by a dispatcher of its own.
    let next = graph(vec![generate(Task::Sd1, Size { jobs: 5, machines: 3 }, 1, 1).unwrap()], 1);
    let own = Dispatcher::new(network(next.sizes(), false), &parameters, 20, &make(1)).unwrap().dispatch(
        &next,
        how,
        &mut |_| {},
    );
    assert_eq!(roomy.dispatch(&next, how, &mut |_| {}).unwrap(), own.unwrap());
    let other = graph(vec![generate(Task::Sd1, Size { jobs: 6, machines: 3 }, 1, 0).unwrap()], 1);
    assert!(roomy.dispatch(&other, how, &mut |_| {}).is_err());
}
