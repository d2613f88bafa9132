//! Where the gradient of a loss differs from PPO's: reweighting and credit routing.
//!
//! Owns the split of one loss's gradient; the weights come from `estimate`.

use crate::sum::{dot, norm};
use crate::{Error, Pair, Workspace};
use niwaki_correction::family::{Form, Reads};
use niwaki_correction::{Rule, Surrogate};

/// The gradient difference between a loss and PPO under the same clip, split in two.
///
/// Paper: `eq:gradient-two-channels`
#[derive(Clone, Debug, PartialEq)]
pub struct Channels {
    /// `Σ_t E[r_t A_t (g_t − 1) z_t]`. Shapes: `[prefixes, vocab]`
    pub reweighting: Vec<f64>,
    /// `Σ_t E[r_t A_t g_t′ S_t]`. Shapes: `[prefixes, vocab]`
    pub routing: Vec<f64>,
    /// Size and direction of all of the reweighting.
    pub reweighting_total: Channel,
    /// Size and direction of all of the routing.
    pub routing_total: Channel,
    /// Both at each position `t` of the paper's Δ_t; empty for members that read the whole sequence, whose
    /// credit has no single position.
    pub at: Vec<(Channel, Channel)>,
}

/// One channel's size and direction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Channel {
    /// Euclidean norm over the table.
    pub norm: f64,
    /// Its component along the gradient of η; positive where the channel pulls the right way. Zero where that
    /// gradient vanishes.
    pub along_eta: f64,
}

impl Pair<'_> {
    /// Splits the gradient of a loss.
    ///
    /// # Errors
    /// As [`Pair::measure`].
    ///
    /// Paper: `eq:gradient-two-channels`, `eq:gradient-conditional`
    pub fn channels(&self, surrogate: &Surrogate, work: &mut Workspace) -> Result<Channels, Error> {
        let (rule, reweighting, routing) = self.split(surrogate, work)?;
        let whole = rule.written.is_some() || matches!(rule.reads, Reads::SequenceMean | Reads::SequenceSum);
        let routes = surrogate.routing && rule.form != Form::Weigh;
        let at = (0..if whole { 0 } else { self.process.horizon() })
            .map(|level| {
                let edges = self.process.level_edges(level);
                let reweighted = self.channel(&reweighting[edges.clone()], edges.start);
                let routed = match rule.reads {
                    // Its own ratio decides its factor: the credit stays where it arises.
                    Reads::Step => self.channel(&routing[edges.clone()], edges.start),
                    _ if routes => self.routed_from(level, &rule, work),
                    _ => Channel::default(),
                };
                (reweighted, routed)
            })
            .collect();
        Ok(Channels {
            reweighting_total: self.channel(&reweighting, 0),
            routing_total: self.channel(&routing, 0),
            reweighting,
            routing,
            at,
        })
    }

    /// Size and direction of all of the reweighting and all of the routing: [`Pair::channels`] without their parts by
    /// position, which take several times as long.
    ///
    /// # Errors
    /// As [`Pair::measure`].
    pub fn channel_totals(
        &self,
        surrogate: &Surrogate,
        work: &mut Workspace,
    ) -> Result<(Channel, Channel), Error> {
        let (_, reweighting, routing) = self.split(surrogate, work)?;
        Ok((self.channel(&reweighting, 0), self.channel(&routing, 0)))
    }

    /// The member as it acted, and its two channels.
    ///
    /// Shapes: `[prefixes, vocab]`
    fn split(
        &self,
        surrogate: &Surrogate,
        work: &mut Workspace,
    ) -> Result<(Rule, Vec<f64>, Vec<f64>), Error> {
        let ppo = Rule::tempered(0.0);
        self.moments(surrogate, ppo, work)?;
        let everything = 0..self.process.prefixes();
        let (mut plain, mut routing) = (vec![0.0; self.process.edges()], vec![0.0; self.process.edges()]);
        self.weights(everything.clone(), work, &mut plain, &mut routing);
        let rule = self.moments(surrogate, self.rule(surrogate), work)?.rule;
        let mut reweighting = vec![0.0; self.process.edges()];
        self.weights(everything, work, &mut reweighting, &mut routing);
        reweighting.iter_mut().zip(&plain).for_each(|(own, plain)| *own -= plain);
        self.new.pull_back(&mut reweighting);
        self.new.pull_back(&mut routing);
        Ok((rule, reweighting, routing))
    }

    /// Size and direction of a part of the table that starts at edge `from`.
    fn channel(&self, part: &[f64], from: usize) -> Channel {
        let along = dot(part, &self.eta_gradient()[from..]);
        let along_eta = if along == 0.0 { 0.0 } else { along / self.eta_gradient_norm() };
        Channel { norm: norm(part), along_eta }
    }

    /// The credit that position `level` alone routes back, from `work.credit`.
    fn routed_from(&self, level: usize, rule: &Rule, work: &mut Workspace) -> Channel {
        let (process, vocab, prob) = (self.process, self.process.vocab(), self.old.prob());
        let Workspace { credit, attained, future, value, .. } = work;
        // The workspace's edge buffer is free by now.
        let weight = &mut value[..process.level_edges(level).start];
        weight.fill(0.0);
        if rule.reads == Reads::Minimum {
            if level > 0 {
                process.level(level).for_each(|row| weight[attained[row]] += self.reach[row] * credit[row]);
            }
        } else {
            let reach_back = match rule.reads {
                Reads::Window(window) => window,
                _ => usize::MAX,
            };
            future[process.level(level)].copy_from_slice(&credit[process.level(level)]);
            for receiver in (level.saturating_sub(reach_back)..level).rev() {
                for row in process.level(receiver) {
                    let mut sum = 0.0;
                    for edge in vocab * row..vocab * (row + 1) {
                        let routed = prob[edge] * future[edge + 1];
                        weight[edge] = self.reach[row] * routed;
                        sum += routed;
                    }
                    future[row] = sum;
                }
            }
        }
        self.new.pull_back(weight);
        self.channel(weight, 0)
    }
}
