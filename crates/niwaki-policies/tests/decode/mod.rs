//! Decoding one instance: each way against what it must find, and against the independent checker.

use crate::pointer::{engines, instances, shape, task};
use niwaki_nn::{Cpu, DynEngine, Graph, Value};
use niwaki_policies::{Decoded, Decoding, Draw, Observed, Rollout, decode};
use niwaki_shop::{Instance, verify};
use niwaki_tasks::Shop;

fn make(graph: &Graph, outputs: &[Value]) -> niwaki_nn::Result<Box<DynEngine>> {
    Ok(Cpu::boxed(graph, outputs, 1))
}

/// What a policy with fresh weights finds for instance 2, and the steps that it told of.
fn decoded(shop: Shop, jobs: usize, machines: usize, how: Decoding) -> (Decoded, usize) {
    let task = task(shop, jobs, machines);
    let policy = shape(task.as_ref(), 1).policy().unwrap();
    let (parameters, _) = engines(&policy, 1, 1);
    let mut steps = 0;
    let found = decode(&policy, parameters.as_ref(), task.as_ref(), 2, how, &make, &mut |more| steps += more)
        .unwrap();
    verify(&instances(shop, jobs, machines)[2], &found.schedule).unwrap();
    assert_eq!(found.schedule.makespan(), found.outcome.makespan);
    (found, steps)
}

/// The least makespan of all orders.
fn least(shop: &Instance, order: &mut Vec<u32>) -> u32 {
    let Instance::Flow(flow) = shop else { panic!("{}", shop.kind()) };
    if order.len() == flow.jobs() {
        return flow.makespan(order);
    }
    let mut best = u32::MAX;
    for job in 0..flow.jobs() as u32 {
        if !order.contains(&job) {
            order.push(job);
            best = best.min(least(shop, order));
            order.pop();
        }
    }
    best
}

#[test]
fn greedy_is_the_samplers_greedy_and_a_beam_of_one() {
    for (shop, jobs, machines) in [(Shop::Flow, 7, 3), (Shop::Job, 4, 3)] {
        let task = task(shop, jobs, machines);
        let policy = shape(task.as_ref(), 1).policy().unwrap();
        let (parameters, mut sampler) = engines(&policy, 1, 1);
        let (mut built, mut observed) = (Rollout::default(), Observed::default());
        sampler
            .draw(parameters.as_ref(), task.as_ref(), &[2], Draw::Greedy, &mut built, &mut observed)
            .unwrap();
        let (greedy, steps) = decoded(shop, jobs, machines, Decoding::default());
        assert_eq!((greedy.outcome, greedy.way, greedy.tried), (built.outcome[0], "greedy", 1));
        assert_eq!(steps, task.horizon());
        // The beam of one tries the same schedule again, and the first that was tried is kept.
        let (beam, _) = decoded(shop, jobs, machines, Decoding { beam: 1, ..Decoding::default() });
        assert_eq!((beam.schedule, beam.way, beam.tried), (greedy.schedule, "greedy", 2));
    }
}

#[test]
fn a_beam_as_wide_as_the_tree_finds_the_optimum() {
    // 4 jobs have 24 orders, fewer than the beam holds.
    let (found, _) = decoded(Shop::Flow, 4, 3, Decoding { beam: 120, ..Decoding::default() });
    let optimum = least(&instances(Shop::Flow, 4, 3)[2], &mut Vec::new());
    assert_eq!((found.outcome.makespan, found.tried), (optimum, 1 + 24));
}

#[test]
fn many_starts_try_every_first_choice() {
    // Two jobs: both orders, and greedy's own once more.
    let how = Decoding { multistart: true, ..Decoding::default() };
    let (found, _) = decoded(Shop::Flow, 2, 3, how);
    let optimum = least(&instances(Shop::Flow, 2, 3)[2], &mut Vec::new());
    assert_eq!((found.outcome.makespan, found.tried), (optimum, 3));
}

#[test]
fn more_samples_never_lose_and_the_seed_says_which() {
    let sampled = |samples, seed| {
        let how = Decoding { samples, seed, ..Decoding::default() };
        decoded(Shop::Job, 8, 5, how).0
    };
    // Sample 7 of a seed is the same however many are drawn, in one batch or in two.
    let few = sampled(20, 1);
    let many = sampled(300, 1);
    assert!(many.outcome.makespan <= few.outcome.makespan && many.tried == 301);
    assert!(many.outcome.makespan < sampled(0, 1).outcome.makespan, "chance beats fresh weights");
    assert_eq!(sampled(20, 1), few);
    assert_ne!(sampled(20, 2).schedule, few.schedule);
}

#[test]
fn an_instance_that_is_not_there_is_refused() {
    let task = task(Shop::Flow, 4, 3);
    let policy = shape(task.as_ref(), 1).policy().unwrap();
    let (parameters, _) = engines(&policy, 1, 1);
    let refused =
        decode(&policy, parameters.as_ref(), task.as_ref(), 8, Decoding::default(), &make, &mut |_| {})
            .unwrap_err();
    assert!(refused.to_string().contains("expected an instance below 8, got 8"), "{refused}");
}
