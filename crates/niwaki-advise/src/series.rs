//! Which files belong to one run.

use crate::Error;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

/// Endings of dumps and tallies.
const ENDINGS: [&str; 5] = ["jsonl", "ndjson", "npz", "parquet", TALLY];

/// The ending of tallies.
const TALLY: &str = "tally";

/// Whether a file is a tally, by its name.
#[must_use]
pub fn is_tally(file: &Path) -> bool {
    file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case(TALLY))
}

/// How files given together are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Runs {
    /// Names that differ in digits alone are one run, any others are runs of their own.
    #[default]
    ByName,
    /// All files are one run.
    Joined,
    /// Every file is a run of its own.
    Apart,
}

/// The files of each run, in the order in which they were given. A folder stands for the dumps in it, which are one run; so does a
/// pattern such as `dumps/step-*.npz` for the files whose names it fits.
///
/// # Errors
/// Where a folder cannot be listed, or holds no dump, or nothing fits a pattern, or a run has a file twice.
pub fn series(given: &[PathBuf], runs: Runs) -> Result<Vec<Vec<PathBuf>>, Error> {
    let mut found: Vec<(String, Vec<PathBuf>)> = Vec::new();
    for path in given {
        let (key, files) = if path.is_dir() {
            (path.display().to_string(), dumps(path)?)
        } else if is_pattern(path) {
            (path.display().to_string(), fitting(path)?)
        } else {
            (pattern(path), vec![path.clone()])
        };
        let known = match runs {
            Runs::ByName => found.iter_mut().find(|(known, _)| *known == key),
            Runs::Joined => found.first_mut(),
            Runs::Apart => None,
        };
        match known {
            Some((_, run)) => run.extend(files),
            None => found.push((key, files)),
        }
    }
    found.into_iter().map(|(_, files)| once(files)).collect()
}

/// The files of a run, if each is there once.
fn once(files: Vec<PathBuf>) -> Result<Vec<PathBuf>, Error> {
    let mut seen = HashSet::new();
    // A file that cannot be found is refused where it is read.
    let known = |file: &Path| file.canonicalize().unwrap_or_else(|_| file.to_path_buf());
    match files.iter().find(|file| !seen.insert(known(file))) {
        Some(file) => Err(Error::Twice { file: file.display().to_string() }),
        None => Ok(files),
    }
}

/// The dumps in a folder, in the order of their names.
fn dumps(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let is_dump = |name: &str| {
        let ending = Path::new(name).extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        ENDINGS.contains(&ending.as_str())
    };
    let files = listed(folder, &is_dump)?;
    if files.is_empty() { Err(Error::NoDump { folder: folder.display().to_string() }) } else { Ok(files) }
}

/// Whether a shell left a pattern as it was written: no file has that name.
fn is_pattern(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.contains(['*', '?']) && !path.exists()
}

/// The files that fit a pattern, in the order of their names.
fn fitting(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let wanted: Vec<char> = path.file_name().unwrap_or_default().to_string_lossy().chars().collect();
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let files = listed(folder, &|name| fits(&wanted, &name.chars().collect::<Vec<_>>()))?;
    if files.is_empty() { Err(Error::NothingFits { pattern: path.display().to_string() }) } else { Ok(files) }
}

/// Whether a name fits a pattern, in which `*` stands for any letters and `?` for one.
fn fits(pattern: &[char], name: &[char]) -> bool {
    let (mut at, mut read) = (0, 0);
    // The last star, and the first letter that it does not stand for yet.
    let mut star: Option<(usize, usize)> = None;
    while read < name.len() {
        match (pattern.get(at), star) {
            (Some('*'), _) => {
                star = Some((at, read));
                at += 1;
            }
            (Some(wanted), _) if *wanted == '?' || *wanted == name[read] => {
                (at, read) = (at + 1, read + 1);
            }
            (_, Some((place, next))) => {
                (at, read) = (place + 1, next + 1);
                star = Some((place, next + 1));
            }
            (_, None) => return false,
        }
    }
    pattern[at..].iter().all(|left| *left == '*')
}

/// The files of a folder with such names, in the order of their names, where 2 comes before 10.
fn listed(folder: &Path, wanted: &dyn Fn(&str) -> bool) -> Result<Vec<PathBuf>, Error> {
    let refuse = |source| Error::File { file: folder.display().to_string(), source };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(refuse)? {
        let path = entry.map_err(refuse)?.path();
        if wanted(&path.file_name().unwrap_or_default().to_string_lossy()) && path.is_file() {
            files.push(path);
        }
    }
    files.sort_by_cached_key(|file| (by_number(&file.display().to_string()), file.clone()));
    Ok(files)
}

/// A name whose numbers sort by their size: each is led by how long it is.
fn by_number(name: &str) -> String {
    let mut key = String::with_capacity(name.len() + 8);
    let mut rest = name;
    while let Some(at) = rest.find(|letter: char| letter.is_ascii_digit()) {
        let (before, from) = rest.split_at(at);
        let end = from.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(from.len());
        let digits = from[..end].trim_start_matches('0');
        key.push_str(&format!("{before}{:03}{digits}", digits.len()));
        rest = &from[end..];
    }
    key + rest
}

/// A path with every number in its file's name made the same.
fn pattern(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut pattern = path.parent().map(|folder| format!("{}/", folder.display())).unwrap_or_default();
    let mut digits = false;
    for letter in name.chars() {
        if !letter.is_ascii_digit() {
            pattern.push(letter);
        } else if !digits {
            pattern.push('#');
        }
        digits = letter.is_ascii_digit();
    }
    pattern
}

/// A run's files in a few words.
#[must_use]
pub fn named(files: &[PathBuf]) -> String {
    let name = |file: &PathBuf| file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned();
    match files {
        [] => String::new(),
        [one] if one.as_os_str() == "-" => "standard input".to_owned(),
        [one] => name(one),
        [first, .., last] => format!("{} … {} ({} files)", name(first), name(last), files.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_names_make_a_run() {
        let files =
            ["a.jsonl", "b.jsonl", "x/step-1.npz", "x/step-10.npz", "y/step-2.npz"].map(PathBuf::from);
        let sizes = |runs| series(&files, runs).unwrap().iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(sizes(Runs::ByName), [1, 1, 2, 1]);
        assert_eq!(sizes(Runs::Joined), [5]);
        assert_eq!(sizes(Runs::Apart), [1; 5]);
        assert_eq!(named(&files[2..4]), "step-1.npz … step-10.npz (2 files)");
        assert_eq!(named(&files[..1]), "a.jsonl");
    }

    #[test]
    fn a_pattern_is_one_run_in_the_order_of_its_numbers() {
        let folder = std::env::temp_dir().join(format!("niwaki-series-{}", std::process::id()));
        std::fs::create_dir(&folder).unwrap();
        for name in ["step-10.jsonl", "step-9.jsonl", "other.jsonl", "step-1.txt"] {
            std::fs::write(folder.join(name), "").unwrap();
        }
        let names = |pattern: &str| {
            series(&[folder.join(pattern)], Runs::Apart).map(|runs| {
                runs.iter().flatten().map(|file| named(std::slice::from_ref(file))).collect::<Vec<_>>()
            })
        };
        assert_eq!(names("step-*.jsonl").unwrap(), ["step-9.jsonl", "step-10.jsonl"]);
        assert_eq!(names("step-?.*").unwrap(), ["step-1.txt", "step-9.jsonl"]);
        assert!(matches!(names("none-*.jsonl"), Err(Error::NothingFits { .. })));
        // A file may have such a name.
        if std::fs::write(folder.join("a*.jsonl"), "").is_ok() {
            assert_eq!(names("a*.jsonl").unwrap(), ["a*.jsonl"]);
        }
        assert_eq!(
            series(std::slice::from_ref(&folder), Runs::ByName).unwrap()[0].len(),
            names("*.jsonl").unwrap().len()
        );
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_run_has_no_file_twice() {
        let twice = [PathBuf::from("a.jsonl"), PathBuf::from("a.jsonl")];
        assert!(matches!(series(&twice, Runs::ByName), Err(Error::Twice { .. })));
        assert_eq!(series(&twice, Runs::Apart).unwrap().len(), 2);
    }
}
