//! Small random shops, one feature at a time or all together.

use niwaki_shop::general::{
    Calendar, Job, Machine, Mode, Objective, Operation, Parts, Precedence, Setups, Shop,
};
use niwaki_stream::Stream;

/// What a drawn shop may have beside operations on machines.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Features {
    pub(crate) modes: bool,
    pub(crate) dates: bool,
    pub(crate) windows: bool,
    pub(crate) waits: bool,
    pub(crate) setups: bool,
    pub(crate) calendars: bool,
}

impl Features {
    pub(crate) const ALL: Self =
        Self { modes: true, dates: true, windows: true, waits: true, setups: true, calendars: true };
}

/// A shop of so many jobs with one to two operations each on two machines.
pub(crate) fn shop(stream: &mut Stream, features: Features, jobs: usize, objective: &str) -> Shop {
    let mut below = |bound: u64| stream.below(bound) as u32;
    let machines = 2;
    let mut list = Vec::new();
    let mut precedences: Vec<Precedence> = Vec::new();
    let mut number = 0;
    for job in 0..jobs {
        let mut operations = Vec::new();
        for index in 0..1 + below(2) {
            let mut modes = vec![Mode { machine: below(machines), time: 1 + below(5) }];
            if features.modes && below(2) == 0 {
                modes.push(Mode { machine: 1 - modes[0].machine, time: 1 + below(5) });
            }
            let mut operation = Operation::new(format!("o{index}"), modes);
            if features.windows && below(3) == 0 {
                operation.earliest = below(8);
            }
            if features.setups && below(4) > 0 {
                operation.family = Some(below(3));
            }
            operation.interruptible = features.calendars && below(2) == 0;
            operations.push(operation);
            if index > 0 {
                let min = if features.waits && below(2) == 0 { below(4) } else { 0 };
                precedences.push(Precedence { before: number - 1, after: number, min, max: None });
            }
            number += 1;
        }
        let mut made = Job::new(format!("j{job}"), operations);
        if features.dates {
            made.release = below(6);
            made.due = (below(4) > 0).then(|| 3 + below(12));
            made.weight = 1 + below(3);
        }
        list.push(made);
    }
    let machines: Vec<Machine> = (0..machines)
        .map(|machine| {
            let mut made = Machine::new(format!("m{machine}"));
            if features.calendars {
                let closed = (0..3).map(|week: u32| {
                    let from = 8 * week + 2 + below(4);
                    (from, from + 1 + below(2))
                });
                made.calendar = Calendar::new(closed.collect());
                made.available = below(3);
            }
            if features.setups && below(2) == 0 {
                made.family = Some(below(3));
            }
            made
        })
        .collect();
    let setups = if features.setups {
        Setups {
            families: ["red", "green", "blue"].map(String::from).to_vec(),
            tables: vec![(0..9).map(|pair| if pair % 4 == 0 { 0 } else { below(4) }).collect()],
            of_machine: vec![Some(0); machines.len()],
        }
    } else {
        Setups::default()
    };
    let objective: Objective = objective.parse().unwrap();
    Shop::new(Parts { jobs: list, machines, precedences, setups, objective, horizon: 400 }).unwrap()
}

/// The same shop with some deadlines, latest ends and longest waits: not every one of these can be kept.
pub(crate) fn harden(stream: &mut Stream, shop: &Shop) -> Shop {
    let mut below = |bound: u64| stream.below(bound) as u32;
    let mut jobs = shop.jobs().to_vec();
    for job in &mut jobs {
        job.deadline = (below(3) == 0).then(|| 18 + below(14));
        for operation in &mut job.operations {
            operation.latest = (below(4) == 0).then(|| 14 + below(14));
        }
    }
    let mut precedences = shop.precedences().to_vec();
    for link in &mut precedences {
        link.max = (below(2) == 0).then(|| link.min + below(4));
    }
    let parts = Parts {
        jobs,
        machines: shop.machines().to_vec(),
        precedences,
        setups: shop.setups().clone(),
        objective: shop.objective().clone(),
        horizon: shop.horizon(),
    };
    Shop::new(parts).unwrap()
}
