//! What weights of paths are worth beside weights of states on small job shops, exactly: `studies/registered/MERGING.md`.
//!
//! `cargo run --release -p niwaki-exact --example merging_shops > rows.csv`

#![expect(clippy::print_stdout, reason = "an example that reports on the terminal")]

use niwaki_exact::{Error, StateGraph, StatePair, Weights};
use niwaki_stream::{Key, Stream};
use std::fmt;

const SHOPS: u64 = 10;
const BATCH: f64 = 64.0;

/// An operation of a job: its machine, and how long it takes.
type Operation = (usize, u32);

/// A shop, and how it is built and seen.
struct Shop {
    routes: Vec<Vec<Operation>>,
    machines: usize,
    order: Order,
    durations: Durations,
    sight: Sight,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Free,
    Canonical,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Durations {
    Fixed,
    Recorded,
    Omitted,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sight {
    Schedule,
    Clocks,
}

/// What has been placed: on every machine in order, job, start and end; the jobs' clocks follow from it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Placed {
    on: Vec<Vec<(usize, u32, u32)>>,
}

impl Placed {
    fn done(&self, job: usize) -> usize {
        self.on.iter().flatten().filter(|operation| operation.0 == job).count()
    }

    fn job_free(&self, job: usize) -> u32 {
        self.on
            .iter()
            .flatten()
            .filter(|operation| operation.0 == job)
            .map(|operation| operation.2)
            .max()
            .unwrap_or(0)
    }

    fn machine_free(&self, machine: usize) -> u32 {
        self.on[machine].last().map_or(0, |operation| operation.2)
    }

    fn makespan(&self) -> u32 {
        self.on.iter().flatten().map(|operation| operation.2).max().unwrap_or(0)
    }
}

impl Shop {
    fn drawn(
        jobs: usize,
        machines: usize,
        seed: u64,
        order: Order,
        durations: Durations,
        sight: Sight,
    ) -> Self {
        let mut stream = Key::new(seed, "merging shop").open();
        let route = |stream: &mut Stream| {
            let mut left: Vec<usize> = (0..machines).collect();
            let mut route = Vec::new();
            while !left.is_empty() {
                let machine = left.remove(stream.below(left.len() as u64) as usize);
                route.push((machine, 1 + stream.below(9) as u32));
            }
            route
        };
        let routes = (0..jobs).map(|_| route(&mut stream)).collect();
        Self { routes, machines, order, durations, sight }
    }

    fn next_of(&self, placed: &Placed, job: usize) -> Option<(Operation, u32)> {
        let operation = *self.routes[job].get(placed.done(job))?;
        Some((operation, placed.job_free(job).max(placed.machine_free(operation.0))))
    }

    /// The jobs whose next operation may be placed.
    fn open(&self, placed: &Placed) -> Vec<usize> {
        let ready = |job: usize| self.next_of(placed, job).map(|((machine, _), start)| (start, machine));
        let able = (0..self.routes.len()).filter(|&job| ready(job).is_some());
        match self.order {
            Order::Free => able.collect(),
            Order::Canonical => {
                let first = able.clone().filter_map(ready).min();
                able.filter(|&job| ready(job) == first).collect()
            }
        }
    }

    fn next(&self, placed: &Placed, job: usize) -> Vec<(Placed, f64)> {
        let Some(((machine, takes), start)) = self.next_of(placed, job) else { return Vec::new() };
        let after = |takes: u32| {
            let mut after = placed.clone();
            after.on[machine].push((job, start, start + takes));
            after
        };
        match self.durations {
            Durations::Fixed => vec![(after(takes), 1.0)],
            Durations::Recorded | Durations::Omitted => vec![(after(takes), 0.5), (after(2 * takes), 0.5)],
        }
    }

    /// What the policy sees, as numbers; what is open is always among it.
    fn see(&self, placed: &Placed) -> Vec<u32> {
        let mut seen: Vec<u32> = self.open(placed).into_iter().map(|job| job as u32).collect();
        seen.push(u32::MAX);
        if self.durations == Durations::Omitted {
            for machine in &placed.on {
                seen.extend(machine.iter().map(|operation| operation.0 as u32));
                seen.push(u32::MAX);
            }
        } else if self.sight == Sight::Clocks {
            seen.extend((0..self.machines).map(|machine| placed.machine_free(machine)));
            let jobs = 0..self.routes.len();
            seen.extend(jobs.flat_map(|job| [placed.done(job) as u32, placed.job_free(job)]));
        } else {
            for machine in &placed.on {
                seen.extend(machine.iter().flat_map(|&(job, start, end)| [job as u32, start, end]));
                seen.push(u32::MAX);
            }
        }
        seen
    }

    /// The states are what the policy sees, where that is enough for what follows.
    fn graph(&self) -> Result<StateGraph, Error> {
        let longest = self.routes.iter().map(|route| route.iter().map(|operation| operation.1).sum::<u32>());
        let busiest = (0..self.machines).map(|machine| {
            self.routes
                .iter()
                .flatten()
                .filter(|operation| operation.0 == machine)
                .map(|operation| operation.1)
                .sum()
        });
        let work = f64::from(longest.chain(busiest).max().unwrap_or(1));
        let steps = self.routes.iter().map(Vec::len).sum();
        let root = Placed { on: vec![Vec::new(); self.machines] };
        let pay = |placed: &Placed| -f64::from(placed.makespan()) / work;
        if self.sight == Sight::Schedule {
            return StateGraph::new(
                root,
                steps,
                |placed| self.open(placed),
                |placed, job| self.next(placed, job),
                |placed| self.see(placed),
                pay,
            );
        }
        StateGraph::new(
            Seen { seen: self.see(&root), placed: root },
            steps,
            |state| self.open(&state.placed),
            |state, job| {
                let next = self.next(&state.placed, job).into_iter();
                next.map(|(placed, chance)| (Seen { seen: self.see(&placed), placed }, chance)).collect()
            },
            |state| state.seen.clone(),
            |state| pay(&state.placed),
        )
    }
}

/// A state that is known by its clocks; one schedule stands for all that have them.
#[derive(Clone)]
struct Seen {
    seen: Vec<u32>,
    placed: Placed,
}

impl PartialEq for Seen {
    fn eq(&self, other: &Self) -> bool {
        self.seen == other.seen
    }
}

impl Eq for Seen {}

impl PartialOrd for Seen {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Seen {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.seen.cmp(&other.seen)
    }
}

/// A name as the table has it.
fn word(value: impl fmt::Debug) -> String {
    format!("{value:?}").to_lowercase()
}

fn main() -> Result<(), Error> {
    use {Durations::*, Order::*, Sight::*};
    println!(
        "jobs,machines,seed,order,durations,sight,states,logits,delta,within,whole,improvement,weights,alpha,bias,variance,cosine,alignment"
    );
    for (jobs, machines) in [(3, 2), (2, 3), (3, 3)] {
        for order in [Free, Canonical] {
            let kinds = [
                (Fixed, Schedule),
                (Fixed, Clocks),
                (Recorded, Schedule),
                (Recorded, Clocks),
                (Omitted, Schedule),
            ];
            for (durations, sight) in kinds {
                if (jobs, machines) == (3, 3) && durations != Fixed {
                    continue;
                }
                for seed in 0..SHOPS {
                    let graph = Shop::drawn(jobs, machines, seed, order, durations, sight).graph()?;
                    for delta in [0.3, 1.0] {
                        let draw = |purpose: &'static str, scale: f64| -> Vec<f64> {
                            let mut stream = Key::new(seed, purpose).open();
                            (0..graph.logits()).map(|_| scale * stream.normal()).collect()
                        };
                        let old = draw("merging old", 0.1);
                        let added = draw("merging new", delta);
                        let new: Vec<f64> = old.iter().zip(&added).map(|(old, added)| old + added).collect();
                        let pair = StatePair::new(&graph, &old, &new);
                        let (within, whole) = pair.premium();
                        for weights in [Weights::Path, Weights::Routed, Weights::State, Weights::Seen] {
                            for alpha in [0.0, 0.1, 0.25, 0.5, 1.0] {
                                let worth = pair.worth(weights, alpha, BATCH);
                                println!(
                                    "{jobs},{machines},{seed},{},{},{},{},{},{delta},{within:e},{whole:e},{:e},{},{alpha},{:e},{:e},{:.6},{:.6}",
                                    word(order),
                                    word(durations),
                                    word(sight),
                                    graph.states(),
                                    graph.logits(),
                                    pair.improvement,
                                    word(weights),
                                    worth.bias,
                                    worth.variance,
                                    worth.cosine,
                                    worth.alignment,
                                );
                            }
                        }
                    }
                }
            }
        }
    }
    Ok(())
}
