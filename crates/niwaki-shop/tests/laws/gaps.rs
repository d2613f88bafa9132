//! Published mean gaps of textbook methods: a method that drifts from them is not that method.

use crate::data::{bounds, files};
use niwaki_shop::formats::load;
use niwaki_shop::heuristics::neh;
use niwaki_shop::rules::Dispatcher;
use niwaki_shop::{Instance, Schedule, verify};

/// The mean of (makespan − best known) / best known over a set's instances whose name starts with `ta`.
fn mean_gap(set: &str, solve: &dyn Fn(&Instance) -> Schedule) -> (usize, f64) {
    let table = bounds(set);
    let mut gaps = Vec::new();
    for path in files(set) {
        let (name, known) = table.of_file(&path).unwrap();
        if name.starts_with("ta") {
            let instance = load(&path).unwrap();
            let makespan = verify(&instance, &solve(&instance)).unwrap().makespan;
            gaps.push(f64::from(makespan) / f64::from(known.upper) - 1.0);
        }
    }
    (gaps.len(), gaps.iter().sum::<f64>() / gaps.len() as f64)
}

#[test]
fn neh_on_taillards_flow_shops() {
    let (count, gap) = mean_gap("pfsp", &|instance| match instance {
        Instance::Flow(shop) => Schedule::of_order(shop, &neh(shop)),
        other => panic!("a {}", other.kind()),
    });
    assert_eq!(count, 120);
    assert!((0.033..0.034).contains(&gap), "NEH: mean gap {gap:.5}");
}

#[test]
fn rules_on_taillards_job_shops() {
    let gap = |text: &str| {
        let dispatcher = Dispatcher::parse(text).unwrap();
        mean_gap("jsp", &|instance| dispatcher.run(instance, 0).unwrap())
    };
    let (count, mwkr) = gap("mwkr");
    assert_eq!(count, 80);
    assert!((0.195..0.197).contains(&mwkr), "MWKR: mean gap {mwkr:.5}");
    let (_, spt) = gap("spt");
    assert!((0.27..0.28).contains(&spt), "SPT: mean gap {spt:.5}");
}
