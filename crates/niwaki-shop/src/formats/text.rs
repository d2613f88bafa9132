//! Numbers in text, with their places.

use crate::instance::HORIZON;
use crate::{Error, Result};

/// A word of a text file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    pub(super) text: &'a str,
    pub(super) line: usize,
    pub(super) column: usize,
}

impl Token<'_> {
    /// A complaint at this word.
    pub(super) fn fault(&self, what: impl Into<String>) -> Error {
        Error::Parse { line: self.line, column: self.column, what: what.into() }
    }

    /// The word as a whole number that is not negative.
    pub(super) fn number(&self, what: &str) -> Result<u32> {
        self.text.parse::<u32>().map_err(|_| {
            let came = shorten(self.text);
            let digits = self.text.trim_start_matches(['-', '+']);
            let all_digits = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
            self.fault(match (all_digits, self.text.starts_with('-')) {
                (true, true) => format!("expected {what}, got {came}: it cannot be negative"),
                (true, false) => format!("expected {what}, got {came}: too large"),
                (false, _) => format!("expected {what}, got `{came}`"),
            })
        })
    }

    /// The word as a time.
    pub(super) fn time(&self) -> Result<u32> {
        let time = self.number("a time")?;
        if time > HORIZON {
            return Err(self.fault(format!("expected a time of at most {HORIZON}, got {time}")));
        }
        Ok(time)
    }

    /// The word as a count of at least one.
    pub(super) fn count(&self, what: &str) -> Result<usize> {
        match self.number(what)? {
            0 => Err(self.fault(format!("expected {what} of at least 1, got 0"))),
            count => Ok(count as usize),
        }
    }
}

/// A long word, cut for a message.
fn shorten(text: &str) -> String {
    const LONGEST: usize = 24;
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    text.chars().take(LONGEST).chain(['…']).collect()
}

/// A line's words.
#[derive(Debug)]
pub(super) struct Line<'a> {
    pub(super) tokens: Vec<Token<'a>>,
}

/// Splits a text into the lines that carry words; `#` starts a comment.
pub(super) fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    text.lines().enumerate().filter_map(|(index, line)| {
        let line = line.split('#').next().unwrap_or("");
        let tokens = tokens(line, index + 1);
        (!tokens.is_empty()).then_some(Line { tokens })
    })
}

/// The words of one line.
fn tokens(line: &str, number: usize) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut start = None;
    let mut column = 0;
    for (offset, letter) in line.char_indices() {
        column += 1;
        if letter.is_whitespace() {
            if let Some((from, column)) = start.take() {
                tokens.push(Token { text: &line[from..offset], line: number, column });
            }
        } else if start.is_none() {
            start = Some((offset, column));
        }
    }
    if let Some((from, column)) = start {
        tokens.push(Token { text: &line[from..], line: number, column });
    }
    tokens
}

/// The lines from the first that starts with a number on: titles above the header are skipped.
pub(super) fn numeric_lines(text: &str) -> Vec<Line<'_>> {
    let titled = |line: &Line<'_>| !starts_like_a_number(line.tokens[0].text);
    lines(text).skip_while(titled).collect()
}

/// Whether a word begins like a number.
fn starts_like_a_number(text: &str) -> bool {
    text.starts_with(|letter: char| letter.is_ascii_digit() || letter == '-')
}

/// Where the numbers of a shop begin, and what its header says.
pub(super) struct Header<'a> {
    pub(super) place: Token<'a>,
    pub(super) jobs: usize,
    pub(super) machines: usize,
}

/// Reads `jobs machines` from the first line; `extra` more words may follow.
pub(super) fn header<'a>(lines: &[Line<'a>], extra: usize) -> Result<Header<'a>> {
    let Some(line) = lines.first() else {
        return Err(Error::Parse {
            line: 1,
            column: 1,
            what: "expected a header `jobs machines`, got no numbers".into(),
        });
    };
    let place = line.tokens[0];
    let jobs = place.count("a number of jobs")?;
    let Some(second) = line.tokens.get(1) else {
        return Err(place.fault("expected a header `jobs machines`, got one number"));
    };
    let machines = second.count("a number of machines")?;
    if let Some(surplus) = line.tokens.get(2 + extra) {
        return Err(surplus.fault(format!("expected a header of {} numbers, got more", 2 + extra)));
    }
    Ok(Header { place, jobs, machines })
}

/// What is subtracted from the machine numbers of a file: 0 or 1.
///
/// A file that names machine 0 counts from 0, one that names machine `machines` counts from 1; a file that names
/// neither counts from `otherwise`.
pub(super) fn base(ids: &[(u32, Token<'_>)], machines: usize, otherwise: u32) -> Result<u32> {
    let zero = ids.iter().find(|(id, _)| *id == 0);
    let past = ids.iter().find(|(id, _)| *id as usize == machines);
    if let Some((id, token)) = ids.iter().find(|(id, _)| *id as usize > machines) {
        return Err(token.fault(format!("expected one of {machines} machines, got machine {id}")));
    }
    match (zero, past) {
        (Some((_, zero)), Some((id, token))) => Err(token.fault(format!(
            "expected machines 0 to {} (line {} names machine 0), got machine {id}",
            machines - 1,
            zero.line
        ))),
        (Some(_), None) => Ok(0),
        (None, Some(_)) => Ok(1),
        (None, None) => Ok(otherwise),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_count_characters_from_one() {
        let found: Vec<_> = lines("é x # no\n\n  7\t8")
            .flat_map(|line| line.tokens)
            .map(|token| (token.text, token.line, token.column))
            .collect();
        assert_eq!(found, [("é", 1, 1), ("x", 1, 3), ("7", 3, 3), ("8", 3, 5)]);
    }

    #[test]
    fn numbers_say_what_is_wrong() {
        let refusal = |text| Token { text, line: 2, column: 5 }.number("a time").unwrap_err().to_string();
        assert_eq!(refusal("-3"), "line 2, column 5: expected a time, got -3: it cannot be negative");
        assert_eq!(refusal("99999999999"), "line 2, column 5: expected a time, got 99999999999: too large");
        assert_eq!(refusal("1.5"), "line 2, column 5: expected a time, got `1.5`");
    }
}
