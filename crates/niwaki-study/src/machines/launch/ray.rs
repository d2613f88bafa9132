//! A Python program for Ray: the one of the Python package, with what it is to do at its end.

use super::encode::string;
use super::{Launch, Resources};
use crate::machines::Split;

/// The program as the Python package has it.
const PROGRAM: &str = include_str!("../../../../../python/niwaki/ray.py");

/// The program with the call that runs a plan. A cluster's address is taken from `RAY_ADDRESS`, as Ray does.
#[must_use]
pub fn ray(split: &Split, launch: &Launch<'_>) -> String {
    let mut units = Vec::new();
    for unit in &split.units {
        let gpu = u8::from(unit.device != "cpu");
        units.push(format!("({}, {}, {gpu})", unit.before().start, unit.before().end));
    }
    // JSON's strings are Python's.
    let [program, plan, out] = [launch.program, launch.plan, launch.out].map(string);
    let (attempts, at_once) =
        (launch.attempts, launch.at_once.map_or("None".to_owned(), |limit| limit.to_string()));
    let Resources { memory, cpus, gpu, .. } = &launch.resources;
    let mut asked = String::new();
    if let Some(cpus) = cpus {
        asked += &format!(", cpus={cpus}");
    }
    if let Some(memory) = memory {
        asked += &format!(", memory={}", memory << 20);
    }
    if let Some(gpu) = gpu {
        asked += &format!(", gpu={}", string(gpu));
    }
    format!(
        "{PROGRAM}\n\n# The plan {id}: for each unit the first of those before it, the one behind their last, and its GPUs.\n\
         UNITS = [\n    {units},\n]\n\nif __name__ == \"__main__\":\n    raise SystemExit(\n        \
         run(UNITS, {plan}, {out}, program={program}, attempts={attempts}, at_once={at_once}{asked})\n    )\n",
        id = split.id,
        units = units.join(",\n    "),
    )
}
