//! Rules at work on every problem.

use super::DispatchRule;
use super::rule::Candidate;
use crate::construct::{
    FlexibleLanes, JobLanes, JobOrder, Lanes, Order, Outlook, SequenceLanes, Standing, count, nth, pick,
};
use crate::{Error, FlexibleShop, Instance, JobShop, Result, Schedule};
use niwaki_stream::{Key, Stream};

/// How often a randomised sample leaves its rule for a uniformly drawn candidate.
const NOISE: f64 = 0.1;
/// The power of the norm in which bounds are added up: the largest counts, and a little what is close behind it.
const POWER: i32 = 20;
/// Samples that are built side by side.
const BATCH: usize = 256;

/// A rule and the way it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dispatcher {
    /// The priority.
    pub rule: DispatchRule,
    /// Build active schedules (Giffler and Thompson) rather than non-delay ones. For job shops, flexible or not: an order
    /// of a flow shop already gives the earliest schedule of that order.
    pub active: bool,
    /// The best of this many: the rule itself, then samples that leave it for a random candidate now and then.
    pub samples: usize,
}

/// Schedules that a rule draws at most: they are drawn whatever the time.
const MOST_SAMPLES: usize = 1_000_000;

impl Dispatcher {
    /// Reads `[active-]RULE[*SAMPLES]`, e.g. `mwkr`, `active-spt`, `random*100`.
    ///
    /// # Errors
    /// If the rule is unknown or the number of samples is none.
    pub fn parse(text: &str) -> Result<Self> {
        let (name, samples) = match text.split_once('*') {
            None => (text, 1),
            Some((name, samples)) => match samples.parse::<usize>() {
                Ok(samples) if (1..=MOST_SAMPLES).contains(&samples) => (name, samples),
                _ => {
                    return Err(Error::Choice(format!(
                        "rule: expected from 1 to {MOST_SAMPLES} samples after `*`, got `{samples}`"
                    )));
                }
            },
        };
        let (rule, active) = match name.strip_prefix("active-") {
            Some(rule) => (rule, true),
            None => (name, false),
        };
        Ok(Self { rule: DispatchRule::named(rule)?, active, samples })
    }

    /// The best schedule that the rule builds.
    ///
    /// # Errors
    /// If active schedules are asked of a problem that is solved by one order of its jobs.
    pub fn run(&self, instance: &Instance, seed: u64) -> Result<Schedule> {
        let kind = instance.kind();
        if !matches!(instance, Instance::Job(_) | Instance::Flexible(_)) {
            if self.active {
                return Err(Error::Choice(format!(
                    "rule: active schedules are built for job shops, flexible or not, not for a {kind}: leave out `active-`"
                )));
            }
            if self.rule == DispatchRule::Bound {
                return Err(Error::Choice(format!(
                    "rule: `bound` is for job shops, flexible or not, not for a {kind}: take another rule, e.g. `mwkr`"
                )));
            }
        }
        match instance {
            Instance::Job(shop) => {
                let work = remaining(shop);
                let outlook = self.outlook(|| FlexibleShop::from_job_shop(shop))?;
                self.best(
                    seed,
                    |lanes| self.job_lanes(shop, lanes),
                    |lanes, lane, job| {
                        job_candidate(shop, &work, outlook.as_ref(), lanes, lane, job as usize)
                    },
                )
            }
            Instance::Flexible(shop) => {
                let (work, outlook) = (remaining_mean(shop), self.outlook(|| Ok(shop.clone()))?);
                let tables = (&work[..], outlook.as_ref());
                let pool = std::slice::from_ref(shop);
                if self.active {
                    self.best(
                        seed,
                        |lanes| FlexibleLanes::active(pool, lanes),
                        |lanes, lane, job| {
                            let machine = lanes.machine(lane) as usize;
                            flexible_candidate(shop, tables, lanes, lane, (job as usize, machine))
                        },
                    )
                } else {
                    self.best(
                        seed,
                        |lanes| FlexibleLanes::new(pool, lanes, Order::Free),
                        |lanes, lane, pair| {
                            let (job, machine) =
                                (pair as usize / shop.machines(), pair as usize % shop.machines());
                            flexible_candidate(shop, tables, lanes, lane, (job, machine))
                        },
                    )
                }
            }
            Instance::Flow(shop) => {
                let time = |job| shop.job(job).iter().map(|&time| f64::from(time)).sum();
                self.sequence(instance, seed, &(0..shop.jobs()).map(time).collect::<Vec<_>>())
            }
            Instance::Lags(shop) => {
                let times = shop.all().iter().map(|job| f64::from(job.first + job.lag + job.second));
                self.sequence(instance, seed, &times.collect::<Vec<_>>())
            }
            Instance::Single(shop) => {
                let times = shop.times().iter().map(|&time| f64::from(time));
                self.sequence(instance, seed, &times.collect::<Vec<_>>())
            }
        }
    }

    /// What the rule needs to see bounds, if it looks at them.
    fn outlook(&self, shop: impl FnOnce() -> Result<FlexibleShop>) -> Result<Option<Outlook>> {
        (self.rule == DispatchRule::Bound).then(|| Ok(Outlook::new(&shop()?))).transpose()
    }

    fn job_lanes(&self, shop: &JobShop, lanes: usize) -> Result<JobLanes> {
        let pool = std::slice::from_ref(shop);
        let order = if self.active { JobOrder::Active } else { JobOrder::NonDelay(Order::Canonical) };
        JobLanes::new(pool, lanes, order)
    }

    /// Jobs in one order, by their total times.
    fn sequence(&self, instance: &Instance, seed: u64, totals: &[f64]) -> Result<Schedule> {
        let make = |lanes| {
            SequenceLanes::of(instance, lanes, Order::Canonical).unwrap_or_else(|| {
                Err(Error::Choice(format!("rule: a {} is not solved by an order", instance.kind())))
            })
        };
        self.best(seed, make, |_, _, job| {
            let time = totals[job as usize];
            Candidate { job, time, arrival: f64::from(job), work: time, operations: 0.0, bound: 0.0 }
        })
    }

    /// Plays all samples, a batch at a time, and keeps the shortest schedule, the earliest of those that tie.
    fn best<L: Lanes>(
        &self,
        seed: u64,
        make: impl Fn(usize) -> Result<L>,
        look: impl Fn(&L, usize, u32) -> Candidate,
    ) -> Result<Schedule> {
        let mut best: Option<(u32, Schedule)> = None;
        for first in (0..self.samples).step_by(BATCH) {
            let size = BATCH.min(self.samples - first);
            let mut lanes = make(size)?;
            let mut streams: Vec<Stream> = (first..first + size)
                .map(|sample| Key::new(seed, "rule").lane(sample as u64).open())
                .collect();
            let mut actions = vec![0; size];
            for _ in 0..lanes.horizon() {
                for lane in 0..size {
                    let noisy = first + lane > 0 && streams[lane].uniform() < NOISE;
                    let candidate = |action| look(&lanes, lane, action);
                    actions[lane] = self.choose(lanes.legal(lane), noisy, &mut streams[lane], candidate);
                }
                lanes.step(&actions)?;
            }
            for lane in 0..size {
                let makespan = lanes.makespan(lane);
                if best.as_ref().is_none_or(|(least, _)| makespan < *least) {
                    best = Some((makespan, lanes.schedule(lane)));
                }
            }
        }
        best.map(|(_, schedule)| schedule)
            .ok_or_else(|| Error::Choice("rule: expected at least one sample, got none".into()))
    }

    /// The legal action of the least score; a random one for a noisy sample or a rule without preference.
    fn choose(
        &self,
        legal: &[u64],
        noisy: bool,
        stream: &mut Stream,
        candidate: impl Fn(u32) -> Candidate,
    ) -> u32 {
        let mut best: Option<(f64, u32, f64, u32)> = None;
        if !noisy {
            for action in (0..count(legal)).filter_map(|n| nth(legal, n)) {
                let here = candidate(action);
                let Some(score) = self.rule.score(here) else { break };
                let rank = (score, here.job, here.time, action);
                if best.is_none_or(|least| rank < least) {
                    best = Some(rank);
                }
            }
        }
        // A lane that is done has no legal action and ignores the one it is given.
        best.map(|(_, _, _, action)| action).or_else(|| pick(legal, stream.bits())).unwrap_or(0)
    }
}

/// Work of each job from each operation on: `[flat operation]`.
fn remaining(shop: &JobShop) -> Vec<f64> {
    let mut work: Vec<f64> = shop.flat().iter().map(|step| f64::from(step.time)).collect();
    for bounds in shop.starts().windows(2) {
        for operation in (bounds[0] as usize..bounds[1] as usize - 1).rev() {
            work[operation] += work[operation + 1];
        }
    }
    work
}

/// Mean work of each job from each operation on: `[flat operation]`.
fn remaining_mean(shop: &FlexibleShop) -> Vec<f64> {
    let mean = |operation| {
        let choices = shop.alternatives(operation);
        choices.iter().map(|choice| f64::from(choice.time)).sum::<f64>() / choices.len() as f64
    };
    let mut work: Vec<f64> = (0..shop.operations()).map(mean).collect();
    for job in 0..shop.jobs() {
        let operations = shop.job(job);
        for operation in (operations.start..operations.end - 1).rev() {
            work[operation] += work[operation + 1];
        }
    }
    work
}

/// The norm of a lane's bounds once an operation is placed on a machine; nothing where nobody asks.
fn bound(outlook: Option<&Outlook>, standing: Standing<'_>, operation: usize, machine: usize) -> f64 {
    outlook.map_or(0.0, |outlook| f64::from(outlook.look(standing).after(operation, machine).norm(POWER)))
}

fn job_candidate(
    shop: &JobShop,
    work: &[f64],
    outlook: Option<&Outlook>,
    lanes: &JobLanes,
    lane: usize,
    job: usize,
) -> Candidate {
    let done = lanes.next(lane)[job] as usize;
    let operation = shop.starts()[job] as usize + done;
    let standing = Standing { next: lanes.next(lane), ready: lanes.ready(lane), free: lanes.free(lane) };
    Candidate {
        job: job as u32,
        time: f64::from(shop.flat()[operation].time),
        arrival: f64::from(lanes.ready(lane)[job]),
        work: work[operation],
        operations: (shop.route(job).len() - done) as f64,
        bound: bound(outlook, standing, operation, shop.flat()[operation].machine as usize),
    }
}

fn flexible_candidate(
    shop: &FlexibleShop,
    (work, outlook): (&[f64], Option<&Outlook>),
    lanes: &FlexibleLanes,
    lane: usize,
    (job, machine): (usize, usize),
) -> Candidate {
    let done = lanes.next(lane)[job] as usize;
    let operation = shop.job(job).start + done;
    let standing = Standing { next: lanes.next(lane), ready: lanes.ready(lane), free: lanes.free(lane) };
    Candidate {
        job: job as u32,
        time: f64::from(lanes.next_times(lane, job)[machine]),
        arrival: f64::from(lanes.ready(lane)[job]),
        work: work[operation],
        operations: (shop.job(job).len() - done) as f64,
        bound: bound(outlook, standing, operation, machine),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Alternative, FlowShop, Operation, verify};

    fn job_shop() -> Instance {
        // Machine 0: job 0 (3, then 1 more), job 1 (2, then 5 more), job 2 (4).
        let op = |machine, time| Operation { machine, time };
        let routes = [vec![op(0, 3), op(1, 1)], vec![op(0, 2), op(1, 5)], vec![op(0, 4)]];
        Instance::Job(JobShop::new(2, &routes).unwrap())
    }

    fn first_on_machine_0(text: &str) -> u32 {
        let schedule = Dispatcher::parse(text).unwrap().run(&job_shop(), 1).unwrap();
        verify(&job_shop(), &schedule).unwrap();
        schedule.operations.iter().find(|here| here.machine == 0 && here.start == 0).unwrap().job
    }

    #[test]
    fn priorities_by_hand() {
        // Times 3, 2, 4; work 4, 7, 4; operations 2, 2, 1; all arrive at 0. LWKR ties between jobs 0 and 2, MOPNR
        // between 0 and 1, FIFO between all: the lower number wins.
        assert_eq!(first_on_machine_0("spt"), 1);
        assert_eq!(first_on_machine_0("lpt"), 2);
        assert_eq!(first_on_machine_0("mwkr"), 1);
        assert_eq!(first_on_machine_0("lwkr"), 0);
        assert_eq!(first_on_machine_0("mopnr"), 0);
        assert_eq!(first_on_machine_0("fifo"), 0);
        assert_eq!(first_on_machine_0("active-lpt"), 2);
        // With job 1 first machine 0 ends at 9 and machine 1 at 7; with job 0 or job 2 first machine 1 cannot end before 10 or 11.
        assert_eq!(first_on_machine_0("bound"), 1);
    }

    #[test]
    fn active_schedules_may_wait_for_the_faster_machine() {
        // Two jobs of one operation, 1 on machine 0 and 100 on machine 1. Without delay the second job takes the idle
        // machine 1: 100. Active: it can end at 2 on machine 0, earlier than anywhere else: 2.
        let on = |machine, time| Alternative { machine, time };
        let job = || vec![vec![on(0, 1), on(1, 100)]];
        let shop = Instance::Flexible(FlexibleShop::new(2, &[job(), job()]).unwrap());
        let makespan = |text: &str| {
            let schedule = Dispatcher::parse(text).unwrap().run(&shop, 1).unwrap();
            verify(&shop, &schedule).unwrap().makespan
        };
        assert_eq!((makespan("spt"), makespan("active-spt")), (100, 2));
    }

    #[test]
    fn samples_never_lose_to_their_rule() {
        let mut stream = Key::new(3, "law").open();
        let times = (0..60).map(|_| 1 + stream.below(30) as u32).collect();
        let flow = Instance::Flow(FlowShop::new(12, 5, times).unwrap());
        for instance in [flow, job_shop()] {
            let job_shops_only = |rule: &DispatchRule| *rule == DispatchRule::Bound;
            let flow = matches!(instance, Instance::Flow(_));
            for rule in DispatchRule::ALL.into_iter().filter(|rule| !flow || !job_shops_only(rule)) {
                let run = |samples| {
                    Dispatcher { rule, active: false, samples }.run(&instance, 5).unwrap().makespan()
                };
                assert!(run(300) <= run(1), "{}", rule.name());
            }
        }
    }

    #[test]
    fn mistakes_are_named() {
        assert!(Dispatcher::parse("mwkr*0").is_err() && Dispatcher::parse("mwkr*x").is_err());
        let flow = Instance::Flow(FlowShop::new(1, 1, vec![1]).unwrap());
        let line = Dispatcher::parse("active-spt").unwrap().run(&flow, 0).unwrap_err().to_string();
        assert_eq!(
            line,
            "rule: active schedules are built for job shops, flexible or not, not for a flow shop: leave out `active-`"
        );
        let line = Dispatcher::parse("bound").unwrap().run(&flow, 0).unwrap_err().to_string();
        assert_eq!(
            line,
            "rule: `bound` is for job shops, flexible or not, not for a flow shop: take another rule, e.g. `mwkr`"
        );
    }
}
