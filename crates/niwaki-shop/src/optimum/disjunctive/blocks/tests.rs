//! Moves keep what they must not lose: longest paths, and no cycle.

use super::super::graph::Paths;
use super::super::start::dispatch;
use super::*;
use crate::generate::{Size, Task, generate};
use crate::{FlexibleShop, Instance, JobShop, Operation};

fn generated(seed: u64) -> JobShop {
    match generate(Task::L2d, Size { jobs: 9, machines: 5 }, seed, 0).unwrap() {
        Instance::Job(shop) => shop,
        _ => panic!("a job shop"),
    }
}

/// Jobs that come back to a machine, some of them at once, and operations that take no time.
fn returning(seed: u64) -> JobShop {
    let mut stream = Key::new(seed, "returning").open();
    let mut operation = || Operation { machine: stream.below(3) as u32, time: stream.below(4) as u32 };
    let routes: Vec<Vec<_>> = (0..5).map(|_| (0..6).map(|_| operation()).collect()).collect();
    JobShop::new(3, &routes).unwrap()
}

#[test]
fn every_move_keeps_the_longest_paths() {
    for (seed, shop) in
        (0..4).map(|seed| (seed, generated(seed))).chain((0..40).map(|seed| (seed, returning(seed))))
    {
        let flat = Shop::from(&FlexibleShop::from_job_shop(&shop).unwrap());
        let mut search = Blocks::new(&flat, &dispatch(&flat, &vec![0; flat.operations()]), seed);
        let first = search.best_makespan();
        for _ in 0..400 {
            search.run(1, 0);
            // Computed afresh, all at once.
            let (head, tail, makespan) =
                (search.paths.head.clone(), search.paths.tail.clone(), search.now.makespan);
            search.now.sort(&flat);
            search.place_heads();
            assert_eq!(
                (head, tail, makespan),
                (search.paths.head.clone(), search.paths.tail.clone(), search.now.makespan)
            );
        }
        let mut paths = Paths::default();
        assert!(paths.compute(&flat, &search.best()));
        assert_eq!(paths.makespan, search.best_makespan());
        assert!(search.best_makespan() <= first);
    }
}
