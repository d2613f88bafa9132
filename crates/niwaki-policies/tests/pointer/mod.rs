//! The pointer transformer: against its formula in plain loops, sampling against scoring, and schedules against the
//! independent checker.

use niwaki_nn::{Cpu, DynEngine, Graph, Value, initialise};
use niwaki_policies::{Draw, Observed, PointerPolicy, PointerShape, Rollout, Sampler};
use niwaki_shop::generate::Size;
use niwaki_shop::{Bounds, Instance, verify};
use niwaki_stream::Key;
use niwaki_tasks::{Construction, Generator, Reading, Shop, ShopPool, Source, construct};
use std::sync::Arc;
use std::time::Duration;

const TWO_ORDERS: Shop = Shop::TwoOrders { both: true, slack: None };

/// Eight instances, five of them to learn from.
pub(crate) fn instances(shop: Shop, jobs: usize, machines: usize) -> Vec<Instance> {
    let size = Size { jobs, machines };
    let drawn = Generator { shop, size, training: 5, validation: 3, seed: 4 };
    let (source, reading) = (Source::Generated(drawn), Reading::default());
    ShopPool { source, patience: Duration::ZERO, reading }.instances().unwrap().0
}

pub(crate) fn task(shop: Shop, jobs: usize, machines: usize) -> Arc<dyn Construction> {
    read(shop, jobs, machines, Reading::default())
}

fn read(shop: Shop, jobs: usize, machines: usize, reading: Reading) -> Arc<dyn Construction> {
    construct(instances(shop, jobs, machines), vec![Bounds { lower: 0, upper: 1 }; 8], 5, reading).unwrap()
}

/// Every kind of shop at a size, with the ways in which it can be read.
fn readings() -> Vec<(Shop, usize, usize, Reading)> {
    let plain = [(Shop::Flow, 7, 3), (Shop::Lags, 5, 2), (Shop::Single, 6, 1), (TWO_ORDERS, 2, 2)];
    let plain = plain.map(|(shop, jobs, machines)| (shop, jobs, machines, Reading::default()));
    let orders = Reading::ORDERS.map(|(_, order)| (Shop::Job, 4, 3, Reading { order, hidden: false }));
    let hidden = Reading { hidden: true, ..Reading::default() };
    plain.into_iter().chain(orders).chain([(TWO_ORDERS, 2, 2, hidden)]).collect()
}

pub(crate) fn shape(task: &dyn Construction, group: usize) -> PointerShape {
    PointerShape {
        candidates: task.candidates(),
        horizon: task.horizon(),
        features: task.features(),
        context: task.context(),
        group,
        width: 16,
        heads: 2,
        blocks: 2,
        hidden: 24,
        residual: false,
        bound: 10.0,
    }
}

/// The engine that scores, with weights from seeds, and a sampler of `rows` trajectories per instance.
pub(crate) fn engines(policy: &PointerPolicy, rows: usize, members: usize) -> (Box<DynEngine>, Sampler) {
    let make = move |graph: &Graph, outputs: &[Value]| Ok(Cpu::boxed(graph, outputs, members));
    let mut score = make(&policy.graph, &policy.outputs()).unwrap();
    for member in 0..members {
        score.set_parameters(member, &initialise(policy.graph.layout(), member as u64)).unwrap();
    }
    (score, Sampler::new(policy, rows, &make).unwrap())
}

fn uniforms(lanes: usize, horizon: usize, first: usize) -> Vec<f64> {
    (first..first + lanes)
        .flat_map(|lane| {
            let mut stream = Key::new(9, "law").lane(lane as u64).open();
            (0..horizon).map(move |_| stream.uniform())
        })
        .collect()
}

#[test]
fn sampled_and_scored_log_probabilities_have_the_same_bits() {
    for (place, (shop, jobs, machines, reading)) in readings().into_iter().enumerate() {
        let task = read(shop, jobs, machines, reading);
        let horizon = task.horizon();
        let bound = if place % 3 == 1 { 0.0 } else { 10.0 };
        let shape = PointerShape { residual: place % 2 == 1, bound, ..shape(task.as_ref(), 4) };
        let policy = shape.policy().unwrap();
        let (mut score, mut sampler) = engines(&policy, 4, 2);
        // Two members with three instances each, four trajectories per instance.
        let instances = [0, 3, 1, 7, 0, 2];
        let drawn = uniforms(24, horizon, 0);
        let (mut built, mut observed) = (Rollout::default(), Observed::default());
        let how = Draw::Sampled(&drawn);
        sampler.draw(score.as_ref(), task.as_ref(), &instances, how, &mut built, &mut observed).unwrap();
        policy.load_observed(score.as_mut(), &built.actions, &observed).unwrap();
        score.forward().unwrap();
        let size = 12 * horizon;
        for member in 0..2 {
            let sampled = &built.log_prob[member * size..(member + 1) * size];
            assert_eq!(sampled, score.output(member, 0), "{}", shop.name());
        }
        // Replayed, the same choices are loaded with the same states and earn the same.
        let replayed = Observed::replay(task.as_ref(), &instances, 4, &built.actions).unwrap();
        assert_eq!(replayed, (observed, built.outcome));
        // A trajectory does not notice those drawn beside it.
        let (first, mut alone) = engines(&policy, 1, 1);
        let (mut single, mut observed) = (Rollout::default(), Observed::default());
        let drawn = uniforms(1, horizon, 6);
        let how = Draw::Sampled(&drawn);
        alone.draw(first.as_ref(), task.as_ref(), &[3], how, &mut single, &mut observed).unwrap();
        let lane = 6 * horizon..7 * horizon;
        assert_eq!(
            (&single.actions[..], &single.log_prob[..]),
            (&built.actions[lane.clone()], &built.log_prob[lane])
        );
    }
}

#[test]
fn every_schedule_passes_the_checker_and_has_the_outcome_it_says() {
    let sizes = [
        (Shop::Flow, 2, 1),
        (Shop::Flow, 9, 3),
        (Shop::Flow, 65, 2),
        (Shop::Job, 8, 5),
        (Shop::Job, 65, 1),
        (Shop::Lags, 6, 2),
        (Shop::Single, 7, 1),
        (TWO_ORDERS, 2, 2),
    ];
    for (shop, jobs, machines) in sizes {
        let (shops, task) = (instances(shop, jobs, machines), task(shop, jobs, machines));
        let horizon = task.horizon();
        let policy = shape(task.as_ref(), 8).policy().unwrap();
        let (score, mut sampler) = engines(&policy, 8, 1);
        let all: Vec<u32> = (0..8).collect();
        let lanes: Vec<u32> = (0..64).map(|lane| lane / 8).collect();
        let drawn = uniforms(64, horizon, 0);
        for how in [Draw::Sampled(&drawn), Draw::Greedy] {
            let (mut built, mut observed) = (Rollout::default(), Observed::default());
            sampler.draw(score.as_ref(), task.as_ref(), &all, how, &mut built, &mut observed).unwrap();
            let mut building = task.begin(&lanes).unwrap();
            for step in 0..horizon {
                let choices: Vec<i32> = (0..64).map(|lane| built.actions[lane * horizon + step]).collect();
                building.choose(&choices).unwrap();
            }
            for (lane, &outcome) in built.outcome.iter().enumerate() {
                let verdict = verify(&shops[lane / 8], &building.schedule(lane)).unwrap();
                assert_eq!((outcome.makespan, outcome.late as usize), (verdict.makespan, verdict.late));
            }
        }
    }
}

/// A row times a matrix `[in, out]`.
fn times(x: &[f64], matrix: &[f64], bias: Option<&[f64]>) -> Vec<f64> {
    let out = matrix.len() / x.len();
    let column = |j: usize| (0..x.len()).map(|i| x[i] * matrix[i * out + j]).sum::<f64>();
    (0..out).map(|j| column(j) + bias.map_or(0.0, |bias| bias[j])).collect()
}

fn normed(x: &[f64], gain: &[f64], bias: &[f64]) -> Vec<f64> {
    let mean = x.iter().sum::<f64>() / x.len() as f64;
    let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / x.len() as f64;
    x.iter().enumerate().map(|(i, x)| (x - mean) / (variance + 1e-5).sqrt() * gain[i] + bias[i]).collect()
}

/// Attention of one query over keys and values that are open, in `heads` heads.
fn attended(query: &[f64], keys: &[&[f64]], values: &[&[f64]], open: &[bool], heads: usize) -> Vec<f64> {
    let width = query.len() / heads;
    let head = |h: usize| {
        let part = |x: &[f64]| x[h * width..(h + 1) * width].to_vec();
        let dot = |key: &[f64]| part(query).iter().zip(part(key)).map(|(q, k)| q * k).sum::<f64>();
        let weight = |s: usize| if open[s] { (dot(keys[s]) / (width as f64).sqrt()).exp() } else { 0.0 };
        let total: f64 = (0..keys.len()).map(weight).sum();
        let at = move |i: usize| (0..keys.len()).map(|s| weight(s) / total * values[s][h * width + i]).sum();
        (0..width).map(at).collect::<Vec<f64>>()
    };
    (0..heads).flat_map(head).collect()
}

/// `erf` by its Taylor series, which converges fast for the small arguments here.
fn gelu(z: f64) -> f64 {
    let x = z / 2.0_f64.sqrt();
    let (mut term, mut sum) = (x, x);
    for n in 1..60 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    z * (1.0 + 2.0 / std::f64::consts::PI.sqrt() * sum) / 2.0
}

#[test]
fn the_network_is_its_formula() {
    for (residual, bound) in [(false, 10.0), (true, 10.0), (false, 0.0), (true, 2.0)] {
        holds_to_its_formula(residual, bound);
    }
}

fn holds_to_its_formula(residual: bool, bound: f64) {
    let task = task(Shop::Flow, 6, 3);
    let shape = PointerShape { residual, bound, ..shape(task.as_ref(), 2) };
    let policy = shape.policy().unwrap();
    let (mut score, mut sampler) = engines(&policy, 2, 1);
    let drawn = uniforms(2, 6, 0);
    let (mut built, mut observed) = (Rollout::default(), Observed::default());
    sampler
        .draw(score.as_ref(), task.as_ref(), &[2], Draw::Sampled(&drawn), &mut built, &mut observed)
        .unwrap();
    policy.load_observed(score.as_mut(), &built.actions, &observed).unwrap();
    score.forward().unwrap();

    let flat = score.parameters(0).unwrap();
    let layout = policy.graph.layout();
    let weight = |name: &str| -> Vec<f64> {
        let slice = layout.slices().iter().find(|slice| slice.name == name).unwrap();
        flat[slice.range()].iter().map(|&x| f64::from(x)).collect()
    };
    let widen = |x: &[f32]| x.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
    let (width, heads, open) = (shape.width, shape.heads, vec![true; 6]);
    let mut jobs: Vec<Vec<f64>> = observed
        .features
        .chunks_exact(3)
        .map(|job| times(&widen(job), &weight("features.weight"), Some(&weight("features.bias"))))
        .collect();
    for block in 0..2 {
        let own = |name: &str| weight(&format!("blocks.{block}.{name}"));
        let mixed: Vec<Vec<f64>> = jobs
            .iter()
            .map(|x| {
                times(&normed(x, &own("norm1.gain"), &own("norm1.bias")), &own("attention.in.weight"), None)
            })
            .collect();
        let keys: Vec<&[f64]> = mixed.iter().map(|x| &x[width..2 * width]).collect();
        let values: Vec<&[f64]> = mixed.iter().map(|x| &x[2 * width..]).collect();
        for (x, mixed) in jobs.iter_mut().zip(&mixed) {
            let seen = attended(&mixed[..width], &keys, &values, &open, heads);
            let added = times(&seen, &own("attention.out.weight"), None);
            x.iter_mut().zip(added).for_each(|(x, added)| *x += added);
            let raised = normed(x, &own("norm2.gain"), &own("norm2.bias"));
            let raised = times(&raised, &own("up.weight"), Some(&own("up.bias")));
            let raised: Vec<f64> = raised.into_iter().map(gelu).collect();
            let added = times(&raised, &own("down.weight"), Some(&own("down.bias")));
            x.iter_mut().zip(added).for_each(|(x, added)| *x += added);
        }
    }
    let jobs: Vec<Vec<f64>> =
        jobs.iter().map(|x| normed(x, &weight("norm.gain"), &weight("norm.bias"))).collect();
    let mean: Vec<f64> = (0..width).map(|i| jobs.iter().map(|x| x[i]).sum::<f64>() / 6.0).collect();
    let project = |name: &str| jobs.iter().map(|x| times(x, &weight(name), None)).collect::<Vec<_>>();
    let (glimpse, pointer) = (project("glimpse.in.weight"), project("pointer.weight"));
    let keys: Vec<&[f64]> = glimpse.iter().map(|x| &x[..width]).collect();
    let values: Vec<&[f64]> = glimpse.iter().map(|x| &x[width..]).collect();

    for place in 0..12 {
        let mut query = times(&mean, &weight("mean.weight"), Some(&weight("context.bias")));
        let context = widen(&observed.context[place * 6..(place + 1) * 6]);
        let mut parts = vec![times(&context, &weight("context.weight"), None)];
        if place % 6 > 0 {
            parts.push(times(&jobs[built.actions[place - 1] as usize], &weight("last.weight"), None));
        }
        for part in parts {
            query.iter_mut().zip(part).for_each(|(query, part)| *query += part);
        }
        let open: Vec<bool> =
            observed.open[place * 6..(place + 1) * 6].iter().map(|&open| open == 1).collect();
        let mut seen = attended(&query, &keys, &values, &open, heads);
        if residual {
            seen.iter_mut().zip(&query).for_each(|(seen, query)| *seen += query);
        }
        let pointed = times(&seen, &weight("glimpse.out.weight"), None);
        let logit = |job: usize| {
            let score: f64 = pointed.iter().zip(&pointer[job]).map(|(a, b)| a * b).sum();
            let score = score / (width as f64).sqrt();
            if bound > 0.0 { bound * score.tanh() } else { score }
        };
        let total: f64 = (0..6).filter(|&job| open[job]).map(|job| logit(job).exp()).sum();
        let expected = logit(built.actions[place] as usize) - total.ln();
        let came = f64::from(score.output(0, 0)[place]);
        assert!((came - expected).abs() < 1e-5, "row {place}: {came}, by the formula {expected}");
    }
}
