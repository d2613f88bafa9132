//! The table `settings`: unit, start and objective, and what the objective means in ticks.

use super::local::start_of;
use super::table::Tables;
use super::{Clock, Unit};
use crate::general::{Measure, Objective};
use crate::{Error, Result};

/// The objective for a shop that counts ticks: beside times, a late job must weigh as many ticks as its factor has units.
pub(super) fn in_ticks(objective: &Objective, clock: &Clock) -> Result<Objective> {
    let mut scaled = objective.clone();
    for sum in &mut scaled.sums {
        let counts = |&(_, measure): &(u32, Measure)| measure == Measure::TardyJobs;
        if sum.terms.iter().all(counts) {
            continue;
        }
        for term in sum.terms.iter_mut().filter(|term| counts(term)) {
            let factor =
                u64::from(term.0).checked_mul(clock.per_unit()).and_then(|factor| u32::try_from(factor).ok());
            term.0 = factor.ok_or_else(|| {
                Error::Choice(format!(
                    "objective: the factor {} of tardy-jobs is too large in a sum with times",
                    term.0
                ))
            })?;
        }
    }
    Ok(scaled)
}

/// What the table `settings` says of the whole shop.
pub(super) struct Settings {
    pub(super) unit: Unit,
    pub(super) start: Option<super::Date>,
    pub(super) objective: Objective,
}

impl Settings {
    pub(super) fn read(tables: &Tables) -> Result<Self> {
        let mut settings =
            Self { unit: Unit::Bare, start: None, objective: Objective::only(Measure::Makespan) };
        let Some(table) = tables.get("settings") else { return Ok(settings) };
        table.only(&["setting", "value"])?;
        let mut given: Vec<(&str, usize)> = Vec::new();
        for row in &table.rows {
            let (key, value) = (table.need(row, "setting")?, table.need(row, "value")?);
            if let Some((_, place)) = given.iter().find(|(known, _)| *known == key.text) {
                return Err(
                    key.fault(format!("`{}` stands in row {place} as well; keep one of them", key.text))
                );
            }
            given.push((key.text, row.place));
            match key.text {
                "unit" => {
                    let known = Unit::ALL.map(|(name, _)| name);
                    let unit = Unit::ALL.into_iter().find(|(name, _)| *name == value.text);
                    settings.unit = unit
                        .ok_or_else(|| {
                            value.fault(format!("expected one of {}, got `{}`", known.join(", "), value.text))
                        })?
                        .1;
                }
                "start" => {
                    settings.start = Some(start_of(value.text).map_err(|what| value.fault(what))?);
                }
                "objective" => {
                    settings.objective = value.text.parse().map_err(|error: Error| value.fault(error))?
                }
                // Heeded before: see `local.rs`. They are still here if they stand twice.
                "decimal" | "dates" => {}
                other => {
                    let known = ["unit", "start", "objective", "decimal", "dates"];
                    let meant = niwaki_words::nearest(other, known);
                    let meant = meant.map_or(String::new(), |meant| format!("; did you mean `{meant}`?"));
                    let what = format!("expected one of {}, got `{other}`{meant}", known.join(", "));
                    return Err(key.fault(what));
                }
            }
        }
        if settings.start.is_some() && settings.unit == Unit::Bare {
            return Err(Error::Instance("settings: a start date needs a unit: s, min, h or d".into()));
        }
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use crate::general::{Past, solve};
    use crate::plan::Plan;

    #[test]
    fn a_setting_that_is_given_twice_is_refused() {
        for (key, one, other) in [
            ("unit", "h", "min"),
            ("start", "2026-11-16", "2026-11-17"),
            ("objective", "makespan", "makespan"),
        ] {
            let text = format!(
                "[settings]\nsetting,value\n{key},{one}\n{key},{other}\n[operations]\njob,machine,time\nA,m,1\n"
            );
            assert_eq!(
                Plan::read(&text).unwrap_err().to_string(),
                format!("settings, row 4, column setting: `{key}` stands in row 3 as well; keep one of them")
            );
        }
        let json = r#"{"settings": [{"setting": "unit", "value": "h"}, {"setting": "unit", "value": "min"}],
            "operations": [{"job": "A", "machine": "m", "time": 1}]}"#;
        let line = Plan::read(json).unwrap_err().to_string();
        assert_eq!(line, "settings, row 2, column setting: `unit` stands in row 1 as well; keep one of them");
        let line = Plan::read(r#"{"operations": [], "jobs": [], "operations": []}"#).unwrap_err().to_string();
        assert_eq!(
            line,
            "line 1, column 46: expected each field once, got `operations` twice; keep one of them"
        );
    }

    /// Two orders on a machine that starts on the Monday, one of them promised for the Saturday before.
    fn overdue(start: &str, objective: &str) -> String {
        format!(
            "[settings]\nsetting,value\nunit,h\nstart,{start}\nobjective,\"{objective}\"\n\
             [machines]\nmachine,available\nm,2026-11-16\n[breaks]\nmachine,from,to\nm,2026-11-09,2026-11-16 01:00\n\
             [jobs]\njob,release,due\nA,2026-11-12,2026-11-14\nB,2026-11-16,2026-11-16 05:00\n\
             [operations]\njob,machine,time,earliest\nA,m,3,2026-11-13\nB,m,2,\n"
        )
    }

    #[test]
    fn an_order_that_is_late_at_the_start_is_planned_and_counts_from_its_date() {
        // The break is over at 1. A first: it ends at 4, 48 hours and 4 late, B at 6, 1 late. B first: it ends at 3 and A at 6.
        for (objective, values) in [
            ("tardiness", vec![53]),
            ("max-tardiness", vec![52]),
            ("tardy-jobs", vec![1]),
            ("tardy-jobs, tardiness", vec![1, 54]),
            ("flow-time", vec![9]),
            ("tardiness + earliness", vec![53]),
        ] {
            let plan = Plan::read(&overdue("2026-11-16", objective)).unwrap();
            for rounds in [0, 1] {
                let mut limits = crate::Limits::new(std::time::Duration::from_secs(20 * rounds), 1);
                limits.rounds = Some(1);
                let answer = solve(&plan.shop, limits, Past::default(), &mut |_| {}).unwrap();
                if rounds == 1 {
                    assert_eq!(answer.verdict.values, values, "{objective}");
                    assert!(answer.proven(), "{objective}");
                }
                let honest = answer.bounds.iter().zip(&values).all(|(bound, value)| bound <= value);
                assert!(honest, "{objective}: {:?}", answer.bounds);
            }
            assert_eq!(Plan::read(&plan.to_csv()).unwrap().shop, plan.shop);
        }
        let plan = Plan::read(&overdue("2026-11-16", "tardiness")).unwrap();
        let limits = crate::Limits::new(std::time::Duration::from_secs(9), 1);
        let answer = solve(&plan.shop, limits, Past::default(), &mut |_| {}).unwrap();
        let text = plan.schedule_csv(&answer.schedule);
        assert!(
            text.contains("A,1,m,1,4,2026-11-16 01:00,2026-11-16 04:00,,2026-11-14 00:00,52\n"),
            "{text}"
        );
        assert_eq!(plan.read_schedule(&text).unwrap(), answer.schedule);
    }

    #[test]
    fn a_later_start_changes_no_tardiness() {
        let jobs: String =
            (0..5_u32).map(|job| format!("{job},2026-11-{:02} 0{job}:00\n", 17 - job)).collect();
        let row = |job: u32, index: u32| {
            format!("{job},m{},{}\n", (job + index) % 3, (job * 5 + index * 3) % 4 + 1)
        };
        let rows: String = (0..5).flat_map(|job| (0..3).map(move |index| row(job, index))).collect();
        for objective in ["tardiness", "max-tardiness", "tardy-jobs, tardiness"] {
            let values = ["2026-11-16 06:00", "2026-11-10"].map(|start| {
                let text = format!(
                    "[settings]\nsetting,value\nunit,h\nstart,{start}\nobjective,\"{objective}\"\n[machines]\nmachine,available\n\
                     m0,2026-11-16 06:00\nm1,2026-11-16 06:00\nm2,2026-11-16 06:00\n[jobs]\njob,due\n{jobs}\
                     [operations]\njob,machine,time\n{rows}"
                );
                let plan = Plan::read(&text).unwrap();
                let limits = crate::Limits::new(std::time::Duration::from_secs(60), 1);
                let answer = solve(&plan.shop, limits, Past::default(), &mut |_| {}).unwrap();
                assert!(answer.proven(), "{objective} from {start}");
                answer.verdict.values
            });
            assert_eq!(values[0], values[1], "{objective}");
        }
    }

    #[test]
    fn what_must_be_done_before_the_start_is_refused() {
        let text = overdue("2026-11-16", "tardiness").replace("release,due", "release,deadline");
        assert_eq!(
            Plan::read(&text).unwrap_err().to_string(),
            "jobs, row 14, column deadline: `2026-11-14` is before the start, 2026-11-16 00:00, so nothing can keep it; \
             move it, or leave the cell empty"
        );
        let bare = "job,machine,time,due\nA,m,3,-5\n";
        let plan = Plan::read(bare).unwrap();
        assert_eq!((plan.shop.jobs()[0].due_at(), plan.shop.jobs()[0].late(3)), (Some(-5), 8));
        assert_eq!(plan.due(&plan.shop.jobs()[0]).unwrap(), "-5");
        let line = Plan::read(&bare.replace("due", "latest")).unwrap_err().to_string();
        assert!(line.contains("`-5` is before time 0, so nothing can keep it"), "{line}");
    }
}
