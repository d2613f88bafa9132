//! The strip right of a plot where lines are named: labels keep their order and their distance.

use super::svg::text_width;

/// A label that wants to stand at `y`, with a leader from `(from, y)` where it had to move away.
#[derive(Debug, Clone)]
pub(crate) struct Wish {
    pub(crate) y: f64,
    pub(crate) text: String,
    pub(crate) class: &'static str,
    pub(crate) from: Option<f64>,
}

const DISTANCE: f64 = 14.0;

/// The width of one label.
pub(crate) fn label_width(text: &str) -> f64 {
    text_width(text, 12.0) + 2.0
}

/// Places for labels that want to stand at `wishes` within `0 … height`: in the same order, at least a line apart
/// (closer only when there are more labels than lines), and as near to the wish as that allows.
pub(crate) fn spread(wishes: &[f64], height: f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..wishes.len()).collect();
    order.sort_by(|&a, &b| wishes[a].total_cmp(&wishes[b]).then(a.cmp(&b)));
    let gap = match wishes.len() {
        0 | 1 => DISTANCE,
        n => DISTANCE.min(height / (n - 1) as f64),
    };
    // Clusters of touching labels sit around the mean of their wishes; clusters that touch are joined.
    let mut clusters: Vec<(f64, usize)> = Vec::new();
    for &i in &order {
        let mut cluster = (wishes[i].clamp(0.0, height), 1);
        while let Some(&(mean, count)) = clusters.last() {
            let bottom = settle((mean, count), gap, height) + gap * (count - 1) as f64;
            if bottom + gap <= settle(cluster, gap, height) {
                break;
            }
            clusters.pop();
            let joined = count + cluster.1;
            let sum = mean * count as f64 + cluster.0 * cluster.1 as f64;
            cluster = (sum / joined as f64, joined);
        }
        clusters.push(cluster);
    }
    let mut places = vec![0.0; wishes.len()];
    let mut next = order.into_iter();
    for cluster in clusters {
        let top = settle(cluster, gap, height);
        for (line, i) in next.by_ref().take(cluster.1).enumerate() {
            places[i] = top + gap * line as f64;
        }
    }
    places
}

/// The first line of a cluster centred on its mean, held inside the plot.
fn settle((mean, count): (f64, usize), gap: f64, height: f64) -> f64 {
    let extent = gap * (count - 1) as f64;
    (mean - extent / 2.0).clamp(0.0, (height - extent).max(0.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_keep_their_order_and_distance() {
        // 100, 102 and 104 share a mean of 102, so they stand at 88, 102 and 116; 10 is left alone.
        assert_eq!(spread(&[104.0, 10.0, 100.0, 102.0], 200.0), [116.0, 10.0, 88.0, 102.0]);
        // At the lower edge the cluster is pushed up.
        assert_eq!(spread(&[200.0, 200.0], 200.0), [186.0, 200.0]);
        // Eleven labels in 70 pixels: a gap of 7.
        let crowded = spread(&[35.0; 11], 70.0);
        assert_eq!((crowded[0], crowded[10]), (0.0, 70.0));
    }
}
