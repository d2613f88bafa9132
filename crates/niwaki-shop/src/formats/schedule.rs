//! Schedules as files: CSV with a header `job,operation,machine,start,end`, or JSON with the same fields and the
//! makespan. JobShopLib's JSON is read, too: it says which jobs every machine serves, in order, and no times.

use super::json::Node;
use super::text::Token;
use crate::{Error, Placed, Result, Schedule};
use serde_json::json;
use std::fmt::Write;

const COLUMNS: [&str; 5] = ["job", "operation", "machine", "start", "end"];

/// Reads a schedule, JSON or CSV.
///
/// # Errors
/// The first mistake, with line and column.
pub fn read_schedule(text: &str) -> Result<Schedule> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_start().starts_with(['{', '[']) { read_json(text) } else { read_csv(text) }
}

fn read_json(text: &str) -> Result<Schedule> {
    let root = Node::parse(text)?;
    let list = if root.is_list() { root } else { root.object("an object")?.need("operations")? };
    let mut operations = Vec::new();
    for node in list.list("a list of operations")? {
        let fields = node.object("`{job, operation, machine, start, end}`")?;
        let number = |name: &str| fields.need(name)?.number(&format!("a number as `{name}`"));
        operations.push(Placed {
            job: number("job")?,
            op: number("operation")?,
            machine: number("machine")?,
            start: number("start")?,
            end: number("end")?,
        });
    }
    Ok(Schedule { operations })
}

/// Reads a schedule of JobShopLib for a shop of so many jobs and machines: the jobs that each machine serves, in order.
/// Nothing if the text is no such schedule.
///
/// # Errors
/// The first mistake, with line and column.
pub fn read_job_sequences(text: &str, jobs: usize, machines: usize) -> Result<Option<Vec<Vec<u32>>>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if !text.trim_start().starts_with('{') {
        return Ok(None);
    }
    let fields = Node::parse(text)?.object("an object")?;
    let Some(place) = fields.get("job_sequences") else { return Ok(None) };
    fields.only(&["instance", "job_sequences", "metadata"])?;
    let lists = place.list("a list of machines")?;
    if lists.len() > machines {
        return Err(place.fault(format!("expected {machines} machines, got {}", lists.len())));
    }
    let job = |node: &Node<'_>| {
        let number = node.number("a job")?;
        if number as usize >= jobs {
            return Err(node.fault(format!("expected a job below {jobs}, got {number}")));
        }
        Ok(number)
    };
    let list = |node: &Node<'_>| node.list("a list of jobs")?.iter().map(job).collect();
    lists.iter().map(list).collect::<Result<_>>().map(Some)
}

fn read_csv(text: &str) -> Result<Schedule> {
    let mut rows = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let expected = COLUMNS.join(",");
    let header = rows.next().map(|(_, line)| line.replace(' ', ""));
    if header.as_deref() != Some(expected.as_str()) {
        return Err(Error::Parse { line: 1, column: 1, what: format!("expected the header `{expected}`") });
    }
    let mut operations = Vec::new();
    for (index, line) in rows {
        let mut column = 1;
        let mut numbers = [0; 5];
        let cells: Vec<&str> = line.split(',').collect();
        if cells.len() != COLUMNS.len() {
            let what = format!("expected {} columns, got {}", COLUMNS.len(), cells.len());
            return Err(Error::Parse { line: index + 1, column, what });
        }
        for ((number, cell), name) in numbers.iter_mut().zip(&cells).zip(COLUMNS) {
            let token = Token { text: cell.trim(), line: index + 1, column };
            *number = token.number(&format!("a number as `{name}`"))?;
            column += cell.chars().count() + 1;
        }
        let [job, op, machine, start, end] = numbers;
        operations.push(Placed { job, op, machine, start, end });
    }
    Ok(Schedule { operations })
}

/// Writes a schedule as CSV, by start and machine.
#[must_use]
pub fn write_schedule_csv(schedule: &Schedule) -> String {
    let mut text = COLUMNS.join(",") + "\n";
    for here in sorted(schedule) {
        // Writing to a string cannot fail.
        _ = writeln!(text, "{},{},{},{},{}", here.job, here.op, here.machine, here.start, here.end);
    }
    text
}

/// Writes a schedule as JSON, by start and machine, one operation per line.
#[must_use]
pub fn write_schedule_json(schedule: &Schedule) -> String {
    let line = |here: &Placed| {
        let value = json!({
            "job": here.job, "operation": here.op, "machine": here.machine, "start": here.start, "end": here.end
        });
        format!("    {value}")
    };
    let lines: Vec<_> = sorted(schedule).iter().map(line).collect();
    format!(
        "{{\n  \"makespan\": {},\n  \"operations\": [\n{}\n  ]\n}}\n",
        schedule.makespan(),
        lines.join(",\n")
    )
}

fn sorted(schedule: &Schedule) -> Vec<Placed> {
    let mut operations = schedule.operations.clone();
    operations.sort_by_key(|here| (here.start, here.machine, here.end, here.job));
    operations
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_come_and_go() {
        let place = |job, op, machine, start, end| Placed { job, op, machine, start, end };
        let schedule = Schedule { operations: vec![place(0, 0, 1, 0, 3), place(1, 0, 0, 2, 7)] };
        let csv = write_schedule_csv(&schedule);
        assert_eq!(csv, "job,operation,machine,start,end\n0,0,1,0,3\n1,0,0,2,7\n");
        assert_eq!(read_schedule(&csv).unwrap(), schedule);
        let json = write_schedule_json(&schedule);
        assert!(json.starts_with("{\n  \"makespan\": 7,\n"), "{json}");
        assert_eq!(read_schedule(&json).unwrap(), schedule);
    }

    #[test]
    fn job_sequences_are_told_apart_and_checked() {
        let read = |text: &str| read_job_sequences(text, 2, 2);
        let text = r#"{"instance": {}, "job_sequences": [[0, 1], [1, 0]], "metadata": {}}"#;
        assert_eq!(read(text).unwrap(), Some(vec![vec![0, 1], vec![1, 0]]));
        assert_eq!(read(r#"{"operations": []}"#).unwrap(), None);
        assert_eq!(read("job,operation,machine,start,end\n").unwrap(), None);
        let refusal = |from: &str, to: &str| read(&text.replace(from, to)).unwrap_err().to_string();
        assert_eq!(refusal("[1, 0]", "[1, 2]"), "line 1, column 48: expected a job below 2, got 2");
        assert_eq!(refusal("[1, 0]]", "[1, 0], []]"), "line 1, column 35: expected 2 machines, got 3");
        assert!(refusal("metadata", "breaks").contains("got `breaks`"));
    }

    #[test]
    fn mistakes_have_places() {
        let refusal = |text: &str| read_schedule(text).unwrap_err().to_string();
        assert_eq!(
            refusal("a,b\n"),
            "line 1, column 1: expected the header `job,operation,machine,start,end`"
        );
        let header = "job,operation,machine,start,end\n";
        assert_eq!(refusal(&format!("{header}0,1,2\n")), "line 2, column 1: expected 5 columns, got 3");
        assert_eq!(
            refusal(&format!("{header}0,1,x,0,4\n")),
            "line 2, column 5: expected a number as `machine`, got `x`"
        );
        assert_eq!(
            refusal(r#"{"operations": [{"job": 0}]}"#),
            "line 1, column 17: expected a field `operation`, got none"
        );
    }
}
