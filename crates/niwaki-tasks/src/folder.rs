//! A user's own instances: a folder of files, all of one kind, some of them held out. All are of one shape, too, unless they
//! are flexible shops, whose view knows no shape.

use crate::{Error, Shop};
use niwaki_files::Digest;
use niwaki_shop::Instance;
use niwaki_shop::formats::load;
use niwaki_shop::generate::Size;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

/// Endings of files that are read as instances; files without an ending are, too.
const ENDINGS: [&str; 3] = ["txt", "fjs", "json"];

/// Instances from files, in the order of their names; the last ones are held out to be judged on.
#[derive(Clone, Debug)]
pub struct InstanceFolder {
    names: Vec<String>,
    instances: Vec<Instance>,
    training: usize,
    digest: String,
}

impl InstanceFolder {
    /// Reads the instances of a folder; the last `validation` of them are held out, a third where absent.
    ///
    /// # Errors
    /// The first file that cannot be read, is of another kind than `shop` or of another shape than the first one; or if
    /// there are not enough of them.
    pub fn read(folder: &Path, shop: Shop, validation: Option<usize>) -> Result<Self, Error> {
        let files = files(folder)?;
        let (mut names, mut instances, mut digest) = (Vec::new(), Vec::new(), Digest::default());
        for path in &files {
            let bytes = niwaki_files::read_bytes(path).map_err(|error| refuse(path, error.to_string()))?;
            let instance = shop.accept(load(path)?).map_err(|error| refuse(path, error.to_string()))?;
            if let Some(first) = instances.first().filter(|_| !matches!(shop, Shop::Flexible { .. }))
                && shape(first) != shape(&instance)
            {
                let reason = format!(
                    "{}, but {} has {}; all instances of a folder must have one shape",
                    words(&instance),
                    names[0],
                    words(first)
                );
                return Err(refuse(path, reason));
            }
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            digest = digest.and(&name).and([0]).and(&bytes).and([0]);
            names.push(name);
            instances.push(instance);
        }
        if instances.len() < 2 {
            let reason = format!(
                "{} instance files (named *.txt, *.fjs, *.json or without an ending); give at least 2, one to learn from and one to be judged on",
                instances.len()
            );
            return Err(refuse(folder, reason));
        }
        let held_out = validation.unwrap_or((instances.len() / 3).max(1));
        if held_out == 0 || held_out >= instances.len() {
            let reason = format!(
                "{held_out} instances to be judged on, of {}; give a number from 1 to {}",
                instances.len(),
                instances.len() - 1
            );
            return Err(refuse(folder, reason));
        }
        let training = instances.len() - held_out;
        Ok(Self { names, instances, training, digest: digest.to_string() })
    }

    /// The files' names.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The instances, those to learn from first.
    #[must_use]
    pub fn instances(&self) -> &[Instance] {
        &self.instances
    }

    /// The most jobs and the most machines of an instance.
    #[must_use]
    pub fn size(&self) -> Size {
        let most = |size: fn(&Instance) -> usize| self.instances.iter().map(size).max().unwrap_or(0);
        Size { jobs: most(Instance::jobs), machines: most(Instance::machines) }
    }

    /// How many are to learn from.
    #[must_use]
    pub const fn training(&self) -> usize {
        self.training
    }

    /// 16 hexadecimal digits that change with a file's name or content: FNV-1a of all of them.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }
}

/// The instance files of a folder, by name.
fn files(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let refused = |error: std::io::Error| refuse(folder, error.to_string());
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).map_err(refused)? {
        let path = entry.map_err(refused)?.path();
        let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        let known = path
            .extension()
            .is_none_or(|ending| ENDINGS.iter().any(|known| ending.eq_ignore_ascii_case(OsStr::new(known))));
        if path.is_file() && known && !hidden {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn shape(instance: &Instance) -> (usize, usize, usize) {
    (instance.jobs(), instance.machines(), instance.operations())
}

fn words(instance: &Instance) -> String {
    let (jobs, machines, operations) = shape(instance);
    format!("{jobs} jobs, {machines} machines and {operations} operations")
}

fn refuse(path: &Path, reason: String) -> Error {
    Error::Instances { path: path.to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder with some files.
    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(folder.path().join(name), text).unwrap();
        }
        folder
    }

    const TWO: &str = "2 2\n0 3 1 2\n0 1 1 4\n";
    const OTHER: &str = "2 2\n0 5 1 2\n0 1 1 4\n";
    const THREE: &str = "3 2\n0 3 1 2\n0 1 1 4\n0 1 1 1\n";

    #[test]
    fn files_are_read_by_name_and_the_last_are_held_out() {
        let files = [("b.txt", OTHER), ("a.txt", TWO), ("c", TWO), ("notes.md", "no"), (".d.txt", "no")];
        let folder = folder(&files);
        let read = |validation| InstanceFolder::read(folder.path(), Shop::Flow, validation).unwrap();
        let given = read(None);
        // A third of three is one.
        assert_eq!(
            (given.names(), given.training()),
            (["a.txt", "b.txt", "c"].map(String::from).as_slice(), 2)
        );
        assert_eq!(read(Some(2)).training(), 1);
        assert!(matches!(&given.instances()[1], Instance::Flow(shop) if shop.time(0, 0) == 5));
        // Read as job shops, all routes are 0, 1.
        let jobs = InstanceFolder::read(folder.path(), Shop::Job, None).unwrap();
        assert!(matches!(&jobs.instances()[1], Instance::Job(shop) if shop.route(0)[0].time == 5));
        // Read as flexible shops, every operation has one machine, and sizes may differ.
        fs::write(folder.path().join("c"), THREE).unwrap();
        let flexible = Shop::Flexible { draw: niwaki_shop::generate::Task::Sd1 };
        let all = InstanceFolder::read(folder.path(), flexible, None).unwrap();
        assert!(matches!(&all.instances()[1], Instance::Flexible(shop) if shop.time(0, 0) == Some(5)));
        assert_eq!(all.size(), Size { jobs: 3, machines: 2 });
        fs::write(folder.path().join("c"), OTHER).unwrap();
        assert_ne!(read(None).digest(), given.digest());
        fs::write(folder.path().join("c"), TWO).unwrap();
        assert_eq!(read(None).digest(), given.digest());
        fs::rename(folder.path().join("c"), folder.path().join("d")).unwrap();
        assert_ne!(read(None).digest(), given.digest());
    }

    #[test]
    fn what_cannot_be_played_is_named() {
        let refused = |files: &[(&str, &str)], shop, validation| {
            let folder = folder(files);
            let line = InstanceFolder::read(folder.path(), shop, validation).unwrap_err().to_string();
            line.replace(&folder.path().display().to_string(), "F")
        };
        assert_eq!(
            refused(&[("a.txt", TWO), ("b.txt", THREE)], Shop::Flow, None),
            "F/b.txt: 3 jobs, 2 machines and 6 operations, but a.txt has 2 jobs, 2 machines and 4 operations; all instances of a folder must have one shape"
        );
        assert!(refused(&[("a.txt", TWO)], Shop::Flow, None).starts_with("F: 1 instance files"));
        let broken = refused(&[("a.txt", TWO), ("b.txt", "2 2\n0 3 1 x\n0 1 1 4\n")], Shop::Flow, None);
        assert!(broken.starts_with("F/b.txt: line 2, column 7"), "{broken}");
        assert_eq!(
            refused(&[("a.txt", "2 2\n1 3 0 2\n0 1 1 4\n"), ("b.txt", TWO)], Shop::Flow, None),
            "F/a.txt: this is a job shop, but the task is 'flow-shop'"
        );
        assert!(
            refused(&[("a", TWO), ("b", TWO)], Shop::Flow, Some(2)).contains("give a number from 1 to 1")
        );
    }
}
