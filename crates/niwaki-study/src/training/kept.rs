//! Results of which one line per run is left, `endpoints.csv`: statements judged again by today's rule, without the curves.

use super::stages::Stages;
use super::{Board, Endpoint, Results, Run, Training, judge, statements};
use crate::Error;
use crate::claim::Outcome;
use niwaki_train::reading::Course;
use std::path::Path;

/// The statements of a study held against lines of an `endpoints.csv`, and how many need what no line holds.
///
/// # Errors
/// Where the lines are not of this study, or a value is not a number.
pub fn judge_lines(study: Training, path: &Path, text: &str) -> Result<(Vec<Outcome>, usize), Error> {
    let all = statements(&study);
    let mut study = study;
    // These read curves, pilots or instances.
    (study.anatomy, study.feasible) = (false, None);
    study.tried.clear();
    let plan = Stages { study, seeds: None, first_seed: None }.provisional()?;
    let wrong = |line: usize, reason: String| Error::Lines { path: path.to_owned(), line: line + 1, reason };
    let mut lines = text.lines().enumerate();
    let header = lines.next().map(|(_, line)| fields(line)).unwrap_or_default();
    let [first @ .., iterations, device] = &*header else {
        return Err(wrong(0, "it has no heading; give an endpoints.csv".to_owned()));
    };
    let named = first.iter().map(String::as_str).take(3).eq(["arm", "cell", "seed"]);
    if !named || iterations != "iterations" || device != "device" {
        let reason = "the heading must be arm, cell, seed, endpoints, iterations, device".to_owned();
        return Err(wrong(0, reason));
    }
    let read = |name: &String| Endpoint::try_from(name.clone()).map_err(|reason| wrong(0, reason));
    let endpoints = first[3..].iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let mut runs = Vec::new();
    for (place, line) in lines {
        let cells = fields(line);
        if cells.len() != header.len() {
            return Err(wrong(place, format!("{} columns; the heading has {}", cells.len(), header.len())));
        }
        let number =
            |text: &str| text.parse::<f64>().map_err(|_| wrong(place, format!("'{text}' is not a number")));
        let whole = |text: &str| {
            text.parse::<u64>().map_err(|_| wrong(place, format!("'{text}' is not a whole number")))
        };
        let mut kept = Vec::new();
        for (endpoint, value) in endpoints.iter().zip(&cells[3..]) {
            if !value.is_empty() {
                kept.push((*endpoint, number(value)?));
            }
        }
        runs.push(Run {
            arm: plan.arm(&cells[0])?,
            cell: plan.cell(Some(&cells[1]))?,
            seed: whole(&cells[2])?,
            device: cells[cells.len() - 1].clone(),
            course: Course {
                iterations: whole(&cells[cells.len() - 2])? as usize,
                curve: Vec::new(),
                kept: Some(kept),
            },
        });
    }
    if runs.is_empty() {
        return Err(wrong(0, "no run stands below the heading".to_owned()));
    }
    let results = Results { planned: runs.len(), runs, speed: None };
    let outcomes = judge(&Board { plan: &plan, results: &results })?;
    let left_out = all - outcomes.len();
    Ok((outcomes, left_out))
}

/// The cells of a line; one in quotes may hold commas, and two quotes for each of its own.
fn fields(line: &str) -> Vec<String> {
    let (mut cells, mut quoted) = (vec![String::new()], false);
    let mut rest = line.chars().peekable();
    while let Some(character) = rest.next() {
        let last = cells.len() - 1;
        match character {
            '"' if quoted && rest.peek() == Some(&'"') => {
                rest.next();
                cells[last].push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => cells.push(String::new()),
            other => cells[last].push(other),
        }
    }
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Judgement;

    const STUDY: &str = r#"
label = "mine"
title = "t"
question = "q"
seeds = 6
endpoints = ["auc", "final"]
[[arm]]
name = "ppo"
[[arm]]
name = "full"
[[cell]]
name = "a, b"
[[lead]]
arm = "full"
over = "ppo"
endpoint = "auc"
expect = "ahead"
[[value]]
arm = "ppo"
endpoint = "at:3"
paper = "0.5"
"#;

    fn judged(text: &str) -> Result<(Vec<Outcome>, usize), Error> {
        judge_lines(toml::from_str(STUDY).unwrap(), Path::new("endpoints.csv"), text)
    }

    #[test]
    fn lines_are_judged_as_runs_are() {
        let mut text = "arm,cell,seed,auc,final,iterations,device\n".to_owned();
        for (arm, base) in [("ppo", 0.1), ("full", 0.5)] {
            for seed in 0..6 {
                text +=
                    &format!("{arm},\"a, b\",{seed},{},,200,cpu\n", base * (1.0 + 0.01 * f64::from(seed)));
            }
        }
        let (outcomes, left_out) = judged(&text).unwrap();
        // Six pairs, all ahead: decided. What is at iteration 3 no line says.
        assert_eq!((outcomes.len(), left_out, outcomes[0].judgement), (1, 1, Judgement::Agrees));
    }

    #[test]
    fn lines_of_another_study_are_refused() {
        let said = |text: &str| judged(text).unwrap_err().to_string();
        let head = "arm,cell,seed,auc,iterations,device\n";
        assert!(said("").contains("line 1") && said("arm,seed\n").contains("heading must be"));
        assert!(said("arm,cell,seed,acu,iterations,device\n").contains("the nearest valid one is 'auc'"));
        assert!(said(&format!("{head}ppo,\"a, b\",0,x,200,cpu\n")).contains("line 2: 'x' is not a number"));
        assert!(said(&format!("{head}ppo,b,0,1,200,cpu\n")).contains("it has no cell 'b'"));
        assert!(said(&format!("{head}ppo,b\n")).contains("2 columns; the heading has 6"));
        assert!(said(head).contains("no run"));
        assert_eq!(fields("\"a \"\"b\"\", c\",,d"), ["a \"b\", c", "", "d"]);
    }
}
