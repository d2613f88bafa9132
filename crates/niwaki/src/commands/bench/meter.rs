//! Clocks, memory and medians of this process. The processor time of a busy, shared machine says more than its wall
//! clock; both are shown.

use std::fs;

/// Seconds that all threads of this process have spent on a core; `None` where the system does not say.
pub(crate) fn processor_seconds() -> Option<f64> {
    let tasks = fs::read_dir("/proc/self/task").ok()?;
    let nanoseconds = |task: fs::DirEntry| -> Option<u64> {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split_whitespace().next()?.parse().ok()
    };
    Some(tasks.flatten().filter_map(nanoseconds).sum::<u64>() as f64 * 1e-9)
}

/// Peak resident bytes of this process; `None` where the system does not say.
pub(crate) fn peak_memory() -> Option<f64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<f64>().ok()? * 1024.0)
}

/// The middle of the measurements.
pub(crate) fn median(measurements: &[f64]) -> f64 {
    let mut sorted = measurements.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        count if count.is_multiple_of(2) => 0.5 * (sorted[middle - 1] + sorted[middle]),
        _ => sorted[middle],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(median(&[]).is_nan());
    }
}
