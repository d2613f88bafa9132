//! Taillard's flow-shop layout: a title, `jobs machines [seed upper lower]`, `processing times :`, and one line of
//! times per machine.

use super::text::{Header, Line, Token, header, lines, numeric_lines};
use crate::{Error, FlowShop, Instance, Result};
use std::fmt::Write;

/// Whether a line says `processing times`.
pub(super) fn sniff(text: &str) -> bool {
    lines(text).any(|line| is_marker(&line))
}

fn is_marker(line: &Line<'_>) -> bool {
    let words: Vec<_> = line.tokens.iter().map(|token| token.text).collect();
    matches!(words.as_slice(), ["processing", "times" | "times:", ..])
}

/// Reads a flow shop.
pub(super) fn read(text: &str) -> Result<Instance> {
    let rows = numeric_lines(text);
    // Seed and two bounds may follow.
    let Header { place, jobs, machines } = header(&rows, 3)?;
    let body = rows[1..].iter().filter(|line| !is_marker(line));
    let body: Vec<Token<'_>> = body.flat_map(|line| line.tokens.iter().copied()).collect();
    let Some(cells) = jobs.checked_mul(machines).filter(|&cells| cells <= body.len()) else {
        return Err(
            place.fault(format!("expected {machines} lines of {jobs} times, got {} times", body.len()))
        );
    };
    if let Some(surplus) = body.get(cells) {
        return Err(surplus.fault(format!("expected {machines} lines of {jobs} times, got more")));
    }
    let mut times = vec![0; cells];
    for (index, token) in body.iter().enumerate() {
        times[(index % jobs) * machines + index / jobs] = token.time()?;
    }
    let shop = FlowShop::new(jobs, machines, times);
    Ok(Instance::Flow(shop.map_err(|error| error.at(place.line, place.column))?))
}

/// Writes a flow shop.
pub(super) fn write(instance: &Instance) -> Result<String> {
    let Instance::Flow(shop) = instance else {
        return Err(Error::Choice(format!(
            "Taillard's layout holds a flow shop, not a {}: write it as niwaki JSON",
            instance.kind()
        )));
    };
    let mut text = format!(
        "number of jobs, number of machines :\n{} {}\nprocessing times :\n",
        shop.jobs(),
        shop.machines()
    );
    for machine in 0..shop.machines() {
        for job in 0..shop.jobs() {
            let gap = if job == 0 { "" } else { " " };
            // Writing to a string cannot fail.
            _ = write!(text, "{gap}{}", shop.time(job, machine));
        }
        text.push('\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "number of jobs, number of machines, initial seed, upper bound and lower bound :\n\
                        2 3 873654221 1278 1232\nprocessing times :\n1 2\n3 4\n5 6\n";

    #[test]
    fn machine_major_becomes_job_major() {
        let shop = read(TEXT).unwrap();
        assert_eq!(shop, Instance::Flow(FlowShop::new(2, 3, vec![1, 3, 5, 2, 4, 6]).unwrap()));
        assert_eq!(read(&write(&shop).unwrap()).unwrap(), shop);
        assert!(sniff(TEXT) && !sniff("2 3\n1 2\n"));
    }

    #[test]
    fn mistakes_have_places() {
        let refusal = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(
            refusal(&TEXT.replace("5 6", "5")),
            "line 2, column 1: expected 3 lines of 2 times, got 5 times"
        );
        assert_eq!(
            refusal(&TEXT.replace("5 6", "5 6 7")),
            "line 6, column 5: expected 3 lines of 2 times, got more"
        );
        assert_eq!(refusal(&TEXT.replace("5 6", "5 x")), "line 6, column 3: expected a time, got `x`");
    }
}
