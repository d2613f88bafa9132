//! Taillard's job-shop layout: a title, `jobs machines [seeds and bounds]`, `Times` with one line per job, and `Machines`
//! with one line per job, machines from 1.

use super::text::{Header, Line, Token, base, header, lines, numeric_lines};
use crate::{Error, Instance, JobShop, Operation, Result};
use std::fmt::Write;

/// Whether a line says `Times` and another `Machines`.
pub(super) fn sniff(text: &str) -> bool {
    lines(text).any(|line| is_marker(&line, "Times")) && lines(text).any(|line| is_marker(&line, "Machines"))
}

fn is_marker(line: &Line<'_>, word: &str) -> bool {
    line.tokens.len() == 1 && line.tokens[0].text.eq_ignore_ascii_case(word)
}

/// Reads a job shop.
pub(super) fn read(text: &str) -> Result<Instance> {
    let rows = numeric_lines(text);
    // Two seeds and two bounds may follow.
    let Header { place, jobs, machines } = header(&rows, 4)?;
    let (mut times, mut ids): (Vec<Token<'_>>, Vec<Token<'_>>) = (Vec::new(), Vec::new());
    let mut in_machines = false;
    for line in &rows[1..] {
        if is_marker(line, "Machines") {
            in_machines = true;
        } else if !is_marker(line, "Times") {
            let target = if in_machines { &mut ids } else { &mut times };
            target.extend(&line.tokens);
        }
    }
    for (what, found) in [("times", &times), ("machines", &ids)] {
        if jobs.checked_mul(machines) != Some(found.len()) {
            return Err(place
                .fault(format!("expected {jobs} lines of {machines} {what}, got {} numbers", found.len())));
        }
    }
    let ids = ids.iter().map(|token| Ok((token.number("a machine")?, *token))).collect::<Result<Vec<_>>>()?;
    let base = base(&ids, machines, 1)?;
    let mut routes = Vec::with_capacity(jobs);
    for (times, ids) in times.chunks_exact(machines).zip(ids.chunks_exact(machines)) {
        let step = |(time, (id, _)): (&Token<'_>, &(u32, Token<'_>))| {
            Ok(Operation { machine: id - base, time: time.time()? })
        };
        routes.push(times.iter().zip(ids).map(step).collect::<Result<Vec<_>>>()?);
    }
    let shop = JobShop::new(machines, &routes);
    Ok(Instance::Job(shop.map_err(|error| error.at(place.line, place.column))?))
}

/// Writes a job shop whose jobs have one operation for each machine.
pub(super) fn write(instance: &Instance) -> Result<String> {
    let Instance::Job(shop) = instance else {
        return Err(Error::Choice(format!(
            "Taillard's job-shop layout holds a job shop, not a {}: write it as niwaki JSON",
            instance.kind()
        )));
    };
    if let Some(job) = (0..shop.jobs()).find(|&job| shop.route(job).len() != shop.machines()) {
        return Err(Error::Choice(format!(
            "Taillard's job-shop layout has {} operations per job, but job {job} has {}: write it as standard",
            shop.machines(),
            shop.route(job).len()
        )));
    }
    let mut text = format!("Nb of jobs, Nb of Machines\n{} {}\n", shop.jobs(), shop.machines());
    for (title, pick) in
        [("Times", (|step| step.time) as fn(&Operation) -> u32), ("Machines", |step| step.machine + 1)]
    {
        text.push_str(title);
        for job in 0..shop.jobs() {
            for (index, step) in shop.route(job).iter().enumerate() {
                let gap = if index == 0 { "\n" } else { " " };
                // Writing to a string cannot fail.
                _ = write!(text, "{gap}{}", pick(step));
            }
        }
        text.push('\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Nb of jobs, Nb of Machines, Time seed, Machine seed, Upper bound, Lower bound\n\
                        2 3 840612802 398197754 1231 1005\nTimes\n1 2 3\n4 5 6\nMachines\n2 1 3\n3 1 2\n";

    #[test]
    fn two_matrices_make_routes() {
        let shop = read(TEXT).unwrap();
        let op = |machine, time| Operation { machine, time };
        let expected = [vec![op(1, 1), op(0, 2), op(2, 3)], vec![op(2, 4), op(0, 5), op(1, 6)]];
        assert_eq!(shop, Instance::Job(JobShop::new(3, &expected).unwrap()));
        assert_eq!(read(&write(&shop).unwrap()).unwrap(), shop);
        assert!(sniff(TEXT) && !sniff("2 3\n1 2\n"));
    }

    #[test]
    fn mistakes_have_places() {
        let refusal = |from: &str, to: &str| read(&TEXT.replace(from, to)).unwrap_err().to_string();
        assert_eq!(
            refusal("3 1 2", "3 1"),
            "line 2, column 1: expected 2 lines of 3 machines, got 5 numbers"
        );
        assert_eq!(refusal("3 1 2", "3 1 7"), "line 8, column 5: expected one of 3 machines, got machine 7");
        assert_eq!(refusal("4 5 6", "4 x 6"), "line 5, column 3: expected a time, got `x`");
    }
}
