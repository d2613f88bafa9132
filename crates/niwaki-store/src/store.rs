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

/// The store that a text names: a folder.
///
/// # Errors
/// Where the text names none, or the store cannot be reached.
pub fn open(text: &str) -> Result<Arc<dyn Store>, Error> {
    if let Some((scheme, _)) = text.split_once("://") {
        let mend = format!("'{scheme}' is not known here; give a folder");
        return Err(Error::NoStore { came: text.to_owned(), mend });
    }
    Ok(Arc::new(FolderStore::open(Path::new(text))?))
}
