//! A pointer against finite differences.

use super::{Point, PointAt};
use crate::graph::Graph;
use crate::ops::law::{check, leaf};

impl crate::ops::Law for PointAt {
    fn check() {
        // The last has whole blocks of the kernel's sums and what is left over: 10 + 5 + 1 keys, 16 + 2 columns a head.
        for (rows, keys, width, heads) in [(5, 3, 8, 2), (19, 6, 8, 1), (16, 4, 8, 4), (17, 16, 36, 2)] {
            let mut graph = Graph::new();
            let [query, glimpse, key] = [
                leaf(&mut graph, "query", rows, width),
                leaf(&mut graph, "glimpse", keys, 2 * width),
                leaf(&mut graph, "key", keys, width),
            ];
            let open = graph.mask("open", rows, keys);
            let once = Point { query, glimpse, key, heads, residual: false, bound: 3.0, open };
            let logits = graph.point(once).unwrap();
            // The keys serve twice, so that their cotangents are added to; and the query joins its glimpse.
            let again = graph.point(Point { residual: true, bound: 2.0, ..once }).unwrap();
            // Without a bound scores are logits.
            let free = graph.point(Point { bound: 0.0, ..once }).unwrap();
            check("point", &graph, &[logits, again, free]);
        }
    }
}
