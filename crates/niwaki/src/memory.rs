//! How much memory a command may take.

use niwaki_exact::Process;
use niwaki_train::spec::available_memory;

/// What the policy pairs of a command may take together: the oracle's own limit, or what the system has left, if that is
/// less and the system says.
pub(crate) fn limit() -> u64 {
    available_memory().map_or(Process::MEMORY, |bytes| bytes.min(Process::MEMORY))
}
