//! Plain enumeration, with nothing shared with the solvers.

use niwaki_shop::FlexibleShop;

/// The least value over all orders of `jobs`.
pub(crate) fn orders<T: Ord>(jobs: usize, value: impl Fn(&[u32]) -> T) -> T {
    fn visit<T: Ord>(order: &mut Vec<u32>, at: usize, value: &dyn Fn(&[u32]) -> T) -> T {
        if at + 1 >= order.len() {
            return value(order);
        }
        let mut best = None;
        for other in at..order.len() {
            order.swap(at, other);
            let here = visit(order, at + 1, value);
            order.swap(at, other);
            if best.as_ref().is_none_or(|known| here < *known) {
                best = Some(here);
            }
        }
        best.expect("there is at least one order")
    }
    visit(&mut (0..jobs as u32).collect(), 0, &value)
}

/// Called with a complete history: `(operation, machine)` in the order of dispatching.
type Leaf<'a> = &'a mut dyn FnMut(&[(usize, u32)]);

/// Calls `leaf` for every order of dispatching operations and every choice of machines.
fn histories(shop: &FlexibleShop, leaf: Leaf<'_>) {
    fn visit(shop: &FlexibleShop, next: &mut [usize], history: &mut Vec<(usize, u32)>, leaf: Leaf<'_>) {
        if history.len() == shop.operations() {
            return leaf(history);
        }
        for job in 0..shop.jobs() {
            let operation = next[job];
            if operation == shop.job(job).end {
                continue;
            }
            next[job] += 1;
            for choice in shop.alternatives(operation) {
                history.push((operation, choice.machine));
                visit(shop, next, history, leaf);
                history.pop();
            }
            next[job] -= 1;
        }
    }
    let mut next: Vec<usize> = (0..shop.jobs()).map(|job| shop.job(job).start).collect();
    visit(shop, &mut next, &mut Vec::new(), leaf);
}

fn is_first(shop: &FlexibleShop, operation: usize) -> bool {
    (0..shop.jobs()).any(|job| shop.job(job).start == operation)
}

/// The least makespan over all histories, each operation as early as it can: some optimum is among them.
pub(crate) fn dispatches(shop: &FlexibleShop) -> u32 {
    let mut best = u32::MAX;
    let mut ends = vec![0; shop.operations()];
    histories(shop, &mut |history| {
        let mut free = vec![0; shop.machines()];
        for &(operation, machine) in history {
            let ready =
                if is_first(shop, operation) { 0 } else { ends[operation - 1] + shop.window(operation).min };
            let start: u32 = ready.max(free[machine as usize]);
            ends[operation] = start + shop.time(operation, machine).expect("the machine can run it");
            free[machine as usize] = ends[operation];
        }
        best = best.min(*ends.iter().max().expect("there is an operation"));
    });
    best
}

/// The least makespan with hard maxima: for every history its machine orders, then longest paths by relaxation over
/// all arcs until nothing moves; arcs that never settle are a cycle.
pub(crate) fn within_windows(shop: &FlexibleShop) -> u32 {
    let mut best = u32::MAX;
    histories(shop, &mut |history| {
        // (from, to, least distance between their starts)
        let mut arcs: Vec<(usize, usize, i64)> = Vec::new();
        let time = |operation: usize| {
            let &(_, machine) =
                history.iter().find(|(other, _)| *other == operation).expect("it is dispatched");
            i64::from(shop.time(operation, machine).expect("the machine can run it"))
        };
        for (index, &(operation, machine)) in history.iter().enumerate() {
            if let Some(&(before, _)) = history[..index].iter().rev().find(|(_, other)| *other == machine) {
                arcs.push((before, operation, time(before)));
            }
            if !is_first(shop, operation) {
                let window = shop.window(operation);
                arcs.push((operation - 1, operation, time(operation - 1) + i64::from(window.min)));
                if let Some(max) = window.max {
                    arcs.push((operation, operation - 1, -(time(operation - 1) + i64::from(max))));
                }
            }
        }
        let mut starts = vec![0_i64; shop.operations()];
        for _ in 0..=shop.operations() {
            let mut moved = false;
            for &(from, to, distance) in &arcs {
                if starts[from] + distance > starts[to] {
                    starts[to] = starts[from] + distance;
                    moved = true;
                }
            }
            if !moved {
                let end = (0..shop.operations()).map(|operation| starts[operation] + time(operation)).max();
                best = best.min(end.expect("there is an operation") as u32);
                return;
            }
        }
    });
    best
}
