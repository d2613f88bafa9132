//! How commands end: every write of a result counts, and what comes from files cannot act on a terminal.

use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

fn niwaki() -> Command {
    Command::new(env!("CARGO_BIN_EXE_niwaki"))
}

fn example() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/advise/win.jsonl");
    path.display().to_string()
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_behind_standard_output_is_told() {
    for arguments in
        [&["--help"][..], &["oracle", "--help"], &["advise", &example()], &["reproduce", "--list"]]
    {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let output = niwaki().args(arguments).stdout(full).stderr(Stdio::piped()).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(74), "{arguments:?}: {said}");
        let expected = "niwaki: standard output did not take all of the result: ";
        assert!(said.starts_with(expected) && said.lines().count() == 1, "{arguments:?}: {said}");
    }
}

#[test]
fn a_reader_that_has_gone_away_ends_a_command_quietly() {
    for arguments in [&["--help"][..], &["advise", &example()]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = niwaki().args(arguments).stdout(writer).stderr(Stdio::piped()).output().unwrap();
        assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()), "{arguments:?}");
    }
}

#[test]
fn names_cannot_act_on_a_terminal_or_in_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    // A refusal, a page's title and a page's command, all with a name that would clear the screen.
    let output = niwaki().args(["advise", "\u{1b}[2Jx.jsonl"]).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.starts_with("niwaki: \\u001b[2Jx.jsonl cannot be read") && !said.contains('\u{1b}'),
        "{said}"
    );
    fs::copy(example(), at("\u{1b}[2Jwin.jsonl")).unwrap();
    let output = niwaki()
        .current_dir(folder.path())
        .args(["advise", "\u{1b}[2Jwin.jsonl", "--out", "\u{1b}[31mpage"])
        .output()
        .unwrap();
    assert!(output.status.success());
    assert!(!output.stdout.contains(&0x1b), "{}", String::from_utf8_lossy(&output.stdout));
    let page = fs::read_to_string(at("\u{1b}[31mpage").join("index.html")).unwrap();
    assert!(!page.contains('\u{1b}') && page.contains("\\u001b[2Jwin.jsonl"));
}

#[test]
#[cfg(unix)]
fn a_folder_whose_name_is_no_text_gets_its_page() {
    use std::os::unix::ffi::OsStrExt;
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join(std::ffi::OsStr::from_bytes(b"p\xffage"));
    let output = niwaki().args(["advise", &example(), "--out"]).arg(&out).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(out.join("index.html").exists());
}
