//! Every solver against plain enumeration on instances small enough for it.

mod closed;
mod cpsat;
mod enumerate;
#[path = "../../../benches/peers/mod.rs"]
pub(crate) mod peers;
mod shops;

use niwaki_shop::generate::{Size, Task, generate};
use niwaki_shop::optimum::{self, flexible, flow_shop, job_shop, single_machine, two_machine};
use niwaki_shop::{
    Bounds, FlexibleShop, FlowShop, Instance, JobShop, Limits, Operation, Optimum, Window, verify,
};
use proptest::prelude::*;
use std::time::Duration;

const LIMITS: Limits = Limits::new(Duration::from_secs(60), 1);

/// The result is proven, its schedule is accepted and as long as it says, and bounds only ever closed in.
fn hold(instance: &Instance, optimum: &Optimum, seen: &[Bounds]) -> Result<(), TestCaseError> {
    prop_assert!(optimum.proven);
    prop_assert_eq!(optimum.lower, optimum.upper);
    let verdict =
        verify(instance, &optimum.schedule).map_err(|fault| TestCaseError::fail(fault.to_string()))?;
    prop_assert_eq!(verdict.makespan, optimum.upper);
    for pair in seen.windows(2) {
        prop_assert!(pair[0].lower <= pair[1].lower && pair[1].upper <= pair[0].upper);
    }
    prop_assert!(seen.iter().all(|bounds| bounds.lower <= optimum.lower && optimum.upper <= bounds.upper));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn flow_shops_equal_all_permutations(shop in shops::flow(7, 5)) {
        let mut seen = Vec::new();
        let optimum = flow_shop::solve(&shop, LIMITS, &mut |bounds| seen.push(bounds));
        prop_assert_eq!(optimum.upper, enumerate::orders(shop.jobs(), |order| shop.makespan(order)));
        hold(&Instance::Flow(shop), &optimum, &seen)?;
    }

    #[test]
    fn job_shops_equal_all_dispatches(shop in shops::job()) {
        let mut seen = Vec::new();
        let optimum = job_shop::solve(&shop, LIMITS, &mut |bounds| seen.push(bounds));
        let flexible = FlexibleShop::from_job_shop(&shop).unwrap();
        prop_assert_eq!(optimum.upper, enumerate::dispatches(&flexible));
        hold(&Instance::Job(shop), &optimum, &seen)?;
    }

    #[test]
    fn flexible_shops_equal_all_dispatches(shop in shops::flexible(3)) {
        let mut seen = Vec::new();
        let optimum = flexible::solve(&shop, LIMITS, &mut |bounds| seen.push(bounds));
        prop_assert_eq!(optimum.upper, enumerate::dispatches(&shop));
        hold(&Instance::Flexible(shop), &optimum, &seen)?;
    }

    #[test]
    fn resting_shops_equal_all_dispatches(shop in shops::resting(3)) {
        let mut seen = Vec::new();
        let optimum = flexible::solve(&shop, LIMITS, &mut |bounds| seen.push(bounds));
        prop_assert_eq!(optimum.upper, enumerate::dispatches(&shop));
        hold(&Instance::Flexible(shop), &optimum, &seen)?;
    }

    #[test]
    fn schedules_within_windows_equal_all_sequences(shop in shops::resting(2)) {
        let mut seen = Vec::new();
        let optimum = flexible::solve_within_windows(&shop, LIMITS, &mut |bounds| seen.push(bounds));
        prop_assert_eq!(optimum.upper, enumerate::within_windows(&shop));
        prop_assert_eq!(optimum.schedule.violation(&shop), 0);
        hold(&Instance::Flexible(shop), &optimum, &seen)?;
    }

    #[test]
    fn two_machines_equal_all_permutations(shop in shops::lags(7)) {
        let optimum = two_machine::solve(&shop);
        prop_assert_eq!(optimum.upper, enumerate::orders(shop.jobs(), |order| shop.makespan(order)));
        hold(&Instance::Lags(shop), &optimum, &[])?;
    }

    #[test]
    fn a_single_machine_is_late_as_rarely_as_in_any_permutation(shop in shops::single(7)) {
        let late = |order: &[u32]| {
            let mut clock = 0;
            order.iter().filter(|&&job| {
                clock += shop.times()[job as usize];
                clock > shop.due()[job as usize]
            }).count()
        };
        prop_assert_eq!(late(&single_machine::fewest_late(&shop)), enumerate::orders(shop.jobs(), late));
        let optimum = single_machine::solve(&shop);
        hold(&Instance::Single(shop), &optimum, &[])?;
    }

    #[test]
    fn the_same_input_gives_the_same_schedule(shop in shops::flexible(3), flow in shops::flow(7, 4)) {
        for instance in [Instance::Flexible(shop), Instance::Flow(flow)] {
            let [one, other] = [(); 2].map(|()| optimum::solve(&instance, LIMITS, &mut |_| {}));
            prop_assert_eq!(one, other);
        }
    }
}

#[test]
fn no_time_still_gives_a_schedule_and_a_bound() {
    let limits = Limits::new(Duration::ZERO, 1);
    for task in [Task::HardFlow, Task::JobShop, Task::TaillardJob, Task::Sd1, Task::Windows] {
        let instance = generate(task, task.size(), 3, 0).unwrap();
        let optimum = optimum::solve(&instance, limits, &mut |_| {});
        let verdict = verify(&instance, &optimum.schedule).unwrap();
        assert_eq!(verdict.makespan, optimum.upper);
        assert!(0 < optimum.lower && optimum.lower <= optimum.upper);
    }
}

#[test]
fn the_shapes_of_the_paper_are_proven() {
    // Enumeration cannot reach these; that the proofs end is what this holds. Values are checked against CP-SAT in
    // `cpsat`.
    for index in 0..10 {
        for task in [Task::EasyFlow, Task::HardFlow, Task::JobShop] {
            let instance = generate(task, task.size(), 4, index).unwrap();
            assert!(optimum::solve(&instance, LIMITS, &mut |_| {}).proven, "{} {index}", task.name());
        }
    }
}

#[test]
fn the_exact_search_alone_agrees() {
    // A shop with longest rests is not a job shop: what is too long to bind leaves the exact search of general shops alone,
    // without tabu search or cuts. A wrong proof would leave it above what those find, or them above it.
    for index in 0..40 {
        for (task, jobs, machines) in
            [(Task::L2d, 5, 4), (Task::L2d, 6, 3), (Task::Sd1, 5, 3), (Task::Flexible, 4, 4)]
        {
            let instance = generate(task, Size { jobs, machines }, 6, index).unwrap();
            let shop = match &instance {
                Instance::Job(shop) => FlexibleShop::from_job_shop(shop).unwrap(),
                Instance::Flexible(shop) => shop.clone(),
                other => panic!("{} is not a job shop", other.kind()),
            };
            let both = optimum::solve(&instance, LIMITS, &mut |_| {});
            let window =
                |index| if index == 0 { Window::FREE } else { Window { min: 0, max: Some(1_000_000) } };
            let windows: Vec<Vec<Window>> =
                (0..shop.jobs()).map(|job| (0..shop.job(job).len()).map(window).collect()).collect();
            let shop = shop.with_windows(&windows).unwrap();
            let alone = flexible::solve_within_windows(&shop, LIMITS, &mut |_| {});
            assert!(both.proven && alone.proven, "{} {index}", task.name());
            assert_eq!(both.upper, alone.upper, "{} {index}", task.name());
        }
    }
}

#[test]
fn times_up_to_the_horizon_do_not_overflow() {
    let limits = Limits::new(Duration::from_millis(20), 1);
    let time = niwaki_shop::instance::HORIZON / 6;
    let routes = [[0, 1, 2], [2, 0, 1]].map(|route| route.map(|machine| Operation { machine, time }));
    let job = JobShop::new(3, &routes).unwrap();
    let flow = FlowShop::new(3, 2, vec![time; 6]).unwrap();
    let flexible = FlexibleShop::from_job_shop(&job).unwrap();
    let alone = flexible::solve_within_windows(&flexible, limits, &mut |_| {});
    assert!(verify(&Instance::Flexible(flexible), &alone.schedule).is_ok());
    for instance in [Instance::Job(job), Instance::Flow(flow)] {
        let optimum = optimum::solve(&instance, limits, &mut |_| {});
        assert!(optimum.lower <= optimum.upper && verify(&instance, &optimum.schedule).is_ok());
    }
}
