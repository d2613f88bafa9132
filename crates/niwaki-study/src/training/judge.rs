//! The paper's numbers and statements held against what came out.

use super::claims::{CorrelationClaim, Expected, Half, LeadClaim, OrderClaim, TrendClaim, ValueClaim};
use super::dose::{DosePoint, correlation, partialled};
use super::{Board, Endpoint, Estimate, fisher_exact};
use crate::Error;
use crate::claim::{Judgement, Lead, Ours, Outcome, Printed, compare};
use niwaki_page::Format;

/// The p-value that the paper's sign tests are read at.
const LEVEL: f64 = 0.05;

/// How far an iteration that was only looked at every five may be off.
const STRIDE: f64 = 5.0;

impl Board<'_> {
    /// Holds every statement of the study against the results; what no finished run speaks to is left out.
    ///
    /// # Errors
    /// Where the file prints what is no number, or a curve holds what is none.
    pub fn judge(&self) -> Result<Vec<Outcome>, Error> {
        let study = &self.plan.study;
        let mut outcomes = Vec::new();
        for claim in &study.value {
            outcomes.extend(self.value(claim)?);
        }
        for claim in &study.lead {
            outcomes.extend(self.lead(claim)?);
        }
        for claim in &study.order {
            outcomes.extend(self.order(claim)?);
        }
        for claim in &study.trend {
            outcomes.extend(self.trend(claim)?);
        }
        let points = self.dose_points()?;
        for claim in &study.correlation {
            outcomes.extend(self.correlated(claim, &points)?);
        }
        outcomes.extend(self.feasible()?);
        Ok(outcomes)
    }

    /// What stands above statements about a cell.
    fn group(&self, endpoint: Endpoint, cell: usize) -> String {
        match self.plan.place_name(cell) {
            None => endpoint.words(),
            Some(name) => format!("{}, {name}", endpoint.words()),
        }
    }

    /// How a statement ends that is about one place of several.
    fn at(&self, cell: usize) -> String {
        self.plan.place_name(cell).map_or_else(String::new, |name| format!(" ({name})"))
    }

    fn printed(&self, text: &str) -> Result<Printed, Error> {
        Printed::read(text).ok_or_else(|| Error::Senseless {
            label: self.plan.study.label.clone(),
            mend: format!("'{text}' is neither a number, a share nor a range"),
        })
    }

    fn value(&self, claim: &ValueClaim) -> Result<Option<Outcome>, Error> {
        let (arm, cell) = (self.plan.arm(&claim.arm)?, self.plan.cell(claim.cell.as_deref())?);
        let Some(ours) = self.estimate(arm, cell, claim.endpoint)? else { return Ok(None) };
        let mut outcome = Outcome {
            group: self.group(claim.endpoint, cell),
            statement: self.plan.arm_label(arm),
            paper: None,
            paper_sem: None,
            ours: Ours::Number(ours.value, ours.sem),
            sems: None,
            judgement: Judgement::Differs,
            remark: claim.remark.clone(),
        };
        if let Some((hits, of)) = whole_pair(&claim.paper, '/') {
            outcome.paper = Some(hits as f64 / of as f64);
            let (won, tried) = (ours.seeds.iter().sum::<f64>() as u64, ours.seeds.len() as u64);
            let p = fisher_exact(won, tried, hits, of);
            outcome.judgement = (p > LEVEL).into();
            outcome.statement =
                format!("{}: {won}/{tried} beside {}, Fisher's p = {p:.2}", outcome.statement, claim.paper);
        } else if let Some((low, high)) = whole_pair(&claim.paper, '-') {
            outcome.paper = Some((low + high) as f64 / 2.0);
            outcome.judgement = within(&ours, low as f64, high as f64).into();
            outcome.statement = format!(
                "{}: {} to {} over seeds beside {}",
                outcome.statement, ours.range.0, ours.range.1, claim.paper
            );
        } else {
            let printed = self.printed(&claim.paper)?;
            outcome.paper_sem =
                claim.sem.as_deref().map(|sem| self.printed(sem)).transpose()?.map(|sem| sem.value);
            outcome.paper = Some(printed.value);
            if claim.endpoint.counts() {
                outcome.judgement = Judgement::from(
                    printed.value >= ours.interval.low - STRIDE
                        && printed.value <= ours.interval.high + STRIDE,
                );
            } else {
                let sem = if ours.seeds.len() > 1 { ours.sem } else { f64::NAN };
                (outcome.sems, outcome.judgement) = compare(printed, outcome.paper_sem, ours.value, sem);
            }
        }
        Ok(Some(outcome))
    }

    fn lead(&self, claim: &LeadClaim) -> Result<Option<Outcome>, Error> {
        let (arm, over) = (self.plan.arm(&claim.arm)?, self.plan.arm(&claim.over)?);
        let cell = self.plan.cell(claim.cell.as_deref())?;
        let Some(found) = self.compare(arm, over, cell, claim.endpoint)? else { return Ok(None) };
        let signs = found.signs;
        let ahead = found.lead > 0.0 && signs.greater() <= LEVEL;
        let (holds, expected) = match claim.expect {
            Expected::Ahead => (ahead, "is ahead of"),
            Expected::NotAhead => (!ahead, "is not ahead of"),
            Expected::Positive => (found.lead > 0.0, "has more than"),
            Expected::Negative => (found.lead < 0.0, "has less than"),
        };
        let printed = claim.paper.as_deref().and_then(Printed::read);
        let sems = printed.and_then(|printed| compare(printed, None, found.lead, found.sem).0);
        Ok(Some(Outcome {
            group: String::new(),
            statement: format!(
                "{} {expected} {} in {}{}",
                self.plan.arm_label(arm),
                self.plan.arm_label(over),
                claim.endpoint.words(),
                self.at(cell)
            ),
            paper: None,
            paper_sem: None,
            ours: Ours::Lead(Lead {
                paper: claim.paper.clone().unwrap_or_default(),
                paper_seeds: claim.seeds.clone().unwrap_or_default(),
                paper_p: claim.p.clone().unwrap_or_default(),
                mean: found.lead,
                interval: (found.interval.low, found.interval.high),
                wins: signs.wins,
                untied: signs.untied(),
                p: signs.greater(),
            }),
            sems,
            judgement: holds.into(),
            remark: claim.remark.clone(),
        }))
    }

    fn trend(&self, claim: &TrendClaim) -> Result<Option<Outcome>, Error> {
        let arm = self.plan.arm(&claim.arm)?;
        let mut values = Vec::new();
        for name in &claim.cells {
            let cell = self.plan.cell(Some(name))?;
            let found = match &claim.over {
                None => self.estimate(arm, cell, claim.endpoint)?.map(|found| found.value),
                Some(over) => {
                    self.compare(arm, self.plan.arm(over)?, cell, claim.endpoint)?.map(|found| found.lead)
                }
            };
            let Some(value) = found else { return Ok(None) };
            values.push((name, value));
        }
        let shown: Vec<String> = values
            .iter()
            .map(|(name, value)| format!("{name}: {}", Format::significant(3).signed().text(*value)))
            .collect();
        Ok(Some(Outcome {
            group: String::new(),
            statement: claim.statement.clone(),
            paper: None,
            paper_sem: None,
            ours: Ours::Words(shown.join(", ")),
            sems: None,
            judgement: values.windows(2).all(|pair| pair[1].1 > pair[0].1).into(),
            remark: claim.remark.clone(),
        }))
    }

    /// A printed correlation agrees where it lies within Fisher's interval of ours.
    fn correlated(&self, claim: &CorrelationClaim, points: &[DosePoint]) -> Result<Option<Outcome>, Error> {
        let (found, place) = match claim.cell.as_deref() {
            None => (partialled(points, claim.half), "all cells, z-scored within each".to_owned()),
            Some(name) => {
                let cell = self.plan.cell(Some(name))?;
                let here: Vec<DosePoint> =
                    points.iter().copied().filter(|point| self.plan.covers(cell, point.cell)).collect();
                (correlation(&here, claim.half), name.to_owned())
            }
        };
        let Some(found) = found else { return Ok(None) };
        let printed = self.printed(&claim.paper)?;
        let half = match claim.half {
            Half::First => "first",
            Half::Second => "second",
        };
        let within = found.interval.is_some_and(|interval| interval.contains(printed.value));
        let shown = found.interval.map_or_else(String::new, |interval| {
            let text = |value: f64| Format::fixed(2).signed().text(value);
            format!(" [{}, {}]", text(interval.low), text(interval.high))
        });
        Ok(Some(Outcome {
            group: format!("r of dose and lead, {half} half"),
            statement: format!("{place}: {} points{shown}", found.points),
            paper: Some(printed.value),
            paper_sem: None,
            ours: Ours::Number(found.r, 0.0),
            sems: None,
            judgement: within.into(),
            remark: claim.remark.clone(),
        }))
    }

    fn order(&self, claim: &OrderClaim) -> Result<Option<Outcome>, Error> {
        let cell = self.plan.cell(claim.cell.as_deref())?;
        let mut groups: Vec<Vec<(String, f64)>> = Vec::new();
        for group in &claim.groups {
            let mut values = Vec::new();
            for name in group {
                let arm = self.plan.arm(name)?;
                let Some(found) = self.estimate(arm, cell, claim.endpoint)? else { return Ok(None) };
                values.push((self.plan.arm_label(arm), found.value));
            }
            groups.push(values);
        }
        let turn = if claim.endpoint.falls() { -1.0 } else { 1.0 };
        let worst = |group: &[(String, f64)]| group.iter().map(|v| turn * v.1).fold(f64::INFINITY, f64::min);
        let best =
            |group: &[(String, f64)]| group.iter().map(|v| turn * v.1).fold(f64::NEG_INFINITY, f64::max);
        let holds = groups.windows(2).all(|pair| worst(&pair[0]) > best(&pair[1]));
        let shown = groups.iter().map(|group| {
            let parts: Vec<String> = group
                .iter()
                .map(|(name, value)| format!("{name} {}", Format::significant(3).text(*value)))
                .collect();
            parts.join(", ")
        });
        Ok(Some(Outcome {
            group: String::new(),
            statement: format!("{}{}", claim.statement, self.at(cell)),
            paper: None,
            paper_sem: None,
            ours: Ours::Words(format!(
                "{}: {}",
                claim.endpoint.words(),
                shown.collect::<Vec<_>>().join(" | ")
            )),
            sems: None,
            judgement: holds.into(),
            remark: claim.remark.clone(),
        }))
    }
}

/// Both ends of a printed range lie within ours, give or take a stride.
fn within(ours: &Estimate, low: f64, high: f64) -> bool {
    low >= ours.range.0 - STRIDE && high <= ours.range.1 + STRIDE
}

/// `7/10` or `30-45`.
fn whole_pair(text: &str, apart: char) -> Option<(u64, u64)> {
    let (first, second) = text.split_once(apart)?;
    Some((first.trim().parse().ok()?, second.trim().parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_and_ranges_are_read() {
        assert_eq!(whole_pair("7/10", '/'), Some((7, 10)));
        assert_eq!(whole_pair("30-45", '-'), Some((30, 45)));
        assert_eq!(whole_pair("0.961", '/'), None);
        assert_eq!(whole_pair("-0.03", '-'), None);
    }
}
