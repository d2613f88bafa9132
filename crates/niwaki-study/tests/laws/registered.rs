//! The registered design: every file of it can be planned as it stands, on seeds of its own; and strengths by the rule.

use niwaki_study::training::{Plan, Results, Runner, Strength, Training};
use niwaki_train::Device;
use niwaki_train::spec::strictly;
use std::ops::Range;
use std::path::Path;

/// Seeds that were run before the design was written.
const USED: [Range<u64>; 6] = [0..128, 500..524, 1000..1024, 2000..2024, 3000..3024, 8000..8024];

/// A file of the design, a template filled with a point.
fn registered(name: &str, point: [&str; 5]) -> Training {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/registered");
    let mut text = std::fs::read_to_string(folder.join(format!("2026-11-16-{name}"))).unwrap();
    for (key, value) in ["@GLIMPSE@", "@KW@", "@K@", "@STANDARDISE@", "@RATE@"].into_iter().zip(point) {
        text = text.replace(key, value);
    }
    strictly(name, &text).unwrap()
}

#[test]
fn every_registered_study_can_be_planned_on_seeds_of_its_own() {
    // The runs of the table in its README; of the map all 48 seeds.
    let studies = [
        ("pilot-hard.toml", 768),
        ("pilot-easy.toml", 256),
        ("headline.toml.in", 720),
        ("warmup.toml.in", 1248),
        ("dial.toml.in", 384),
        ("jobs.toml.in", 1152),
        ("map-hard.toml", 5760),
        ("map-easy.toml", 1920),
        ("horizon-20.toml.in", 192),
        ("horizon-30.toml.in", 288),
        ("horizon-40.toml.in", 144),
        ("horizon-50.toml.in", 72),
    ];
    let points = [["plain", "30", "12", "false", "0.05"], ["residual", "31", "13", "true", "0.1"]];
    for (name, runs) in studies {
        for point in points {
            let plan = Plan::new(registered(name, point), None).unwrap();
            assert_eq!(plan.runs.len(), runs, "{name}");
            let fresh = |seed: u64| USED.iter().all(|used| !used.contains(&seed));
            assert!(plan.runs.iter().all(|run| fresh(run.recipe.spec.seed)), "{name}");
            // A pilot knows PPO and nothing else.
            assert!(!name.starts_with("pilot") || plan.study.arm.len() == 1);
        }
    }
}

/// A template of the batch's design, filled as `batch.py` fills it.
fn batch(name: &str, values: &[(&str, &str)]) -> Training {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/registered");
    let mut text = std::fs::read_to_string(folder.join(format!("2026-11-19-batch-{name}.toml.in"))).unwrap();
    for (key, value) in values {
        text = text.replace(&format!("@{key}@"), value);
    }
    strictly(name, &text).unwrap()
}

#[test]
fn the_batchs_rounds_know_no_corrected_arm_and_its_confirmation_has_seeds_of_its_own() {
    let arms = "[[arm]]\nname = \"ppo\"\nset = {}\n[[arm]]\nname = \"dose\"\nset = { \"iterations\" = 50, \"warmup.iterations\" = 50, \"warmup.reuse\" = 31 }\n";
    let cell = "[[cell]]\nname = \"shop=hard-1.06,N=48,G=8,K=13,glimpse=residual,rate=0.2,bound=0\"\nseeds = 4\nset = { \"task.machines\" = 7, \"task.jobs\" = 20, \"task.deadline\" = 1.06, \"rollout.lanes\" = 48, \"rollout.group\" = 8, \"policy.glimpse\" = \"residual\", \"policy.bound\" = 0.0, \"update.reuse\" = 13, \"optimiser.rate\" = 0.2 }\n";
    let round = [("LABEL", "screen-hard"), ("FIRST", "80000"), ("ARMS", arms), ("CELLS", cell)];
    let plan = Plan::new(batch("round", &round), None).unwrap();
    assert_eq!(plan.runs.len(), 8);
    for run in &plan.runs {
        let (spec, schedule) = (&run.recipe.spec, &run.recipe.schedule);
        assert_eq!((spec.rollout.lanes, spec.rollout.group, spec.policy.bound), (48, 8, Some(0.0)));
        assert_eq!(schedule.epochs(spec.iterations), if run.arm == 0 { 200 * 13 } else { 50 * 31 });
        assert_eq!(spec.update.correction, "ppo");
    }
    // The table of BATCH.md.
    let studies = [
        ("headline", 864),
        ("easy", 288),
        ("jobs", 1728),
        ("job", 432),
        ("horizon", 504),
        ("warmup", 1632),
        ("dial", 240),
    ];
    let points = [
        ["256", "16", "13", "31", "plain", "0.1", "10", "machine", "25", "31", "41"],
        ["48", "8", "12", "30", "residual", "0.05", "0", "list", "24", "30", "40"],
    ];
    let keys = ["N", "G", "K", "KW", "GLIMPSE", "RATE", "BOUND", "ORDER", "D1", "D2", "D3"];
    for (name, runs) in studies {
        for point in points {
            let values: Vec<(&str, &str)> = keys.into_iter().zip(point).chain([("RANK", "1")]).collect();
            let plan = Plan::new(batch(name, &values), None).unwrap();
            assert_eq!(plan.runs.len(), runs, "{name}");
            assert!(!plan.measures(), "{name}: strengths are named");
            assert!(plan.runs.iter().all(|run| (85_000..90_000).contains(&run.recipe.spec.seed)), "{name}");
        }
    }
}

/// A file of the dispatcher's design with the values of its point.
fn dispatcher(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies/registered");
    let read = |name: String| std::fs::read_to_string(folder.join(name));
    let template = read(format!("2026-11-17-dispatcher-{name}.toml.in"));
    let mut text = template.or_else(|_| read(format!("2026-11-17-dispatcher-{name}.toml"))).unwrap();
    let point = read("dispatcher.env".to_owned()).unwrap();
    for (key, value) in
        point.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split_once('='))
    {
        text = text.replace(&format!("@{key}@"), value);
    }
    text
}

#[test]
fn the_dispatchers_pilots_know_ppo_alone_and_its_studies_are_the_frozen_point() {
    // Thirteen deadlines, four readings of returns, four deadlines, 28 settings twice, three and six dials.
    let pilots = [
        ("p0", 13 * 16),
        ("p1-returns", 4 * 16),
        ("p2", 4 * 5),
        ("p1-dial", 28 * 16),
        ("p1-rich", 28 * 16),
        ("p1-fair", 3 * 16),
        ("p3", 6 * 5),
    ];
    for (name, runs) in pilots {
        let plan = Plan::new(strictly(name, &dispatcher(name)).unwrap(), None).unwrap();
        assert_eq!((plan.runs.len(), plan.study.arm.len()), (runs, 1), "{name}");
        let own = |seed: u64| (40_000..40_016).contains(&seed);
        assert!(plan.runs.iter().all(|run| own(run.recipe.spec.seed)), "{name}");
        assert!(plan.runs.iter().all(|run| run.recipe.spec.update.correction == "ppo"), "{name}");
    }
    // Two orders, two deadlines, four arms; two deadlines and three dials; three settings; two arms on fresh seeds.
    for (name, runs) in
        [("published", 4 * 4 * 5), ("dial", 6 * 2 * 5), ("rich", 3 * 2 * 5), ("acquisition", 2 * 16)]
    {
        let shipped = niwaki_study::find(&format!("tab:sched-null+{name}")).unwrap();
        assert_eq!(dispatcher(name), shipped.text, "{name}: fill the template again (dispatcher.py freeze)");
        let plan = Plan::new(shipped.training().unwrap(), None).unwrap();
        assert_eq!(plan.runs.len(), runs, "{name}");
        assert!(!plan.measures(), "{name}: strengths are frozen");
        let own = |seed: u64| (41_000..41_005).contains(&seed) || (42_000..42_016).contains(&seed);
        assert!(plan.runs.iter().all(|run| own(run.recipe.spec.seed)), "{name}");
    }
}

#[test]
fn a_cell_may_say_what_the_rule_came_to() {
    let text = RULED.replacen("name = \"tight\"", "name = \"tight\"\nstrength = 0.25", 1);
    let plan = Plan::new(strictly("ruled", &text).unwrap(), None).unwrap();
    let said = |cell: &str| -> Vec<&str> {
        let place = plan.cell(Some(cell)).unwrap();
        let runs = plan.runs.iter().filter(|run| run.cell == place);
        runs.map(|run| run.recipe.spec.update.correction.as_str()).collect()
    };
    assert!(said("tight").contains(&"tempered:0.25") && !said("tight").contains(&"tempered:rule"));
    assert!(said("loose").contains(&"tempered:rule") && !said("loose").contains(&"tempered:0.25"));
}

const RULED: &str = r#"
label = "own:ruled"
title = "t"
question = "q"
seeds = 3
endpoints = ["greedy-auc"]
[base]
iterations = 3
[base.task]
kind = "flow-shop"
jobs = 4
machines = 3
training = 4
validation = 4
[base.policy]
kind = "pointer"
width = 8
heads = 2
blocks = 1
[base.rollout]
lanes = 16
group = 8
[base.advantage]
kind = "group"
[base.evaluate]
every = 2
lanes = 0
greedy = true
[[arm]]
name = "ppo"
[[arm]]
name = "ruled"
set = { "update.correction" = "tempered:rule" }
[[cell]]
name = "tight"
set = { "task.deadline" = 1.05 }
[[cell]]
name = "loose"
set = { "task.deadline" = 1.2 }
"#;

#[test]
fn the_rule_gives_one_strength_for_each_arm_and_cell_and_keeps_it() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path();
    let runner = |members| Runner { members, ..Runner::new(out, Device::Cpu) };
    let plan = || Plan::new(strictly("ruled", RULED).unwrap(), None).unwrap();
    assert!(plan().measures());
    let strengths = runner(None).strengths(&plan()).unwrap();
    assert_eq!(strengths.iter().map(|found| found.cell.as_str()).collect::<Vec<_>>(), ["tight", "loose"]);
    for found in &strengths {
        assert_eq!(found.drifts.len(), 3, "a probe for each seed");
        let mut drifts: Vec<f64> = found.drifts.values().copied().flatten().collect();
        drifts.sort_by(f64::total_cmp);
        if let [_, median, _] = drifts[..] {
            assert!((found.alpha - (1.0 / median).min(1.0)).abs() < 1e-12);
        }
    }
    // Kept as they are, and what a probe measures does not depend on who is probed beside it.
    assert_eq!(Strength::read(&out.join(plan().folder())).unwrap(), strengths);
    // A strength that its own drifts do not license is not trained with.
    let kept = out.join("own-ruled/strengths.json");
    let mut wrong = strengths.clone();
    wrong[0].alpha *= 0.5;
    std::fs::write(&kept, serde_json::to_string(&wrong).unwrap()).unwrap();
    let refused = Strength::read(&out.join(plan().folder())).unwrap_err().to_string();
    assert!(refused.contains("its drifts do not license") && refused.contains("remove it"), "{refused}");
    // Neither a terabyte nor binary data is read whole.
    std::fs::File::create(&kept).unwrap().set_len(1 << 40).unwrap();
    let refused = Strength::read(&out.join(plan().folder())).unwrap_err().to_string();
    assert!(refused.contains("strengths.json") && refused.contains("longer than 256 MB"), "{refused}");
    std::fs::write(&kept, b"\xff[").unwrap();
    let refused = Strength::read(&out.join(plan().folder())).unwrap_err().to_string();
    assert!(refused.contains("strengths.json") && refused.contains("remove it"), "{refused}");
    std::fs::remove_file(&kept).unwrap();
    assert_eq!(runner(Some(1)).strengths(&plan()).unwrap(), strengths);
    let settled = plan().settled(&strengths).unwrap();
    assert!(!settled.measures());
    for run in settled.runs.iter().filter(|run| run.arm == 1) {
        let alpha = strengths[run.cell].alpha;
        assert_eq!(run.recipe.spec.update.correction, format!("tempered:{alpha}"));
        assert_eq!(run.hash, run.recipe.spec.hash().unwrap());
    }
    crate::run(&settled, out);
    assert_eq!(Results::read(&settled, out).unwrap().runs.len(), settled.runs.len());
    let refused = plan().settled(&[]).unwrap_err().to_string();
    assert!(refused.contains("arm ruled, cell tight: its strength was not measured"), "{refused}");
}

#[test]
fn a_deadline_that_nobody_misses_leaves_the_rule_without_a_signal() {
    let folder = tempfile::tempdir().unwrap();
    let text = RULED.replace("\"task.deadline\" = 1.05", "\"task.deadline\" = 9.0");
    let plan = Plan::new(strictly("ruled", &text).unwrap(), None).unwrap();
    let device = Device::Cpu;
    let runner = Runner::new(folder.path(), device);
    let refused = runner.strengths(&plan).unwrap_err().to_string();
    assert!(refused.contains("arm ruled, cell tight: tempered:rule: none of 3 probes"), "{refused}");
}
