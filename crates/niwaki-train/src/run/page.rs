//! The page of a run. `niwaki train` writes it every minute, when it says that the run is not finished, and after the summary; a
//! run that goes on takes it away before the summary: where the page says that the run is done, it is. Another program's file
//! under the same name is left alone.

use super::folder::Folder;
use crate::Error;
use niwaki_files::read_own_text;
use niwaki_page::Page;
use std::io;
use std::path::Path;

/// Its name.
pub const PAGE: &str = "index.html";

/// The command that it names as its maker; the same wherever the folder lies, and what it is recognised by.
pub const PAGE_COMMAND: &str = "niwaki train spec.toml";

/// The same on the page of another trainer's run.
pub const OWN_PAGE_COMMAND: &str = "niwaki.Run";

/// Whether something stands in the page's place that is not the page of a run.
#[must_use]
pub fn page_is_foreign(folder: &Path) -> bool {
    match read_own_text(&folder.join(PAGE)) {
        Ok(bytes) => !std::str::from_utf8(&bytes).is_ok_and(|text| {
            [PAGE_COMMAND, OWN_PAGE_COMMAND].iter().any(|command| Page::is_made_by(text, command))
        }),
        Err(error) => error.kind() != io::ErrorKind::NotFound,
    }
}

impl Folder {
    /// Takes away the page of an earlier run.
    pub(super) fn remove_page(&self) -> Result<(), Error> {
        if page_is_foreign(self.path()) { Ok(()) } else { self.remove(PAGE) }
    }
}
