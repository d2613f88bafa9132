//! Safetensors, one file or many.

use super::{Packing, Place, Source, map};
use crate::{Error, Result};
use memmap2::Mmap;
use niwaki_files::{Digest, read_own_text};
use safetensors::tensor::{Dtype, SafeTensors};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The one file of a small checkpoint.
pub(crate) const WHOLE: &str = "model.safetensors";
/// Which file of a large checkpoint has which tensor.
const INDEX: &str = "model.safetensors.index.json";

/// The safetensors of a folder.
#[derive(Debug)]
pub struct Shards {
    folder: PathBuf,
    files: Vec<(PathBuf, Mmap)>,
    tensors: BTreeMap<String, Place>,
}

impl Shards {
    /// Maps the files of a folder and reads where their tensors lie.
    ///
    /// # Errors
    /// If there are none, one is cut short, or the index names a tensor that its file has not.
    pub fn open(folder: &Path) -> Result<Self> {
        let index = folder.join(INDEX);
        let mut shards = Self { folder: folder.to_owned(), files: Vec::new(), tensors: BTreeMap::new() };
        if !index.exists() {
            shards.add(&folder.join(WHOLE))?;
            return Ok(shards);
        }
        let text = read_own_text(&index).map_err(|error| Error::file(&index, error))?;
        let read: Value = serde_json::from_slice(&text).map_err(|error| Error::file(&index, error))?;
        let Some(listed) = read["weight_map"].as_object() else {
            return Err(Error::key(&index, "weight_map", "is missing"));
        };
        let mut names: Vec<&str> = listed.values().filter_map(Value::as_str).collect();
        names.sort_unstable();
        names.dedup();
        for name in names {
            if Path::new(name).components().count() != 1 {
                return Err(Error::key(
                    &index,
                    "weight_map",
                    format!("'{name}' is not a file of this folder"),
                ));
            }
            shards.add(&folder.join(name))?;
        }
        match listed.keys().find(|name| !shards.tensors.contains_key(*name)) {
            Some(name) => Err(Error::tensor(&index, name, "is in the index and in none of its files")),
            None => Ok(shards),
        }
    }

    fn add(&mut self, path: &Path) -> Result<()> {
        let bytes = map(path)?;
        let (size, header) = SafeTensors::read_metadata(&bytes)
            .map_err(|error| Error::file(path, format!("no whole safetensors file: {error}")))?;
        // Eight bytes say how long the header is.
        let start = 8 + size;
        // By name, so that of several wrong ones always the same is named.
        let tensors: BTreeMap<_, _> = header.tensors().into_iter().collect();
        for (name, info) in tensors {
            let packing = match info.dtype {
                Dtype::F32 => Packing::F32,
                Dtype::F16 => Packing::F16,
                Dtype::BF16 => Packing::Bf16,
                other => {
                    let reason = format!("is stored as {other:?}; F32, F16 and BF16 are read");
                    return Err(Error::tensor(path, &name, reason));
                }
            };
            let (first, last) = info.data_offsets;
            let place = Place {
                file: self.files.len(),
                shape: info.shape.clone(),
                packing,
                bytes: start + first..start + last,
            };
            self.tensors.insert(name, place);
        }
        self.files.push((path.to_owned(), bytes));
        Ok(())
    }

    fn place(&self, name: &str) -> Result<&Place> {
        self.tensors.get(name).ok_or_else(|| Error::tensor(&self.folder, name, "is missing"))
    }
}

impl Source for Shards {
    fn shape(&self, name: &str) -> Result<Vec<usize>> {
        Ok(self.place(name)?.shape.clone())
    }

    fn scalars(&self, name: &str) -> Result<Vec<f32>> {
        let place = self.place(name)?;
        let (path, bytes) = &self.files[place.file];
        let bytes = bytes.get(place.bytes.clone());
        let bytes = bytes.ok_or_else(|| Error::tensor(path, name, "lies behind the end of the file"))?;
        Ok(place.packing.unpack(bytes))
    }

    fn digest(&self, digest: Digest) -> Digest {
        self.files.iter().fold(digest, |digest, (_, bytes)| digest.and(bytes))
    }

    fn path(&self) -> &Path {
        &self.folder
    }
}
