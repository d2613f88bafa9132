//! `solve`, `verify`, `template` and `convert` on shops with names, dates and objectives.

use crate::shop::{data, in_folder, niwaki};

#[test]
fn a_template_is_solved_checked_and_converted() {
    let folder = tempfile::tempdir().unwrap();
    let (_, shop) = in_folder(&folder, "shop.csv");
    let (code, out, error) = niwaki(&["template", &shop]);
    assert_eq!((code, error.as_str()), (0, ""), "{out}");
    let (code, _, error) = niwaki(&["template", &shop]);
    assert!(code == 2 && error.contains("is there already"), "{error}");

    let (schedule, schedule_name) = in_folder(&folder, "schedule.csv");
    let (chart, chart_name) = in_folder(&folder, "schedule.svg");
    let solve = [
        "solve",
        &shop,
        "--time",
        "300ms",
        "--threads",
        "1",
        "--out",
        &schedule_name,
        "--gantt",
        &chart_name,
    ];
    let (code, out, error) = niwaki(&solve);
    assert_eq!(code, 0, "{error}");
    assert!(out.starts_with("shop: shop, 3 jobs, 4 machines, 8 operations\n"), "{out}");
    assert!(out.contains("\nobjective tardiness, makespan\ntardiness "), "{out}");
    let rows = std::fs::read_to_string(&schedule).unwrap();
    assert!(rows.starts_with("job,operation,machine,start,end,starts,ends,setup,due,late\n"), "{rows}");
    assert!(rows.contains(",2026-11-16 ") && rows.lines().count() == 9, "{rows}");
    assert!(std::fs::read_to_string(&chart).unwrap().contains("bracket"));
    let (code, checked, _) = niwaki(&["verify", &shop, &schedule_name]);
    assert!(code == 0 && checked.starts_with("ok: tardiness "), "{checked}");

    // The same shop as JSON, the same verdict; a broken schedule is named.
    let (_, json) = in_folder(&folder, "shop.json");
    assert_eq!(niwaki(&["convert", &shop, &json]).0, 0);
    assert_eq!(niwaki(&["verify", &json, &schedule_name]).1, checked);
    let row = rows.lines().find(|line| line.starts_with("housing,paint")).unwrap();
    let cells: Vec<&str> = row.split(',').collect();
    let both = format!(",{},{},{},{},", cells[3], cells[4], cells[5], cells[6]);
    let early = row.replacen(&both, ",0,60,,,", 1);
    std::fs::write(&schedule, rows.replace(row, &early)).unwrap();
    let (code, out, _) = niwaki(&["verify", &shop, &schedule_name]);
    assert!(
        code == 1 && out.starts_with("wrong: job housing, operation paint: starts at 2026-11-16 06:00"),
        "{out}"
    );
    // Numbers and dates that disagree are a mistake in the file, wherever it is read.
    let late = row.replacen(cells[5], "2026-11-20 06:00", 1);
    std::fs::write(&schedule, rows.replace(row, &late)).unwrap();
    for read in [&["verify", &shop, &schedule_name][..], &["solve", &shop, "--from", &schedule_name]] {
        let (code, out, error) = niwaki(read);
        assert!(code == 2 && out.is_empty(), "{out}{error}");
        assert!(error.contains("column starts: `2026-11-20 06:00` is another time than `"), "{error}");
    }
}

#[test]
fn a_plan_is_held_to_a_date_and_its_files_are_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let (_, shop) = in_folder(&folder, "shop.csv");
    niwaki(&["template", &shop]);
    let (place, place_name) = in_folder(&folder, "plan");
    let solve = ["solve", &shop, "--time", "100ms", "--threads", "1", "--out", &place_name];
    let (code, out, error) = niwaki(&[&solve[..], &["--deadline", "2026-11-16 07:00"]].concat());
    assert!(code == 1 && out.contains("deadline 2026-11-16 07:00 missed"), "{out}{error}");
    let (page, page_name) = in_folder(&folder, "plan.html");
    let late = ["--deadline", "2026-11-16 07:00", "--gantt", &page_name];
    assert_eq!(niwaki(&[&solve[..], &late].concat()).0, 1);
    let page = std::fs::read_to_string(&page).unwrap();
    assert!(
        page.contains("The deadline is missed.") && page.contains("should be done by 2026-11-16 07:00."),
        "{page}"
    );
    assert!(page.contains("The last operation ends at 2026-11-1"), "{page}");
    // The caption speaks of what the chart has.
    assert!(
        page.contains("Machines are closed where") && !page.contains("Dotted lines mark waits"),
        "{page}"
    );
    for name in ["schedule.csv", "schedule.json"] {
        let (code, out, error) = niwaki(&["verify", &shop, &place.join(name).display().to_string()]);
        assert!(code == 0 && out.starts_with("ok: "), "{name}: {out}{error}");
    }
    assert!(std::fs::read_to_string(place.join("schedule.ics")).unwrap().starts_with("BEGIN:VCALENDAR"));
    assert!(std::fs::read_to_string(place.join("index.html")).unwrap().contains("data-clock="));
}

#[test]
fn what_has_started_stays_when_a_plan_is_made_again() {
    let folder = tempfile::tempdir().unwrap();
    let (_, shop) = in_folder(&folder, "shop.csv");
    let (first, first_name) = in_folder(&folder, "first.csv");
    let (second, second_name) = in_folder(&folder, "second.csv");
    niwaki(&["template", &shop]);
    niwaki(&["solve", &shop, "--time", "100ms", "--out", &first_name]);
    let again =
        ["solve", &shop, "--time", "100ms", "--from", &first_name, "--fixed-until", "2026-11-16 09:00"];
    let (code, out, error) =
        niwaki(&[&again[..], &["--objective", "makespan", "--out", &second_name]].concat());
    assert_eq!(code, 0, "{out}{error}");
    let (first, second) = (std::fs::read_to_string(first).unwrap(), std::fs::read_to_string(second).unwrap());
    // Job, operation, machine, start and end stay; how late the job is may change.
    let rows = |text: &str| -> Vec<Vec<String>> {
        text.lines().skip(1).map(|line| line.split(',').map(String::from).collect()).collect()
    };
    let (first, second) = (rows(&first), rows(&second));
    let begun: Vec<&[String]> =
        first.iter().filter(|row| row[5].as_str() < "2026-11-16 09:00").map(|row| &row[..5]).collect();
    assert!(!begun.is_empty() && begun.len() < first.len(), "{first:?}");
    for row in begun {
        assert!(second.iter().any(|other| &other[..5] == row), "{row:?} is not in {second:?}");
    }
}

#[test]
fn what_a_schedule_to_start_from_lacks_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let (_, shop) = in_folder(&folder, "shop.csv");
    let (first, first_name) = in_folder(&folder, "first.csv");
    niwaki(&["template", &shop]);
    niwaki(&["solve", &shop, "--rounds", "1", "--threads", "1", "--out", &first_name]);
    let text = std::fs::read_to_string(&first).unwrap();
    let from = || niwaki(&["solve", &shop, "--rounds", "1", "--threads", "1", "--from", &first_name]);
    assert!(!from().1.contains(" not in "));
    let last = text.lines().last().unwrap();
    std::fs::write(&first, text.replace(&format!("{last}\n"), "")).unwrap();
    let (code, out, error) = from();
    assert!(code == 0 && out.contains(&format!("\n1 operation is not in {first_name}\n")), "{out}{error}");
    std::fs::write(&first, format!("{text}{last}\n")).unwrap();
    let (code, out, error) = from();
    assert!(code == 2 && out.is_empty() && error.ends_with("expected once, got it twice\n"), "{out}{error}");
}

#[test]
fn rounds_give_the_same_schedule_again() {
    let folder = tempfile::tempdir().unwrap();
    let shop = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/planner/shop.csv");
    let run = |name: &str| {
        let (path, out) = in_folder(&folder, name);
        let solve = ["solve", shop, "--rounds", "1", "--threads", "2", "--seed", "5", "--out", &out];
        let (code, _, error) = niwaki(&solve);
        assert_eq!(code, 0, "{error}");
        std::fs::read_to_string(path).unwrap()
    };
    assert_eq!(run("one.csv"), run("two.csv"));
    let (code, _, error) = niwaki(&["solve", shop, "--rounds", "1", "--time", "1s"]);
    assert!(code == 2 && error.contains("--rounds") && error.contains("--time"), "{error}");
}

/// Special problems and tables alike: rounds do not depend on threads, proofs do not either, and what searches nothing refuses them.
#[test]
fn threads_work_on_every_kind() {
    let folder = tempfile::tempdir().unwrap();
    let (path, name) = in_folder(&folder, "shop.csv");
    std::fs::write(&path, "job,machine,time\nA,m,5\nA,n,2\nB,m,1\n").unwrap();
    let kinds =
        [&name, &data("jsp/ft06.txt"), &data("fjsp/brandimarte/mk01.fjs"), &data("pfsp/VFR10_5_1.txt")];
    for file in kinds {
        let bounds = |threads: &str| {
            let (code, out, error) =
                niwaki(&["solve", file, "--threads", threads, "--time", "60s", "--json"]);
            assert_eq!(code, 0, "{error}");
            let said: serde_json::Value = serde_json::from_str(&out).unwrap();
            assert_eq!(said["proven"], true, "{file}: {out}");
            (said["makespan"].clone(), said["values"].clone(), said["bound"].clone())
        };
        assert_eq!(bounds("1"), bounds("3"), "{file}");
    }
    for file in &kinds[..3] {
        let written = |threads: &str| {
            let (path, out) = in_folder(&folder, &format!("{threads}.csv"));
            let (code, _, error) =
                niwaki(&["solve", file, "--rounds", "3", "--threads", threads, "--out", &out]);
            assert_eq!(code, 0, "{error}");
            std::fs::read_to_string(path).unwrap()
        };
        assert_eq!(written("1"), written("3"), "{file}");
    }
    let rule = ["solve", kinds[1], "--method", "rule:spt", "--threads"];
    assert_eq!(niwaki(&[&rule[..], &["1"]].concat()).0, 0);
    let (code, out, error) = niwaki(&[&rule[..], &["2"]].concat());
    assert!(
        code == 2 && out.is_empty() && error.contains("--threads: only the exact search has several"),
        "{error}"
    );
}

/// A file that is still read when Ctrl-C comes: there is nothing to print, and nothing to wait for.
#[cfg(unix)]
#[test]
fn an_interrupt_is_heard_before_there_is_a_schedule() {
    let folder = tempfile::tempdir().unwrap();
    let (path, name) = in_folder(&folder, "shop.csv");
    let (written, written_name) = in_folder(&folder, "schedule.csv");
    // A pipe that nothing is written to is a file that never ends.
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let run = std::process::Command::new(env!("CARGO_BIN_EXE_niwaki"))
        .args(["solve", &name, "--out", &written_name])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let pipe = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(
        std::process::Command::new("kill").args(["-INT", &run.id().to_string()]).status().unwrap().success()
    );
    let ended = run.wait_with_output().unwrap();
    drop(pipe);
    let error = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(
        (ended.status.code(), error.as_str()),
        (Some(130), "niwaki: stopped before there was a schedule\n")
    );
    assert!(ended.stdout.is_empty() && !written.exists());
}

#[test]
fn dates_of_other_layouts_count() {
    let folder = tempfile::tempdir().unwrap();
    let (path, name) = in_folder(&folder, "dated.json");
    let text = r#"{"name": "x", "duration_matrix": [[3, 2], [4, 1]], "machines_matrix": [[0, 1], [1, 0]],
        "release_dates_matrix": [[100, 0], [0, 0]], "deadlines_matrix": null, "due_dates_matrix": [[null, 104], [null, 9]]}"#;
    std::fs::write(&path, text).unwrap();
    // The first job starts at 100 and takes 5; it is late by 1.
    let (_, out, _) = niwaki(&["solve", &name, "--time", "200ms"]);
    assert!(out.contains("\nmakespan 105 (bound 105)\nproven yes"), "{out}");
    let (_, out, _) = niwaki(&["solve", &name, "--objective", "tardiness", "--time", "200ms"]);
    assert!(
        out.contains("late 1 of 2 jobs: 0\n") && out.contains("\ntardiness 1 (bound 1)\nproven yes"),
        "{out}"
    );
    let (code, _, error) = niwaki(&["solve", &data("pfsp/ta001.txt"), "--objective", "tardiness"]);
    assert!(code == 2 && error.contains("one common order of jobs"), "{error}");
}

#[test]
fn impossible_plans_are_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let (path, name) = in_folder(&folder, "shop.csv");
    let cases = [
        ("job,machine,time\nA,m,x\n", "operations, row 2, column time: expected a number"),
        ("job,machine,time,deadline\nA,m,5,3\n", "job A: its deadline is 3, but it cannot end before 5"),
        ("job,operation,machine,time,after\nA,a,m,1,b\nA,b,m,1,a\n", "waits for itself"),
        (
            "[operations]\njob,machine,time\nA,m,5\n[breaks]\nmachine,from,to\nm,4,2\n",
            "expected a time after 4",
        ),
        ("[shops]\n", "expected one of the tables"),
        (
            "[settings]\nsetting,value\nunit,h\nstart,2026-11-16 08:00\n[operations]\njob,machine,time,deadline\nA,m,5,3\n",
            "job A: its deadline is 2026-11-16 11:00, but it cannot end before 2026-11-16 13:00",
        ),
    ];
    for (text, expected) in cases {
        std::fs::write(&path, text).unwrap();
        let (code, out, error) = niwaki(&["solve", &name, "--time", "100ms"]);
        assert_eq!((code, out.as_str(), error.lines().count()), (2, "", 1), "{text}: {error}");
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn names_that_look_like_comments_and_headings_are_data() {
    let folder = tempfile::tempdir().unwrap();
    let (json, json_name) = in_folder(&folder, "h.json");
    let row = |job: &str| format!(r#"{{"job": "{job}", "machine": "m", "time": 2}}"#);
    let rows = ["#1001", "[jobs]", "=3"].map(row).join(", ");
    std::fs::write(&json, format!(r#"{{"kind": "shop", "operations": [{rows}]}}"#)).unwrap();
    let (csv, csv_name) = in_folder(&folder, "h.csv");
    let (code, out, error) = niwaki(&["convert", &json_name, &csv_name]);
    assert!(code == 0 && !out.contains("comment"), "{out}{error}");
    let (schedule, schedule_name) = in_folder(&folder, "schedule.csv");
    for shop in [&json_name, &csv_name] {
        let (code, out, error) = niwaki(&["solve", shop, "--out", &schedule_name]);
        assert!(
            code == 0 && out.starts_with("h: shop, 3 jobs, 1 machines, 3 operations\nends 6\n"),
            "{out}{error}"
        );
        let (code, out, error) = niwaki(&["verify", shop, &schedule_name]);
        assert_eq!((code, out.as_str(), error.as_str()), (0, "ok: makespan 6\n", ""));
    }
    assert!(std::fs::read_to_string(schedule).unwrap().contains("\n\"[jobs]\",1,m,"));
    // What is a comment is counted, and where it has a row's shape it is named.
    let text = std::fs::read_to_string(&csv).unwrap().replace("\"#1001\"", "#1001");
    std::fs::write(&csv, format!("# a shop\n{text}")).unwrap();
    let (_, out, error) = niwaki(&["solve", &csv_name, "--rounds", "1"]);
    let said = "h: shop, 2 jobs, 1 machines, 2 operations\n2 rows were comments, one of them like a row of ";
    assert!(out.starts_with(said), "{out}{error}");
}

#[test]
fn schedules_of_job_shop_lib_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let (path, name) = in_folder(&folder, "shop.json");
    let matrices = r#""duration_matrix": [[3, 2], [4, 1]], "machines_matrix": [[0, 1], [1, 0]]"#;
    std::fs::write(&path, format!(r#"{{"name": "x", {matrices}, "metadata": {{}}}}"#)).unwrap();
    let (schedule, schedule_name) = in_folder(&folder, "schedule.json");
    let check = |orders: &str| {
        let text = format!(
            r#"{{"instance": {{"name": "x", {matrices}}}, "job_sequences": {orders}, "metadata": {{}}}}"#
        );
        std::fs::write(&schedule, text).unwrap();
        niwaki(&["verify", &name, &schedule_name])
    };
    // Machine 0: job 0 from 0 to 3, job 1 from 4 to 5; machine 1: job 1 from 0 to 4, job 0 from 4 to 6.
    assert_eq!((check("[[0, 1], [1, 0]]").0, check("[[0, 1], [1, 0]]").1.trim()), (0, "ok: makespan 6"));
    let (code, out, _) = check("[[1, 0], [0, 1]]");
    assert!(code == 1 && out.starts_with("wrong: machine 0 waits for job 1, which never comes"), "{out}");
    let (code, _, error) = check("[[0, 2], [1, 0]]");
    assert!(code == 2 && error.contains("expected a job below 2, got 2"), "{error}");
}

#[test]
fn a_spreadsheet_is_solved_and_converted() {
    let folder = tempfile::tempdir().unwrap();
    let sheet = concat!(env!("CARGO_MANIFEST_DIR"), "/../niwaki-shop/tests/fixtures/template.xlsx");
    let (code, out, error) = niwaki(&["solve", sheet, "--time", "100ms", "--threads", "1"]);
    assert!(
        code == 0 && out.starts_with("template: shop, 3 jobs, 4 machines, 8 operations\n"),
        "{out}{error}"
    );
    let (csv, csv_name) = in_folder(&folder, "shop.csv");
    assert_eq!(niwaki(&["convert", sheet, &csv_name]).0, 0);
    assert!(std::fs::read_to_string(csv).unwrap().contains("\nbracket,,2026-11-16 14:00,,1\n"));
    let (broken, broken_name) = in_folder(&folder, "broken.xlsx");
    std::fs::write(&broken, "job,machine,time\nA,m,1\n").unwrap();
    let (code, _, error) = niwaki(&["solve", &broken_name]);
    assert!(code == 2 && error.lines().count() == 1 && error.contains("expected a spreadsheet"), "{error}");
    let (code, _, error) = niwaki(&["convert", &csv_name, &broken_name, "--format", "xlsx"]);
    assert!(code == 2 && error.contains("spreadsheets are read, not written"), "{error}");
}
