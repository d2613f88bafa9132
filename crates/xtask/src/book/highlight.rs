//! Colours for code: comments, strings, numbers, keywords, keys and flags, by one small scanner.

use super::page::escape;

/// What a language has of its own.
struct Language {
    comment: &'static str,
    keywords: &'static [&'static str],
}

const RUST: &[&str] = &[
    "as", "else", "enum", "fn", "for", "if", "impl", "in", "let", "match", "mod", "mut", "pub", "return",
    "self", "struct", "trait", "use", "where", "while",
];
const PYTHON: &[&str] = &[
    "False", "None", "True", "and", "as", "class", "def", "else", "for", "from", "if", "import", "in",
    "lambda", "not", "or", "return", "with",
];

fn language(name: &str) -> Option<Language> {
    let (comment, keywords): (&str, &[&str]) = match name.split([',', ' ']).next().unwrap_or(name) {
        "rust" => ("//", RUST),
        "python" => ("#", PYTHON),
        "sh" | "bash" | "toml" | "yaml" => ("#", &["true", "false"]),
        "json" => ("", &["true", "false", "null"]),
        _ => return None,
    };
    Some(Language { comment, keywords })
}

/// Code as HTML with a class for each kind of word. Plain text gets its commands marked alone.
pub(super) fn marked(name: &str, text: &str) -> String {
    let Some(language) = language(name) else { return commands(text) };
    let mut out = String::new();
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        let before = text[..text.len() - rest.len()].chars().next_back();
        let (class, length) = next(&language, rest, letter, before);
        let (word, after) = rest.split_at(length);
        match class {
            Some(class) => out += &format!("<i class=\"{class}\">{}</i>", escape(word)),
            None => out += &escape(word),
        }
        rest = after;
    }
    out
}

/// The class of what comes next, and how many bytes it has.
fn next(
    language: &Language,
    rest: &str,
    letter: char,
    before: Option<char>,
) -> (Option<&'static str>, usize) {
    let line = rest.find('\n').unwrap_or(rest.len());
    if !language.comment.is_empty() && rest.starts_with(language.comment) {
        return (Some("c"), line);
    }
    if matches!(letter, '"' | '\'') {
        let mut escaped = false;
        let end = rest[1..line].find(|c| {
            let ends = c == letter && !escaped;
            escaped = c == '\\' && !escaped;
            ends
        });
        // A lone mark is an apostrophe or a lifetime.
        return end.map_or((None, 1), |end| {
            let key = letter == '"' && rest[end + 2..].starts_with(':');
            (Some(if key { "k" } else { "s" }), end + 2)
        });
    }
    let part = |c: char| c.is_alphanumeric() || c == '_';
    if rest.starts_with("--") && !before.is_some_and(part) {
        return (Some("f"), rest.find(|c: char| !part(c) && c != '-').unwrap_or(rest.len()));
    }
    if part(letter) {
        let length = rest.find(|c: char| !part(c) && c != '.').unwrap_or(rest.len());
        let word = rest[..length].trim_end_matches('.');
        let starts_line = matches!(before, None | Some('\n'));
        let class = if language.keywords.contains(&word) {
            Some("w")
        } else if letter.is_ascii_digit() {
            Some("n")
        } else if starts_line && rest[word.len()..].trim_start_matches(' ').starts_with("= ") {
            Some("k")
        } else {
            None
        };
        return (class, word.len());
    }
    (None, letter.len_utf8())
}

/// Lines that one types, in a block that shows a terminal.
fn commands(text: &str) -> String {
    text.split_inclusive('\n')
        .map(|line| {
            let typed = ["niwaki ", "cargo ", "pip ", "$ "].iter().any(|start| line.starts_with(start));
            if typed { marked("sh", line) } else { escape(line) }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_word_has_its_class() {
        assert_eq!(
            marked("toml", "rate = 0.5 # slow\n"),
            "<i class=\"k\">rate</i> = <i class=\"n\">0.5</i> <i class=\"c\"># slow</i>\n"
        );
        assert_eq!(
            marked("json", "{\"a\": \"b<\"}"),
            "{<i class=\"k\">\"a\"</i>: <i class=\"s\">\"b&lt;\"</i>}"
        );
        assert_eq!(marked("rust", "let s = 'a"), "<i class=\"w\">let</i> s = 'a");
        assert_eq!(
            marked("text", "niwaki tour --out x\nsays don't\n"),
            "niwaki tour <i class=\"f\">--out</i> x\nsays don't\n"
        );
        // Nothing is lost, whatever the text.
        let odd = "é\"\\\" 'x --é 3.14. — \"";
        assert_eq!(
            marked("python", odd)
                .replace("</i>", "")
                .split("<i class=\"")
                .map(|part| part.split_once("\">").map_or(part, |(_, rest)| rest))
                .collect::<String>(),
            odd
        );
    }
}
