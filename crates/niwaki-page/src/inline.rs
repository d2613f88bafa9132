//! Text on its way into markup: escaping, the two inline marks of prose, anchors. Knows nothing of pages or charts.

use std::borrow::Cow;

/// `text` with characters that act instead of being seen written as `\u001b`: control characters other than tab and
/// newline, and those that turn the direction of writing.
///
/// A name from a file can then neither colour, clear nor rename a terminal, nor break a drawing. In JSON it is what the
/// text means already.
#[must_use]
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 5);
    for c in text.chars() {
        if acts(c) {
            out.push_str(&format!("\\u{:04x}", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

fn acts(c: char) -> bool {
    (c.is_control() && !matches!(c, '\t' | '\n'))
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// `text` with the five characters that mean something to HTML and SVG replaced, and the rest made [`visible`]: no
/// markup can carry control characters.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in visible(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// `text` for a page: a hyphen that stands for a minus before a number becomes one.
pub(crate) fn typeset(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let number = rest.peek().is_some_and(|next| next.is_ascii_digit() || *next == '∞');
        let minus = c == '-' && number && (before.is_whitespace() || matches!(before, '(' | '[' | '±'));
        out.push(if minus { '\u{2212}' } else { c });
        before = c;
    }
    escape(&out)
}

/// Prose to HTML: text between backticks becomes code, between double asterisks strong; all else is [`typeset`].
///
/// A mark without its partner stands as it is written.
pub(crate) fn prose(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['`', '*']) {
        let (before, tail) = rest.split_at(at);
        out.push_str(&typeset(before));
        let (mark, tag) = if tail.starts_with('`') { ("`", "code") } else { ("**", "strong") };
        let body =
            tail.strip_prefix(mark).and_then(|body| Some((body, body.find(mark).filter(|&end| end > 0)?)));
        match body {
            Some((body, end)) => {
                let inside = if tag == "code" { escape(&body[..end]) } else { prose(&body[..end]) };
                out.push_str(&format!("<{tag}>{inside}</{tag}>"));
                rest = &body[end + mark.len()..];
            }
            None => {
                out.push_str(&tail[..1]);
                rest = &tail[1..];
            }
        }
    }
    out.push_str(&typeset(rest));
    out
}

/// An anchor made of the letters and digits of `heading`, in lower case, joined by hyphens.
pub(crate) fn slug(heading: &str) -> String {
    let mut out = String::new();
    for c in heading.chars() {
        if c.is_alphanumeric() {
            out.extend(c.to_lowercase());
        } else if !out.is_empty() && !out.ends_with('-') {
            out.push('-');
        }
    }
    let out = out.trim_end_matches('-');
    if out.is_empty() { "section".into() } else { out.into() }
}

/// `text` percent-encoded for a `data:` address.
pub(crate) fn percent_encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b',' => {
                out.push(byte as char)
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_marks_code_and_strong_and_leaves_lone_marks() {
        assert_eq!(prose("set `a<b` **now**"), "set <code>a&lt;b</code> <strong>now</strong>");
        assert_eq!(prose("**a `b` c**"), "<strong>a <code>b</code> c</strong>");
        assert_eq!(prose("2*3 ` 4 ** 5"), "2*3 ` 4 ** 5");
        assert_eq!(prose("****"), "****");
    }

    #[test]
    fn a_minus_is_no_hyphen() {
        assert_eq!(
            prose("-0.5 (-1.87 to -1.39), [-3]"),
            "\u{2212}0.5 (\u{2212}1.87 to \u{2212}1.39), [\u{2212}3]"
        );
        // Dates, names, ranges, flags and code keep theirs.
        for kept in ["2026-11-17", "shop-0-0001", "3-4", "late-only - 2", "--seeds"] {
            assert_eq!(prose(kept), kept);
        }
        assert_eq!(prose("`-1`"), "<code>-1</code>");
    }

    #[test]
    fn what_acts_on_a_terminal_is_seen_instead() {
        assert_eq!(visible("a\u{1b}[31mb\r\n\u{9b}2J\u{202e}c"), "a\\u001b[31mb\\u000d\n\\u009b2J\\u202ec");
        assert!(matches!(visible("plain\ttext\n"), Cow::Borrowed(_)));
        assert_eq!(escape("<\u{1b}>"), "&lt;\\u001b&gt;");
    }

    #[test]
    fn slugs_are_anchors() {
        assert_eq!(slug("  K = 4: what's left? "), "k-4-what-s-left");
        assert_eq!(slug("—"), "section");
    }

    #[test]
    fn data_addresses_carry_any_text() {
        assert_eq!(percent_encode("a,b\n1 %é"), "a,b%0A1%20%25%C3%A9");
    }
}
