//! What every store can do, and which one a text names.

use crate::{Error, FolderStore};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

/// Small records by name, reached by every machine. Names are words with slashes between them; those that are created or
/// written under one prefix are listed together.
pub trait Store: Send + Sync {
    /// How people call it.
    fn name(&self) -> String;

    /// The folder itself, where the store is one: results may then be put in place by renaming.
    fn folder(&self) -> Option<&Path>;

    /// A record; nothing where there is none.
    ///
    /// # Errors
    /// If the store refuses.
    fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error>;

    /// Writes a record in the place of any other, whole.
    ///
    /// # Errors
    /// If the store refuses.
    fn write(&self, name: &str, bytes: &[u8]) -> Result<(), Error>;

    /// Writes a record where there is none, and says whether it did: of several processes one does.
    ///
    /// # Errors
    /// If the store refuses.
    fn create(&self, name: &str, bytes: &[u8]) -> Result<bool, Error>;

    /// The last words of all names under a prefix, sorted.
    ///
    /// # Errors
    /// If the store refuses.
    fn list(&self, under: &str) -> Result<Vec<String>, Error>;

    /// When a record was written last, on the store's clock; nothing where there is none.
    ///
    /// # Errors
    /// If the store refuses.
    fn written(&self, name: &str) -> Result<Option<SystemTime>, Error>;
}

/// How the address of a folder may begin.
const FOLDER: &str = "file://";

/// The store that a text names: a folder, or the address of a bucket.
///
/// # Errors
/// Where the text names none, or the store cannot be reached.
pub fn open(text: &str) -> Result<Arc<dyn Store>, Error> {
    match text.split_once("://") {
        None | Some(("file", _)) => {
            Ok(Arc::new(FolderStore::open(Path::new(text.strip_prefix(FOLDER).unwrap_or(text)))?))
        }
        Some(("s3" | "gs" | "az", _)) => bucket(text),
        Some((scheme, _)) => {
            let mend =
                format!("'{scheme}' is not known here; give a folder, or a bucket as s3://, gs:// or az://");
            Err(Error::NoStore { came: text.to_owned(), mend })
        }
    }
}

#[cfg(feature = "buckets")]
fn bucket(address: &str) -> Result<Arc<dyn Store>, Error> {
    Ok(Arc::new(crate::BucketStore::open(address)?))
}

#[cfg(not(feature = "buckets"))]
fn bucket(address: &str) -> Result<Arc<dyn Store>, Error> {
    let mend = "this program was built without its feature 'buckets'; build it with that, or give a folder";
    Err(Error::NoStore { came: address.to_owned(), mend: mend.to_owned() })
}
