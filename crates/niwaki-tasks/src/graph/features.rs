//! One lane's features, kept up to date placement by placement: a placement changes one job, one machine and the
//! arcs of one operation.

use niwaki_shop::FlexibleShop;

/// Numbers that describe an operation: placed, arcs, time, left, completion, start; and with windows least rest and slack.
pub const OPERATION: [usize; 2] = [6, 8];
/// Numbers that describe a machine: arcs, when it is free, how busy it was.
pub const MACHINE: usize = 3;

/// Columns of an operation: whether it is placed.
pub const PLACED: usize = 0;
const ARCS: usize = 1;
/// Its time.
pub const TIME: usize = 2;
/// Operations of its job that are not placed.
pub const LEFT: usize = 3;
/// When its job would end.
pub(super) const COMPLETION: usize = 4;
/// Its start.
pub const START: usize = 5;
const REST: usize = 6;

/// What a lane shows of its operations, machines and arcs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Features {
    /// Numbers per operation.
    width: usize,
    /// Machines of the largest shop.
    machines: usize,
    /// `[operation, width]`
    pub(super) operations: Vec<f64>,
    /// Times, 0 where there is no arc: `[operation, machines]`
    pub(super) arcs: Vec<f64>,
    /// Whether there is an arc, which may have no length: `[operation, machines]`
    pub(super) able: Vec<u8>,
    /// Arcs of each machine, and how long what was placed on it takes in all: `[machine]`
    pub(super) reach: Vec<u32>,
    pub(super) work: Vec<u64>,
}

/// An operation that is placed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placement {
    pub(super) job: usize,
    /// Which of the job's operations.
    pub(super) index: usize,
    pub(super) machine: usize,
    pub(super) start: u32,
}

impl Features {
    /// Those of a shop in which nothing is placed.
    pub(super) fn new(shop: &FlexibleShop, width: usize, machines: usize) -> Self {
        let count = shop.operations();
        let mut made = Self {
            width,
            machines,
            operations: vec![0.0; count * width],
            arcs: vec![0.0; count * machines],
            able: vec![0; count * machines],
            reach: vec![0; shop.machines()],
            work: vec![0; shop.machines()],
        };
        let slack = |operation| {
            let window = shop.window(operation);
            window.max.map(|most| most - window.min)
        };
        let loosest = (0..count).filter_map(slack).max().unwrap_or(0);
        for operation in 0..count {
            let choices = shop.alternatives(operation);
            for choice in choices {
                let arc = operation * machines + choice.machine as usize;
                made.arcs[arc] = f64::from(choice.time);
                made.able[arc] = 1;
                made.reach[choice.machine as usize] += 1;
            }
            let row = &mut made.operations[operation * width..(operation + 1) * width];
            row[ARCS] = choices.len() as f64;
            row[TIME] = choices.iter().map(|choice| f64::from(choice.time)).sum::<f64>() / row[ARCS];
            if let [rest, more] = &mut row[REST..] {
                *rest = f64::from(shop.window(operation).min);
                *more = f64::from(slack(operation).unwrap_or(loosest));
            }
        }
        (0..shop.jobs()).for_each(|job| made.estimate(shop, job, 0, 0.0));
        made
    }

    /// Takes one placement in.
    pub(super) fn place(&mut self, shop: &FlexibleShop, placed: Placement) {
        let Placement { job, index, machine, start } = placed;
        let operation = shop.job(job).start + index;
        let arcs = operation * self.machines..(operation + 1) * self.machines;
        let time = self.arcs[arcs.start + machine];
        for choice in shop.alternatives(operation) {
            self.reach[choice.machine as usize] -= u32::from(choice.machine as usize != machine);
        }
        self.arcs[arcs.clone()].fill(0.0);
        self.able[arcs.clone()].fill(0);
        self.arcs[arcs.start + machine] = time;
        self.able[arcs.start + machine] = 1;
        self.work[machine] += time as u64;
        let row = &mut self.operations[operation * self.width..(operation + 1) * self.width];
        row[PLACED] = 1.0;
        row[ARCS] = 1.0;
        row[TIME] = time;
        row[START] = f64::from(start);
        self.estimate(shop, job, index + 1, f64::from(start) + time);
    }

    /// Estimates a job of which `placed` operations are placed, the last of them ending at `end`.
    fn estimate(&mut self, shop: &FlexibleShop, job: usize, placed: usize, mut end: f64) {
        let (route, width) = (shop.job(job), self.width);
        for operation in route.clone().skip(placed) {
            let row = &mut self.operations[operation * width..(operation + 1) * width];
            row[START] = end + f64::from(shop.window(operation).min);
            end = row[START] + row[TIME];
        }
        for row in self.operations[route.start * width..route.end * width].chunks_exact_mut(width) {
            row[LEFT] = (route.len() - placed) as f64;
            row[COMPLETION] = end;
        }
    }
}
