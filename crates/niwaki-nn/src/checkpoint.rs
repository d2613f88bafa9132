//! One member's parameters and optimiser state in one safetensors file.
//!
//! Tensors carry the layout's names (`moments.0.` and `moments.1.` before them for Adam's state); the header's single
//! metadata entry `niwaki` is a JSON object with the file format's version, the steps taken, the checksum of the whole file
//! with zeros in the checksum's place, and whatever state the trainer adds. One file, renamed into place when it is whole
//! on disk: a killed run finds the old or the new one. What is not finite is neither written nor read.

use crate::cpu::Real;
use crate::layout::{Layout, Slice};
use crate::{Error, Result};
use niwaki_files::{Digest, read_own, write_atomically};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

/// The metadata entry that marks a file as ours.
const ENTRY: &str = "niwaki";
/// Version of the file format.
const VERSION: u32 = 2;
/// What stands before the checksum in the file: the entry is a string inside JSON, so its quotes are escaped.
const BEFORE_SUM: &[u8] = br#"\"sum\":\""#;
/// What stands in the checksum's place while it is taken.
const NO_SUM: &str = "0000000000000000";

/// A scalar as files hold it.
pub trait Stored: Real {
    /// Its name in the file.
    const DTYPE: Dtype;
    /// Appends its bytes, the lowest first.
    fn put(self, bytes: &mut Vec<u8>);
    /// Reads them back.
    fn get(bytes: &[u8]) -> Self;
}

macro_rules! stored {
    ($scalar:ty, $dtype:ident) => {
        impl Stored for $scalar {
            const DTYPE: Dtype = Dtype::$dtype;

            fn put(self, bytes: &mut Vec<u8>) {
                bytes.extend_from_slice(&self.to_le_bytes());
            }

            fn get(bytes: &[u8]) -> Self {
                bytes.try_into().map_or(Self::NAN, Self::from_le_bytes)
            }
        }
    };
}

stored!(f32, F32);
stored!(f64, F64);

/// What a member needs to go on.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint<F = f32> {
    /// Flat parameters, `[layout.len()]`.
    pub parameters: Vec<F>,
    /// The optimiser's flat moments, each `[layout.len()]`.
    pub moments: Vec<Vec<F>>,
    /// Optimiser steps taken.
    pub steps: u64,
    /// Whatever else the caller wants back.
    pub state: serde_json::Value,
}

#[derive(Serialize, Deserialize)]
struct Header {
    version: u32,
    steps: u64,
    moments: usize,
    // Before the state, which may hold anything.
    sum: String,
    state: serde_json::Value,
}

impl<F: Stored> Checkpoint<F> {
    /// Writes the checkpoint to a file beside `path`, flushes it to the disk and renames it into place.
    ///
    /// The same checkpoint always gives the same bytes.
    ///
    /// # Errors
    /// If a buffer does not fit the layout or holds what is not finite, or the disk refuses; the old file is then still there.
    pub fn save(&self, layout: &Layout, path: &Path) -> Result<()> {
        let refuse = |reason: String| Error::Checkpoint { path: path.to_owned(), reason };
        for buffer in std::iter::once(&self.parameters).chain(&self.moments) {
            if buffer.len() != layout.len() {
                return Err(refuse(format!(
                    "a buffer has {} scalars, the layout {}",
                    buffer.len(),
                    layout.len()
                )));
            }
        }
        self.check_finite(layout, path)?;
        let bytes = self.encode(layout).map_err(|error| refuse(error.to_string()))?;
        write_atomically(path, &bytes).map_err(|error| refuse(error.to_string()))
    }

    fn encode(&self, layout: &Layout) -> std::result::Result<Vec<u8>, Box<dyn std::error::Error>> {
        let mut stored = Vec::new();
        for (prefix, buffer) in self.buffers() {
            for slice in layout.slices() {
                let mut bytes = Vec::with_capacity(slice.len() * size_of::<F>());
                buffer[slice.range()].iter().for_each(|scalar| scalar.put(&mut bytes));
                stored.push((format!("{prefix}{}", slice.name), slice.shape.clone(), bytes));
            }
        }
        let mut views = Vec::with_capacity(stored.len());
        for (name, shape, bytes) in &stored {
            views.push((name, TensorView::new(F::DTYPE, shape.clone(), bytes)?));
        }
        let (steps, moments, state) = (self.steps, self.moments.len(), self.state.clone());
        sealed(views, Header { version: VERSION, steps, moments, sum: String::new(), state })
    }

    /// Refuses numbers that no policy can go on from.
    fn check_finite(&self, layout: &Layout, path: &Path) -> Result<()> {
        for (prefix, buffer) in self.buffers() {
            for slice in layout.slices() {
                if buffer[slice.range()].iter().any(|scalar| !scalar.to_f64().is_finite()) {
                    let tensor = format!("{prefix}{}", slice.name);
                    return Err(Error::NotFinite { path: path.to_owned(), tensor });
                }
            }
        }
        Ok(())
    }

    fn buffers(&self) -> impl Iterator<Item = (String, &Vec<F>)> {
        let moments = self.moments.iter().enumerate().map(|(place, moment)| (prefix(place), moment));
        std::iter::once((String::new(), &self.parameters)).chain(moments)
    }

    /// Reads a checkpoint of a policy with this layout.
    ///
    /// # Errors
    /// If the file is missing, truncated, changed since it was written, not ours, of another version, of a policy with
    /// another shape, or holds what is not finite.
    pub fn load(layout: &Layout, path: &Path) -> Result<Self> {
        Self::decode(layout, &read(path)?, path)
    }

    /// Reads a checkpoint of a policy with this layout from the bytes of its file; `path` names it.
    ///
    /// # Errors
    /// As [`Checkpoint::load`], but for a missing file.
    pub fn decode(layout: &Layout, bytes: &[u8], path: &Path) -> Result<Self> {
        let refuse = |reason: String| Error::Checkpoint { path: path.to_owned(), reason };
        let header = vouched(bytes).map_err(refuse)?;
        let tensors = SafeTensors::deserialize(bytes).map_err(|error| refuse(damaged(error)))?;
        let (each, found) = (layout.slices().len(), tensors.len());
        // A header may claim any number of moments; only as many count as the file has tensors for.
        if header.moments.checked_add(1).and_then(|buffers| buffers.checked_mul(each)) != Some(found) {
            return Err(refuse(format!(
                "{found} tensors, the policy has {each} and as many for each of {} moments: it is of another policy",
                header.moments
            )));
        }
        let read = |prefix: &str| -> Result<Vec<F>> {
            let mut flat = vec![F::ZERO; layout.len()];
            for slice in layout.slices() {
                read_slice(&tensors, prefix, slice, &mut flat[slice.range()]).map_err(refuse)?;
            }
            Ok(flat)
        };
        let parameters = read("")?;
        let moments = (0..header.moments).map(|place| read(&prefix(place))).collect::<Result<_>>()?;
        let kept = Self { parameters, moments, steps: header.steps, state: header.state };
        kept.check_finite(layout, path)?;
        Ok(kept)
    }
}

/// What a caller stored with a checkpoint, whatever its policy; the file is read whole and its checksum held against it.
///
/// # Errors
/// If the file is missing, truncated, changed since it was written, not ours or of another version.
pub fn checkpoint_state(path: &Path) -> Result<serde_json::Value> {
    checkpoint_state_of(&read(path)?, path)
}

/// What a caller stored with a checkpoint, from the bytes of its file; `path` names it.
///
/// # Errors
/// As [`checkpoint_state`], but for a missing file.
pub fn checkpoint_state_of(bytes: &[u8], path: &Path) -> Result<serde_json::Value> {
    let refuse = |reason: String| Error::Checkpoint { path: path.to_owned(), reason };
    Ok(vouched(bytes).map_err(refuse)?.state)
}

/// Copies a checkpoint without the optimiser's moments: what schedules and scores, but does not go on training.
///
/// # Errors
/// If the file is not as it was written, or the disk refuses.
pub fn copy_without_moments(from: &Path, to: &Path) -> Result<()> {
    let refuse = |path: &Path, reason: String| Error::Checkpoint { path: path.to_owned(), reason };
    let bytes = read(from)?;
    let header = vouched(&bytes).map_err(|reason| refuse(from, reason))?;
    let tensors = SafeTensors::deserialize(&bytes).map_err(|error| refuse(from, damaged(error)))?;
    let prefixes: Vec<String> = (0..header.moments.min(tensors.len())).map(prefix).collect();
    let mut kept = tensors.tensors();
    kept.retain(|(name, _)| !prefixes.iter().any(|prefix| name.starts_with(prefix)));
    let bytes =
        sealed(kept, Header { moments: 0, ..header }).map_err(|error| refuse(from, error.to_string()))?;
    write_atomically(to, &bytes).map_err(|error| refuse(to, error.to_string()))
}

/// A tensor of another trainer's, in whatever numbers it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RawTensor {
    /// Its name in the file.
    pub name: String,
    /// Its kind as safetensors writes it: `F32`, `I64`, `U8`, …
    pub kind: String,
    /// Its sizes.
    pub shape: Vec<usize>,
    /// Its bytes, the lowest first.
    pub bytes: Vec<u8>,
}

/// Writes tensors of another trainer's with its state, in the format and with the checksum of ours.
///
/// # Errors
/// If a tensor's bytes are not those of its shape, two have one name, or the disk refuses; the old file is then still there.
pub fn save_tensors(path: &Path, tensors: &[RawTensor], state: serde_json::Value) -> Result<()> {
    let refuse = |reason: String| Error::Checkpoint { path: path.to_owned(), reason };
    let mut views = Vec::with_capacity(tensors.len());
    for tensor in tensors {
        if views.iter().any(|(name, _)| *name == tensor.name.as_str()) {
            return Err(refuse(format!("two tensors are called {}", tensor.name)));
        }
        let kind: Dtype = serde_json::from_value(tensor.kind.clone().into())
            .map_err(|_| refuse(format!("tensor {}: no kind is called {}", tensor.name, tensor.kind)))?;
        let view = TensorView::new(kind, tensor.shape.clone(), &tensor.bytes)
            .map_err(|error| refuse(format!("tensor {}: {error}", tensor.name)))?;
        views.push((tensor.name.as_str(), view));
    }
    let header = Header { version: VERSION, steps: 0, moments: 0, sum: String::new(), state };
    let bytes = sealed(views, header).map_err(|error| refuse(error.to_string()))?;
    write_atomically(path, &bytes).map_err(|error| refuse(error.to_string()))
}

/// Reads back what [`save_tensors`] wrote: the tensors by name, and the state.
///
/// # Errors
/// As [`checkpoint_state`].
pub fn load_tensors(path: &Path) -> Result<(Vec<RawTensor>, serde_json::Value)> {
    let refuse = |reason: String| Error::Checkpoint { path: path.to_owned(), reason };
    let bytes = read(path)?;
    let header = vouched(&bytes).map_err(refuse)?;
    let found = SafeTensors::deserialize(&bytes).map_err(|error| refuse(damaged(error)))?;
    let mut tensors: Vec<RawTensor> = found
        .tensors()
        .into_iter()
        .map(|(name, view)| RawTensor {
            name,
            kind: format!("{:?}", view.dtype()),
            shape: view.shape().to_vec(),
            bytes: view.data().to_vec(),
        })
        .collect();
    tensors.sort_by(|one, other| one.name.cmp(&other.name));
    Ok((tensors, header.state))
}

fn read(path: &Path) -> Result<Vec<u8>> {
    read_own(path).map_err(|error| Error::Checkpoint { path: path.to_owned(), reason: error.to_string() })
}

/// Puts another state into a checkpoint; its numbers stay to the bit.
///
/// # Errors
/// If the file is not as it was written, or the disk refuses.
pub fn restate_checkpoint(path: &Path, state: serde_json::Value) -> Result<()> {
    let refuse = |reason: String| Error::Checkpoint { path: path.to_owned(), reason };
    let bytes = read(path)?;
    let header = Header { state, ..vouched(&bytes).map_err(refuse)? };
    let tensors = SafeTensors::deserialize(&bytes).map_err(|error| refuse(damaged(error)))?;
    let bytes = sealed(tensors.tensors(), header).map_err(|error| refuse(error.to_string()))?;
    write_atomically(path, &bytes).map_err(|error| refuse(error.to_string()))
}

/// The bytes of a file with its checksum in place.
fn sealed(
    views: Vec<(impl AsRef<str> + Ord + std::fmt::Display, TensorView<'_>)>,
    header: Header,
) -> std::result::Result<Vec<u8>, Box<dyn std::error::Error>> {
    let header = serde_json::to_string(&Header { sum: NO_SUM.to_owned(), ..header })?;
    let mut bytes = safetensors::serialize(views, Some(HashMap::from([(ENTRY.to_owned(), header)])))?;
    let place = place_of_sum(&bytes).ok_or("its header has no place for a checksum")?;
    let sum = Digest::of(&bytes).to_string();
    bytes[place].copy_from_slice(sum.as_bytes());
    Ok(bytes)
}

/// The header of a file whose bytes are those that were written.
fn vouched(bytes: &[u8]) -> std::result::Result<Header, String> {
    let (_, metadata) = SafeTensors::read_metadata(bytes).map_err(damaged)?;
    let entry = metadata.metadata().as_ref().and_then(|entries| entries.get(ENTRY));
    let entry = entry.ok_or_else(|| format!("not written by niwaki: its header has no entry `{ENTRY}`"))?;
    let unread = |error| format!("the header's entry `{ENTRY}` is damaged ({error})");
    let value: serde_json::Value = serde_json::from_str(entry).map_err(unread)?;
    if value["version"] != VERSION {
        return Err(format!("format version {}, this program reads {VERSION}", value["version"]));
    }
    let header: Header = serde_json::from_value(value).map_err(unread)?;
    let place = place_of_sum(bytes).ok_or("its header has lost its checksum")?;
    let sum = Digest::of(&bytes[..place.start]).and(NO_SUM).and(&bytes[place.end..]).to_string();
    if bytes[place] != *sum.as_bytes() || header.sum != sum {
        let said = &header.sum;
        return Err(format!(
            "its checksum is {sum} and not {said}: the file was changed after it was written"
        ));
    }
    Ok(header)
}

fn damaged(error: safetensors::SafeTensorError) -> String {
    format!("truncated, or no safetensors file ({error})")
}

/// Where a file holds its checksum.
fn place_of_sum(bytes: &[u8]) -> Option<Range<usize>> {
    let start = bytes.windows(BEFORE_SUM.len()).position(|window| window == BEFORE_SUM)? + BEFORE_SUM.len();
    let place = start..start + Digest::DIGITS;
    (place.end <= bytes.len()).then_some(place)
}

fn prefix(moment: usize) -> String {
    format!("moments.{moment}.")
}

fn read_slice<F: Stored>(
    tensors: &SafeTensors<'_>,
    prefix: &str,
    slice: &Slice,
    to: &mut [F],
) -> std::result::Result<(), String> {
    let name = format!("{prefix}{}", slice.name);
    let tensor =
        tensors.tensor(&name).map_err(|_| format!("tensor {name} is missing: it is of another policy"))?;
    if tensor.dtype() != F::DTYPE || tensor.shape() != slice.shape {
        let (dtype, shape) = (tensor.dtype(), tensor.shape());
        return Err(format!(
            "tensor {name} is {dtype:?} {shape:?}, the policy has {:?} {:?}",
            F::DTYPE,
            slice.shape
        ));
    }
    for (to, from) in to.iter_mut().zip(tensor.data().chunks_exact(size_of::<F>())) {
        *to = F::get(from);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_copy_of_the_parameters_has_no_moments() {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (folder.path().join("from.safetensors"), folder.path().join("to.safetensors"));
        let mut graph = crate::Graph::new();
        graph.param("w", &[4], crate::Init::Zeros).unwrap();
        graph.param("moments.x", &[4], crate::Init::Zeros).unwrap();
        let size = graph.layout().len();
        let state = serde_json::json!({ "spec": "x" });
        let whole = Checkpoint {
            parameters: (0..size).map(|place| place as f32).collect(),
            moments: vec![vec![4.0; size], vec![5.0; size]],
            steps: 7,
            state: state.clone(),
        };
        whole.save(graph.layout(), &from).unwrap();
        copy_without_moments(&from, &to).unwrap();
        let copied = Checkpoint::<f32>::load(graph.layout(), &to).unwrap();
        assert_eq!(copied, Checkpoint { moments: vec![], ..whole });
        assert_eq!(checkpoint_state_of(&fs::read(&to).unwrap(), &to).unwrap(), state);
        let missing = copy_without_moments(&folder.path().join("none"), &to).unwrap_err().to_string();
        assert!(missing.contains("none"), "{missing}");
    }

    #[test]
    fn tensors_of_another_trainer_come_back_to_the_byte() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.safetensors");
        let tensor = |name: &str, kind: &str, shape: &[usize], bytes: Vec<u8>| RawTensor {
            name: name.to_owned(),
            kind: kind.to_owned(),
            shape: shape.to_vec(),
            bytes,
        };
        let kept = [
            tensor("generator", "U8", &[3], vec![1, 2, 3]),
            tensor("half", "BF16", &[2, 1], vec![0, 1, 2, 3]),
            tensor("step", "I64", &[], vec![7, 0, 0, 0, 0, 0, 0, 0]),
            tensor("w", "F32", &[1], 1.5f32.to_le_bytes().to_vec()),
        ];
        let state = serde_json::json!({ "iteration": 4 });
        save_tensors(&path, &kept, state.clone()).unwrap();
        assert_eq!(load_tensors(&path).unwrap(), (kept.to_vec(), state.clone()));
        assert_eq!(checkpoint_state(&path).unwrap(), state);
        let mut bytes = fs::read(&path).unwrap();
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        fs::write(&path, bytes).unwrap();
        assert!(load_tensors(&path).unwrap_err().to_string().contains("changed after it was written"));
        for (wrong, said) in [
            (vec![tensor("w", "F33", &[1], vec![0; 4])], "no kind is called F33"),
            (vec![tensor("w", "F32", &[2], vec![0; 4])], "tensor w: "),
            (vec![kept[3].clone(), kept[3].clone()], "two tensors are called w"),
        ] {
            let refused = save_tensors(&path, &wrong, state.clone()).unwrap_err().to_string();
            assert!(refused.contains(said), "{refused}");
        }
    }

    #[test]
    fn moments_without_tensors_are_refused_however_many() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.safetensors");
        let mut graph = crate::Graph::new();
        graph.param("w", &[2], crate::Init::Zeros).unwrap();
        let layout = graph.layout();
        for moments in [1, usize::MAX, usize::MAX - 1] {
            let header = Header {
                version: VERSION,
                steps: 0,
                moments,
                sum: String::new(),
                state: serde_json::Value::Null,
            };
            let view = TensorView::new(f32::DTYPE, vec![2], &[0; 8]).unwrap();
            fs::write(&path, sealed(vec![("w", view)], header).unwrap()).unwrap();
            let said = Checkpoint::<f32>::load(layout, &path).unwrap_err().to_string();
            assert!(said.contains("1 tensors, the policy has 1 and as many for each of"), "{said}");
        }
    }
}
