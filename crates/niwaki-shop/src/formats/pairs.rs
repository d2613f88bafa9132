//! The flow shop's pair layout (Vallada, Ruiz and Framinan; Carlier; Reeves): the job shop's standard layout in which
//! every job visits machines 0, 1, 2, … in this order.
//!
//! The numbers do not say that all machines serve the jobs in one common order, and a job shop may do better without that.
//! So the layout is never guessed: a first line `# flow shop` says it, or the caller does.

use super::standard;
use super::text::Line;
use crate::{Error, FlowShop, Instance, Result};
use std::fmt::Write;

/// A first line that says what the numbers leave open. To other readers it is a comment.
const MARK: &str = "# flow shop";

/// Whether the text says that it is a flow shop.
pub(super) fn is_marked(text: &str) -> bool {
    text.lines().next().is_some_and(|line| line.trim() == MARK)
}

/// Whether every line after the header of two numbers visits all machines in order.
pub(super) fn sniff(lines: &[Line<'_>]) -> bool {
    if !standard::sniff(lines) {
        return false;
    }
    let Ok(machines) = lines[0].tokens[1].text.parse::<usize>() else { return false };
    let in_order = |line: &Line<'_>| {
        let ids = line.tokens.iter().step_by(2).map(|token| token.text.parse::<usize>().ok());
        line.tokens.len() / 2 == machines && ids.eq((0..machines).map(Some))
    };
    lines.len() > 1 && lines[1..].iter().all(in_order)
}

/// Reads a flow shop.
pub(super) fn read(text: &str) -> Result<Instance> {
    let lines = super::text::numeric_lines(text);
    let header = super::text::header(&lines, 0)?;
    let rows = standard::rows(&lines, header.jobs, header.machines, header.place)?;
    let mut times = Vec::new();
    for row in &rows {
        for (machine, pair) in row.chunks_exact(2).enumerate() {
            if pair[0].number("a machine")? as usize != machine {
                return Err(pair[0].fault(format!(
                    "expected machine {machine}: every job of a flow shop visits machines in order, got {}",
                    pair[0].text
                )));
            }
            times.push(pair[1].time()?);
        }
    }
    let place = header.place;
    let shop = FlowShop::new(header.jobs, header.machines, times);
    Ok(Instance::Flow(shop.map_err(|error| error.at(place.line, place.column))?))
}

/// Writes a flow shop.
pub(super) fn write(instance: &Instance) -> Result<String> {
    let Instance::Flow(shop) = instance else {
        return Err(Error::Choice(format!(
            "the pair layout holds a flow shop, not a {}: write it as niwaki JSON",
            instance.kind()
        )));
    };
    let mut text = format!("{MARK}\n{} {}\n", shop.jobs(), shop.machines());
    for job in 0..shop.jobs() {
        for (machine, time) in shop.job(job).iter().enumerate() {
            let gap = if machine == 0 { "" } else { " " };
            // Writing to a string cannot fail.
            _ = write!(text, "{gap}{machine} {time}");
        }
        text.push('\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_come_and_go() {
        let shop = read("2 2\n0 3 1 2\n0 4 1 1\n").unwrap();
        assert_eq!(shop, Instance::Flow(FlowShop::new(2, 2, vec![3, 2, 4, 1]).unwrap()));
        assert_eq!(write(&shop).unwrap(), "# flow shop\n2 2\n0 3 1 2\n0 4 1 1\n");
        let line = read("2 2\n0 3 1 2\n1 4 0 1\n").unwrap_err().to_string();
        let expected =
            "line 3, column 1: expected machine 0: every job of a flow shop visits machines in order, got 1";
        assert_eq!(line, expected);
        let line = read("2 2\n0 3 1 2\n0 4\n").unwrap_err().to_string();
        assert_eq!(line, "line 1, column 1: flow shop: expected 2 × 2 times, got 3");
    }
}
