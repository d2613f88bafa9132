//! A training study from its file to its report.

use super::{
    Board, Plan, Results, Runner, Stages, Strength, Training, comparisons_table, endpoints_csv,
    endpoints_table, judge, training_page,
};
use crate::Error;
use crate::report::{Asked, Progress, Report, Workplace, conclusion};

/// Trains what is missing of a study and holds the paper's statements against it; where it has a pilot, that first, so
/// that its cells are settled before any arm runs.
pub(crate) fn report(
    study: Training,
    asked: &Asked<'_>,
    watch: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<Report, Error> {
    let stages = Stages { study, seeds: asked.seeds, first_seed: asked.first_seed };
    let calibration = match stages.pilot()? {
        None => None,
        Some(plan) => {
            make(&plan, asked, watch)?;
            let calibration = stages.calibration(&plan, asked.out)?;
            calibration.write(&asked.out.join(stages.study.folder()))?;
            Some(calibration)
        }
    };
    let plan = settle(stages.arms(calibration)?, asked, watch)?;
    make(&plan, asked, watch)?;
    let results = Results::read(&plan, asked.out)?;
    let board = Board { plan: &plan, results: &results };
    let (outcomes, comparisons) = (judge(&board)?, board.comparisons()?);
    let page = training_page(&board, &outcomes, &comparisons, asked.made.clone())?;
    let mut tables = vec![endpoints_table(&plan.study.title, &board)?];
    if !comparisons.is_empty() {
        tables.push(comparisons_table("Paired comparisons", &board, &comparisons));
    }
    tables.extend(conclusion(&outcomes));
    Ok(Report {
        label: plan.study.label.clone(),
        folder: asked.out.join(plan.folder()),
        tables,
        outcomes,
        files: vec![("endpoints.csv", endpoints_csv(&board)), (Report::PAGE, page.to_html())],
    })
}

/// Measures the strengths that a plan leaves to the rule, or reads them where there is no place for it.
fn settle(plan: Plan, asked: &Asked<'_>, watch: &(dyn Fn(Progress<'_>) + Sync)) -> Result<Plan, Error> {
    if !plan.measures() {
        return Ok(plan);
    }
    let strengths = match &asked.workplace {
        None => Strength::read(&asked.out.join(plan.folder()))?,
        Some(workplace) => runner(workplace, asked, &|_| {}).strengths(&plan)?,
    };
    for strength in &strengths {
        watch(Progress::Settled { label: &plan.study.label, words: &strength.words() });
    }
    plan.settled(&strengths)
}

fn runner<'a>(workplace: &Workplace, asked: &'a Asked<'_>, tick: &'a (dyn Fn(u64) + Sync)) -> Runner<'a> {
    Runner { members: workplace.members, tick, ..Runner::new(asked.out, workplace.device.clone()) }
}

/// Trains the runs of a plan that are missing, where there is a place for it.
fn make(plan: &Plan, asked: &Asked<'_>, watch: &(dyn Fn(Progress<'_>) + Sync)) -> Result<(), Error> {
    let Some(workplace) = &asked.workplace else { return Ok(()) };
    let label = plan.study.label.as_str();
    let tick = |done: u64| watch(Progress::Done(done));
    let runner = runner(workplace, asked, &tick);
    watch(Progress::Trains { label, run_iterations: runner.pending(plan)? });
    let speed = runner.run(plan);
    watch(Progress::Ends);
    watch(Progress::Trained { label, speed: speed?.as_ref() });
    Ok(())
}
