//! Specs of runs and study files.

use super::{MEGABYTE, Reader, same, seeds, text};
use niwaki_study::Contents;
use niwaki_study::training::Plan;
use niwaki_train::Spec;

pub(super) fn readers() -> Vec<Reader> {
    let reader = |name, places: &[&str], read: fn(&str) -> bool| Reader {
        name,
        seeds: seeds(name, places, &["toml"]),
        read: Box::new(move |bytes, _| text(bytes).is_some_and(read)),
        floor: 64 * MEGABYTE,
        factor: 400,
        share: 2,
    };
    vec![
        reader("spec.toml", &["examples/train", "examples/advise"], spec),
        reader("study.toml", &["studies"], study),
    ]
}

/// A sound spec comes back from its own text. One of an unknown kind is read, keys and all, and then refused.
fn spec(text: &str) -> bool {
    let Ok(spec) = Spec::read("case", text, &[]) else { return false };
    if spec.check().is_err() {
        return false;
    }
    let again = spec.to_commented_toml().and_then(|text| Spec::read("case", &text, &[]));
    same("a spec", &Ok(&spec), &again.as_ref().map_err(ToString::to_string));
    true
}

/// A study's file; where it trains, every run that it names.
fn study(text: &str) -> bool {
    match Contents::read("case", text) {
        // Two seeds of each: a file may well ask for a hundred thousand, and planning them takes what is asked for.
        Ok(Contents::Training(study)) => Plan::new(*study, Some(2)).is_ok(),
        Ok(Contents::Diagnostics(_)) => true,
        Err(_) => false,
    }
}
