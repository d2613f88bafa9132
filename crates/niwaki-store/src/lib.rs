//! Where many machines leave their results, and leases on pieces of work.
//!
//! A [`Store`] keeps small records by name and is reached by every machine: a shared folder, over NFS too, or a bucket. It
//! promises one thing that locks are usually asked for: of several processes that [`Store::create`] the same name, one
//! succeeds. A folder keeps that promise by renaming, a bucket by a put on a condition, and nothing here asks for a lock.
//!
//! [`Leases`] stand on that promise alone. An attempt at a piece of work is a record that its holder renews; one that was
//! not renewed for its patience may be followed by the next attempt. Times are compared on the store's own clock, so that
//! machines whose clocks differ agree. **A lease saves work and guards nothing:** a holder that was stopped, overtaken and
//! woken still goes on, so users of leases must be right where two attempts end side by side. `niwaki-study` is: each
//! attempt works in a folder of its own, and of two results one is put in place, whole.
//!
//! | module | what belongs there |
//! |---|---|
//! | `store` | what every store can do, and which one a text names |
//! | `folder` | a shared folder |
//! | `buckets` | a bucket of an object store, with the feature of that name |
//! | `lease` | attempts at pieces of work: begun, renewed, ended, overtaken |

#[cfg(feature = "buckets")]
mod buckets;
mod error;
mod folder;
mod lease;
mod store;

#[cfg(feature = "buckets")]
pub use buckets::BucketStore;
pub use error::Error;
pub use folder::FolderStore;
pub use lease::{Attempt, Ended, Ending, Lease, Leases, Survey};
pub use store::{Store, open};
