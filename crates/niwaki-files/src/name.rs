//! Names that may become folders on any system.

/// The most bytes of a name that every system takes.
const MOST: usize = 200;
/// What some systems take for a device, whatever follows the first dot.
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];

/// The folder of a thing's name, with dashes for colons and separators.
///
/// # Errors
/// Why a name cannot be one, in words that follow on it.
pub fn folder_name(name: &str) -> Result<String, &'static str> {
    let folder = name.replace([':', '/', '\\'], "-");
    let stem = folder.split('.').next().unwrap_or_default().to_ascii_lowercase();
    let numbered = |device: &str| {
        stem.strip_prefix(device)
            .is_some_and(|number| number.len() == 1 && number.as_bytes()[0].is_ascii_digit())
    };
    if name.trim().is_empty() {
        Err("is empty")
    } else if name.chars().any(char::is_control) {
        Err("holds a control character")
    } else if name.starts_with('.') || name.ends_with(['.', ' ']) || name.starts_with(' ') {
        Err("begins with a dot or a space, or ends with one")
    } else if folder.contains(['<', '>', '"', '|', '?', '*']) {
        Err("holds one of the characters < > \" | ? *")
    } else if DEVICES.contains(&stem.as_str()) || numbered("com") || numbered("lpt") {
        Err("is the name of a device on some systems")
    } else if folder.len() > MOST {
        Err("is longer than 200 bytes")
    } else {
        Ok(folder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_every_system_takes() {
        assert_eq!(folder_name("tab:sched-win+hard"), Ok("tab-sched-win+hard".to_owned()));
        assert_eq!(folder_name("short,by=exact"), Ok("short,by=exact".to_owned()));
        assert_eq!(folder_name("a/b\\c"), Ok("a-b-c".to_owned()));
        for bad in [
            "",
            " ",
            ".",
            "..",
            "../up",
            "a\nb",
            "\u{1b}[31m",
            "a\0",
            "x.",
            "x ",
            ".hidden",
            "nul",
            "NUL.txt",
            "com1",
            "a*",
        ] {
            assert!(folder_name(bad).is_err(), "{bad:?}");
        }
        assert!(folder_name(&"x".repeat(201)).is_err());
        assert!(folder_name("common").is_ok() && folder_name("console").is_ok());
    }
}
