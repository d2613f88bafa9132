//! The flexible job shop's layout (Brandimarte, Hurink and others): `jobs machines [mean alternatives]`, then per job
//! its number of operations and, for each, the number of machines that can run it and their `machine time` pairs.
//!
//! Machines count from 1 by custom, from 0 in some collections: naming machine 0 or machine `machines` decides; a
//! file that does neither is read by custom.

use super::text::{Line, Token, base, header, numeric_lines};
use crate::{Alternative, Error, FlexibleShop, Instance, Result};
use std::fmt::Write;

/// One operation's alternatives, machines as the file numbers them.
type Choices = Vec<(u32, u32)>;

/// Whether the header has a third number, or every job's line has exactly the numbers that it announces.
pub(super) fn sniff(lines: &[Line<'_>]) -> bool {
    match lines.first().map(|line| line.tokens.len()) {
        Some(3) => true,
        Some(2) => lines.len() > 1 && lines[1..].iter().all(announced),
        _ => false,
    }
}

/// Whether a job's line has exactly the numbers that it announces.
fn announced(line: &Line<'_>) -> bool {
    let number = |index: usize| line.tokens.get(index).and_then(|token| token.text.parse::<usize>().ok());
    let Some(operations) = number(0) else { return false };
    let mut at = 1_usize;
    for _ in 0..operations {
        match number(at).and_then(|choices| choices.checked_mul(2)) {
            Some(width) if width > 0 && width < line.tokens.len() - at => at += 1 + width,
            _ => return false,
        }
    }
    operations > 0 && at == line.tokens.len()
}

/// Walks over the numbers after the header, wherever lines end.
struct Walk<'a> {
    tokens: Vec<Token<'a>>,
    at: usize,
    header: Token<'a>,
}

impl<'a> Walk<'a> {
    fn next(&mut self, what: &str) -> Result<Token<'a>> {
        let token = self.tokens.get(self.at).copied();
        self.at += 1;
        token.ok_or_else(|| {
            let last = self.tokens.last().copied().unwrap_or(self.header);
            last.fault(format!("expected {what} after `{}`, got the end of the file", last.text))
        })
    }
}

/// Reads a flexible job shop.
pub(super) fn read(text: &str) -> Result<Instance> {
    let lines = numeric_lines(text);
    let header = header(&lines, 1)?;
    let tokens = lines[1..].iter().flat_map(|line| line.tokens.iter().copied()).collect();
    let mut walk = Walk { tokens, at: 0, header: header.place };
    let mut ids = Vec::new();
    let mut raw: Vec<Vec<Choices>> = Vec::new();
    for job in 0..header.jobs {
        let operations =
            walk.next(&format!("job {job}'s number of operations"))?.count("a number of operations")?;
        let mut list = Vec::new();
        for _ in 0..operations {
            list.push(choices(&mut walk, header.machines, &mut ids)?);
        }
        raw.push(list);
    }
    if let Some(surplus) = walk.tokens.get(walk.at) {
        return Err(surplus.fault(format!("expected {} jobs, got more numbers", header.jobs)));
    }
    let base = base(&ids, header.machines, 1)?;
    let settle = |choices: Choices| {
        choices.into_iter().map(|(machine, time)| Alternative { machine: machine - base, time }).collect()
    };
    let jobs: Vec<_> = raw.into_iter().map(|job| job.into_iter().map(settle).collect()).collect();
    let shop = FlexibleShop::new(header.machines, &jobs);
    Ok(Instance::Flexible(shop.map_err(|error| error.at(header.place.line, header.place.column))?))
}

/// Reads one operation's alternatives.
fn choices<'a>(walk: &mut Walk<'a>, machines: usize, ids: &mut Vec<(u32, Token<'a>)>) -> Result<Choices> {
    let place = walk.next("a number of alternatives")?;
    let count = place.count("a number of alternatives")?;
    if count > machines {
        return Err(place.fault(format!("expected at most {machines} alternatives, got {count}")));
    }
    let mut list = Choices::new();
    let first = ids.len();
    for _ in 0..count {
        let token = walk.next("a machine")?;
        let machine = token.number("a machine")?;
        ids.push((machine, token));
        list.push((machine, walk.next("a time")?.time()?));
    }
    let mut sorted = ids[first..].to_vec();
    sorted.sort_by_key(|(machine, _)| *machine);
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let (machine, token) = pair[1];
        return Err(token.fault(format!("expected each machine once, got machine {machine} twice")));
    }
    Ok(list)
}

/// Writes a flexible job shop, machines from 1, with the mean number of alternatives in the header.
pub(super) fn write(instance: &Instance) -> Result<String> {
    let Instance::Flexible(shop) = instance else {
        return Err(Error::Choice(format!(
            "the .fjs layout holds a flexible job shop, not a {}: write it as niwaki JSON",
            instance.kind()
        )));
    };
    if shop.has_windows() {
        return Err(Error::Choice(
            "the .fjs layout has no place for resting windows: write it as niwaki JSON".into(),
        ));
    }
    let operations = shop.operations();
    let total: usize = (0..operations).map(|operation| shop.alternatives(operation).len()).sum();
    let mut text = format!("{} {} {:.2}\n", shop.jobs(), shop.machines(), total as f64 / operations as f64);
    for job in 0..shop.jobs() {
        // Writing to a string cannot fail.
        _ = write!(text, "{}", shop.job(job).len());
        for operation in shop.job(job) {
            _ = write!(text, " {}", shop.alternatives(operation).len());
            for choice in shop.alternatives(operation) {
                _ = write!(text, " {} {}", choice.machine + 1, choice.time);
            }
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
    fn bases_and_headers() {
        let from_one = read("2 2 1.5\n1 2 1 5 2 3\n2 1 2 4 1 1 6\n").unwrap();
        let from_zero = read("2 2\n1 2 0 5 1 3\n2 1 1 4 1 0 6\n").unwrap();
        assert_eq!(from_one, from_zero);
        // Four alternatives over three operations: 1.33.
        assert_eq!(write(&from_zero).unwrap(), "2 2 1.33\n1 2 1 5 2 3\n2 1 2 4 1 1 6\n");
        // Machines 1 and 2 of 3 are named: neither 0 nor 3, so by custom from 1.
        let Instance::Flexible(shop) = read("1 3\n1 2 1 5 2 3\n").unwrap() else { panic!("a flexible shop") };
        assert_eq!(shop.alternatives(0)[0].machine, 0);
    }

    /// Twice that many numbers are more than a line has, and behind its place more than a number counts.
    #[test]
    fn a_line_that_announces_more_than_can_be_counted_is_no_job() {
        let text = "2 2\n1 1 1 4\n2 1 1 4 9223372036854775807 1 5\n";
        assert!(crate::formats::read(text).is_err());
        let lines: Vec<Line<'_>> = super::super::text::lines(text).collect();
        assert!(!sniff(&lines));
    }

    #[test]
    fn mistakes_have_places() {
        assert_eq!(
            refusal("1 2\n1 0\n"),
            "line 2, column 3: expected a number of alternatives of at least 1, got 0"
        );
        assert_eq!(refusal("1 2\n1 3 1 1 2 1\n"), "line 2, column 3: expected at most 2 alternatives, got 3");
        assert_eq!(
            refusal("1 2\n1 2 1 4 1 5\n"),
            "line 2, column 9: expected each machine once, got machine 1 twice"
        );
        assert_eq!(
            refusal("1 2\n1 2 1 4 2\n"),
            "line 2, column 9: expected a time after `2`, got the end of the file"
        );
        assert_eq!(refusal("1 2\n1 1 1 4 9\n"), "line 2, column 9: expected 1 jobs, got more numbers");
        assert_eq!(refusal("1 2\n1 1 3 4\n"), "line 2, column 5: expected one of 2 machines, got machine 3");
        assert_eq!(
            refusal("1 2\n1 2 0 4 2 4\n"),
            "line 2, column 9: expected machines 0 to 1 (line 2 names machine 0), got machine 2"
        );
    }
}
