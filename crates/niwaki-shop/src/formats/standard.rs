//! The job shop's standard layout (OR-Library, JSPLIB): `jobs machines`, then one line of `machine time` pairs per
//! job. Machines count from 0; a file that counts from 1 is recognised by naming machine `machines`.

use super::text::{Line, Token, base, header, numeric_lines};
use crate::{Error, Instance, JobShop, Operation, Result};
use std::fmt::Write;

/// Whether the text looks like pairs after a header of two numbers.
pub(super) fn sniff(lines: &[Line<'_>]) -> bool {
    lines.first().is_some_and(|line| line.tokens.len() == 2)
}

/// Reads a job shop.
pub(super) fn read(text: &str) -> Result<Instance> {
    let lines = numeric_lines(text);
    let header = header(&lines, 0)?;
    let rows = rows(&lines, header.jobs, header.machines, header.place)?;
    let mut ids = Vec::new();
    for row in &rows {
        for pair in row.chunks_exact(2) {
            ids.push((pair[0].number("a machine")?, pair[0]));
        }
    }
    let base = base(&ids, header.machines, 0)?;
    let mut routes = Vec::with_capacity(rows.len());
    for row in &rows {
        let step = |pair: &[Token<'_>]| {
            Ok(Operation { machine: pair[0].number("a machine")? - base, time: pair[1].time()? })
        };
        routes.push(row.chunks_exact(2).map(step).collect::<Result<Vec<_>>>()?);
    }
    let shop = JobShop::new(header.machines, &routes);
    Ok(Instance::Job(shop.map_err(|error| error.at(header.place.line, header.place.column))?))
}

/// Cuts the numbers after the header into one even row per job.
///
/// With exactly `2 · jobs · machines` numbers, line ends do not matter; otherwise each line is a job, and jobs may
/// have any number of operations.
pub(super) fn rows<'a>(
    lines: &[Line<'a>],
    jobs: usize,
    machines: usize,
    place: Token<'a>,
) -> Result<Vec<Vec<Token<'a>>>> {
    let body = &lines[1..];
    let all: Vec<Token<'a>> = body.iter().flat_map(|line| line.tokens.iter().copied()).collect();
    let width = machines.checked_mul(2);
    if width.and_then(|width| width.checked_mul(jobs)) == Some(all.len()) {
        return Ok(all.chunks_exact(2 * machines).map(<[_]>::to_vec).collect());
    }
    if let Some(line) = body.get(jobs) {
        return Err(line.tokens[0].fault(format!("expected {jobs} jobs, got another line")));
    }
    if body.len() < jobs {
        return Err(place.fault(format!("expected {jobs} jobs, one line each, got {} lines", body.len())));
    }
    for line in body {
        if line.tokens.len() % 2 == 1 {
            let last = line.tokens[line.tokens.len() - 1];
            return Err(last.fault(format!(
                "expected pairs `machine time`, got {} numbers on the line: is one missing?",
                line.tokens.len()
            )));
        }
    }
    Ok(body.iter().map(|line| line.tokens.clone()).collect())
}

/// Writes a job shop.
pub(super) fn write(instance: &Instance) -> Result<String> {
    let Instance::Job(shop) = instance else {
        return Err(Error::Choice(format!(
            "the standard layout holds a job shop, not a {}: write it as niwaki JSON",
            instance.kind()
        )));
    };
    let mut text = format!("{} {}\n", shop.jobs(), shop.machines());
    for job in 0..shop.jobs() {
        for (index, step) in shop.route(job).iter().enumerate() {
            let gap = if index == 0 { "" } else { " " };
            // Writing to a string cannot fail.
            _ = write!(text, "{gap}{} {}", step.machine, step.time);
        }
        text.push('\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        read(text).unwrap_err().to_string()
    }

    #[test]
    fn titles_wraps_and_bases() {
        let plain = read("2 2\n0 3 1 2\n1 4 0 1\n").unwrap();
        assert_eq!(read(" instance x\n ++++\n2 2\n0 3\n1 2 1 4\n0 1").unwrap(), plain, "titles and wraps");
        assert_eq!(read("2 2\n1 3 2 2\n2 4 1 1\n").unwrap(), plain, "machines from 1");
        assert_eq!(write(&plain).unwrap(), "2 2\n0 3 1 2\n1 4 0 1\n");
        let uneven = read("2 2\n0 3 1 2 0 1\n1 4\n").unwrap();
        assert_eq!(uneven.operations(), 4);
    }

    #[test]
    fn mistakes_have_places() {
        assert_eq!(refusal(""), "line 1, column 1: expected a header `jobs machines`, got no numbers");
        assert_eq!(
            refusal("2 2\n0 3 1 -2\n1 4 0 1"),
            "line 2, column 7: expected a time, got -2: it cannot be negative"
        );
        assert_eq!(
            refusal("2 2\n0 3 5 2\n1 4 0 1"),
            "line 2, column 5: expected one of 2 machines, got machine 5"
        );
        assert_eq!(
            refusal("2 2\n0 3 1 2\n1 4 2 1"),
            "line 3, column 5: expected machines 0 to 1 (line 2 names machine 0), got machine 2"
        );
        assert_eq!(
            refusal("3 2\n0 3 1 2\n1 4 0 1"),
            "line 1, column 1: expected 3 jobs, one line each, got 2 lines"
        );
        assert_eq!(
            refusal("2 2\n0 3 1\n1 4 0 1"),
            "line 2, column 5: expected pairs `machine time`, got 3 numbers on the line: is one missing?"
        );
        assert_eq!(
            refusal("1 2\n0 2147483647 1 1"),
            "line 1, column 1: times add up to 2147483648: expected at most 2147483647; use a coarser unit of time"
        );
    }
}
