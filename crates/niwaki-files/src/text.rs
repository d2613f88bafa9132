//! Texts that people bring: read whole, up to a size that no sound one has.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

/// Bytes of the longest text: a hundred times the largest published instance. A device or a sparse file has more, and
/// would otherwise be read until the memory is full.
pub const LONGEST_TEXT: u64 = 1 << 28;

/// A file's bytes, as far as a text may go.
///
/// # Errors
/// If the disk refuses, or the file goes on beyond [`LONGEST_TEXT`] (of the kind [`io::ErrorKind::FileTooLarge`]).
pub fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    let (mut bytes, file) = (Vec::new(), File::open(path)?);
    // What a file claims to have is not believed where it is more than a text may have.
    let claimed = file.metadata()?.len();
    if claimed <= LONGEST_TEXT {
        file.take(LONGEST_TEXT + 1).read_to_end(&mut bytes)?;
    }
    if claimed > LONGEST_TEXT || bytes.len() as u64 > LONGEST_TEXT {
        let reason = format!("longer than {} MB, which no sound one is", LONGEST_TEXT >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, reason));
    }
    Ok(bytes)
}

/// The bytes of a file that we wrote, of any size. A pipe or a device in its place has no end, and is none.
///
/// # Errors
/// If the disk refuses, or it is not a file (of the kind [`io::ErrorKind::InvalidInput`]).
pub fn read_own(path: &Path) -> io::Result<Vec<u8>> {
    has_an_end(path)?;
    fs::read(path)
}

/// The bytes of a text that we wrote, which is never longer than one that people bring.
///
/// # Errors
/// As [`read_own`] and [`read_bytes`].
pub fn read_own_text(path: &Path) -> io::Result<Vec<u8>> {
    has_an_end(path)?;
    read_bytes(path)
}

/// Refuses what nobody wrote whole. Asked of the name: opening a pipe would wait for a writer.
fn has_an_end(path: &Path) -> io::Result<()> {
    let there = fs::metadata(path)?;
    if there.is_file() || there.is_dir() {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "a pipe or a device stands in its place"))
}

/// A file's text.
///
/// # Errors
/// As [`read_bytes`], and where it is no UTF-8 (of the kind [`io::ErrorKind::InvalidData`]).
pub fn read_text(path: &Path) -> io::Result<String> {
    String::from_utf8(read_bytes(path)?).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
        io::Error::new(io::ErrorKind::InvalidData, format!("line {line}: expected text in UTF-8"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("text");
        fs::write(&path, "a\nb").unwrap();
        assert_eq!(read_text(&path).unwrap(), "a\nb");
        fs::write(&path, b"a\n\xff").unwrap();
        assert!(read_text(&path).unwrap_err().to_string().starts_with("line 2: expected text"));
        File::create(&path).unwrap().set_len(LONGEST_TEXT + 1).unwrap();
        assert_eq!(read_text(&path).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(read_own_text(&path).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        let endless = Path::new("/dev/zero");
        if endless.exists() {
            assert!(read_own(endless).unwrap_err().to_string().contains("a pipe or a device"));
            assert!(read_own_text(endless).unwrap_err().to_string().contains("a pipe or a device"));
            assert!(read_text(endless).unwrap_err().to_string().contains("longer than 256 MB"));
        }
        assert!(read_text(folder.path()).is_err() && read_text(&folder.path().join("none")).is_err());
    }
}
