//! `board`: one page over runs of all kinds, written once or served while they change.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn niwaki(arguments: &[&str], folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_niwaki")).args(arguments).current_dir(folder).output().unwrap()
}

fn train(loss: &str, seed: u32, folder: &Path) {
    let (loss_, seed_, out) =
        (format!("update.correction={loss}"), format!("seed={seed}"), format!("runs/{loss}/{seed}"));
    let small = ["train", "--quiet", "--set", "iterations=5", "--set", "task.horizon=3", "--set", &loss_];
    let ran = niwaki(&[&small[..], &["--set", &seed_, "--out", &out]].concat(), folder);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// The data in a page.
fn data(page: &str) -> serde_json::Value {
    let from = page.split_once("id=\"board-data\">").unwrap().1;
    serde_json::from_str(from.split_once("</script>").unwrap().0).unwrap()
}

/// A served board, which is ended when the test is.
struct Served {
    child: Child,
    address: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Served {
    fn begin(arguments: &[&str], folder: &Path) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_niwaki"));
        command.args(arguments).current_dir(folder).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split_once("http://").unwrap().1.split_once('/').unwrap().0.to_owned();
        Self { child, address }
    }

    fn ask(&self, path: &str, host: &str) -> (String, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
        let mut said = String::new();
        stream.read_to_string(&mut said).unwrap();
        let (head, body) = said.split_once("\r\n\r\n").unwrap();
        (head.lines().next().unwrap().to_owned(), body.to_owned())
    }

    fn data(&self) -> serde_json::Value {
        serde_json::from_str(&self.ask("/data", &self.address).1).unwrap()
    }
}

#[test]
fn runs_of_all_kinds_stand_on_one_page() {
    let home = tempfile::tempdir().unwrap();
    for seed in 0..3 {
        train("ppo", seed, home.path());
        train("full", seed, home.path());
    }
    fs::remove_file(home.path().join("runs/full/2/summary.json")).unwrap();
    let curve = home.path().join("runs/ppo/1/curve.jsonl");
    let text = fs::read_to_string(&curve).unwrap();
    fs::write(&curve, text.replacen("\"iteration\":2", "\"iteration\":3", 1)).unwrap();
    let ran = niwaki(&["board", "runs", "--out", "board.html"], home.path());
    let said = String::from_utf8_lossy(&ran.stderr);
    assert!(ran.status.success(), "{said}");
    assert!(said.contains("1 run is not finished and not counted: runs/full/2"), "{said}");
    assert!(
        said.contains("1 run cannot be read and is not counted: runs/ppo/1/curve.jsonl: line 2"),
        "{said}"
    );
    let page = fs::read_to_string(home.path().join("board.html")).unwrap();
    let found = data(&page);
    assert_eq!(found["counts"], serde_json::json!([4, 1, 0, 1]));
    assert_eq!(found["arms"][found["baseline"].as_u64().unwrap() as usize]["n"], "ppo");
    assert!(page.contains("niwaki board runs --out board.html"));
    // The same runs as JSON of `compare`: the same digits, to the six that the page holds.
    let told = niwaki(&["compare", "runs", "--json"], home.path());
    let told: serde_json::Value = serde_json::from_slice(&told.stdout).unwrap();
    let ours = told["groups"][0]["runs"][0]["auc"].as_f64().unwrap();
    let folder = &told["groups"][0]["runs"][0]["folder"];
    let run = found["runs"].as_array().unwrap().iter().find(|run| &run[0] == folder).unwrap();
    assert!((run[6].as_f64().unwrap() - ours).abs() <= 1e-5 * ours.abs());
}

#[test]
fn what_cannot_be_looked_at_is_one_line() {
    let home = tempfile::tempdir().unwrap();
    fs::create_dir(home.path().join("empty")).unwrap();
    fs::write(home.path().join("plan.json"), "{}").unwrap();
    for (arguments, says) in [
        (&["board", "nowhere", "--out", "b.html"][..], "nowhere is not there; name a folder"),
        (&["board", "plan.json", "--out", "b.html"], "plan.json is not a folder"),
        (&["board", "empty", "--out", "b.html"], "there is no run in or below empty"),
        (
            &["board", "s3://bucket/runs", "--out", "b.html"],
            "this has to be a folder; bring its finished runs",
        ),
        (&["board", "empty"], "--out"),
        (&["board", "empty", "--out", "b.html", "--watch"], "cannot be used with"),
    ] {
        let ran = niwaki(arguments, home.path());
        let said = String::from_utf8_lossy(&ran.stderr);
        assert_eq!((ran.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        assert!(said.contains(says), "{said}");
        assert!(!home.path().join("b.html").exists());
    }
}

#[test]
fn a_served_board_follows_its_runs_and_answers_this_machine_alone() {
    let home = tempfile::tempdir().unwrap();
    for seed in 0..2 {
        train("ppo", seed, home.path());
    }
    let served = Served::begin(&["board", "runs", "--watch"], home.path());
    assert_eq!(served.data()["counts"], serde_json::json!([2, 0, 0, 0]));
    let (status, page) = served.ask("/", &served.address);
    assert_eq!(status, "HTTP/1.1 200 OK");
    assert_eq!(data(&page)["live"], true);
    assert!(served.ask("/", "elsewhere.example").0.contains("403"));
    assert!(served.ask("/../runs/ppo/0/spec.toml", &served.address).0.contains("404"));
    let within = |wanted: serde_json::Value| {
        let began = Instant::now();
        while served.data()["counts"] != wanted {
            assert!(began.elapsed() < Duration::from_secs(5), "{}", served.data()["counts"]);
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    // A run that begins, one that is damaged, one that is taken away while it is looked at.
    train("full", 0, home.path());
    within(serde_json::json!([3, 0, 0, 0]));
    let curve = home.path().join("runs/full/0/curve.jsonl");
    let text = fs::read_to_string(&curve).unwrap();
    fs::remove_file(home.path().join("runs/full/0/summary.json")).unwrap();
    fs::write(&curve, text.lines().take(2).collect::<Vec<_>>().join("\n") + "\n").unwrap();
    within(serde_json::json!([2, 1, 0, 0]));
    assert_eq!(served.data()["runs"].as_array().unwrap().iter().filter(|run| run[4] == 2).count(), 1);
    // The third line is written, and shown.
    fs::write(&curve, text.lines().take(3).collect::<Vec<_>>().join("\n") + "\n").unwrap();
    let began = Instant::now();
    while !served.data()["runs"].as_array().unwrap().iter().any(|run| run[4] == 3) {
        assert!(began.elapsed() < Duration::from_secs(5));
        std::thread::sleep(Duration::from_millis(50));
    }
    fs::write(&curve, "nonsense\n").unwrap();
    within(serde_json::json!([2, 0, 0, 1]));
    fs::remove_dir_all(home.path().join("runs/full")).unwrap();
    within(serde_json::json!([2, 0, 0, 0]));
}
