//! The paper's numbers and statements held against what came out.

use super::claims::{
    CorrelationClaim, Expected, Half, LeadClaim, OrderClaim, RatioClaim, TrendClaim, TriedClaim, ValueClaim,
};
use super::dose::{DosePoint, correlation, partialled};
use super::{Board, Endpoint, Estimate, fisher_exact};
use crate::Error;
use crate::claim::{Judgement, Lead, Ours, Outcome, Printed, compare, in_range, printed_range};
use niwaki_page::Format;
use niwaki_stats::SignTest;

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
        for claim in &study.ratio {
            outcomes.extend(self.ratio(claim)?);
        }
        for claim in &study.tried {
            outcomes.extend(self.tried(claim)?);
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
        Printed::read(text).ok_or_else(|| self.no_number(text))
    }

    fn no_number(&self, text: &str) -> Error {
        let mend = format!("'{text}' is neither a number, a share nor a range");
        Error::Senseless { label: self.plan.study.label.clone(), mend }
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
        } else if let Some(range) = printed_range(&claim.paper) {
            let sem = if ours.seeds.len() > 1 { ours.sem } else { f64::NAN };
            outcome.paper = Some(f64::midpoint(range.0, range.1));
            outcome.judgement = in_range(range, ours.value, sem);
            outcome.statement = format!("{}: beside {}", outcome.statement, claim.paper);
        } else if let Some((low, high)) = whole_pair(&claim.paper, '-') {
            outcome.paper = Some((low + high) as f64 / 2.0);
            let inside = (low as f64..=high as f64).contains(&ours.value);
            outcome.judgement = (inside || within(&ours, low as f64, high as f64)).into();
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
        let pairs = signs.untied() + signs.ties;
        let tested = |holds: bool| match can_pass(pairs) {
            true => Judgement::from(holds),
            false => Judgement::TooFewSeeds,
        };
        let (judgement, expected) = match claim.expect {
            Expected::Ahead => (tested(ahead), "is ahead of"),
            Expected::NotAhead => (tested(!ahead), "is not ahead of"),
            Expected::Positive => ((found.lead > 0.0).into(), "has more than"),
            Expected::Negative => ((found.lead < 0.0).into(), "has less than"),
            Expected::Within => {
                let text = claim.paper.as_deref().unwrap_or_default();
                let range = printed_range(text).ok_or_else(|| self.no_number(text))?;
                let sem = if pairs > 1 { found.sem } else { f64::NAN };
                (in_range(range, found.lead, sem), "lies where the paper has it beside")
            }
        };
        let remark = match judgement {
            Judgement::TooFewSeeds => format!("{}{}", few(pairs), claim.remark),
            _ => claim.remark.clone(),
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
            judgement,
            remark,
        }))
    }

    /// The standard error of a ratio follows those of its two sides, as if they were independent.
    fn ratio(&self, claim: &RatioClaim) -> Result<Option<Outcome>, Error> {
        let side = |arm: &str, cell: Option<&str>| {
            self.estimate(self.plan.arm(arm)?, self.plan.cell(cell)?, claim.endpoint)
        };
        let above = side(&claim.arm, claim.cell.as_deref())?;
        let over = claim.over.as_deref().unwrap_or(&claim.arm);
        let below = side(over, claim.over_cell.as_deref().or(claim.cell.as_deref()))?;
        let Some((above, below)) = above.zip(below) else { return Ok(None) };
        let ratio = above.value / below.value;
        let sem = match above.seeds.len().min(below.seeds.len()) {
            0 | 1 => f64::NAN,
            _ => ratio.abs() * (above.sem / above.value).hypot(below.sem / below.value),
        };
        let text = |value: f64| Format::significant(3).text(value);
        let [low, high] = claim.within;
        Ok(Some(Outcome {
            group: String::new(),
            statement: claim.statement.clone(),
            paper: None,
            paper_sem: None,
            ours: Ours::Words(format!(
                "{} / {} = {}; the words allow {} to {}",
                text(above.value),
                text(below.value),
                text(ratio),
                text(low),
                text(high)
            )),
            sems: None,
            judgement: in_range((low, high), ratio, sem),
            remark: claim.remark.clone(),
        }))
    }

    fn tried(&self, claim: &TriedClaim) -> Result<Option<Outcome>, Error> {
        let Some(calibration) = &self.plan.study.chosen else { return Ok(None) };
        let cell = calibration.cells.iter().find(|choice| choice.cell == claim.cell);
        let found = cell.and_then(|cell| cell.tried.iter().find(|tried| tried.value == claim.value));
        let Some(found) = found else { return Ok(None) };
        let printed = self.printed(&claim.paper)?;
        let (sems, judgement) = compare(printed, None, found.came, found.sem.unwrap_or(f64::NAN));
        Ok(Some(Outcome {
            group: format!("{} of the pilot, {}", calibration.endpoint, claim.cell),
            statement: format!("{} = {}", calibration.key, claim.value),
            paper: Some(printed.value),
            paper_sem: None,
            ours: Ours::Number(found.came, found.sem.unwrap_or(0.0)),
            sems,
            judgement,
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
        if let Some((positive, of)) = whole_pair(&claim.paper, '/') {
            return Ok(self.positive(claim, points, positive, of));
        }
        let (found, place) = match claim.cell.as_deref() {
            None if claim.across => (correlation(points, claim.half), "all cells as they are".to_owned()),
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

    /// In how many cells the correlation is positive.
    fn positive(
        &self,
        claim: &CorrelationClaim,
        points: &[DosePoint],
        positive: u64,
        of: u64,
    ) -> Option<Outcome> {
        let cells = 0..self.plan.cells.len();
        let each = cells.filter_map(|cell| {
            let here: Vec<DosePoint> = points.iter().copied().filter(|point| point.cell == cell).collect();
            correlation(&here, claim.half).map(|found| found.r > 0.0)
        });
        let each: Vec<bool> = each.collect();
        let (here, cells) = (each.iter().filter(|positive| **positive).count() as u64, each.len() as u64);
        let p = fisher_exact(here, cells, positive, of);
        (cells > 0).then(|| Outcome {
            group: String::new(),
            statement: format!("r of dose and lead is positive in {positive} of {of} cells"),
            paper: None,
            paper_sem: None,
            ours: Ours::Words(format!("{here} of {cells}, Fisher's p = {p:.2}")),
            sems: None,
            judgement: (p > LEVEL).into(),
            remark: claim.remark.clone(),
        })
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

/// Whether so many pairs could pass a one-sided sign test if all of them were won.
fn can_pass(pairs: u64) -> bool {
    SignTest { wins: pairs, losses: 0, ties: 0 }.greater() <= LEVEL
}

/// What is said of too few pairs.
fn few(pairs: u64) -> String {
    let seeds = if pairs == 1 { "1 seed".to_owned() } else { format!("{pairs} seeds") };
    format!("{seeds} cannot pass p < {LEVEL}. ")
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
    fn five_pairs_can_pass_and_four_cannot() {
        // 2⁻⁴ = 0.0625, 2⁻⁵ = 0.03125.
        assert!(!can_pass(0) && !can_pass(4) && can_pass(5));
        assert_eq!(few(3), "3 seeds cannot pass p < 0.05. ");
    }

    #[test]
    fn shares_and_ranges_are_read() {
        assert_eq!(whole_pair("7/10", '/'), Some((7, 10)));
        assert_eq!(whole_pair("30-45", '-'), Some((30, 45)));
        assert_eq!(whole_pair("0.961", '/'), None);
        assert_eq!(whole_pair("-0.03", '-'), None);
    }
}
