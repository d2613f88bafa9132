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
                    "objective: the factor {} of tardy-jobs is too large beside times",
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
}
