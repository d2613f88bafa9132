//! Records as data: a template with slots, candidates for each, lines to prime a model with, and rewards as rules.
//!
//! Everything is read from one TOML file, so that a user's own records need no code. A record is a sequence of choices,
//! one per slot: any sequence policy plays it, and a language model reads it as text. Knows nothing of tokenizers.
//!
//! | file | what belongs there |
//! |---|---|
//! | `file.rs` | the file, read strictly and checked |
//! | `task.rs` | what a filled record pays: the sequence that policies play |

mod file;
mod task;

pub use task::RecordTask;

use crate::Error;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use task::Rule;

/// One choice of a record.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Slot {
    /// Its name: `<name>` in the template.
    pub name: String,
    /// What it can be filled with, at least two.
    pub candidates: Vec<String>,
}

/// A template with its slots, primings and rewards.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    path: PathBuf,
    slots: Vec<Slot>,
    /// The text before each slot, and what stands behind the last.
    pieces: Vec<String>,
    primes: BTreeMap<String, Vec<Vec<usize>>>,
    rewards: BTreeMap<String, Rule>,
}

impl Record {
    /// The file that it came from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its slots, in the order in which they are filled.
    #[must_use]
    pub fn slots(&self) -> &[Slot] {
        &self.slots
    }

    /// The text between slots: before the first, between them, and behind the last.
    #[must_use]
    pub fn pieces(&self) -> &[String] {
        &self.pieces
    }

    /// A filled record.
    ///
    /// Shapes: `choices [slot]`
    #[must_use]
    pub fn text(&self, choices: &[usize]) -> String {
        let mut text = self.pieces[0].clone();
        for ((slot, &choice), piece) in self.slots.iter().zip(choices).zip(&self.pieces[1..]) {
            text.push_str(&slot.candidates[choice]);
            text.push_str(piece);
        }
        text
    }

    /// What a model reads before it fills the first slot: the lines of a priming, and the text before that slot.
    ///
    /// # Errors
    /// If there is no priming of that name.
    pub fn prompt(&self, prime: Option<&str>) -> Result<String, Error> {
        let lines = match prime {
            None => &[][..],
            Some(name) => {
                self.primes.get(name).ok_or_else(|| self.unknown("priming", name, self.primes.keys()))?
            }
        };
        let mut prompt = String::new();
        for line in lines {
            prompt.push_str(&self.text(line));
            prompt.push('\n');
        }
        prompt.push_str(&self.pieces[0]);
        Ok(prompt)
    }

    /// The record under one of its rewards; the only one where no name is given.
    ///
    /// # Errors
    /// If there is no reward of that name, or there are several and none is named.
    pub fn task(&self, reward: Option<&str>) -> Result<RecordTask, Error> {
        let rule = match (reward, self.rewards.values().next()) {
            (Some(name), _) => {
                self.rewards.get(name).ok_or_else(|| self.unknown("reward", name, self.rewards.keys()))?
            }
            (None, Some(only)) if self.rewards.len() == 1 => only,
            (None, _) => {
                let names = self.rewards.keys().map(String::as_str).collect::<Vec<_>>().join(", ");
                let reason = format!("has the rewards {names}; say which one is meant");
                return Err(Error::Instances { path: self.path.clone(), reason });
            }
        };
        Ok(RecordTask { record: self.clone(), rule: rule.clone() })
    }

    /// The names of its rewards.
    pub fn rewards(&self) -> impl Iterator<Item = &str> {
        self.rewards.keys().map(String::as_str)
    }

    fn unknown<'a>(&self, what: &str, name: &str, known: impl Iterator<Item = &'a String>) -> Error {
        let known = known.map(String::as_str).collect::<Vec<_>>().join(", ");
        let reason = format!("no {what} is called '{name}'; there are: {known}");
        Error::Instances { path: self.path.clone(), reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sequence;

    const FILE: &str = r#"
template = "<status> at <place>: <code>."
slot = [
  { name = "status", candidates = ["up", "down"] },
  { name = "place", candidates = ["up", "here", "there"] },
  { name = "code", candidates = ["2", "5"] },
]
[prime.two]
lines = [["up", "here", "2"], ["down", "there", "5"]]
[[reward.matched.case]]
when = { status = "up", code = "2" }
[[reward.matched.case]]
when = { status = "down" }
pays = 0.5
[reward.alike]
equal = ["status", "place"]
[reward.table]
over = ["code", "status"]
pays = [1, 2, 3, 4]
"#;

    fn read(text: &str) -> Result<Record, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record.toml");
        std::fs::write(&path, text).unwrap();
        Record::read(&path)
    }

    #[test]
    fn a_record_as_text_and_as_choices() {
        let record = read(FILE).unwrap();
        assert_eq!(record.text(&[1, 2, 0]), "down at there: 2.");
        assert_eq!(record.prompt(Some("two")).unwrap(), "up at here: 2.\ndown at there: 5.\n");
        let task = record.task(Some("matched")).unwrap();
        assert_eq!((task.vocab(), task.horizon(), task.masked()), (3, 3, true));
        let mut open = [false; 3];
        task.open(&[0], &mut open);
        assert_eq!(open, [true; 3]);
        task.open(&[0, 2], &mut open);
        assert_eq!(open, [true, true, false]);
    }

    #[test]
    fn the_papers_record_has_six_slots_of_four() {
        let record = Record::of_the_paper().unwrap();
        assert!(record.slots().len() == 6 && record.slots().iter().all(|slot| slot.candidates.len() == 4));
        assert_eq!(record.rewards().collect::<Vec<_>>(), ["late-only", "two-branch"]);
        // Of 4 · 4 pairs of status and code, two are matched; of four codes one is late-only's.
        let share = |reward: &str| {
            let task = record.task(Some(reward)).unwrap();
            let pairs = (0..16).map(|pair| task.reward(&[pair / 4, 0, 0, 0, 0, pair % 4]));
            pairs.sum::<f64>() / 16.0
        };
        assert_eq!((share("two-branch"), share("late-only")), (0.125, 0.25));
    }

    #[test]
    fn rewards_by_hand() {
        let record = read(FILE).unwrap();
        let pays = |reward: &str, choices: [usize; 3]| record.task(Some(reward)).unwrap().reward(&choices);
        // (up, 2) pays 1, any down half, (up, 5) nothing.
        assert_eq!([[0, 0, 0], [1, 0, 0], [0, 0, 1]].map(|c| pays("matched", c)), [1.0, 0.5, 0.0]);
        // Only status 'up' at place 'up' is the same text.
        assert_eq!([[0, 0, 0], [0, 1, 0], [1, 0, 0]].map(|c| pays("alike", c)), [1.0, 0.0, 0.0]);
        // Rows are codes, columns statuses: (5, up) is the third.
        assert_eq!(
            [[0, 0, 0], [1, 0, 0], [0, 0, 1], [1, 0, 1]].map(|c| pays("table", c)),
            [1.0, 2.0, 3.0, 4.0]
        );
    }

    #[test]
    fn a_users_mistakes_are_one_line_with_the_place() {
        let refusal = |from: &str, to: &str| {
            assert!(FILE.contains(from), "{from}");
            let line = read(&FILE.replacen(from, to, 1)).unwrap_err().to_string();
            line.split_once("record.toml: ").unwrap().1.to_owned()
        };
        assert_eq!(
            refusal("<code>", "<cod>"),
            "template: '<code>' is missing, or stands before the slot before it"
        );
        assert_eq!(refusal("<code>.", "<code><place>"), "template: '<place>' stands twice or out of order");
        assert_eq!(
            refusal("\"here\", \"2\"]", "\"hers\", \"2\"]"),
            "prime.two, line 1: 'hers' is not a candidate of slot 'place', which has up, here, there"
        );
        assert_eq!(
            refusal("status = \"down\"", "statsu = \"down\""),
            "reward.matched: no slot is called 'statsu'; did you mean 'status'?"
        );
        assert_eq!(
            refusal("pays = [1, 2, 3, 4]", "pays = [1]"),
            "reward.table: 'pays' has 1 values; the slots of 'over' have 4"
        );
        // Sixty-four times two candidates are more pairs than a number counts.
        let over = ["\"code\""; 64].join(", ");
        assert_eq!(
            refusal("over = [\"code\", \"status\"]", &format!("over = [{over}]")),
            format!("reward.table: 'pays' has 4 values; the slots of 'over' have {}", usize::MAX)
        );
        assert_eq!(refusal("[\"2\", \"5\"]", "[\"2\", \"2\"]"), "slot 'code' has candidate '2' twice");
        assert_eq!(
            refusal("equal = [\"status\", \"place\"]", ""),
            "reward.alike: give either 'case', 'equal', or 'over' with 'pays'"
        );
        assert!(refusal("template", "templat").starts_with("line 2: unknown field `templat`"));
        let record = read(FILE).unwrap();
        let line = record.task(Some("mached")).unwrap_err().to_string();
        assert!(line.ends_with("no reward is called 'mached'; there are: alike, matched, table"), "{line}");
        let line = record.task(None).unwrap_err().to_string();
        assert!(line.ends_with("has the rewards alike, matched, table; say which one is meant"), "{line}");
    }
}
