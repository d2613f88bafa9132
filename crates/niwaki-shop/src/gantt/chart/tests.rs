//! What is drawn, counted in the markup.

use super::*;
use crate::Placed;

#[test]
fn every_operation_is_a_bar_and_every_job_a_swatch() {
    let place = |job, machine, start, end| Placed { job, op: 0, machine, start, end };
    let schedule = Schedule { operations: vec![place(0, 0, 0, 30), place(1, 1, 0, 12), place(2, 0, 30, 31)] };
    let options =
        Gantt { title: "a < b".into(), machines: 4, deadline: Some(40), bound: Some(29), ..Gantt::default() };
    let svg = gantt(&schedule, &options);
    assert_eq!(svg.matches("class=\"bar\" data-j").count(), 3);
    assert_eq!(svg.matches(">machine ").count(), 4, "idle machines have a row");
    assert_eq!(escape("a\u{1b}[1m"), "a\\u001b[1m");
    assert!(svg.contains("a &lt; b") && svg.contains(">deadline 40<") && svg.contains(">bound 29<"));
    assert!(svg.contains("job 2, operation 0\nmachine 0\n30 to 31 (1)"));
}

#[test]
fn names_breaks_setups_and_late_jobs_are_drawn() {
    let place = |job, machine, start, end| Placed { job, op: 0, machine, start, end };
    let schedule = Schedule { operations: vec![place(0, 0, 0, 30), place(1, 0, 34, 46)] };
    let details = Details {
        machines: vec!["saw\u{1b}[2J".into()],
        jobs: vec!["A & B".into(), "shaft".into()],
        closed: vec![vec![(10, 12), (1000, 1010)]],
        setups: vec![(0, 30, 34)],
        due: vec![Some(30), Some(40)],
        overdue: BTreeMap::new(),
        windows: vec![Window { machine: 0, job: 1, earliest: Some(33), latest: Some(2000) }],
        ticks: vec![(0, "Mon 06:00".into())],
        words: [(46, "Mon 06:46".to_owned())].into(),
        lags: vec![Lag { job: 1, from: (0, 30), to: (0, 34) }],
        operations: vec![vec!["drill".into()]],
        clock: Some((0, 60.0)),
    };
    let svg = gantt(&schedule, &Gantt { details, ..Gantt::default() });
    assert!(svg.contains("A &amp; B") && svg.contains(">Mon 06:00<") && svg.contains(">makespan Mon 06:46<"));
    assert_eq!((svg.matches("class=\"closed\"").count(), svg.matches("class=\"setup\"").count()), (1, 1));
    // The second job alone is late: its bar, its legend and one line from its due date to its end.
    assert_eq!((svg.matches("\"bar late\"").count(), svg.matches("class=\"late-text\"").count()), (1, 1));
    assert_eq!(svg.matches("class=\"overdue\"").count(), 1);
    // Both jobs have a due date; the window's end lies beyond the chart.
    assert_eq!((svg.matches("class=\"due\"").count(), svg.matches("class=\"window\"").count()), (2, 1));
    assert!(svg.contains("<title>job shaft: not before 33</title>") && svg.contains("job A &amp; B, drill"));
    assert_eq!((svg.matches("class=\"lag\"").count(), svg.matches("data-clock=\"0 60\"").count()), (1, 1));
    assert!(!svg.contains('\u{1b}'), "no control characters");
}

#[test]
fn the_makespan_is_in_view_at_any_width() {
    let place = |job, machine| Placed { job, op: 0, machine, start: 10 * job, end: 10 * job + 10 };
    let operations = (0..100).flat_map(|job| (0..20).map(move |machine| place(job, machine))).collect();
    let schedule = Schedule { operations };
    let size = |width| gantt(&schedule, &Gantt { width, ..Gantt::default() });
    assert!(size(None).contains("viewBox=\"0 0 2510 "), "room for every operation in a file of its own");
    for width in [1200.0, 380.0] {
        let svg = size(Some(width));
        assert!(svg.contains(&format!("viewBox=\"0 0 {width:.0} ")));
        let line = svg.split("class=\"end\" x1=\"").nth(1).unwrap();
        let x: f64 = line.split('"').next().unwrap().parse().unwrap();
        assert!(x < width - RIGHT, "{x} of {width}");
        assert_eq!(svg.matches("data-j=").count(), 2100);
    }
    // What a phone gets carries no words for a pointer.
    assert!(!size(Some(380.0)).contains("<title>"));
    assert!(size(Some(1200.0)).len() + size(Some(380.0)).len() < 700_000);
}

#[test]
fn an_empty_schedule_is_drawn() {
    assert!(gantt(&Schedule::default(), &Gantt::default()).ends_with("</svg>\n"));
}

#[test]
fn steps_are_nice() {
    assert_eq!([nice_step(0.0), nice_step(3.0), nice_step(11.0), nice_step(104.0)], [1.0, 5.0, 20.0, 200.0]);
}
