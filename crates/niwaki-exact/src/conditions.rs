//! The conditions under which the correction matters, as measured numbers of a pair.
//!
//! Owns the bias witness, the conditional means and what they say of C1 and C2; knows nothing of losses. C3
//! concerns the training loop and is not a property of a pair.

use crate::Pair;
use crate::sum::sum;

/// What each state contributes, averaged over everything after it.
///
/// Paper: `eq:conditional-means`
#[derive(Clone, Debug, PartialEq)]
pub struct ConditionalMeans {
    /// `h_θ(s)`, the mean of `r Â z` given the state, in the logits of the state's own row (it is zero in all
    /// others). Shapes: `[prefixes, vocab]`
    pub content: Vec<f64>,
    /// `Ā(s)`, the mean of `r Â` given the state. Shapes: `[prefixes]`
    pub mean_advantage: Vec<f64>,
}

/// C1 and C2 as numbers.
///
/// Shapes: every vector is `[horizon]`.
///
/// Paper: `tab:conditions`
#[derive(Clone, Debug, PartialEq)]
pub struct Conditions {
    /// `b_t = E[(R_t − 1) r_t Â_t]`. Paper: `eq:bias-witness`
    pub bias_witness: Vec<f64>,
    /// The same as `Cov(R_t, r_t Â_t)`. Paper: `eq:bias-witness`
    pub bias_witness_covariance: Vec<f64>,
    /// `Σ_t |b_t|` (C2). Paper: `sec:mechanism` (dose)
    pub dose: f64,
    /// Root mean square of `‖h_θ(s_t)‖` over the states visited at each position: where the content lives.
    pub content_at: Vec<f64>,
    /// Root mean square of `Ā(s_t)` at each position.
    pub mean_advantage_at: Vec<f64>,
    /// Root mean square of the prefix log-ratio at each position: how much drift has accumulated.
    pub prefix_rms_at: Vec<f64>,
    /// C1, position: the content's centre of mass, `Σ_t t·content_t / ((T − 1) Σ_t content_t)`: 0 where the
    /// first action decides the reward, 1 where the last one does. Not a number without content or at T = 1.
    pub lateness: f64,
    /// C1, size: the drift that the content meets, `Σ_t content_t·rms(L_t) / Σ_t content_t`.
    pub contested_drift: f64,
    /// C2, in the table: norm of `Cov(L_t, h_θ(s_t))` at each position, every state with logits of its own.
    /// The score alone keeps it from zero, as the paper notes.
    pub content_covariance_at: Vec<f64>,
    /// C2, shared: norm of the same covariance with `h` read in token coordinates, as if all states of a
    /// position shared one row of logits. Contributions that cancel across prefixes cancel here.
    pub shared_covariance_at: Vec<f64>,
}

impl Pair<'_> {
    /// The conditional means of every state.
    ///
    /// Paper: `eq:conditional-means`
    #[must_use]
    pub fn conditional_means(&self) -> ConditionalMeans {
        let (vocab, prob) = (self.process.vocab(), self.new.prob());
        // r π_old = π_new, so both means are draws of the new policy.
        let mut content: Vec<f64> =
            prob.iter().zip(&self.advantages.mean).map(|(prob, advantage)| prob * advantage).collect();
        let mean_advantage = content.chunks_exact(vocab).map(|row| row.iter().sum()).collect();
        self.new.pull_back(&mut content);
        ConditionalMeans { content, mean_advantage }
    }

    /// C1 and C2.
    #[must_use]
    pub fn conditions(&self) -> Conditions {
        let means = self.conditional_means();
        let (vocab, horizon) = (self.process.vocab(), self.process.horizon());
        let (reach, prefix, mean_advantage) = (&self.reach, &self.prefix, &means.mean_advantage);
        let content = |row: usize| &means.content[vocab * row..vocab * (row + 1)];
        let square = |row: usize| content(row).iter().map(|h| h * h).sum::<f64>();
        let expect = |level: usize, term: &dyn Fn(usize) -> f64| {
            sum(self.process.level(level), |row| reach[row] * term(row))
        };
        let each = |of_level: &dyn Fn(usize) -> f64| -> Vec<f64> { (0..horizon).map(of_level).collect() };

        let bias_witness = each(&|level| expect(level, &|row| prefix[row].exp_m1() * mean_advantage[row]));
        let bias_witness_covariance = each(&|level| {
            let ratio = expect(level, &|row| prefix[row].exp());
            let advantage = expect(level, &|row| mean_advantage[row]);
            expect(level, &|row| (prefix[row].exp() - ratio) * (mean_advantage[row] - advantage))
        });
        let content_at = each(&|level| expect(level, &square).sqrt());
        let mean_advantage_at =
            each(&|level| expect(level, &|row| mean_advantage[row] * mean_advantage[row]).sqrt());
        let prefix_rms_at = each(&|level| expect(level, &|row| prefix[row] * prefix[row]).sqrt());
        let away = |level: usize| {
            let mean = expect(level, &|row| prefix[row]);
            move |row: usize| prefix[row] - mean
        };
        let content_covariance_at = each(&|level| {
            let away = away(level);
            // Each state has a row of its own, so the squared norm is a sum of squares.
            expect(level, &|row| reach[row] * away(row) * away(row) * square(row)).sqrt()
        });
        let shared_covariance_at = each(&|level| {
            let away = away(level);
            let squares = (0..vocab).map(|token| {
                let covariance = expect(level, &|row| away(row) * content(row)[token]);
                covariance * covariance
            });
            squares.sum::<f64>().sqrt()
        });
        let weighted = |weight: &dyn Fn(usize) -> f64| {
            (0..horizon).map(|t| weight(t) * content_at[t]).sum::<f64>() / content_at.iter().sum::<f64>()
        };
        Conditions {
            dose: bias_witness.iter().map(|b| b.abs()).sum(),
            lateness: weighted(&|t| t as f64 / (horizon as f64 - 1.0)),
            contested_drift: weighted(&|t| prefix_rms_at[t]),
            bias_witness,
            bias_witness_covariance,
            content_at,
            mean_advantage_at,
            prefix_rms_at,
            content_covariance_at,
            shared_covariance_at,
        }
    }
}
