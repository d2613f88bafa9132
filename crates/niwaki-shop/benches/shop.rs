//! How fast schedules are built: decisions per second on one core, random actions included.

use divan::Bencher;
use divan::counter::ItemsCount;
use niwaki_shop::construct::{FlexibleLanes, JobLanes, JobOrder, Lanes, Order, SequenceLanes, pick};
use niwaki_shop::{Alternative, FlexibleShop, FlowShop, JobShop, Operation};
use niwaki_stream::{Key, Stream};

/// Shows what a decision allocates: nothing.
#[global_allocator]
static ALLOCATIONS: divan::AllocProfiler = divan::AllocProfiler::system();

/// A block of lanes as a trainer's core would step it: 16 instances × 16 rollouts.
const LANES: usize = 256;
const POOL: usize = 64;

fn main() {
    divan::main();
}

/// One random decision in every lane, episodes one after the other; one item is one decision of one lane.
fn decisions(bencher: Bencher<'_, '_>, mut lanes: impl Lanes, mut stream: Stream) {
    let which: Vec<u32> = (0..LANES as u32).map(|lane| lane % POOL as u32).collect();
    let mut actions = vec![0; LANES];
    let mut left = lanes.horizon();
    bencher.counter(ItemsCount::new(LANES)).bench_local(|| {
        if left == 0 {
            lanes.reset(&which).expect("instances of the pool");
            left = lanes.horizon();
        }
        for (lane, action) in actions.iter_mut().enumerate() {
            *action = pick(lanes.legal(lane), stream.bits()).unwrap_or(0);
        }
        lanes.step(&actions).expect("legal actions");
        left -= 1;
        lanes.makespan(0)
    });
}

fn time(stream: &mut Stream) -> u32 {
    1 + stream.below(20) as u32
}

#[divan::bench(args = [Order::Canonical, Order::Free], sample_count = 2000)]
fn flow_shop_20x7(bencher: Bencher<'_, '_>, order: Order) {
    let mut stream = Key::new(1, "bench").open();
    let pool: Vec<_> = (0..POOL)
        .map(|_| FlowShop::new(20, 7, (0..140).map(|_| time(&mut stream)).collect()).expect("a flow shop"))
        .collect();
    decisions(bencher, SequenceLanes::flow(&pool, LANES, order).expect("lanes"), stream);
}

#[divan::bench(args = [Order::Canonical, Order::Free], sample_count = 2000)]
fn job_shop_8x5(bencher: Bencher<'_, '_>, order: Order) {
    let mut stream = Key::new(2, "bench").open();
    let pool: Vec<_> = (0..POOL).map(|_| job_shop(&mut stream)).collect();
    decisions(bencher, JobLanes::new(&pool, LANES, JobOrder::NonDelay(order)).expect("lanes"), stream);
}

#[divan::bench(sample_count = 2000)]
fn job_shop_8x5_active(bencher: Bencher<'_, '_>) {
    let mut stream = Key::new(2, "bench").open();
    let pool: Vec<_> = (0..POOL).map(|_| job_shop(&mut stream)).collect();
    decisions(bencher, JobLanes::new(&pool, LANES, JobOrder::Active).expect("lanes"), stream);
}

fn job_shop(stream: &mut Stream) -> JobShop {
    let routes: Vec<Vec<Operation>> = (0..8)
        .map(|_| {
            let mut machines: Vec<u32> = (0..5).collect();
            stream.shuffle(&mut machines);
            machines.into_iter().map(|machine| Operation { machine, time: time(stream) }).collect()
        })
        .collect();
    JobShop::new(5, &routes).expect("a job shop")
}

#[divan::bench(args = [Order::Canonical, Order::Free], sample_count = 2000)]
fn flexible_shop_10x5(bencher: Bencher<'_, '_>, order: Order) {
    let mut stream = Key::new(3, "bench").open();
    let pool: Vec<_> = (0..POOL)
        .map(|_| {
            let jobs: Vec<Vec<Vec<Alternative>>> = (0..10)
                .map(|_| {
                    (0..5)
                        .map(|_| {
                            let mut machines: Vec<u32> = (0..5).collect();
                            stream.shuffle(&mut machines);
                            machines.truncate(1 + stream.below(5) as usize);
                            let on = |machine| Alternative { machine, time: time(&mut stream) };
                            machines.into_iter().map(on).collect()
                        })
                        .collect()
                })
                .collect();
            FlexibleShop::new(5, &jobs).expect("a flexible shop")
        })
        .collect();
    decisions(bencher, FlexibleLanes::new(&pool, LANES, order).expect("lanes"), stream);
}
