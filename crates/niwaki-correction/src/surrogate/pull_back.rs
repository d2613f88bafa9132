//! How credit flows from each step's term back to the log-probs that its factor was read from.

use crate::Real;
use crate::family::Reads;
use crate::log_ratio::add;

/// `routed[i] = Σ_{t reads i} credit[t]` for trajectories side by side, where `credit[t] = slope[t] · own[t]`.
///
/// Shapes: `[steps][lanes]`; `attained` is read for [`Reads::Minimum`] only, `lengths [lanes]` for means. The reversed
/// sums run from the last step to the first, so a window that covers the whole prefix gives the prefix's own bits.
///
/// Paper: `eq:gradient-two-channels` (credit routing)
#[inline(always)]
pub(super) fn route<F: Real, const L: usize>(
    reads: Reads,
    credit: &[[F; L]],
    attained: &[[usize; L]],
    lengths: &[usize; L],
    routed: &mut [[F; L]],
) {
    match reads {
        Reads::Prefix => _ = reversed_sum([F::ZERO; L], credit, routed),
        Reads::Window(window) if window >= credit.len().saturating_sub(1) => {
            reversed_sum([F::ZERO; L], credit, routed);
        }
        Reads::Window(window) => {
            for (i, routed) in routed.iter_mut().enumerate() {
                let end = (i + window + 1).min(credit.len());
                let mut sum = [F::ZERO; L];
                credit[i + 1..end].iter().rev().for_each(|credit| add(&mut sum, credit));
                *routed = sum;
            }
        }
        Reads::Minimum => {
            routed.fill([F::ZERO; L]);
            for t in 1..credit.len() {
                for lane in 0..L {
                    routed[attained[t][lane]][lane] += credit[t][lane];
                }
            }
        }
        Reads::Step => routed.copy_from_slice(credit),
        Reads::SequenceMean | Reads::SequenceSum => {
            let mut sum = [F::ZERO; L];
            credit.iter().for_each(|credit| add(&mut sum, credit));
            if reads == Reads::SequenceMean {
                for lane in 0..L {
                    sum[lane] *= F::ONE / F::from_f64(lengths[lane].max(1) as f64);
                }
            }
            routed.fill(sum);
        }
    }
}

/// `routed[i] = after + Σ_{t>i} credit[t]`; returns the sum with all of the credit.
#[inline(always)]
pub(super) fn reversed_sum<F: Real, const L: usize>(
    after: [F; L],
    credit: &[[F; L]],
    routed: &mut [[F; L]],
) -> [F; L] {
    let mut sum = after;
    for (routed, credit) in routed.iter_mut().zip(credit).rev() {
        *routed = sum;
        add(&mut sum, credit);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_by_hand() {
        let credit = [1.0, 2.0, 4.0, 8.0];
        let routed = |reads, attained: [usize; 4]| {
            let mut routed = [[0.0]; 4];
            route(reads, &credit.map(|credit| [credit]), &attained.map(|at| [at]), &[4], &mut routed);
            routed.map(|[routed]| routed)
        };
        // Step 0 is in everyone's prefix: 2 + 4 + 8. A window of 2 reaches steps 1 and 2 only: 2 + 4.
        assert_eq!(routed(Reads::Prefix, [0; 4]), [14.0, 12.0, 8.0, 0.0]);
        assert_eq!(routed(Reads::Window(2), [0; 4]), [6.0, 12.0, 8.0, 0.0]);
        assert_eq!(routed(Reads::Window(3), [0; 4]), routed(Reads::Prefix, [0; 4]));
        // The minimum was attained at step 0 for t = 1 and at step 1 for t = 2, 3.
        assert_eq!(routed(Reads::Minimum, [0, 0, 1, 1]), [2.0, 12.0, 0.0, 0.0]);
        assert_eq!(routed(Reads::SequenceMean, [0; 4]), [3.75; 4]);
    }
}
