//! What a batch of N trajectories makes of each loss: the ranking, who leads at which N, and the figures of both.

use super::{Row, Summary};
use niwaki_correction::Surrogate;
use niwaki_page::{Axis, Cell, Cloud, Column, Format, Legend, LineChart, ScatterChart, Series, Table, Tone};

/// Losses in one chart, so that each keeps a colour of its own.
const COLOURS: usize = 8;

/// The largest batch that is looked at: above it noise decides nothing any more.
const LARGEST: u64 = 1 << 24;

/// The losses of one reward and drift, the best aligned first; equals keep the order in which they were asked for.
#[must_use]
pub fn ranking(caption: &str, batch: u64, group: &[Summary]) -> Table {
    let mut ranked: Vec<&Summary> = group.iter().collect();
    ranked.sort_by(|a, b| level(b.alignment.mean).total_cmp(&level(a.alignment.mean)));
    let drawn = ranked.iter().any(|row| !row.batch_cosine.mean.is_nan());
    let mut table = Table::new(caption)
        .column(Column::text("loss"))
        .column(Column::number(format!("A({batch})")).format(Format::fixed(3)));
    if drawn {
        table = table.column(Column::number("drawn").format(Format::fixed(3)));
    }
    table = table.columns([
        Column::number("|bias|").format(Format::scientific(1)),
        Column::number("variance").format(Format::significant(3)),
        Column::number("MSE").format(Format::significant(3)),
        Column::number("cosine").format(Format::fixed(3)),
        Column::number("ESS").format(Format::fixed(3)),
    ]);
    let best = ranked.first().map_or(f64::NAN, |row| level(row.alignment.mean));
    for row in ranked {
        let aligned = Cell::from(row.alignment.mean);
        let aligned = if row.seeds > 1 { aligned.error(row.alignment.sem) } else { aligned };
        let mut cells = vec![
            Cell::from(row.surrogate.correction.label()).hint(row.surrogate.correction.summary()),
            // A loss that points nowhere leads nothing.
            if level(row.alignment.mean) == best && best > 0.0 { aligned.best() } else { aligned },
        ];
        if drawn {
            cells.push(Cell::from(row.batch_cosine.mean));
        }
        cells.extend([
            Cell::from(row.absolute_bias.mean),
            Cell::from(row.variance.mean),
            Cell::from(row.mse.mean),
            Cell::from(row.cosine.mean),
            Cell::from(row.ess.mean),
        ]);
        table.push(cells);
    }
    table
}

/// An alignment without the rounding in which losses that are the same differ.
fn level(aligned: f64) -> f64 {
    (aligned * 1e10).round()
}

/// The losses of one reward and drift with their measured pairs, in the order of their first rows.
fn by_loss(rows: &[Row]) -> Vec<(Surrogate, Vec<&Row>)> {
    let mut losses: Vec<(Surrogate, Vec<&Row>)> = Vec::new();
    for row in rows {
        match losses.iter_mut().find(|(loss, _)| *loss == row.surrogate) {
            Some((_, rows)) => rows.push(row),
            None => losses.push((row.surrogate, vec![row])),
        }
    }
    losses
}

/// Mean alignment of a loss over its pairs.
fn aligned(rows: &[&Row], batch: u64) -> f64 {
    let total: f64 = rows.iter().map(|row| row.measured.alignment(batch).unwrap_or(0.0)).sum();
    total / rows.len() as f64
}

/// Who leads from which batch on, from 2 trajectories: the N at which the best aligned loss changes. `rows` are of one
/// reward and drift. Nobody leads where no loss is aligned at all.
#[must_use]
pub fn leaders(rows: &[Row]) -> Vec<(u64, Surrogate)> {
    let losses = by_loss(rows);
    let leader = |batch: u64| {
        let best = losses.iter().map(|(loss, rows)| (*loss, aligned(rows, batch)));
        let best = best.reduce(|best, next| if level(next.1) > level(best.1) { next } else { best });
        best.filter(|(_, aligned)| *aligned > 0.0).map(|(loss, _)| loss)
    };
    let mut found: Vec<(u64, Surrogate)> = leader(2).map(|loss| (2, loss)).into_iter().collect();
    let mut low = 2;
    while low < LARGEST && !found.is_empty() {
        // Between two batches a tenth apart, a leader that comes and goes would be missed; it led nothing worth a word.
        let high = (low + low / 10).max(low + 1);
        let (before, after) = (leader(low), leader(high));
        if let (true, Some(after)) = (before != after, after) {
            let (mut last, mut first) = (low, high);
            while last + 1 < first {
                let middle = last.midpoint(first);
                if leader(middle) == before { last = middle } else { first = middle }
            }
            found.push((first, after));
        }
        low = high;
    }
    found
}

/// Who leads at which batch, as a sentence; none where nobody does.
pub(super) fn leaders_in_words(rows: &[Row]) -> Option<String> {
    let leaders = leaders(rows);
    let name = |loss: &Surrogate| loss.correction.label();
    let (_, first) = leaders.first()?;
    let mut words = match leaders.get(1) {
        None => return Some(format!("Best aligned at every batch: {}.", name(first))),
        Some((next, _)) => format!("Best aligned below {next} trajectories: {}", name(first)),
    };
    for (from, loss) in &leaders[1..] {
        words.push_str(&format!("; from {from}: {}", name(loss)));
    }
    words.push('.');
    Some(words)
}

/// The losses that have a colour of their own: the best aligned ones, and PPO, which is what readers have.
fn coloured(group: &[Summary]) -> Vec<Surrogate> {
    let mut ranked: Vec<&Summary> = group.iter().collect();
    ranked.sort_by(|a, b| level(b.alignment.mean).total_cmp(&level(a.alignment.mean)));
    let mut losses: Vec<Surrogate> = ranked.iter().map(|row| row.surrogate).collect();
    if let Some(ppo) = losses.iter().position(|loss| loss.correction.to_string() == "ppo")
        && ppo >= COLOURS
    {
        losses.swap(ppo, COLOURS - 1);
    }
    losses.truncate(COLOURS);
    losses
}

/// Direction against noise, one dot per loss: what an endless batch would do, and how large a batch has to be until its
/// gradient is more signal than noise. Best is the upper left.
pub(super) fn direction_against_noise(group: &[Summary]) -> ScatterChart {
    let chart = ScatterChart::new("Direction against noise")
        .x(Axis::log("trajectories until a batch's gradient has as much signal as noise"))
        .y(Axis::linear("cosine of the expected gradient").include(0.0));
    let dot = |row: &Summary| (row.noise_batch, row.cosine.mean);
    let coloured = coloured(group);
    let chart = coloured.iter().enumerate().fold(chart, |chart, (index, loss)| {
        let name = loss.correction.label();
        let row = group.iter().filter(|row| row.surrogate == *loss).map(dot);
        chart.cloud(Cloud::new(name.clone(), row).labels([name]).tone(Tone::Hue(index)))
    });
    let others: Vec<&Summary> = group.iter().filter(|row| !coloured.contains(&row.surrogate)).collect();
    if others.is_empty() {
        return chart;
    }
    let names = others.iter().map(|row| row.surrogate.correction.label());
    chart.cloud(Cloud::new("others", others.iter().map(|row| dot(row))).labels(names).tone(Tone::Soft))
}

/// Alignment against the batch, in the colours of [`direction_against_noise`]. Where lines cross, two losses change place.
pub(super) fn against_batch(rows: &[Row], group: &[Summary], batch: u64) -> LineChart {
    let losses = by_loss(rows);
    let chart = LineChart::new("Alignment against the batch")
        .x(Axis::log("trajectories in a batch (N)"))
        .y(Axis::linear("A(N)").include(0.0))
        .post(batch as f64, format!("N = {batch}"))
        .legend(Legend::None);
    coloured(group).iter().enumerate().fold(chart, |chart, (index, loss)| {
        let rows = losses.iter().find(|(known, _)| known == loss).map_or(&[][..], |(_, rows)| rows);
        let points = (1..=16).map(|power| 1 << power).map(|batch: u64| (batch as f64, aligned(rows, batch)));
        chart.series(Series::new(loss.correction.label(), points).tone(Tone::Hue(index)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostics::{BATCH, Grid, Policies, summarise};
    use crate::{Process, Reward};

    fn measured(losses: &[&str]) -> Vec<Row> {
        let process = Process::new(3, 4).unwrap();
        let grid = Grid {
            process,
            rewards: vec![("late-only".to_owned(), Reward::LateOnly.payoff(process).unwrap())],
            drifts: vec![1.0],
            policies: Policies::Drawn { rollout_scale: 0.1, seeds: (0..6).collect() },
            losses: losses.iter().map(|loss| loss.parse::<Surrogate>().unwrap().without_clip()).collect(),
            batch: BATCH,
            drawn: 8,
            memory: u64::MAX,
        };
        grid.run(|| ()).unwrap()
    }

    #[test]
    fn a_loss_that_shrinks_to_nothing_ranks_last() {
        let rows = measured(&["ppo", "tempered:0.25", "full", "gspo", "max-k3:0.0000001"]);
        let league = summarise(&rows).unwrap();
        // By the MSE it would win.
        let least = league.iter().min_by(|a, b| a.mse.mean.total_cmp(&b.mse.mean)).unwrap();
        assert_eq!(least.surrogate.correction.name(), "max-k3");
        let table = ranking("", BATCH, &league).to_csv();
        let names: Vec<&str> = table.lines().skip(1).map(|line| line.split(',').next().unwrap()).collect();
        assert!(names.last().unwrap().contains("k3"), "{names:?}");
        assert!(league.iter().all(|row| row.alignment.mean.is_finite()), "not a number");
    }

    #[test]
    fn who_leads_is_who_is_best_aligned_there() {
        let rows = measured(&["ppo", "gspo"]);
        let found = leaders(&rows);
        assert_eq!((found.len(), found[0].0, found[0].1.correction.name()), (2, 2, "ppo"));
        let at = found[1].0;
        let lead = |batch| {
            let [(_, ppo), (_, gspo)] = &by_loss(&rows)[..] else { unreachable!() };
            aligned(gspo, batch) - aligned(ppo, batch)
        };
        assert!(lead(at) > 0.0 && lead(at - 1) <= 0.0);
        assert_eq!(
            leaders_in_words(&rows).unwrap(),
            format!("Best aligned below {at} trajectories: PPO; from {at}: GSPO.")
        );
        let alone = leaders_in_words(&measured(&["ppo"])).unwrap();
        assert_eq!(alone, "Best aligned at every batch: PPO.");
    }
}
