//! CP-SAT as a peer, through the script beside this file. Shared by the benchmark and the optional test.

use niwaki_shop::{Instance, Schedule};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The environment variable that names a Python with `ortools`.
pub(crate) const PYTHON: &str = "NIWAKI_CPSAT_PYTHON";

/// How to get one.
pub(crate) const HOW: &str =
    "python3 -m venv peers && peers/bin/pip install ortools, then set NIWAKI_CPSAT_PYTHON=peers/bin/python";

/// What CP-SAT found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Answer {
    /// No schedule is shorter.
    pub(crate) lower: u32,
    /// The best makespan found.
    pub(crate) upper: u32,
    /// Whether it is optimal.
    pub(crate) proven: bool,
    /// Seconds for building the model and solving it.
    pub(crate) seconds: f64,
}

/// A running CP-SAT.
pub(crate) struct CpSat {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl CpSat {
    /// Starts the script, if the environment names a Python.
    pub(crate) fn start(limit_seconds: f64) -> Option<Self> {
        let python = std::env::var(PYTHON).ok()?;
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/peers/cpsat.py");
        let mut process = Command::new(python)
            .args([script, &limit_seconds.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the Python that NIWAKI_CPSAT_PYTHON names starts");
        let input = process.stdin.take().expect("a piped input");
        let output = BufReader::new(process.stdout.take().expect("a piped output"));
        Some(Self { process, input, output })
    }

    /// Solves one instance, from a schedule where one is told: it then looks at nothing longer.
    pub(crate) fn solve(&mut self, instance: &Instance, told: Option<&Schedule>) -> Answer {
        let mut question = describe(instance);
        if let Some(schedule) = told {
            let mut operations = schedule.operations.clone();
            operations.sort_by_key(|placed| (placed.job, placed.op));
            let jobs: Vec<Vec<[u32; 2]>> = operations
                .chunk_by(|one, other| one.job == other.job)
                .map(|job| job.iter().map(|placed| [placed.machine, placed.start]).collect())
                .collect();
            question["told"] = json!({"upper": schedule.makespan(), "jobs": jobs});
        }
        writeln!(self.input, "{question}").expect("CP-SAT listens");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("CP-SAT answers");
        let answer: Value = serde_json::from_str(&line).expect("an answer in JSON: is `ortools` installed?");
        let number = |key: &str| answer[key].as_u64().expect("a whole number") as u32;
        Answer {
            lower: number("lower"),
            upper: number("upper"),
            proven: answer["proven"].as_bool().expect("a truth value"),
            seconds: answer["seconds"].as_f64().expect("a number"),
        }
    }
}

impl Drop for CpSat {
    fn drop(&mut self) {
        // Its input ends with it; a process that is gone already is no concern.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The instance as the script reads it.
fn describe(instance: &Instance) -> Value {
    let single = |machine: u32, time: u32| json!({"rest": 0, "choices": [[machine, time]]});
    let jobs: Vec<Vec<Value>> = match instance {
        Instance::Flow(shop) => (0..shop.jobs())
            .map(|job| (0..).zip(shop.job(job)).map(|(machine, &time)| single(machine, time)).collect())
            .collect(),
        Instance::Job(shop) => (0..shop.jobs())
            .map(|job| shop.route(job).iter().map(|step| single(step.machine, step.time)).collect())
            .collect(),
        Instance::Flexible(shop) => (0..shop.jobs())
            .map(|job| {
                let operation = |operation: usize| {
                    let choices =
                        shop.alternatives(operation).iter().map(|one| json!([one.machine, one.time]));
                    json!({"rest": shop.window(operation).min, "choices": choices.collect::<Vec<_>>()})
                };
                shop.job(job).map(operation).collect()
            })
            .collect(),
        Instance::Lags(_) | Instance::Single(_) => unreachable!("these have closed solutions"),
    };
    json!({"machines": instance.machines(), "permutation": matches!(instance, Instance::Flow(_)), "jobs": jobs})
}
