//! What can go wrong in this crate, each as one line that names the place.

/// The crate's result.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong in this crate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The parts of an instance contradict each other.
    #[error("{0}")]
    Instance(String),
    /// A schedule breaks a constraint of its instance.
    #[error("{0}")]
    Schedule(String),
}
