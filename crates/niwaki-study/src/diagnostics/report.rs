//! A study of policy pairs from its file to its report.

use super::{Diagnostics, study_page};
use crate::Error;
use crate::report::{Asked, Progress, Report, conclusion};
use niwaki_exact::diagnostics::{league_table, summarise, to_csv, to_json};

/// Measures every pair of a study and holds the paper's statements against them.
pub(crate) fn report(
    study: &Diagnostics,
    asked: &Asked<'_>,
    watch: &(dyn Fn(Progress<'_>) + Sync),
) -> Result<Report, Error> {
    let grid = study.grid(asked.seeds)?;
    watch(Progress::Measures { label: &study.label, pairs: grid.pairs() as u64 });
    let rows = grid.run(|| watch(Progress::Done(1)));
    watch(Progress::Ends);
    let rows = rows?;
    let summaries = summarise(&rows)?;
    let outcomes = study.judge(&summaries)?;
    let page = study_page(study, &outcomes, &rows, &summaries, asked.made.clone());
    let mut tables = Vec::new();
    if grid.drifts.len() == 1 {
        tables.push(league_table(&study.title, &summaries));
    }
    tables.extend(conclusion(&outcomes));
    Ok(Report {
        label: study.label.clone(),
        folder: asked.out.join(study.folder()),
        tables,
        outcomes,
        files: vec![
            ("rows.csv", to_csv(&summaries)),
            ("rows.json", to_json(&summaries)),
            (Report::PAGE, page.to_html()),
        ],
    })
}
