//! Iterated greedy (Ruiz and Stützle, 2007) with local search on the partial sequence (Dubois-Lacoste, Pagnozzi and
//! Stützle, 2017): remove a few jobs, improve what is left, put them back where they hurt least, improve again, and
//! accept like simulated annealing at a fixed temperature.

use super::Insertion;
use crate::FlowShop;
use niwaki_stream::Stream;

/// Jobs removed at each step.
const REMOVED: usize = 2;
/// Temperature, as a multiple of a tenth of the mean time.
const TEMPERATURE: f64 = 0.7;

/// An iterated greedy search that can be stopped and asked at any step.
#[derive(Clone, Debug)]
pub struct IteratedGreedy<'a> {
    shop: &'a FlowShop,
    insertion: Insertion,
    stream: Stream,
    temperature: f64,
    current: Vec<u32>,
    current_makespan: u32,
    best: Vec<u32>,
    best_makespan: u32,
    trial: Vec<u32>,
    removed: Vec<u32>,
    visit: Vec<u32>,
}

impl<'a> IteratedGreedy<'a> {
    /// A search from an order, usually NEH's, brought to a local optimum first.
    #[must_use]
    pub fn new(shop: &'a FlowShop, order: &[u32], stream: Stream) -> Self {
        let times = shop.times();
        let mean = times.iter().map(|&time| f64::from(time)).sum::<f64>() / times.len() as f64;
        let mut search = Self {
            shop,
            insertion: Insertion::new(shop),
            stream,
            temperature: TEMPERATURE * mean / 10.0,
            current: order.to_vec(),
            current_makespan: shop.makespan(order),
            best: order.to_vec(),
            best_makespan: shop.makespan(order),
            trial: Vec::with_capacity(shop.jobs()),
            removed: Vec::with_capacity(REMOVED),
            visit: Vec::with_capacity(shop.jobs()),
        };
        search.trial.extend_from_slice(order);
        search.current_makespan = search.improve(search.current_makespan);
        search.current.copy_from_slice(&search.trial);
        search.keep_best(search.current_makespan);
        search
    }

    /// The best order so far and its makespan.
    #[must_use]
    pub fn best(&self) -> (&[u32], u32) {
        (&self.best, self.best_makespan)
    }

    /// Goes on from an order that is better than all of its own.
    pub fn adopt(&mut self, order: &[u32]) {
        let makespan = self.shop.makespan(order);
        if makespan < self.best_makespan {
            self.current.copy_from_slice(order);
            self.current_makespan = makespan;
            self.trial.clone_from(&self.current);
            self.keep_best(makespan);
        }
    }

    /// One step. Returns whether the best makespan fell.
    pub fn step(&mut self) -> bool {
        let jobs = self.current.len();
        if jobs < 2 {
            return false;
        }
        self.trial.clone_from(&self.current);
        self.removed.clear();
        for _ in 0..REMOVED.min(jobs - 1) {
            let position = self.stream.below(self.trial.len() as u64) as usize;
            self.removed.push(self.trial.remove(position));
        }
        let partial = self.shop.makespan(&self.trial);
        let mut makespan = self.improve(partial);
        for index in 0..self.removed.len() {
            let job = self.removed[index];
            let (position, length) = self.insertion.best(self.shop, &self.trial, job);
            self.trial.insert(position, job);
            makespan = length;
        }
        makespan = self.improve(makespan);
        if self.accepts(makespan) {
            self.current.copy_from_slice(&self.trial);
            self.current_makespan = makespan;
        }
        self.keep_best(makespan)
    }

    /// Whether the trial replaces the current order.
    fn accepts(&mut self, makespan: u32) -> bool {
        if makespan <= self.current_makespan {
            return true;
        }
        let worse = f64::from(makespan - self.current_makespan);
        self.temperature > 0.0 && self.stream.uniform() < (-worse / self.temperature).exp()
    }

    /// Keeps the trial if it is the best so far.
    fn keep_best(&mut self, makespan: u32) -> bool {
        let better = makespan < self.best_makespan;
        if better {
            self.best.copy_from_slice(&self.trial);
            self.best_makespan = makespan;
        }
        better
    }

    /// Moves single jobs of the trial, in random order, until none gains; returns the makespan.
    fn improve(&mut self, mut makespan: u32) -> u32 {
        loop {
            let before = makespan;
            self.visit.clone_from(&self.trial);
            self.stream.shuffle(&mut self.visit);
            for index in 0..self.visit.len() {
                let job = self.visit[index];
                let Some(position) = self.trial.iter().position(|&other| other == job) else { continue };
                self.trial.remove(position);
                let (target, length) = self.insertion.best(self.shop, &self.trial, job);
                if length < makespan {
                    self.trial.insert(target, job);
                    makespan = length;
                } else {
                    self.trial.insert(position, job);
                }
            }
            if makespan == before {
                return makespan;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heuristics::neh;
    use niwaki_stream::Key;

    #[test]
    fn the_best_is_a_permutation_of_its_makespan_and_never_rises() {
        let mut stream = Key::new(11, "law").open();
        let times = (0..15 * 5).map(|_| 1 + stream.below(99) as u32).collect();
        let shop = FlowShop::new(15, 5, times).unwrap();
        let start = neh(&shop);
        let mut search = IteratedGreedy::new(&shop, &start, Key::new(1, "greedy").open());
        let mut last = shop.makespan(&start);
        for _ in 0..300 {
            search.step();
            let (order, makespan) = search.best();
            assert_eq!(makespan, shop.makespan(order));
            assert!(makespan <= last);
            last = makespan;
        }
        let mut order = search.best().0.to_vec();
        order.sort_unstable();
        assert_eq!(order, (0..15).collect::<Vec<_>>());
    }

    #[test]
    fn small_shops_end_at_their_optimum() {
        // Two machines: Johnson's rule is the independent oracle.
        let mut stream = Key::new(12, "law").open();
        for _ in 0..20 {
            let times = (0..16).map(|_| 1 + stream.below(30) as u32).collect();
            let shop = FlowShop::new(8, 2, times).unwrap();
            let optimum = shop.makespan(&crate::heuristics::johnson(&shop).unwrap());
            let order: Vec<u32> = (0..8).collect();
            let mut search = IteratedGreedy::new(&shop, &order, Key::new(2, "greedy").open());
            (0..200).for_each(|_| _ = search.step());
            assert_eq!(search.best().1, optimum);
        }
    }
}
