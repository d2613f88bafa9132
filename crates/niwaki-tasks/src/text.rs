//! Free text with a verifier: prompts of a file, and what is paid for a text that was written behind one of them.
//!
//! Knows texts and nothing of tokens: a language model writes, and what it wrote is judged here.

use crate::Error;
use niwaki_files::read_text;
use regex::Regex;
use serde::Deserialize;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// The file as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Raw {
    tokens: usize,
    #[serde(default)]
    only: Option<String>,
    #[serde(default)]
    stop: Option<String>,
    #[serde(default)]
    validation: usize,
    verifier: RawVerifier,
    prompt: Vec<Prompt>,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
enum RawVerifier {
    /// A regular expression that the text must match somewhere.
    Pattern { pattern: String },
    /// A field of the JSON object at the text's beginning, which must be the prompt's answer.
    Json { field: String },
    /// The last number of the text, which must be the prompt's answer.
    Number {},
}

/// A text to write on from.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prompt {
    /// The text.
    pub text: String,
    /// What is right, where the verifier compares.
    pub answer: Option<String>,
}

/// What decides whether a text is paid.
#[derive(Clone, Debug)]
enum Verifier {
    Pattern(Regex),
    Json(String),
    Number,
}

/// Prompts with their verifier.
#[derive(Clone, Debug)]
pub struct TextTask {
    path: PathBuf,
    tokens: usize,
    only: Option<String>,
    stop: Option<String>,
    validation: usize,
    verifier: Verifier,
    prompts: Vec<Prompt>,
}

/// Tokens that a text can have at most.
const MOST_TOKENS: usize = 4096;

impl TextTask {
    /// Reads a file of prompts.
    ///
    /// # Errors
    /// If it is no such file: one line that names the place.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let refuse = |reason: String| Error::Instances { path: path.to_owned(), reason };
        let text = read_text(path).map_err(|error| refuse(error.to_string()))?;
        let raw: Raw = toml::from_str(&text).map_err(|error| {
            let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
            refuse(format!("line {line}: {}", error.message().replace('\n', " ")))
        })?;
        Self::check(path, raw).map_err(refuse)
    }

    fn check(path: &Path, raw: Raw) -> Result<Self, String> {
        let Raw { tokens, only, stop, validation, verifier, prompt } = raw;
        if !(1..=MOST_TOKENS).contains(&tokens) {
            return Err(format!("tokens: {tokens} is not between 1 and {MOST_TOKENS}"));
        }
        if only.as_deref() == Some("") || stop.as_deref() == Some("") {
            return Err("'only' and 'stop' are texts with at least one letter; leave them out".to_owned());
        }
        if let Some(place) = prompt.iter().position(|prompt| prompt.text.is_empty()) {
            return Err(format!("prompt {}: its text is empty", place + 1));
        }
        if validation >= prompt.len() {
            let count = prompt.len();
            return Err(format!("validation: {validation} of {count} prompts leave none to learn from"));
        }
        let answers = |judged: fn(&str) -> bool, what: &str| {
            let wrong = |prompt: &Prompt| !prompt.answer.as_deref().is_some_and(judged);
            match prompt.iter().position(wrong) {
                Some(place) => Err(format!("prompt {}: its answer must be {what}", place + 1)),
                None => Ok(()),
            }
        };
        let verifier = match verifier {
            RawVerifier::Pattern { pattern } => Verifier::Pattern(Regex::new(&pattern).map_err(|error| {
                // The crate draws the place below the pattern, over several lines.
                let said = error.to_string();
                let last = said.lines().last().unwrap_or_default().trim();
                format!("verifier.pattern: '{pattern}' is not a regular expression: {last}")
            })?),
            RawVerifier::Json { field } => {
                answers(|_| true, "given, for it is compared with the field")?;
                Verifier::Json(field)
            }
            RawVerifier::Number {} => {
                answers(|answer| number(answer).is_some(), "a number")?;
                Verifier::Number
            }
        };
        Ok(Self { path: path.to_owned(), tokens, only, stop, validation, verifier, prompts: prompt })
    }

    /// The file that it came from.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Tokens that are written at most.
    #[must_use]
    pub const fn tokens(&self) -> usize {
        self.tokens
    }

    /// The letters that may be written; all where absent.
    #[must_use]
    pub fn only(&self) -> Option<&str> {
        self.only.as_deref()
    }

    /// The text that ends one.
    #[must_use]
    pub fn stop(&self) -> Option<&str> {
        self.stop.as_deref()
    }

    /// All prompts, those to learn from first.
    #[must_use]
    pub fn prompts(&self) -> &[Prompt] {
        &self.prompts
    }

    /// Prompts to learn from; the others are held out.
    #[must_use]
    pub fn training(&self) -> usize {
        self.prompts.len() - self.validation
    }

    /// What a text pays that was written behind a prompt: 1 where the verifier accepts it.
    #[must_use]
    pub fn reward(&self, prompt: usize, written: &str) -> f64 {
        let answer = self.prompts.get(prompt).and_then(|prompt| prompt.answer.as_deref());
        let accepted = match &self.verifier {
            Verifier::Pattern(pattern) => pattern.is_match(written),
            Verifier::Json(field) => answer.is_some() && value_of(written, field).as_deref() == answer,
            Verifier::Number => {
                let (right, came) = (answer.and_then(number), last_number(written));
                right
                    .zip(came)
                    .is_some_and(|(right, came)| (right - came).abs() <= 1e-9 * right.abs().max(1.0))
            }
        };
        f64::from(u8::from(accepted))
    }
}

/// A field of the JSON object at a text's beginning, as text.
fn value_of(written: &str, field: &str) -> Option<String> {
    let first = serde_json::Deserializer::from_str(written).into_iter::<Value>().next()?.ok()?;
    match first.get(field)? {
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn number(text: &str) -> Option<f64> {
    text.trim().parse::<f64>().ok().filter(|number| number.is_finite())
}

/// The last number of a text: digits, with a sign before and a decimal point between them where there is one.
fn last_number(text: &str) -> Option<f64> {
    let end = text.rfind(|letter: char| letter.is_ascii_digit())? + 1;
    let digits =
        |text: &str| text.len() - text.trim_end_matches(|letter: char| letter.is_ascii_digit()).len();
    let mut start = end - digits(&text[..end]);
    if let Some(before) = text[..start].strip_suffix('.').filter(|before| digits(before) > 0) {
        start = before.len() - digits(before);
    }
    if text[..start].ends_with('-') {
        start -= 1;
    }
    number(&text[start..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = r#"
tokens = 4
only = "0123456789\n"
stop = "\n"
validation = 1
verifier = { kind = "number" }
prompt = [{ text = "2 + 3 = ", answer = "5" }, { text = "7 - 9 = ", answer = "-2" }]
"#;

    fn read(text: &str) -> Result<TextTask, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text.toml");
        std::fs::write(&path, text).unwrap();
        TextTask::read(&path)
    }

    #[test]
    fn numbers_are_the_last_ones() {
        for (text, expected) in [
            ("5", Some(5.0)),
            ("it is 12, no: 5.", Some(5.0)),
            ("3.25 m", Some(3.25)),
            (".5", Some(5.0)),
            ("7 - 9 = -2", Some(-2.0)),
            ("none", None),
            ("1.2.3", Some(2.3)),
        ] {
            assert_eq!(last_number(text), expected, "{text}");
        }
    }

    #[test]
    fn verifiers_by_hand() {
        let task = read(FILE).unwrap();
        assert_eq!((task.training(), task.tokens(), task.stop()), (1, 4, Some("\n")));
        assert_eq!(["5", "4 + 1 = 5.0", "6", ""].map(|text| task.reward(0, text)), [1.0, 1.0, 0.0, 0.0]);
        assert_eq!(task.reward(1, "so -2"), 1.0);
        let json = read(&FILE.replace("kind = \"number\"", "kind = \"json\", field = \"code\"")).unwrap();
        let texts = ["{\"code\": 5} and more", "{\"code\":\"5\"}", "{\"code\":6}", "{\"cod", "5"];
        assert_eq!(texts.map(|text| json.reward(0, text)), [1.0, 1.0, 0.0, 0.0, 0.0]);
        let pattern = FILE.replace("kind = \"number\"", "kind = \"pattern\", pattern = '^[0-9]+$'");
        let pattern = read(&pattern.replace(", answer = \"5\"", "")).unwrap();
        assert_eq!(["12", "12a"].map(|text| pattern.reward(0, text)), [1.0, 0.0]);
    }

    #[test]
    fn a_users_mistakes_are_one_line_with_the_place() {
        let refusal = |from: &str, to: &str| {
            assert!(FILE.contains(from), "{from}");
            let line = read(&FILE.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(!line.contains('\n'), "{line}");
            line.split_once("text.toml: ").unwrap().1.to_owned()
        };
        assert_eq!(refusal("tokens = 4", "tokens = 0"), "tokens: 0 is not between 1 and 4096");
        assert_eq!(refusal("\"5\"", "\"five\""), "prompt 1: its answer must be a number");
        assert_eq!(
            refusal("validation = 1", "validation = 2"),
            "validation: 2 of 2 prompts leave none to learn from"
        );
        assert!(
            refusal("kind = \"number\"", "kind = \"pattern\", pattern = '['")
                .starts_with("verifier.pattern: '[' is not a regular expression: ")
        );
        assert!(refusal("stop", "stopp").starts_with("line 4: unknown field `stopp`"));
    }
}
