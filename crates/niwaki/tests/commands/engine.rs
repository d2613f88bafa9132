//! `bench engine`: what a tiny run prints, and what is refused.

use std::process::Command;

/// What a run of `bench engine` said: exit code, standard output, standard error.
fn bench(arguments: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_niwaki"));
    // The peers' scripts lie under the repository's root.
    command.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let run = command.args(["bench", "engine"]).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (run.status.code().unwrap(), text(run.stdout), text(run.stderr))
}

/// The number that stands before `unit` in a line.
fn before(line: &str, unit: &str) -> f64 {
    let head = line.split(unit).next().unwrap();
    let digits = head.rsplit(|c: char| !(c.is_ascii_digit() || c == '.')).next().unwrap();
    digits.parse().unwrap_or_else(|_| panic!("no number before {unit:?} in {line:?}"))
}

#[test]
fn a_tiny_run_prints_its_lines() {
    let (code, out, err) = bench(&["--members", "2", "--lanes", "3", "--horizon", "2", "--repeats", "2"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let lines: Vec<&str> = out.lines().collect();
    // The count is the testbed's own for T = 8 (793,476) less six learned positions of 128 each.
    assert_eq!(
        lines[0],
        "testbed transformer, 792708 parameters, 2 member(s) × 3 lanes × 2 steps: forward, backward, N-SGD"
    );
    assert!(lines[1].starts_with("niwaki: ") && lines[1].ends_with(", median of 2"), "{}", lines[1]);
    assert!(before(lines[1], " ms wall") > 0.0 && before(lines[1], " ms processor") > 0.0, "{}", lines[1]);
    assert!(lines[2].starts_with("limit of one core: "), "{}", lines[2]);
    assert!(before(lines[2], " GFLOP/s") > 0.0 && before(lines[2], " GB/s") > 0.0, "{}", lines[2]);
    let share = before(lines[2], "%");
    assert!(share > 0.0 && share < 200.0, "{}", lines[2]);
    // Two members' parameters and gradients alone take 4 · 4 · 792,708 bytes, about 13 MB.
    assert!(before(lines[3], " MB") > 13.0, "{}", lines[3]);
    assert_eq!(lines.len(), 4, "{out}");
}

#[test]
fn mistakes_are_refused_in_one_line() {
    let cases: [(&[&str], &str); 6] = [
        (&["--members", "0"], "--members, --lanes, --horizon and --repeats must be at least 1"),
        (&["--repeats", "0"], "--members, --lanes, --horizon and --repeats must be at least 1"),
        (&["--precision", "bf16"], "--precision bf16 needs --device cuda: the CPU computes in f32"),
        (&["--members", "many"], "invalid value 'many' for '--members <MEMBERS>'"),
        (&["--device", "tpu"], "invalid value 'tpu' for '--device <DEVICE>' [possible values: cpu, cuda]"),
        (
            &["--lanes", "2", "--peers", "--python", "no-such-python"],
            "no-such-python does not start: name one with --python",
        ),
    ];
    for (arguments, expected) in cases {
        let (code, out, err) = bench(arguments);
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}: {err}");
        assert!(err.starts_with("niwaki: ") && err.contains(expected), "{arguments:?}: {err}");
        assert_eq!(err.lines().count(), 1, "{arguments:?}: {err}");
    }
}
