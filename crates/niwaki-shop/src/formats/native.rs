//! Niwaki's own JSON, the one layout that holds all five problems: `kind` names the problem, `jobs` lists its jobs.
//!
//! - `"flow shop"`: `machines`, and per job its list of times.
//! - `"job shop"`: `machines`, and per job its list of `{machine, time}`.
//! - `"flexible job shop"`: `machines`, and per job its list of `{alternatives: [{machine, time}], rest}`, where
//!   `rest` is `{min, max}`, both optional: the window after the job's preceding operation.
//! - `"two-machine flow shop with lags"`: per job `{first, lag, second, due}`, `due` optional.
//! - `"single machine"`: per job `{time, due}`.

use super::json::{Fields, Node};
use crate::{
    Alternative, FlexibleShop, FlowShop, Instance, JobShop, LaggedJob, Operation, Result, SingleMachine,
    TwoMachineLags, Window,
};
use serde_json::{Value, json};

const KINDS: [&str; 5] =
    ["flow shop", "job shop", "flexible job shop", "two-machine flow shop with lags", "single machine"];

/// Whether the object names its problem.
pub(super) fn sniff(fields: &Fields<'_>) -> bool {
    fields.get("kind").is_some()
}

/// Reads any problem.
pub(super) fn read(text: &str) -> Result<Instance> {
    let root = Node::parse(text)?;
    let fields = root.object("an object")?;
    fields.only(&["kind", "machines", "jobs"])?;
    let kind = fields.need("kind")?;
    let jobs = fields.need("jobs")?.list("a list of jobs")?;
    let machines = || Ok(fields.need("machines")?.number("a number of machines")? as usize);
    match kind.text("the problem's name")?.as_str() {
        "flow shop" => read_flow(root, machines()?, &jobs),
        "job shop" => read_job(root, machines()?, &jobs),
        "flexible job shop" => read_flexible(root, machines()?, &jobs),
        "two-machine flow shop with lags" => read_lags(root, &jobs),
        "single machine" => read_single(root, &jobs),
        other => Err(kind.fault(format!("expected one of {}, got {other}", KINDS.join(", ")))),
    }
}

fn read_flow(root: Node<'_>, machines: usize, jobs: &[Node<'_>]) -> Result<Instance> {
    let mut times = Vec::new();
    for job in jobs {
        let row = job.list("a list of times")?;
        if row.len() != machines {
            return Err(job.fault(format!("expected {machines} times, got {}", row.len())));
        }
        for time in row {
            times.push(time.time()?);
        }
    }
    Ok(Instance::Flow(root.settle(FlowShop::new(jobs.len(), machines, times))?))
}

fn read_job(root: Node<'_>, machines: usize, jobs: &[Node<'_>]) -> Result<Instance> {
    let mut routes = Vec::new();
    for job in jobs {
        let mut route = Vec::new();
        for step in job.list("a list of operations")? {
            let (machine, time) = read_choice(step, machines)?;
            route.push(Operation { machine, time });
        }
        routes.push(route);
    }
    Ok(Instance::Job(root.settle(JobShop::new(machines, &routes))?))
}

fn read_choice(node: Node<'_>, machines: usize) -> Result<(u32, u32)> {
    let fields = node.object("`{machine, time}`")?;
    fields.only(&["machine", "time"])?;
    Ok((fields.need("machine")?.machine(machines)?, fields.need("time")?.time()?))
}

fn read_flexible(root: Node<'_>, machines: usize, jobs: &[Node<'_>]) -> Result<Instance> {
    let (mut all, mut windows, mut resting) = (Vec::new(), Vec::new(), false);
    for job in jobs {
        let (mut operations, mut rests) = (Vec::new(), Vec::new());
        for node in job.list("a list of operations")? {
            let fields = node.object("`{alternatives, rest}`")?;
            fields.only(&["alternatives", "rest"])?;
            let place = fields.need("alternatives")?;
            let mut choices = Vec::new();
            for choice in place.list("a list of alternatives")? {
                let (machine, time) = read_choice(choice, machines)?;
                choices.push(Alternative { machine, time });
            }
            if choices.is_empty() {
                return Err(place.fault("expected at least one machine, got none"));
            }
            let rest = fields.get("rest");
            resting |= rest.is_some();
            let window = rest.map_or(Ok(Window::FREE), read_window)?;
            if operations.is_empty() && window != Window::FREE {
                return Err(rest.unwrap_or(node).fault("expected no rest before a job's first operation"));
            }
            operations.push(choices);
            rests.push(window);
        }
        all.push(operations);
        windows.push(rests);
    }
    let shop = root.settle(FlexibleShop::new(machines, &all))?;
    let shop = if resting { root.settle(shop.with_windows(&windows))? } else { shop };
    Ok(Instance::Flexible(shop))
}

fn read_window(node: Node<'_>) -> Result<Window> {
    let fields = node.object("`{min, max}`")?;
    fields.only(&["min", "max"])?;
    let min = fields.get("min").map_or(Ok(0), |node| node.time())?;
    let max = fields.get("max").map(|node| node.time()).transpose()?;
    if let Some(max) = max.filter(|&max| max < min) {
        return Err(node.fault(format!(
            "the minimum lag {min} exceeds the maximum lag {max}: the two form a cycle that no schedule satisfies"
        )));
    }
    Ok(Window { min, max })
}

fn read_lags(root: Node<'_>, jobs: &[Node<'_>]) -> Result<Instance> {
    let mut list = Vec::new();
    for job in jobs {
        let fields = job.object("`{first, lag, second, due}`")?;
        fields.only(&["first", "lag", "second", "due"])?;
        list.push(LaggedJob {
            first: fields.need("first")?.time()?,
            lag: fields.need("lag")?.time()?,
            second: fields.need("second")?.time()?,
            due: fields.get("due").map(|node| node.time()).transpose()?,
        });
    }
    Ok(Instance::Lags(root.settle(TwoMachineLags::new(list))?))
}

fn read_single(root: Node<'_>, jobs: &[Node<'_>]) -> Result<Instance> {
    let (mut times, mut due) = (Vec::new(), Vec::new());
    for job in jobs {
        let fields = job.object("`{time, due}`")?;
        fields.only(&["time", "due"])?;
        times.push(fields.need("time")?.time()?);
        due.push(fields.need("due")?.time()?);
    }
    Ok(Instance::Single(root.settle(SingleMachine::new(times, due))?))
}

/// Writes any problem.
pub(super) fn write(instance: &Instance) -> String {
    let mut value = json!({ "kind": instance.kind() });
    if !matches!(instance, Instance::Lags(_) | Instance::Single(_)) {
        value["machines"] = json!(instance.machines());
    }
    value["jobs"] = match instance {
        Instance::Flow(shop) => (0..shop.jobs()).map(|job| json!(shop.job(job))).collect(),
        Instance::Job(shop) => {
            let step = |step: &Operation| json!({ "machine": step.machine, "time": step.time });
            (0..shop.jobs()).map(|job| shop.route(job).iter().map(step).collect::<Value>()).collect()
        }
        Instance::Flexible(shop) => (0..shop.jobs())
            .map(|job| shop.job(job).map(|number| operation(shop, number)).collect::<Value>())
            .collect(),
        Instance::Lags(shop) => shop
            .all()
            .iter()
            .map(|job| match job.due {
                Some(due) => json!({ "first": job.first, "lag": job.lag, "second": job.second, "due": due }),
                None => json!({ "first": job.first, "lag": job.lag, "second": job.second }),
            })
            .collect(),
        Instance::Single(shop) => {
            let pair = |(time, due)| json!({ "time": time, "due": due });
            shop.times().iter().zip(shop.due()).map(pair).collect()
        }
    };
    format!("{value}\n")
}

fn operation(shop: &FlexibleShop, number: usize) -> Value {
    let choice = |one: &Alternative| json!({ "machine": one.machine, "time": one.time });
    let mut value =
        json!({ "alternatives": shop.alternatives(number).iter().map(choice).collect::<Value>() });
    if shop.has_windows() {
        let window = shop.window(number);
        value["rest"] = match window.max {
            Some(max) => json!({ "min": window.min, "max": max }),
            None => json!({ "min": window.min }),
        };
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_have_places() {
        let refusal = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(
            refusal(r#"{"kind": "flow", "jobs": []}"#),
            "line 1, column 10: expected one of flow shop, job shop, flexible job shop, two-machine flow shop with \
             lags, single machine, got flow"
        );
        assert_eq!(
            refusal("{\"kind\": \"single machine\",\n \"jobs\": [{\"time\": 3, \"deu\": 4}]}"),
            "line 2, column 30: expected only the fields time, due, got `deu`"
        );
        let windows = "{\"kind\": \"flexible job shop\", \"machines\": 1, \"jobs\": [[\n\
                       {\"alternatives\": [{\"machine\": 0, \"time\": 1}]},\n\
                       {\"alternatives\": [{\"machine\": 0, \"time\": 1}], \"rest\": {\"min\": 5, \"max\": 4}}]]}";
        assert_eq!(
            refusal(windows),
            "line 3, column 55: the minimum lag 5 exceeds the maximum lag 4: the two form a cycle that no schedule \
             satisfies"
        );
        assert!(read(&windows.replace("\"min\": 5", "\"min\": 2")).is_ok());
    }
}
