//! Words of the caller's in the formats that launchers write: one function per format, lawful for every word.

/// A word as Bash takes it, on one line.
#[must_use]
pub fn shell(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-:=%+,@".contains(c);
    let hidden = |c: char| c.is_control() || matches!(c, '\u{2000}'..='\u{206f}' | '\u{feff}');
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    if !word.contains(hidden) {
        // Within single quotes a shell reads nothing but their end.
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    // What cannot be seen is spelled out, byte by byte.
    let mut text = "$'".to_owned();
    for byte in word.bytes() {
        match byte {
            b'\'' | b'\\' => text.extend(['\\', char::from(byte)]),
            b' '..=b'~' => text.push(char::from(byte)),
            _ => text += &format!("\\x{byte:02x}"),
        }
    }
    text + "'"
}

/// A word as JSON, YAML and Python take it: in double quotes.
pub(super) fn string(word: &str) -> String {
    printable(&serde_json::Value::from(word).to_string())
}

/// A JSON text of the same meaning without characters that YAML refuses or takes for the end of a line.
pub(super) fn printable(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        // Such characters stand in JSON's strings alone, which may spell them out.
        let spelled = match c {
            '\n' => false,
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => true,
            c => c.is_control(),
        };
        if spelled {
            text += &format!("\\u{:04x}", u32::from(c));
        } else {
            text.push(c);
        }
    }
    text
}

/// A word of a container's command as YAML takes it. Kubernetes puts variables in place of `$(NAME)` and reads `$$` as `$`.
pub(super) fn container(word: &str) -> String {
    string(&word.replace('$', "$$"))
}

/// A flag with its value: two words, or one where the value could be taken for a flag.
#[must_use]
pub fn flag(name: &str, value: &str) -> Vec<String> {
    if value.starts_with('-') {
        vec![format!("{name}={value}")]
    } else {
        vec![name.to_owned(), value.to_owned()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_lawful_in_their_formats() {
        let ordinary = ["/shared/runs", "s3://bucket/a-b_c.d", "x=1,y:2@3+4%5"];
        assert_eq!(ordinary.map(shell), ordinary.map(str::to_owned));
        assert_eq!(
            ["", "a b", "$(x)", "it's", "木", "~", "a\n'b\\", "\u{85}0"].map(shell),
            ["''", "'a b'", "'$(x)'", r"'it'\''s'", "'木'", "'~'", r"$'a\x0a\'b\\'", r"$'\xc2\x850'"]
                .map(str::to_owned)
        );
        assert_eq!(string("a\"b\\c\nd"), r#""a\"b\\c\nd""#);
        // Line breaks of YAML 1.1, a byte order mark, and what no YAML text may hold.
        assert_eq!(
            string("\u{85}\u{2028}\u{2029}\u{feff}\u{7f}\u{1}é木"),
            r#""\u0085\u2028\u2029\ufeff\u007f\u0001é木""#
        );
        assert_eq!(container("$(HOME) $$ $"), r#""$$(HOME) $$$$ $$""#);
        assert_eq!(flag("--out", "runs"), ["--out", "runs"]);
        assert_eq!(flag("--out", "-runs"), ["--out=-runs"]);
    }
}
