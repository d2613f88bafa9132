//! Laws of constructions: whatever is open can be chosen, nothing else can, and every schedule passes the independent
//! checker with the outcome that the task says.
#![expect(clippy::unwrap_used, reason = "a law that cannot be set up has failed")]

mod graph;

use niwaki_shop::{
    Bounds, FlowShop, Instance, JobShop, LaggedJob, Operation, SingleMachine, TwoMachineLags, verify,
};
use niwaki_stream::{Key, Stream};
use niwaki_tasks::{Outcome, Reading, construct};
use proptest::prelude::*;

/// Lanes that are played together.
const LANES: usize = 3;

fn below(stream: &mut Stream, most: u32) -> u32 {
    stream.below(u64::from(most)) as u32
}

/// Shops of one kind and shape. Job shops have routes of any length, revisit machines and have empty operations; all
/// instances have equally many operations, cut into jobs anew.
fn shops(kind: u8, jobs: usize, machines: usize, stream: &mut Stream) -> Vec<Instance> {
    let operations = jobs + below(stream, 3 * jobs as u32) as usize;
    let one = |stream: &mut Stream| match kind {
        0 => {
            let times = (0..jobs * machines).map(|_| below(stream, 9)).collect();
            Instance::Flow(FlowShop::new(jobs, machines, times).unwrap())
        }
        1 => {
            let mut routes = vec![1; jobs];
            (jobs..operations).for_each(|_| routes[below(stream, jobs as u32) as usize] += 1);
            let mut step = || Operation { machine: below(stream, machines as u32), time: below(stream, 9) };
            let routes: Vec<Vec<_>> =
                routes.into_iter().map(|length| (0..length).map(|_| step()).collect()).collect();
            Instance::Job(JobShop::new(machines, &routes).unwrap())
        }
        2 => {
            let times = (0..jobs).map(|_| below(stream, 9)).collect();
            Instance::Single(
                SingleMachine::new(times, (0..jobs).map(|_| below(stream, 60)).collect()).unwrap(),
            )
        }
        _ => {
            let mut job = || LaggedJob {
                first: below(stream, 9),
                lag: below(stream, 20),
                second: below(stream, 9),
                due: (below(stream, 3) > 0).then(|| below(stream, 60)),
            };
            Instance::Lags(TwoMachineLags::new((0..jobs).map(|_| job()).collect()).unwrap())
        }
    };
    (0..4).map(|_| one(stream)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn masks_let_nothing_through_and_every_schedule_is_checked(
        kind in 0_u8..4, jobs in 1_usize..8, machines in 1_usize..5, seed in any::<u64>(),
        order in 0_usize..4, hidden in any::<bool>(),
    ) {
        let mut stream = Key::new(seed, "law").open();
        let shops = shops(kind, jobs, machines, &mut stream);
        let reading = Reading { order: Reading::ORDERS[order].1, hidden };
        let task = construct(shops.clone(), vec![Bounds { lower: 0, upper: 1 }; 4], 3, reading).unwrap();
        let mut features = vec![f32::NAN; task.candidates() * task.features()];
        for instance in 0..4 {
            task.describe(instance, &mut features);
            // The largest number drawn is a due date below 60, over a length of at least 1.
            prop_assert!(features.iter().all(|feature| (0.0..60.0).contains(feature)));
        }
        let instances = [0; LANES].map(|_| below(&mut stream, 4));
        let mut lanes = task.begin(&instances).unwrap();
        let mut seen = vec![vec![false; task.candidates()]; LANES];
        let (mut open, mut context) = (vec![9; task.candidates()], vec![f32::NAN; task.context()]);
        for _ in 0..task.horizon() {
            let mut choices = [0; LANES];
            for lane in 0..LANES {
                lanes.open(lane, &mut open);
                lanes.context(lane, &mut context);
                prop_assert!(context.iter().all(|number| number.is_finite()));
                let offered: Vec<usize> = (0..open.len()).filter(|&at| open[at] == 1).collect();
                prop_assert!(!offered.is_empty() && open.iter().all(|&open| open < 2));
                prop_assert!(offered.iter().all(|&at| !seen[lane][at]), "offered again");
                let chosen = offered[below(&mut stream, offered.len() as u32) as usize];
                seen[lane][chosen] = true;
                choices[lane] = chosen as i32;
            }
            // Whatever is closed in the first lane is refused there before anything moves.
            lanes.open(0, &mut open);
            for closed in (0..open.len() as i32).filter(|&at| open[at as usize] == 0).chain([-1, open.len() as i32]) {
                let mut refused = choices;
                refused[0] = closed;
                prop_assert!(lanes.choose(&refused).is_err(), "{closed} is closed");
            }
            lanes.choose(&choices).unwrap();
        }
        for lane in 0..LANES {
            lanes.open(lane, &mut open);
            prop_assert!(open.iter().all(|&open| open == 0));
            let verdict = verify(&shops[instances[lane] as usize], &lanes.schedule(lane)).unwrap();
            let expected = Outcome { makespan: verdict.makespan, late: verdict.late as u32, violation: 0 };
            prop_assert_eq!(lanes.outcome(lane), expected);
        }
    }
}
