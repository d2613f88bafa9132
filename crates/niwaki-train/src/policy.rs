//! The policies that a spec can name, and the networks they stand for. A new policy is a variant and an arm here.

use crate::Error;
use crate::spec::{GlimpseKind, Recipe, Spec};
use niwaki_lm::{RecordPolicy, WriterPolicy};
use niwaki_policies::{
    BagShape, CausalShape, DualShape, Extras, GraphPolicy, HgnnShape, PointerShape, TokenPolicy,
};
use niwaki_tasks::{Construction, GraphSizes, Sequence, TextTask};
use serde::{Deserialize, Serialize};

/// Which policy plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PolicyKind {
    /// One logit per prefix and token, in f64.
    Tabular,
    /// A perceptron on the bag of earlier tokens.
    Bag,
    /// The causal transformer.
    Causal,
    /// The pointer transformer over candidates.
    Pointer,
    /// Song's graph network over operations and machines.
    Hgnn,
    /// A graph network for quality, whose actor reads numbers of each pair.
    Dual,
    /// A pretrained decoder, which fills records and writes text.
    Decoder,
}

impl PolicyKind {
    /// Every policy.
    pub const ALL: [Self; 7] =
        [Self::Tabular, Self::Bag, Self::Causal, Self::Pointer, Self::Hgnn, Self::Dual, Self::Decoder];

    /// Its name in a file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tabular => "tabular",
            Self::Bag => "bag",
            Self::Causal => "causal",
            Self::Pointer => "pointer",
            Self::Hgnn => "hgnn",
            Self::Dual => "dual",
            Self::Decoder => "decoder",
        }
    }

    /// What a report calls it, before the word policy.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::Bag => "bag-of-prefix",
            Self::Decoder => "pretrained",
            other => other.name(),
        }
    }

    /// Whether it reads shops as graphs.
    #[must_use]
    pub const fn reads_graphs(self) -> bool {
        matches!(self, Self::Hgnn | Self::Dual)
    }

    /// The width of its network where a spec says none.
    pub(crate) const fn width(self) -> usize {
        match self {
            Self::Causal => 128,
            Self::Pointer => 64,
            Self::Hgnn => 8,
            Self::Tabular | Self::Bag | Self::Dual => 32,
            // Its files say.
            Self::Decoder => 0,
        }
    }
}

/// The network over tokens that a recipe names; none for a table.
///
/// # Errors
/// If the sizes do not fit together.
pub(crate) fn token_policy(recipe: &Recipe, task: &dyn Sequence) -> Result<Option<TokenPolicy>, Error> {
    let spec = &recipe.spec.policy;
    let extras = Extras { masked: task.masked(), critic: recipe.critic() };
    let (vocab, horizon) = (task.vocab(), task.horizon());
    let policy = match spec.kind {
        // A checked recipe has these play shops only, and a decoder is made of its files.
        PolicyKind::Tabular
        | PolicyKind::Pointer
        | PolicyKind::Hgnn
        | PolicyKind::Dual
        | PolicyKind::Decoder => return Ok(None),
        PolicyKind::Bag => {
            let shape = BagShape { vocab, horizon, width: recipe.spec.width() };
            shape.policy(extras)?
        }
        PolicyKind::Causal => {
            let (width, hidden) = (recipe.spec.width(), recipe.spec.hidden());
            let shape = CausalShape { vocab, horizon, width, heads: spec.heads, blocks: spec.blocks, hidden };
            shape.policy(extras)?
        }
    };
    let Some(prime) = &spec.prime else { return Ok(Some(policy)) };
    let primed = policy.primed(prime.token, prime.mass).ok_or_else(|| Error::Senseless {
        key: "policy.prime",
        reason: "this policy has no first logit to raise; leave it out".to_owned(),
    });
    primed.map(Some)
}

/// The decoder of a spec over its record; the trajectories of a minibatch share the prompt.
///
/// # Errors
/// If the model or the record cannot be read, or do not suit each other.
pub(crate) fn record_policy(spec: &Spec) -> Result<RecordPolicy, Error> {
    let (pretrained, record) = (spec.pretrained()?, spec.record()?);
    let group = spec.rollout.lanes / spec.update.minibatches;
    let temperature = spec.policy.temperature.unwrap_or(1.0);
    Ok(RecordPolicy::new(&pretrained.model, &record, spec.task.priming.as_deref(), group, temperature)?)
}

/// The decoder of a spec behind a task's prompts; the trajectories of a group share one.
///
/// # Errors
/// If the model cannot be read, or the task does not suit it.
pub(crate) fn writer_policy(spec: &Spec, task: &TextTask) -> Result<WriterPolicy, Error> {
    let temperature = spec.policy.temperature.unwrap_or(1.0);
    Ok(WriterPolicy::new(&spec.pretrained()?.model, task, spec.rollout.group, temperature)?)
}

/// The sizes of a spec's pointer on a task, for so many trajectories per instance.
pub(crate) fn pointer_shape(spec: &Spec, task: &dyn Construction, group: usize) -> PointerShape {
    PointerShape {
        candidates: task.candidates(),
        horizon: task.horizon(),
        features: task.features(),
        context: task.context(),
        group,
        width: spec.width(),
        heads: spec.policy.heads,
        blocks: spec.policy.blocks,
        hidden: spec.hidden(),
        residual: spec.policy.glimpse == Some(GlimpseKind::Residual),
        bound: spec.bound(),
    }
}

/// A spec's graph network on shops of such sizes.
///
/// # Errors
/// If the sizes do not fit together.
pub(crate) fn graph_policy(spec: &Spec, sizes: GraphSizes, critic: bool) -> Result<GraphPolicy, Error> {
    let (width, hidden) = (spec.width(), spec.hidden());
    Ok(match spec.policy.kind {
        PolicyKind::Dual => {
            let bounds = spec.policy.bounds == Some(true);
            DualShape { sizes, width, hidden, critic, bounds }.policy()?
        }
        _ => HgnnShape { sizes, width, hidden, critic }.policy()?,
    })
}
