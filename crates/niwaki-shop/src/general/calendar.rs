//! When a machine is closed: breaks, nights, maintenance. It must not know operations, jobs or dates.

/// A machine's closed times: sorted, disjoint, none empty, none touching the next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Calendar {
    closed: Vec<(u32, u32)>,
    /// For every stretch of `2^shift` time units, the first closed time that ends after the stretch has begun.
    index: Vec<u32>,
    shift: u32,
}

/// Where an operation lies: it works in open time only, so an interrupted one is longer than its work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// When it starts.
    pub start: u32,
    /// When its work is done.
    pub end: u32,
}

impl Calendar {
    /// A calendar from closed times `[from, to)` in any order, which may overlap; empty ones say nothing.
    #[must_use]
    pub fn new(mut closed: Vec<(u32, u32)>) -> Self {
        closed.retain(|&(from, to)| from < to);
        closed.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(closed.len());
        for (from, to) in closed {
            match merged.last_mut() {
                Some(last) if from <= last.1 => last.1 = last.1.max(to),
                _ => merged.push((from, to)),
            }
        }
        let last = merged.last().map_or(0, |&(_, to)| to);
        // About as many stretches as closed times, so that a look-up takes a step or two.
        let shift = (0..32).find(|shift| (last >> shift) as usize <= 2 * merged.len()).unwrap_or(31);
        let until = |stretch: u32| merged.partition_point(|&(_, to)| to <= stretch << shift) as u32;
        let index = if merged.is_empty() { Vec::new() } else { (0..=last >> shift).map(until).collect() };
        Self { closed: merged, index, shift }
    }

    /// The first closed time that ends after `from`, or how many there are.
    fn next_closed(&self, from: u32) -> usize {
        let Some(&first) = self.index.get((from >> self.shift) as usize) else { return self.closed.len() };
        let mut next = first as usize;
        while self.closed.get(next).is_some_and(|&(_, to)| to <= from) {
            next += 1;
        }
        next
    }

    /// The closed times.
    #[must_use]
    pub fn closed(&self) -> &[(u32, u32)] {
        &self.closed
    }

    /// Whether the machine never closes.
    #[must_use]
    pub fn is_always_open(&self) -> bool {
        self.closed.is_empty()
    }

    /// The first place from `from` on for so much work, in one piece or with breaks in between.
    #[must_use]
    pub fn place(&self, from: u32, work: u32, interruptible: bool) -> Span {
        if self.closed.is_empty() || work == 0 {
            return Span { start: from, end: from.saturating_add(work) };
        }
        let mut next = self.next_closed(from);
        if interruptible {
            return self.place_in_pieces(from, work, next);
        }
        let mut start = from;
        while let Some(&(closes, opens)) = self.closed.get(next) {
            if start.saturating_add(work) <= closes {
                break;
            }
            start = start.max(opens);
            next += 1;
        }
        Span { start, end: start.saturating_add(work) }
    }

    fn place_in_pieces(&self, from: u32, work: u32, mut next: usize) -> Span {
        let mut start = from;
        if let Some(&(closes, opens)) = self.closed.get(next)
            && closes <= from
        {
            start = opens;
            next += 1;
        }
        let (mut now, mut left) = (start, work);
        while let Some(&(closes, opens)) = self.closed.get(next) {
            if left <= closes - now {
                break;
            }
            left -= closes - now;
            now = opens;
            next += 1;
        }
        Span { start, end: now.saturating_add(left) }
    }

    /// The latest place that ends by `until`, if there is one from time 0 on.
    #[must_use]
    pub fn place_before(&self, until: u32, work: u32, interruptible: bool) -> Option<Span> {
        let mut last = self.closed.partition_point(|&(from, _)| from < until);
        if !interruptible || work == 0 {
            let mut end = until;
            while work > 0 && last > 0 {
                let (closes, opens) = self.closed[last - 1];
                if end.checked_sub(work)? >= opens {
                    break;
                }
                end = end.min(closes);
                last -= 1;
            }
            return Some(Span { start: end.checked_sub(work)?, end });
        }
        let (mut now, mut left) = (until, work);
        let mut end = until;
        while last > 0 {
            let (closes, opens) = self.closed[last - 1];
            if opens >= now {
                // Work never ends after a break has begun.
                if now == end {
                    end = closes;
                }
                now = now.min(closes);
            } else {
                if left <= now - opens {
                    break;
                }
                left -= now - opens;
                now = closes;
            }
            last -= 1;
        }
        Some(Span { start: now.checked_sub(left)?, end })
    }

    /// Whether the machine is closed at some time within `[start, end)`.
    #[must_use]
    pub fn closes_within(&self, start: u32, end: u32) -> bool {
        let next = self.next_closed(start);
        self.closed.get(next).is_some_and(|&(from, _)| from < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_times_are_sorted_and_joined() {
        let calendar = Calendar::new(vec![(8, 9), (2, 4), (4, 5), (7, 7), (3, 4)]);
        assert_eq!(calendar.closed(), [(2, 5), (8, 9)]);
        assert!(calendar.closes_within(1, 3) && calendar.closes_within(4, 5));
        assert!(!calendar.closes_within(5, 8) && !calendar.closes_within(0, 2));
    }

    #[test]
    fn the_index_finds_what_a_search_finds() {
        for width in [1, 3, 50, 1000] {
            let calendar =
                Calendar::new((0..40).map(|k| (k * k * width + 5, k * k * width + 5 + width)).collect());
            for from in (0..41 * 41 * width).step_by(width as usize / 3 + 1) {
                let slow = calendar.closed.partition_point(|&(_, to)| to <= from);
                assert_eq!(calendar.next_closed(from), slow, "from {from}, width {width}");
            }
        }
        let late = Calendar::new(vec![(u32::MAX - 1, u32::MAX)]);
        assert_eq!([0, u32::MAX - 1, u32::MAX].map(|from| late.next_closed(from)), [0, 0, 1]);
        assert_eq!(Calendar::default().next_closed(7), 0);
    }

    #[test]
    fn places_by_hand() {
        // Closed 2–5 and 8–9. Three units in one piece from 0: 0–3 and 5–8 are tried, the second fits. In pieces:
        // 0–2, then 5–6. Four units in one piece: 5–9 does not fit, so 9–13.
        let calendar = Calendar::new(vec![(2, 5), (8, 9)]);
        let place = |from, work, pieces| {
            let span = calendar.place(from, work, pieces);
            (span.start, span.end)
        };
        assert_eq!((place(0, 3, false), place(0, 3, true)), ((5, 8), (0, 6)));
        assert_eq!((place(0, 4, false), place(1, 5, true)), ((9, 13), (1, 10)));
        assert_eq!((place(3, 1, true), place(2, 1, false)), ((5, 6), (5, 6)));
    }

    #[test]
    fn the_latest_place_is_the_mirror_of_the_first() {
        // Against the slow twin: try every start.
        let calendar = Calendar::new(vec![(2, 5), (8, 9), (11, 14)]);
        for until in 0..20 {
            for work in 1..8 {
                for pieces in [false, true] {
                    let fits = |&start: &u32| {
                        let span = calendar.place(start, work, pieces);
                        span.start == start && span.end <= until
                    };
                    let slow = (0..20).rev().find(fits).map(|start| calendar.place(start, work, pieces));
                    let fast = calendar.place_before(until, work, pieces);
                    assert_eq!(fast, slow, "until {until}, work {work}, pieces {pieces}");
                }
            }
        }
    }
}
