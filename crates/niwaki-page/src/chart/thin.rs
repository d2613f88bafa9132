//! Thinning long series to what a screen can show, without losing peaks or gaps. Pixel coordinates only.

/// A polyline longer than this is thinned.
const LONG: usize = 1000;

/// Cuts a pixel-space polyline into unbroken runs and thins each: per pixel column the first, lowest, highest and
/// last point stay, in order, so that the drawn shape is the same.
pub(crate) fn runs(points: &[Option<(f64, f64)>]) -> Vec<Vec<(f64, f64)>> {
    let runs = points.split(Option::is_none).filter(|run| !run.is_empty());
    let runs = runs.map(|run| run.iter().flatten().copied().collect::<Vec<_>>());
    runs.map(|run| if points.len() > LONG { columns(&run) } else { run }).collect()
}

fn columns(run: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut out = Vec::new();
    for column in run.chunk_by(|a, b| a.0.floor() == b.0.floor()) {
        let by_height = |a: &usize, b: &usize| column[*a].1.total_cmp(&column[*b].1);
        let lowest = (0..column.len()).min_by(by_height).unwrap_or(0);
        let highest = (0..column.len()).max_by(by_height).unwrap_or(0);
        let mut keep = [0, lowest, highest, column.len() - 1];
        keep.sort_unstable();
        let mut last = None;
        for at in keep {
            if last.replace(at) != Some(at) {
                out.push(column[at]);
            }
        }
    }
    out
}

/// The indices of the points to draw from a cloud: above `most` points, one per two-pixel square.
pub(crate) fn cloud(points: &[Option<(f64, f64)>], most: usize) -> Vec<usize> {
    let placed = (0..points.len()).filter(|&i| points[i].is_some());
    if points.len() <= most {
        return placed.collect();
    }
    let mut taken = std::collections::BTreeSet::new();
    placed
        .filter(|&i| points[i].is_some_and(|(x, y)| taken.insert(((x / 2.0) as i64, (y / 2.0) as i64))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_keep_peaks_and_gaps() {
        let mut points: Vec<Option<(f64, f64)>> =
            (0..10_000).map(|i| Some((f64::from(i) / 20.0, 50.0))).collect();
        points[4321] = Some((4321.0 / 20.0, 0.0));
        points[7000] = None;
        let runs = runs(&points);
        assert_eq!(runs.len(), 2);
        assert!(runs[0].contains(&(4321.0 / 20.0, 0.0)));
        // 500 columns with at most four points each.
        assert!(runs.iter().map(Vec::len).sum::<usize>() <= 2000);
    }

    #[test]
    fn clouds_keep_one_point_per_square() {
        let points: Vec<Option<(f64, f64)>> = (0..5000).map(|i| Some((f64::from(i % 10), 0.0))).collect();
        assert_eq!(cloud(&points, 100), [0, 2, 4, 6, 8]);
        assert_eq!(cloud(&points[..10], 100).len(), 10);
    }
}
