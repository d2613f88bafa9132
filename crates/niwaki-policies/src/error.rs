//! What can go wrong while a policy plays.

/// A policy that cannot play on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The engine failed.
    #[error(transparent)]
    Engine(#[from] niwaki_nn::Error),
    /// The task refused an instance or a choice.
    #[error(transparent)]
    Task(#[from] niwaki_tasks::Error),
    /// States were looked at before anything was made ready for them.
    #[error("nothing was made ready to look at states with")]
    Unready,
    /// The network's output is not a number.
    #[error("the network gives a log-probability that is not a number; its weights are broken")]
    NoNumber,
}
