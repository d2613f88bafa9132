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
}
