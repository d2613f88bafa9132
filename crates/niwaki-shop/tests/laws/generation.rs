//! Distributions: bounds, means and the facts that the paper names; Taillard's benchmarks bit for bit.

use niwaki_shop::construct::{FlexibleLanes, Lanes, Order, pick};
use niwaki_shop::formats::load;
use niwaki_shop::generate::{Size, Task, generate, taillard_flow_shop, taillard_job_shop};
use niwaki_shop::heuristics::{jackson, max_lateness};
use niwaki_shop::{FlexibleShop, Instance};
use niwaki_stream::Key;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data").join(name)
}

#[test]
fn taillards_flow_shops_regenerate_from_their_headers() {
    for number in 1..=120 {
        let path = data(&format!("pfsp/ta{number:03}.txt"));
        let text = std::fs::read_to_string(&path).unwrap();
        let header: Vec<u32> =
            text.lines().nth(1).unwrap().split_whitespace().map(|word| word.parse().unwrap()).collect();
        let shop = taillard_flow_shop(header[0] as usize, header[1] as usize, header[2]).unwrap();
        assert_eq!(load(&path).unwrap(), Instance::Flow(shop), "ta{number:03}");
    }
}

#[test]
fn taillards_job_shops_regenerate_from_his_table() {
    let table = std::fs::read_to_string(data("jsp/taillard_seeds.csv")).unwrap();
    let mut seen = 0;
    for line in table.lines().skip(1) {
        let (name, numbers) = line.split_once(',').unwrap();
        let numbers: Vec<u32> = numbers.split(',').map(|word| word.parse().unwrap()).collect();
        let shop =
            taillard_job_shop(numbers[0] as usize, numbers[1] as usize, numbers[2], numbers[3]).unwrap();
        assert_eq!(load(&data(&format!("jsp/{name}.txt"))).unwrap(), Instance::Job(shop), "{name}");
        seen += 1;
    }
    assert_eq!(seen, 80);
}

fn pool(task: Task, count: u64) -> Vec<Instance> {
    (0..count).map(|index| generate(task, task.size(), 5, index).unwrap()).collect()
}

#[test]
fn bottlenecks_are_where_the_paper_puts_them() {
    for (task, bottlenecks) in [(Task::EasyFlow, vec![1]), (Task::HardFlow, vec![1, 3, 5])] {
        for instance in pool(task, 20) {
            let Instance::Flow(shop) = instance else { panic!("a flow shop") };
            for job in 0..shop.jobs() {
                for (machine, &time) in shop.job(job).iter().enumerate() {
                    let range = if bottlenecks.contains(&machine) { 10..=40 } else { 1..=20 };
                    assert!(range.contains(&time), "{}: machine {machine}: {time}", task.name());
                }
            }
        }
    }
    for instance in pool(Task::JobShop, 20) {
        let Instance::Job(shop) = instance else { panic!("a job shop") };
        for job in 0..8 {
            let mut machines: Vec<u32> = shop.route(job).iter().map(|step| step.machine).collect();
            machines.sort_unstable();
            assert_eq!(machines, [0, 1, 2, 3, 4]);
            assert!(shop.route(job).iter().all(|step| step.machine != 2 || step.time >= 10));
        }
    }
}

fn mean(values: impl Iterator<Item = f64> + Clone) -> f64 {
    values.clone().sum::<f64>() / values.count() as f64
}

#[test]
fn flexible_distributions_have_their_means() {
    // Alternatives are uniform on 1 to 5: mean 3. SD1: 4 to 6 operations, mean 5; its mean times are uniform on 1 to 20,
    // so about 10.5. SD2: 5 operations, times uniform on 1 to 99, mean 50. 400 instances of about 50 operations: the
    // standard errors are at most 0.01, 0.013, 0.045 and 0.17; margins are five of them.
    for (task, time, margin) in
        [(Task::Sd1, 10.5, 0.25), (Task::Sd2, 50.0, 0.85), (Task::Flexible, 10.5, 0.25)]
    {
        let shops: Vec<FlexibleShop> = pool(task, 400)
            .into_iter()
            .map(|instance| match instance {
                Instance::Flexible(shop) => shop,
                other => panic!("a {}", other.kind()),
            })
            .collect();
        let operations = mean(shops.iter().map(|shop| shop.operations() as f64 / 10.0));
        assert!((operations - 5.0).abs() < 0.07, "{}: {operations} operations", task.name());
        let all =
            || shops.iter().flat_map(|shop| (0..shop.operations()).map(move |op| shop.alternatives(op)));
        let alternatives = mean(all().map(|choices| choices.len() as f64));
        assert!((alternatives - 3.0).abs() < 0.05, "{}: {alternatives} alternatives", task.name());
        let times = mean(all().flatten().map(|choice| f64::from(choice.time)));
        assert!((times - time).abs() < margin, "{}: mean time {times}", task.name());
    }
}

#[test]
fn even_shops_are_songs_on_a_condition() {
    // Ten lengths of 4 to 6 that sum to 50: a job has 5 operations with probability N(9; 45) / N(10; 50), N(n; s) the
    // ways of n numbers to sum to s, that is (with each less 5) the central trinomial coefficients 3139 / 8953 = 0.3506.
    // 400 shops of 10 jobs, their lengths slightly dependent: the standard error is below 0.008; the margin is five.
    for task in [Task::Sd1Even, Task::Sd1Windows] {
        let (mut fives, mut lengths) = (0, BTreeSet::new());
        for instance in pool(task, 400) {
            let Instance::Flexible(shop) = instance else { panic!("a flexible shop") };
            assert_eq!((shop.operations(), shop.has_windows()), (50, task == Task::Sd1Windows));
            for job in 0..10 {
                fives += usize::from(shop.job(job).len() == 5);
                lengths.insert(shop.job(job).len());
            }
        }
        assert_eq!(lengths.into_iter().collect::<Vec<_>>(), [4, 5, 6]);
        assert!((fives as f64 / 4000.0 - 0.3506).abs() < 0.04, "{fives}");
    }
    // Where the mean is between two numbers, the lower one: 3 jobs of 4 to 7 operations have 16.
    let odd = generate(Task::Sd1Even, Size { jobs: 3, machines: 6 }, 0, 0).unwrap();
    assert_eq!(odd.operations(), 16);
}

#[test]
fn two_orders_have_one_decisive_choice() {
    for instance in pool(Task::TwoOrders, 200) {
        let Instance::Lags(shop) = instance else { panic!("a lagged flow shop") };
        let critical = shop.all().iter().position(|job| job.lag > 0).unwrap() as u32;
        let due = shop.all()[critical as usize].due.unwrap();
        let end = |order: &[u32]| {
            let schedule = niwaki_shop::Schedule::of_lagged_order(&shop, order);
            schedule.operations.iter().filter(|here| here.job == critical).map(|here| here.end).max().unwrap()
        };
        assert!(end(&[critical, 1 - critical]) <= due, "first, it is on time");
        assert!(end(&[1 - critical, critical]) > due, "second, it is late");
    }
}

#[test]
fn single_machines_can_be_on_time() {
    for instance in pool(Task::Single, 50) {
        let Instance::Single(shop) = instance else { panic!("a single machine") };
        assert!(max_lateness(&shop, &jackson(&shop)) <= 0);
    }
}

#[test]
fn an_untrained_policy_meets_all_windows_now_and_then() {
    // The paper's pilot asked for an untrained feasibility in [0.05, 0.40].
    let shops: Vec<FlexibleShop> = pool(Task::Windows, 64)
        .into_iter()
        .map(|instance| match instance {
            Instance::Flexible(shop) => shop,
            other => panic!("a {}", other.kind()),
        })
        .collect();
    let mut lanes = FlexibleLanes::new(&shops, 2048, Order::Canonical).unwrap();
    let mut stream = Key::new(1, "law").open();
    let mut actions = vec![0; 2048];
    for _ in 0..lanes.horizon() {
        for (lane, action) in actions.iter_mut().enumerate() {
            *action = pick(lanes.legal(lane), stream.bits()).unwrap();
        }
        lanes.step(&actions).unwrap();
    }
    let feasible = (0..2048).filter(|&lane| lanes.violation(lane) == 0).count() as f64 / 2048.0;
    assert!((0.05..=0.40).contains(&feasible), "feasible share {feasible}");
}
