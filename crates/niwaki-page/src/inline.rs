//! Text on its way into markup: escaping, the two inline marks of prose, anchors. Knows nothing of pages or charts.

/// `text` with the five characters that mean something to HTML and SVG replaced.
///
/// Control characters other than tab and newline are dropped: no markup can carry them.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' => out.push(c),
            c if c.is_control() => {}
            c => out.push(c),
        }
    }
    out
}

/// Prose to HTML: text between backticks becomes code, between double asterisks strong; all else is escaped.
///
/// A mark without its partner stands as it is written.
pub(crate) fn prose(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['`', '*']) {
        let (before, tail) = rest.split_at(at);
        out.push_str(&escape(before));
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
    out.push_str(&escape(rest));
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
    fn slugs_are_anchors() {
        assert_eq!(slug("  K = 4: what's left? "), "k-4-what-s-left");
        assert_eq!(slug("—"), "section");
    }

    #[test]
    fn data_addresses_carry_any_text() {
        assert_eq!(percent_encode("a,b\n1 %é"), "a,b%0A1%20%25%C3%A9");
    }
}
