//! Readers for the tests, independent of the writers: a tag balancer, a CSV reader, a line breaker.

use proptest::test_runner::TestCaseError;

/// Tags that HTML closes by itself.
const VOID: [&str; 2] = ["meta", "!DOCTYPE"];

/// Fails unless tags nest, attributes are quoted, and no number came out as NaN or infinite.
pub(crate) fn check_markup(markup: &str) -> Result<(), TestCaseError> {
    let fail = |why: &str, at: &str| {
        Err(TestCaseError::fail(format!("{why} at {}", at.chars().take(120).collect::<String>())))
    };
    let mut open: Vec<&str> = Vec::new();
    let mut rest = markup;
    while let Some(start) = rest.find('<') {
        let tag = &rest[start + 1..];
        let Some(end) = end_of_tag(tag) else { return fail("a tag without end", tag) };
        let inside = &tag[..end];
        rest = &tag[end + 1..];
        if let Some(name) = inside.strip_prefix('/') {
            if open.pop() != Some(name) {
                return fail("a closing tag without its opening", tag);
            }
            continue;
        }
        let name = inside.split([' ', '/']).next().unwrap_or("");
        if name.is_empty() || inside.contains('<') {
            return fail("a stray bracket", tag);
        }
        for coordinate in [" x", " y", " x1", " x2", " y1", " y2", " cx", " cy", " width", " height", " d"] {
            if let Some((_, value)) = inside.split_once(&format!("{coordinate}=\"")) {
                let value = value.split('"').next().unwrap_or("");
                if value.contains("NaN") || value.contains("inf") || value.contains('e') {
                    return fail("a coordinate that is no plain number", tag);
                }
            }
        }
        if name == "style" || name == "script" {
            let Some(close) = rest.find(&format!("</{name}>")) else {
                return fail("a style or script without end", tag);
            };
            rest = &rest[close..];
        }
        if !inside.ends_with('/') && !VOID.contains(&name) {
            open.push(name);
        }
    }
    if open.is_empty() { Ok(()) } else { fail("left open", &open.join(" ")) }
}

fn end_of_tag(tag: &str) -> Option<usize> {
    let mut quoted = false;
    tag.char_indices().find_map(|(at, c)| {
        quoted ^= c == '"';
        (c == '>' && !quoted).then_some(at)
    })
}

/// Rows of fields by RFC 4180.
pub(crate) fn read_csv(text: &str) -> Vec<Vec<String>> {
    let (mut rows, mut row, mut field) = (Vec::new(), Vec::new(), String::new());
    let mut quoted = false;
    let mut letters = text.chars().peekable();
    while let Some(c) = letters.next() {
        match c {
            '"' if quoted && letters.peek() == Some(&'"') => field.extend(letters.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => row.push(std::mem::take(&mut field)),
            '\n' if !quoted => {
                row.push(std::mem::take(&mut field));
                rows.push(std::mem::take(&mut row));
            }
            c => field.push(c),
        }
    }
    rows
}

/// Markup with a line break before every opening tag, for snapshots that can be read.
pub(crate) fn lines(markup: &str) -> String {
    let mut out = String::new();
    for (i, piece) in markup.split('<').enumerate() {
        if i > 0 {
            if !piece.starts_with('/') {
                out.push('\n');
            }
            out.push('<');
        }
        out.push_str(piece);
    }
    out
}
