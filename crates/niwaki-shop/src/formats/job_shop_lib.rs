//! JobShopLib's JSON: `duration_matrix` and `machines_matrix` by job, machines from 0. Where an operation lists
//! several machines it takes the same time on each, and the shop is flexible.

use super::json::{Fields, Node};
use crate::general::{Measure, Objective, Parts, Shop};
use crate::{Alternative, Error, FlexibleShop, Instance, JobShop, Operation, Result};
use serde_json::json;

/// All fields that JobShopLib writes; the last three may be absent or `null`.
const FIELDS: [&str; 7] = [
    "name",
    "metadata",
    "duration_matrix",
    "machines_matrix",
    "release_dates_matrix",
    "deadlines_matrix",
    "due_dates_matrix",
];

/// Those of them that hold a time per operation.
const DATES: [&str; 3] = ["release_dates_matrix", "deadlines_matrix", "due_dates_matrix"];

/// Whether the object has JobShopLib's matrices.
pub(super) fn sniff(fields: &Fields<'_>) -> bool {
    fields.get("duration_matrix").is_some()
}

/// Reads a job shop or a flexible job shop.
pub(super) fn read(text: &str) -> Result<Instance> {
    let root = Node::parse(text)?;
    let fields = root.object("an object")?;
    fields.only(&FIELDS)?;
    for name in DATES {
        if let Some(dates) = fields.get(name) {
            return Err(dates.fault(format!("expected no `{name}`: a plain job shop has no place for dates")));
        }
    }
    read_matrices(root, &fields)
}

/// Reads a job shop with dates as a general shop; nothing if it has none.
///
/// An operation starts at its release date or later and ends by its deadline. A job has one due date: that of its last
/// operation, which the others must share or leave open.
pub(crate) fn read_dated(text: &str) -> Result<Option<Shop>> {
    let root = Node::parse(text)?;
    let fields = root.object("an object")?;
    if !sniff(&fields) || DATES.iter().all(|name| fields.get(name).is_none()) {
        return Ok(None);
    }
    fields.only(&FIELDS)?;
    let plain = read_matrices(root, &fields)?;
    let shop = root.settle(Shop::from_instance(&plain, Objective::only(Measure::Makespan)))?;
    let mut jobs = shop.jobs().to_vec();
    for (index, name) in DATES.into_iter().enumerate() {
        let Some(place) = fields.get(name) else { continue };
        let rows = place.list("a list of jobs")?;
        if rows.len() != jobs.len() {
            return Err(place.fault(format!("expected {} jobs, got {}", jobs.len(), rows.len())));
        }
        for (row, job) in rows.iter().zip(&mut jobs) {
            let cells = row.list("a list of dates")?;
            if cells.len() != job.operations.len() {
                return Err(row.fault(format!(
                    "expected {} dates, got {}",
                    job.operations.len(),
                    cells.len()
                )));
            }
            let last = cells.len() - 1;
            for (cell, (number, operation)) in cells.iter().zip(job.operations.iter_mut().enumerate()).rev() {
                let Some(date) = cell.optional_time()? else { continue };
                match index {
                    0 => operation.earliest = date,
                    1 => operation.latest = Some(date),
                    _ if number == last => job.due = Some(date),
                    _ if job.due == Some(date) => {}
                    _ => {
                        return Err(cell.fault(format!(
                            "expected the due date of the job's last operation, or null, got {date}: due dates belong to jobs"
                        )));
                    }
                }
            }
        }
    }
    let parts = Parts {
        jobs,
        machines: shop.machines().to_vec(),
        precedences: shop.precedences().to_vec(),
        setups: shop.setups().clone(),
        objective: shop.objective().clone(),
        horizon: shop.horizon(),
    };
    root.settle(Shop::new(parts)).map(Some)
}

fn read_matrices(root: Node<'_>, fields: &Fields<'_>) -> Result<Instance> {
    let durations = fields.need("duration_matrix")?.list("a list of jobs")?;
    let place = fields.need("machines_matrix")?;
    let machines = place.list("a list of jobs")?;
    if durations.len() != machines.len() {
        return Err(place.fault(format!("expected {} jobs, got {}", durations.len(), machines.len())));
    }
    let mut jobs: Vec<Vec<Vec<Alternative>>> = Vec::with_capacity(durations.len());
    let (mut flexible, mut most) = (false, 0);
    for (durations, place) in durations.iter().zip(&machines) {
        let (durations, machines) = (durations.list("a list of times")?, place.list("a list of machines")?);
        if durations.len() != machines.len() {
            return Err(place.fault(format!(
                "expected {} operations, got {}",
                durations.len(),
                machines.len()
            )));
        }
        let mut operations = Vec::with_capacity(durations.len());
        for (duration, node) in durations.iter().zip(&machines) {
            let time = duration.time()?;
            let ids = if node.is_list() { node.list("a list of machines")? } else { vec![*node] };
            flexible |= node.is_list();
            let mut choices = Vec::with_capacity(ids.len());
            for id in ids {
                let machine = id.number("a machine")?;
                most = most.max(machine);
                choices.push(Alternative { machine, time });
            }
            if choices.is_empty() {
                return Err(node.fault("expected at least one machine, got none"));
            }
            operations.push(choices);
        }
        jobs.push(operations);
    }
    let machines = most as usize + 1;
    if flexible {
        return Ok(Instance::Flexible(root.settle(FlexibleShop::new(machines, &jobs))?));
    }
    let step = |choices: &Vec<Alternative>| Operation { machine: choices[0].machine, time: choices[0].time };
    let routes: Vec<Vec<_>> = jobs.iter().map(|job| job.iter().map(step).collect()).collect();
    Ok(Instance::Job(root.settle(JobShop::new(machines, &routes))?))
}

/// Writes a job shop, or a flexible job shop whose times do not depend on the machine.
pub(super) fn write(instance: &Instance) -> Result<String> {
    let (durations, machines) = match instance {
        Instance::Job(shop) => {
            let rows = |pick: fn(&Operation) -> u32| -> Vec<Vec<u32>> {
                (0..shop.jobs()).map(|job| shop.route(job).iter().map(pick).collect()).collect()
            };
            (json!(rows(|step| step.time)), json!(rows(|step| step.machine)))
        }
        Instance::Flexible(shop) if !shop.has_windows() => {
            let (mut durations, mut machines) = (Vec::new(), Vec::new());
            for job in 0..shop.jobs() {
                let (mut times, mut lists) = (Vec::new(), Vec::new());
                for (index, operation) in shop.job(job).enumerate() {
                    let choices = shop.alternatives(operation);
                    if choices.iter().any(|choice| choice.time != choices[0].time) {
                        return Err(Error::Choice(format!(
                            "JobShopLib's layout has one time per operation, but job {job}, operation {index} takes \
                             different times: write it as .fjs"
                        )));
                    }
                    times.push(choices[0].time);
                    lists.push(choices.iter().map(|choice| choice.machine).collect::<Vec<_>>());
                }
                durations.push(times);
                machines.push(lists);
            }
            (json!(durations), json!(machines))
        }
        other => {
            return Err(Error::Choice(format!(
                "JobShopLib's layout holds job shops, flexible or not and without windows, not a {}: write it as \
                 niwaki JSON",
                other.kind()
            )));
        }
    };
    let value = json!({
        "name": "instance", "duration_matrix": durations, "machines_matrix": machines, "metadata": {}
    });
    Ok(format!("{value}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLAT: &str = r#"{"name": "x", "duration_matrix": [[3, 2], [4]], "machines_matrix": [[0, 1], [1]], "metadata": {}}"#;

    #[test]
    fn matrices_come_and_go() {
        let shop = read(FLAT).unwrap();
        assert_eq!((shop.kind(), shop.jobs(), shop.machines(), shop.operations()), ("job shop", 2, 2, 3));
        assert_eq!(read(&write(&shop).unwrap()).unwrap(), shop);
        let flexible = read(&FLAT.replace("[[0, 1], [1]]", "[[[0, 1], [1]], [[0]]]")).unwrap();
        assert_eq!(flexible.kind(), "flexible job shop");
        assert_eq!(read(&write(&flexible).unwrap()).unwrap(), flexible);
    }

    #[test]
    fn dates_are_never_dropped() {
        let refusal = |field: &str| {
            let text = FLAT.replace("\"metadata\"", &format!("\"{field}\": [[100, 0], [0]], \"metadata\""));
            read(&text).unwrap_err().to_string()
        };
        for field in DATES {
            assert!(refusal(field).contains(&format!("expected no `{field}`")), "{}", refusal(field));
        }
        let text = FLAT.replace(
            "\"metadata\"",
            "\"release_dates_matrix\": [[100, 0], [0]], \"due_dates_matrix\": [[null, 9], [4]], \"metadata\"",
        );
        let shop = read_dated(&text).unwrap().unwrap();
        assert_eq!(
            (shop.operation(0).earliest, shop.jobs()[0].due, shop.jobs()[1].due),
            (100, Some(9), Some(4))
        );
        let line = read_dated(&text.replace("null, 9", "7, 9")).unwrap_err().to_string();
        assert!(line.contains("due dates belong to jobs"), "{line}");
        assert!(read_dated(FLAT).unwrap().is_none());
        assert!(refusal("breaks").contains("got `breaks`"));
        assert!(read(&FLAT.replace("\"metadata\"", "\"due_dates_matrix\": null, \"metadata\"")).is_ok());
    }

    #[test]
    fn mistakes_have_places() {
        let refusal = |from: &str, to: &str| read(&FLAT.replace(from, to)).unwrap_err().to_string();
        assert_eq!(refusal("[4]", "[4, 1]"), "line 1, column 80: expected 2 operations, got 1");
        assert_eq!(
            refusal("[4]", "[-4]"),
            "line 1, column 44: expected a time, got -4: it cannot be negative"
        );
        assert_eq!(
            refusal("\"machines_matrix\": [[0, 1], [1]], ", ""),
            "line 1, column 1: expected a field `machines_matrix`, got none"
        );
    }
}
