//! A file of a shop: what was recognised, and what the file leaves open.

use super::json::Node;
use super::{Format, job_shop_lib, schedule_opt};
use crate::general::Shop;
use crate::{Error, Instance, Result};
use std::path::Path;

/// A file that was understood.
#[derive(Clone, Debug)]
pub struct Recognised {
    /// The problem.
    pub instance: Instance,
    /// The layout in which it was read.
    pub format: Format,
    /// What the file leaves open and how it was settled, if anything.
    pub open: Option<&'static str>,
}

/// A file's text, without a byte-order mark.
///
/// # Errors
/// If it cannot be read or is no UTF-8.
pub(crate) fn text_of(path: &Path) -> Result<String> {
    let named = |what: String| Error::File { path: path.display().to_string(), what };
    let bytes = niwaki_files::read_bytes(path).map_err(|error| named(error.to_string()))?;
    const MEND: &str = "save it as .xlsx or as text (CSV) in UTF-8";
    let kind = match &bytes[..] {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("is text in UTF-16"),
        [0xd0, 0xcf, 0x11, 0xe0, ..] => Some("is a workbook of an old kind (.xls)"),
        [b'P', b'K', 3, 4, ..] => Some("is a packed file, such as .ods; a .xlsx file needs that ending"),
        _ => None,
    };
    if let Some(kind) = kind {
        return Err(named(format!("{kind}; {MEND}")));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        named(format!("line {line}: expected text in UTF-8; {MEND}"))
    })?;
    Ok(text.strip_prefix('\u{feff}').map_or_else(|| text.clone(), str::to_owned))
}

/// Whether a JSON text is a plan's.
///
/// # Errors
/// If it is broken.
pub(crate) fn is_plan(text: &str) -> Result<bool> {
    let root = Node::parse(text)?;
    let kind = root.object("an object")?.get("kind");
    Ok(kind.is_some_and(|kind| kind.text("the problem's name").is_ok_and(|kind| kind == "shop")))
}

/// Reads what a special layout holds beyond the special problems: dates, and jobs that are no chains; nothing if it does
/// not.
///
/// # Errors
/// The first mistake, with line and column.
pub(crate) fn read_general(text: &str) -> Result<Option<(Shop, Format)>> {
    if let Some(shop) = job_shop_lib::read_dated(text)? {
        return Ok(Some((shop, Format::JobShopLib)));
    }
    Ok(schedule_opt::read_assembly(text)?.map(|shop| (shop, Format::ScheduleOpt)))
}

/// Reads a file, in a layout that is named or in the one that it has. The ending `.fjs` settles a layout that the text
/// leaves open.
///
/// # Errors
/// If the file cannot be read, or its first mistake; both name the file.
pub fn recognise(path: &Path, format: Option<Format>) -> Result<Recognised> {
    let named = |what: String| Error::File { path: path.display().to_string(), what };
    let text = &text_of(path)?;
    let is_fjs = path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("fjs"));
    let settled = format.or(is_fjs.then_some(Format::Fjs));
    let format =
        settled.map_or_else(|| Format::detect(text), Ok).map_err(|error| named(error.to_string()))?;
    let instance = format.read(text).map_err(|error| named(error.to_string()))?;
    let open = (settled.is_none() && format.could_be_flow_shop(text)).then_some(
        "every job visits the machines in order: machines may serve the jobs in different orders; read it in the layout \
         `pairs` for one common order",
    );
    Ok(Recognised { instance, format, open })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_in_other_encodings_are_refused_with_the_mend() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("plan.csv");
        for (bytes, what) in [
            (&b"\xff\xfej\0o\0b\0"[..], "is text in UTF-16"),
            (b"\xd0\xcf\x11\xe0\xa1", "is a workbook of an old kind (.xls)"),
            (b"PK\x03\x04", "is a packed file, such as .ods; a .xlsx file needs that ending"),
            (b"job,machine,time\nK\xfcbel,m,1\n", "line 2: expected text in UTF-8"),
        ] {
            std::fs::write(&path, bytes).unwrap();
            let line = text_of(&path).unwrap_err().to_string();
            assert!(line.ends_with(&format!("{what}; save it as .xlsx or as text (CSV) in UTF-8")), "{line}");
        }
    }
}
