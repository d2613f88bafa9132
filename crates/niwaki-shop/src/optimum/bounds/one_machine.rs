//! One machine with heads and tails, interruptions allowed: Jackson's preemptive schedule.

use std::collections::BinaryHeap;

/// An operation on the machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Task {
    /// It cannot start earlier.
    pub(crate) head: u32,
    /// Time on the machine.
    pub(crate) time: u32,
    /// Time that must pass after its end.
    pub(crate) tail: u32,
}

/// The least makespan when work may be interrupted: always run the available operation with the longest tail.
///
/// Sorts `tasks` by head.
pub(crate) fn preemptive(tasks: &mut [Task]) -> u32 {
    tasks.sort_unstable_by_key(|task| task.head);
    // Tail and time left of the operations that are available.
    let mut available: BinaryHeap<(u32, u32)> = BinaryHeap::new();
    let (mut clock, mut bound, mut next) = (0, 0, 0);
    while next < tasks.len() || !available.is_empty() {
        if available.is_empty() {
            clock = clock.max(tasks[next].head);
        }
        while next < tasks.len() && tasks[next].head <= clock {
            available.push((tasks[next].tail, tasks[next].time));
            next += 1;
        }
        let Some((tail, time)) = available.pop() else { continue };
        let until = if next < tasks.len() { tasks[next].head } else { u32::MAX };
        if clock + time <= until {
            clock += time;
            bound = bound.max(clock + tail);
        } else {
            available.push((tail, time - (until - clock)));
            clock = until;
        }
    }
    bound
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn preemption_by_hand() {
        // (head, time, tail): (0, 4, 1), (1, 2, 5). Run the first 0–1, interrupt, the second 1–3 (3 + 5 = 8), the
        // first 3–6 (6 + 1 = 7): 8.
        let task = |head, time, tail| Task { head, time, tail };
        assert_eq!(preemptive(&mut [task(0, 4, 1), task(1, 2, 5)]), 8);
        // A gap: (0, 1, 0), (5, 2, 3): 5 + 2 + 3 = 10.
        assert_eq!(preemptive(&mut [task(5, 2, 3), task(0, 1, 0)]), 10);
        assert_eq!(preemptive(&mut []), 0);
    }
}
