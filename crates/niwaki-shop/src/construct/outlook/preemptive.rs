//! Jackson's preemptive schedule of what waits for one machine: always the available operation with the longest tail.
//!
//! Those with tails of at least some length run as if they were alone, so that one pass by heads says for all lengths side by side when they end.

use niwaki_simd::vectorised;
use std::hint::black_box;

/// An unplaced operation on a machine that can run it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Waiting {
    pub(super) head: f32,
    pub(super) share: f32,
    /// Of its tail among those that wait for the machine, from the shortest on.
    pub(super) rank: u32,
}

/// Ranks that are looked at together: their ends stay in registers from head to head.
pub(super) const TOGETHER: usize = 2 * LANES;

/// Numbers of a register.
const LANES: usize = 16;

/// What ranks add to a head, and by what they multiply a share: seen from the right place on, all up to a rank let it pass, and no other does. So there is no
/// branch.
static HEADS: [f32; 2 * TOGETHER] = window(0.0, f32::NEG_INFINITY);
static SHARES: [f32; 2 * TOGETHER] = window(1.0, 0.0);

const fn window(open: f32, closed: f32) -> [f32; 2 * TOGETHER] {
    let (mut window, mut lane) = ([closed; 2 * TOGETHER], 0);
    while lane < TOGETHER {
        window[lane] = open;
        lane += 1;
    }
    window
}

/// When some tails have passed in the schedule of what waits, by heads, of which the first has this rank; `seen` is told the place of each operation, and
/// when what has no shorter tail than its own and came before it has ended.
#[inline(always)]
fn pass(
    order: &[Waiting],
    tails: &[f32; TOGETHER],
    first: u32,
    mut seen: impl FnMut(usize, u32, &[[f32; LANES]]),
) -> f32 {
    // When all that has a tail of this rank or a longer one has ended.
    let mut ends = [[f32::NEG_INFINITY; LANES]; TOGETHER / LANES];
    for (place, &Waiting { head, share, rank }) in order.iter().enumerate() {
        if rank < first {
            continue;
        }
        let last = rank - first;
        seen(place, last, &ends);
        let within = TOGETHER - 1 - (last as usize).min(TOGETHER - 1);
        for (part, ends) in ends.iter_mut().enumerate() {
            let start = within + part * LANES;
            let (heads, shares) = (&HEADS[start..start + LANES], &SHARES[start..start + LANES]);
            for lane in 0..LANES {
                ends[lane] = larger(ends[lane], head + heads[lane]) + share * shares[lane];
            }
        }
    }
    // The black box puts them into memory: otherwise the compiler splits them to suit these few steps, and the loop before runs
    // one by one.
    let (ends, mut passed) = (black_box(ends), *tails);
    passed.iter_mut().zip(ends.as_flattened()).for_each(|(passed, end)| *passed += end);
    let mut half = TOGETHER / 2;
    while half > 0 {
        for lane in 0..half {
            passed[lane] = larger(passed[lane], passed[lane + half]);
        }
        half /= 2;
    }
    larger(passed[0], 0.0)
}

#[inline(always)]
fn larger(one: f32, other: f32) -> f32 {
    if one > other { one } else { other }
}

vectorised! {
    /// When Jackson's preemptive schedule of what waits for a machine, by heads, has passed the last tail; tails have room behind.
    pub(super) fn preemptive(order: &[Waiting], tails: &[[f32; TOGETHER]]) -> f32 {
        let mut latest = 0.0;
        for (first, tails) in (0..).step_by(TOGETHER).zip(tails) {
            latest = f32::max(latest, pass(order, tails, first, |_, _, _| {}));
        }
        latest
    }

    /// As [`preemptive`]; and says of each operation before when it does not run: what came before it with no shorter tail has
    /// ended then.
    pub(super) fn preemptive_and_runs(order: &[Waiting], tails: &[[f32; TOGETHER]], runs: &mut [f32]) -> f32 {
        let mut latest = 0.0;
        for (first, tails) in (0..).step_by(TOGETHER).zip(tails) {
            let end = pass(order, tails, first, |place, last, ends| {
                if let (Some(end), Some(runs)) = (ends.as_flattened().get(last as usize), runs.get_mut(place)) {
                    *runs = *end;
                }
            });
            latest = f32::max(latest, end);
        }
        latest
    }
}

/// What waits by its heads again, where some have grown and some have gone, in the room behind the place returned. Equal heads keep their order.
///
/// `head` says what a head has become, infinite if it has gone. Taken from the last one on, only those that have grown move.
pub(super) fn line_up(order: &[Waiting], room: &mut Vec<Waiting>, head: impl Fn(usize) -> f32) -> usize {
    room.clear();
    room.extend_from_slice(order);
    let mut first = room.len();
    for (place, &old) in order.iter().enumerate().rev() {
        let head = head(place);
        if head == f32::INFINITY {
            continue;
        }
        first -= 1;
        let mut to = first;
        while let Some(&next) = room.get(to + 1).filter(|next| next.head < head) {
            room[to] = next;
            to += 1;
        }
        room[to] = Waiting { head, ..old };
    }
    first
}
