//! Words that people type behind flags and write into specs. What is understood says its own name, which is understood as
//! the same.

use super::{MEGABYTE, Reader, text};
use niwaki_advise::gate::Gate;
use niwaki_advise::schema::Field;
use niwaki_advise::verl::Level;
use niwaki_correction::Correction;
use niwaki_exact::Reward;
use niwaki_shop::general::Objective;
use niwaki_shop::plan::parse_date;
use niwaki_shop::planning::Method;
use std::fmt::Display;
use std::str::FromStr;

const SEEDS: [&str; 14] = [
    "ess<0.3",
    "dose >= 1e-3",
    "sequence",
    "logp_old",
    "ppo",
    "tempered:0.5",
    "truncated:2",
    "clipped:1.5",
    "late-only",
    "rule:active-mwkr*16",
    "exact",
    "tardy-jobs, 3*tardiness + setup-time, makespan",
    "2026-03-02T07:30",
    "2026-12-31 23:59",
];

pub(super) fn readers() -> Vec<Reader> {
    let seeds = SEEDS.map(|word| word.as_bytes().to_vec()).to_vec();
    let read = Box::new(|bytes: &[u8], _: &std::path::Path| text(bytes).is_some_and(understood));
    vec![Reader { name: "words", seeds, read, floor: MEGABYTE, factor: 200, share: 120 }]
}

fn understood(text: &str) -> bool {
    [
        comes_back::<Gate>(text),
        comes_back::<Correction>(text),
        comes_back::<Objective>(text),
        text.parse::<Field>().is_ok(),
        text.parse::<Level>().is_ok(),
        text.parse::<Reward>().is_ok(),
        text.parse::<Method>().is_ok(),
        parse_date(text).is_some(),
    ]
    .contains(&true)
}

fn comes_back<T: FromStr + Display + PartialEq>(text: &str) -> bool {
    let Ok(read) = text.parse::<T>() else { return false };
    assert!(read.to_string().parse::<T>().is_ok_and(|back| back == read), "'{read}' does not come back");
    true
}
