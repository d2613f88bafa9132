//! What the clock decides, cut out before two files are compared.

use crate::events::timeless;

/// A stretch of text that no two runs share.
pub(super) struct Volatile {
    /// The files that have it, by the end of their name.
    pub(super) file: &'static str,
    /// What stands before it.
    after: &'static str,
    /// What stands behind it.
    until: &'static str,
    pub(super) reason: &'static str,
}

/// All of them.
pub(super) const VOLATILE: &[Volatile] = &[
    Volatile {
        file: "printed.txt",
        after: "run-iterations in ",
        until: " (cpu)",
        reason: "how long a study took, as it is printed",
    },
    Volatile {
        file: "index.html",
        after: "run-iterations per second</dt><dd class=\"value\">",
        until: "<",
        reason: "how fast a study was, on its page's tile",
    },
    Volatile {
        file: "index.html",
        after: "run-iterations in ",
        until: " included.",
        reason: "how long a study took, on its page",
    },
    Volatile {
        file: "speed.json",
        after: "\"seconds\": ",
        until: ",",
        reason: "how long a study took, as a number",
    },
    Volatile {
        file: "speed.json",
        after: "\"start_up_seconds\": ",
        until: ",",
        reason: "how long the first iteration took, as a number",
    },
];

/// A file's bytes without what the clock decides.
pub(super) fn settled(name: &str, bytes: Vec<u8>) -> Vec<u8> {
    if name.contains("events.out.tfevents") {
        return timeless(bytes);
    }
    if !VOLATILE.iter().any(|what| name.ends_with(what.file)) {
        return bytes;
    }
    let mut text = match String::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) => return error.into_bytes(),
    };
    for what in VOLATILE.iter().filter(|what| name.ends_with(what.file)) {
        text = without(&text, what.after, what.until);
    }
    text.into_bytes()
}

/// The text with every stretch between two marks replaced by dots; a mark without its second stays as it is.
fn without(text: &str, after: &str, until: &str) -> String {
    let (mut kept, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, behind)) = rest.split_once(after) {
        kept += before;
        kept += after;
        match behind.split_once(until) {
            // What the clock decides is short; a longer stretch is a sentence that has changed.
            Some((cut, behind)) if cut.len() < 120 => {
                kept += "…";
                kept += until;
                rest = behind;
            }
            _ => rest = behind,
        }
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_clock_is_cut_out() {
        let one = "a: 3 run-iterations in 0.2 s: 15 per second (cpu)\nmean 0.5";
        let other = "a: 3 run-iterations in 0.7 s: 4 per second (cpu)\nmean 0.5";
        let settle = |text: &str| settled("x/printed.txt", text.into());
        assert_eq!(settle(one), settle(other));
        assert_ne!(settle(one), settle(&other.replace("mean 0.5", "mean 0.6")));
        assert_ne!(settle(one), settle(&other.replace("a: 3", "a: 4")));
        assert_eq!(settled("curve.jsonl", one.into()), one.as_bytes());
    }
}
