//! SchedulingLab's JSON: `machines` and `jobs`, each job a list of operations, each operation a list of
//! `{machine, processing}`; machines from 0.

use super::json::{Fields, Node};
use crate::{Alternative, Error, FlexibleShop, Instance, Result};
use serde_json::{Value, json};

/// Whether the object has a list of jobs and no other layout's mark.
pub(super) fn sniff(fields: &Fields<'_>) -> bool {
    fields.get("kind").is_none() && fields.get("jobs").is_some_and(|jobs| jobs.is_list())
}

/// Reads a flexible job shop.
pub(super) fn read(text: &str) -> Result<Instance> {
    let root = Node::parse(text)?;
    let fields = root.object("an object")?;
    fields.only(&["machines", "jobs"])?;
    let machines = fields.need("machines")?.number("a number of machines")? as usize;
    let mut jobs = Vec::new();
    for job in fields.need("jobs")?.list("a list of jobs")? {
        let mut operations = Vec::new();
        for operation in job.list("a list of operations")? {
            let mut choices = Vec::new();
            for choice in operation.list("a list of alternatives")? {
                let fields = choice.object("`{machine, processing}`")?;
                fields.only(&["machine", "processing"])?;
                let machine = fields.need("machine")?.machine(machines)?;
                choices.push(Alternative { machine, time: fields.need("processing")?.time()? });
            }
            if choices.is_empty() {
                return Err(operation.fault("expected at least one machine, got none"));
            }
            operations.push(choices);
        }
        jobs.push(operations);
    }
    Ok(Instance::Flexible(root.settle(FlexibleShop::new(machines, &jobs))?))
}

/// Writes a flexible job shop.
pub(super) fn write(instance: &Instance) -> Result<String> {
    let Instance::Flexible(shop) = instance else {
        return Err(Error::Choice(format!(
            "SchedulingLab's layout holds a flexible job shop, not a {}: write it as niwaki JSON",
            instance.kind()
        )));
    };
    if shop.has_windows() {
        return Err(Error::Choice(
            "SchedulingLab's layout has no place for resting windows: write it as niwaki JSON".into(),
        ));
    }
    let choice = |one: &Alternative| json!({ "machine": one.machine, "processing": one.time });
    let operation = |number| shop.alternatives(number).iter().map(choice).collect::<Value>();
    let jobs: Vec<Vec<Value>> = (0..shop.jobs()).map(|job| shop.job(job).map(operation).collect()).collect();
    Ok(format!("{}\n", json!({ "machines": shop.machines(), "jobs": jobs })))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{ "machines": 2, "jobs": [[
  [{ "machine": 0, "processing": 3 }, { "machine": 1, "processing": 5 }],
  [{ "machine": 1, "processing": 2 }]]] }"#;

    #[test]
    fn lists_come_and_go() {
        let shop = read(TEXT).unwrap();
        assert_eq!((shop.jobs(), shop.machines(), shop.operations()), (1, 2, 2));
        assert_eq!(read(&write(&shop).unwrap()).unwrap(), shop);
    }

    #[test]
    fn mistakes_have_places() {
        let refusal = |from: &str, to: &str| read(&TEXT.replace(from, to)).unwrap_err().to_string();
        assert_eq!(
            refusal("\"machine\": 1, \"processing\": 2", "\"machine\": 2, \"processing\": 2"),
            "line 3, column 17: expected one of 2 machines from 0, got machine 2"
        );
        assert_eq!(
            refusal("[{ \"machine\": 1, \"processing\": 2 }]", "[]"),
            "line 3, column 3: expected at least one machine, got none"
        );
    }
}
