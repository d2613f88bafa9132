//! ScheduleOpt's JSON. A job shop is a list `data` of `{job, operation, machine, duration}`; a flexible job shop
//! (`"format": "fajsp"`) is a list `operations` of `{operation, option, machine, duration}` with a list `precedences` of
//! `{before, after, job}`. Machines count from 0. Precedences must form chains: a job is a chain.

use super::json::{Fields, Node};
use crate::general::{self, Job, Machine, Measure, Mode, Objective, Parts, Precedence, Setups, Shop};
use crate::instance::HORIZON;
use crate::{Alternative, Error, FlexibleShop, Instance, JobShop, Operation, Result};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// What files say of themselves.
const ABOUT: [&str; 6] = ["instance", "family", "family_long", "year", "variant", "format"];

/// Whether the object has ScheduleOpt's records.
pub(super) fn sniff(fields: &Fields<'_>) -> bool {
    fields.get("data").is_some() || fields.get("operations").is_some()
}

/// Reads a job shop or a flexible job shop.
pub(super) fn read(text: &str) -> Result<Instance> {
    let root = Node::parse(text)?;
    let fields = root.object("an object")?;
    if fields.get("operations").is_some() { read_flexible(root, &fields) } else { read_job(root, &fields) }
}

fn read_job(root: Node<'_>, fields: &Fields<'_>) -> Result<Instance> {
    fields.only(&[&ABOUT[..], &["machines", "jobs", "data"]].concat())?;
    let machines = fields.need("machines")?.number("a number of machines")? as usize;
    let place = fields.need("jobs")?;
    let jobs = place.number("a number of jobs")? as usize;
    let mut routes: BTreeMap<u32, BTreeMap<u32, Operation>> = BTreeMap::new();
    for record in fields.need("data")?.list("a list of operations")? {
        let fields = record.object("`{job, operation, machine, duration}`")?;
        fields.only(&["job", "operation", "machine", "duration"])?;
        let job_node = fields.need("job")?;
        let job = job_node.number("a job")?;
        if job as usize >= jobs {
            return Err(job_node.fault(format!("expected one of {jobs} jobs from 0, got job {job}")));
        }
        let index = fields.need("operation")?.number("an operation")?;
        let machine = fields.need("machine")?.machine(machines)?;
        let step = Operation { machine, time: fields.need("duration")?.time()? };
        if routes.entry(job).or_default().insert(index, step).is_some() {
            return Err(
                record.fault(format!("expected each operation once, got job {job}, operation {index} twice"))
            );
        }
    }
    if routes.len() != jobs {
        return Err(place.fault(format!("expected operations of {jobs} jobs, got them of {}", routes.len())));
    }
    let routes: Vec<Vec<Operation>> =
        routes.into_values().map(|route| route.into_values().collect()).collect();
    Ok(Instance::Job(root.settle(JobShop::new(machines, &routes))?))
}

/// Reads a flexible job shop whose jobs are no chains, as a general shop; nothing if it is none.
pub(crate) fn read_assembly(text: &str) -> Result<Option<Shop>> {
    let root = Node::parse(text)?;
    let fields = root.object("an object")?;
    if fields.get("operations").is_none() || fields.get("precedences").is_none() {
        return Ok(None);
    }
    fields.only(&[&ABOUT[..], &["operations", "precedences"]].concat())?;
    let (operations, machines) = options(&fields)?;
    let mut links = Vec::new();
    let mut job_of: BTreeMap<u32, u32> = BTreeMap::new();
    for node in fields.need("precedences")?.list("a list of precedences")? {
        let fields = node.object("`{before, after, job}`")?;
        fields.only(&["before", "after", "job"])?;
        let job = fields.need("job")?.number("a job")?;
        let mut end = |name: &str| {
            let node = fields.need(name)?;
            let operation = node.number("an operation")?;
            if !operations.contains_key(&operation) {
                return Err(node.fault(format!("expected a known operation, got operation {operation}")));
            }
            job_of.insert(operation, job);
            Ok(operation)
        };
        links.push((end("before")?, end("after")?));
    }
    let (mut before, mut after) = (BTreeMap::new(), BTreeMap::new());
    let chains = links
        .iter()
        .all(|&(one, other)| after.insert(one, other).is_none() && before.insert(other, one).is_none());
    if chains {
        return Ok(None);
    }
    // An operation that waits for nothing and that nothing waits for is a job of its own.
    let alone = job_of.values().copied().max().map_or(0, |job| job + 1);
    let mut jobs: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (number, &operation) in (alone..).zip(operations.keys()) {
        jobs.entry(job_of.get(&operation).copied().unwrap_or(number)).or_default().push(operation);
    }
    let flat: BTreeMap<u32, u32> = jobs.values().flatten().copied().zip(0..).collect();
    let mode = |one: &Alternative| Mode { machine: one.machine, time: one.time };
    let job = |(number, list): (&u32, &Vec<u32>)| {
        let operation = |&one: &u32| {
            general::Operation::new(one.to_string(), operations[&one].iter().map(mode).collect())
        };
        Job::new(number.to_string(), list.iter().map(operation).collect())
    };
    let parts = Parts {
        jobs: jobs.iter().map(job).collect(),
        machines: (0..machines).map(|machine| Machine::new(machine.to_string())).collect(),
        precedences: links
            .iter()
            .map(|(one, other)| Precedence { before: flat[one], after: flat[other], min: 0, max: None })
            .collect(),
        setups: Setups::default(),
        objective: Objective::only(Measure::Makespan),
        horizon: HORIZON,
    };
    root.settle(Shop::new(parts)).map(Some)
}

/// The machines of each operation with their times, and how many machines there are.
fn options(fields: &Fields<'_>) -> Result<(BTreeMap<u32, Vec<Alternative>>, u32)> {
    let mut operations: BTreeMap<u32, Vec<Alternative>> = BTreeMap::new();
    let (mut most, mut named) = (0, 0_u32);
    for record in fields.need("operations")?.list("a list of operations")? {
        let fields = record.object("`{operation, option, machine, duration}`")?;
        fields.only(&["operation", "option", "machine", "duration"])?;
        let operation = fields.need("operation")?.number("an operation")?;
        let machine = fields.need("machine")?.number("a machine")?;
        named += 1;
        most = most.max(machine);
        let choice = Alternative { machine, time: fields.need("duration")?.time()? };
        operations.entry(operation).or_default().push(choice);
    }
    let machines = most.saturating_add(1);
    if machines > named.saturating_mul(16).max(1024) {
        return Err(fields
            .need("operations")?
            .fault(format!("expected fewer machines for {named} options, got {machines}")));
    }
    Ok((operations, machines))
}

fn read_flexible(root: Node<'_>, fields: &Fields<'_>) -> Result<Instance> {
    fields.only(&[&ABOUT[..], &["operations", "precedences"]].concat())?;
    let (operations, machines) = options(fields)?;
    let place = fields.need("precedences")?;
    let (mut after, mut before) = (BTreeMap::new(), BTreeMap::new());
    for node in place.list("a list of precedences")? {
        let fields = node.object("`{before, after, job}`")?;
        fields.only(&["before", "after", "job"])?;
        let known = |name: &str| {
            let node = fields.need(name)?;
            let operation = node.number("an operation")?;
            if !operations.contains_key(&operation) {
                return Err(node.fault(format!("expected a known operation, got operation {operation}")));
            }
            Ok(operation)
        };
        let (from, to) = (known("before")?, known("after")?);
        if after.insert(from, to).is_some() || before.insert(to, from).is_some() {
            return Err(node.fault(format!(
                "expected jobs that are chains, got a second precedence at {from} → {to}: assembly is not read"
            )));
        }
    }
    let mut jobs = Vec::new();
    let mut placed = 0;
    for &head in operations.keys().filter(|operation| !before.contains_key(operation)) {
        let mut chain = Vec::new();
        let mut next = Some(head);
        while let Some(operation) = next {
            chain.push(operations[&operation].clone());
            next = after.get(&operation).copied();
        }
        placed += chain.len();
        jobs.push(chain);
    }
    if placed < operations.len() {
        return Err(place.fault(format!(
            "expected precedences without a cycle, got {} operations that wait for each other",
            operations.len() - placed
        )));
    }
    Ok(Instance::Flexible(root.settle(FlexibleShop::new(machines as usize, &jobs))?))
}

/// Writes a job shop or a flexible job shop.
pub(super) fn write(instance: &Instance) -> Result<String> {
    let value = match instance {
        Instance::Job(shop) => {
            let mut data = Vec::new();
            for job in 0..shop.jobs() {
                for (index, step) in shop.route(job).iter().enumerate() {
                    data.push(json!({
                        "job": job, "operation": index, "machine": step.machine, "duration": step.time
                    }));
                }
            }
            json!({ "instance": "instance", "machines": shop.machines(), "jobs": shop.jobs(), "data": data })
        }
        Instance::Flexible(shop) if !shop.has_windows() => {
            let (mut operations, mut precedences) = (Vec::new(), Vec::<Value>::new());
            for job in 0..shop.jobs() {
                for operation in shop.job(job) {
                    for (option, choice) in shop.alternatives(operation).iter().enumerate() {
                        operations.push(json!({
                            "operation": operation, "option": option, "machine": choice.machine,
                            "duration": choice.time
                        }));
                    }
                    if operation > shop.job(job).start {
                        precedences.push(json!({ "before": operation - 1, "after": operation, "job": job }));
                    }
                }
            }
            json!({
                "instance": "instance", "format": "fajsp", "operations": operations, "precedences": precedences
            })
        }
        other => {
            return Err(Error::Choice(format!(
                "ScheduleOpt's layout holds job shops, flexible or not and without windows, not a {}: write it as \
                 niwaki JSON",
                other.kind()
            )));
        }
    };
    Ok(format!("{value}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: &str = r#"{"instance": "x", "machines": 2, "jobs": 1, "data": [
{"job": 0, "operation": 0, "machine": 1, "duration": 3},
{"job": 0, "operation": 1, "machine": 0, "duration": 2}]}"#;
    const FLEXIBLE: &str = r#"{"format": "fajsp", "operations": [
{"operation": 0, "option": 0, "machine": 0, "duration": 4},
{"operation": 0, "option": 1, "machine": 1, "duration": 6},
{"operation": 1, "option": 0, "machine": 1, "duration": 2}],
"precedences": [{"before": 0, "after": 1, "job": 0}]}"#;

    #[test]
    fn records_come_and_go() {
        for (text, kind) in [(JOB, "job shop"), (FLEXIBLE, "flexible job shop")] {
            let shop = read(text).unwrap();
            assert_eq!((shop.kind(), shop.jobs(), shop.operations()), (kind, 1, 2));
            assert_eq!(read(&write(&shop).unwrap()).unwrap(), shop);
        }
    }

    #[test]
    fn mistakes_have_places() {
        let refusal = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(
            refusal(&JOB.replace("\"operation\": 1", "\"operation\": 0")),
            "line 3, column 1: expected each operation once, got job 0, operation 0 twice"
        );
        assert_eq!(
            refusal(
                &FLEXIBLE
                    .replace("\"job\": 0}]}", "\"job\": 0}, {\"before\": 1, \"after\": 0, \"job\": 0}]}")
            ),
            "line 5, column 16: expected precedences without a cycle, got 2 operations that wait for each other"
        );
        assert_eq!(
            refusal(
                &FLEXIBLE
                    .replace("\"job\": 0}]}", "\"job\": 0}, {\"before\": 0, \"after\": 1, \"job\": 0}]}")
            ),
            "line 5, column 54: expected jobs that are chains, got a second precedence at 0 → 1: assembly is not read"
        );
        assert_eq!(
            refusal(&FLEXIBLE.replace("\"after\": 1", "\"after\": 7")),
            "line 5, column 40: expected a known operation, got operation 7"
        );
    }
}
