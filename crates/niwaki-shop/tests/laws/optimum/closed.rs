//! Benchmarks whose optimum is known.

use crate::data;
use niwaki_shop::{Limits, formats, optimum, verify};
use std::time::Duration;

/// Solves a shipped instance within `seconds` and compares with the published optimum.
fn closes(set: &str, name: &str, seconds: u64) {
    let path = data::folder().join(set).join(format!("{name}.txt"));
    let instance = formats::load(&path).unwrap();
    let table = data::bounds(set);
    let (_, known) = table.of_file(&path).unwrap();
    let limits = Limits::new(Duration::from_secs(seconds), 1);
    let found = optimum::solve(&instance, limits, &mut |_| {});
    assert!(found.proven, "{name}: between {} and {}", found.lower, found.upper);
    assert_eq!(Some(found.upper), Some(known.upper), "{name}");
    assert!(verify(&instance, &found.schedule).is_ok(), "{name}");
}

#[test]
fn job_shops_up_to_ten_by_five() {
    for name in ["ft06", "la01", "la02", "la03", "la04", "la05"] {
        closes("jsp", name, 5);
    }
}

#[test]
fn flow_shops_of_twenty_by_five() {
    for number in 1..=10 {
        closes("pfsp", &format!("ta{number:03}"), 60);
    }
}
