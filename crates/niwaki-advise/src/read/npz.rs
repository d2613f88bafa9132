//! NumPy archives: padded `[trajectories, steps]`, or flat `[steps of all]` with offsets.
//!
//! Every array is read from a handle of its own, all in step, so that no array is ever held whole.

use super::extents::{Extents, Trouble};
use super::limits::{DEFLATE, LONGEST};
use super::npy::{Array, Kind};
use super::records::{Pass, Records, Unread, shown};
use crate::error::{Error, Fault, Place};
use crate::keys::is_blurred;
use crate::schema::{Field, Naming};
use crate::trajectory::{Came, Record};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use zip::{CompressionMethod, ZipArchive};

/// Bytes that each array reads ahead.
const AHEAD: usize = 1 << 17;

/// How a field's rows lie in its array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rows {
    /// One entry per trajectory.
    One,
    /// So many entries per trajectory.
    Padded(usize),
    /// As the offsets say.
    Flat,
}

/// The arrays of an archive, row by row.
pub(super) struct Arrays {
    file: PathBuf,
    size: u64,
    arrays: Vec<(Field, Rows, Array)>,
    extents: Option<Extents>,
    /// Steps that all trajectories must have together, where arrays are flat.
    steps: Option<usize>,
    lanes: usize,
    row: usize,
    names: Vec<String>,
    unread: Unread,
}

impl Arrays {
    pub(super) fn open(file: &Path, size: u64, naming: &Naming, pass: Pass) -> Result<Self, Error> {
        let broken = |why: String| Error::Broken { file: shown(file), layout: "npz", why };
        let handle = File::open(file).map_err(|source| Error::File { file: shown(file), source })?;
        let mut archive =
            ZipArchive::new(BufReader::new(handle)).map_err(|error| broken(error.to_string()))?;
        let mut found: BTreeMap<Field, (usize, usize)> = BTreeMap::new();
        let mut names = Vec::new();
        for index in 0..archive.len() {
            let member = archive.by_index_raw(index).map_err(|error| broken(error.to_string()))?;
            let name = member.name().map_err(|error| broken(error.to_string()))?;
            let name = name.trim_end_matches(".npy").to_owned();
            if let Some((field, rank)) = naming.field(&name) {
                let best = found.entry(field).or_insert((rank, index));
                *best = (*best).min((rank, index));
            }
            names.push(name);
        }
        let mut arrays = BTreeMap::new();
        for (&field, &(_, index)) in &found {
            let (member, present) = member(file, &mut archive, index).map_err(&broken)?;
            let array = Array::new(member, present).map_err(|why| broken(format!("{field}: {why}")))?;
            arrays.insert(field, array);
        }
        let place = || Place { file: shown(file), unit: "row", row: None };
        let refuse = |fault: Fault| Error::Row { place: place(), fault };
        let extents = Extents::open(&mut arrays).map_err(|trouble| match trouble {
            Trouble::Fault(fault) => refuse(fault),
            Trouble::Read(field, why) => broken(format!("{field}: {why}")),
        })?;
        let leading = [Field::OldLogProb, Field::BehaviourLogProb, Field::NewLogProb];
        let lead = leading.into_iter().find(|field| arrays.contains_key(field));
        let lead = lead.ok_or_else(|| {
            let field = Field::OldLogProb;
            let strangers = names.iter().map(String::as_str).filter(|name| naming.field(name).is_none());
            let near = niwaki_words::nearest("old_log_prob", strangers);
            refuse(Fault::Missing { field, near: near.map(ToOwned::to_owned) })
        })?;
        let shape = arrays[&lead].shape.clone();
        let flat = shape.len() == 1;
        let lanes = match (&shape[..], &extents) {
            // A row of no steps takes no bytes, so a header could claim any number of such rows.
            ([lanes, width], _) if *lanes > 0 && *width > 0 => *lanes,
            ([_, _], _) => return Err(refuse(kind(lead, "an array with steps", &shape))),
            ([_], Some(extents)) => extents.lanes(),
            ([_], None) => return Err(refuse(Fault::Missing { field: Field::Offsets, near: None })),
            _ => return Err(refuse(kind(lead, "[trajectories, steps] or [steps]", &shape))),
        };
        let mut rows = Vec::new();
        for (field, array) in arrays {
            // One value per trajectory, also as a column.
            let per_lane = array.shape == [lanes] || (array.shape == [lanes, 1] && array.shape != shape);
            let lies = match (&array.shape[..], field) {
                (_, field) if field.is_single() && (per_lane || array.shape == [lanes, 1]) => Rows::One,
                (_, Field::Advantage | Field::Reward | Field::Version | Field::Age)
                    if per_lane && (!flat || array.shape != shape) =>
                {
                    Rows::One
                }
                ([_, width], _) if *width > LONGEST => {
                    let (steps, most) = (*width as u64, LONGEST as u64);
                    return Err(refuse(Fault::TooLong { steps, most }));
                }
                ([rows, width], _) if !flat && *rows == lanes => Rows::Padded(*width),
                ([steps], _) if flat && [*steps] == shape[..] => Rows::Flat,
                _ => {
                    let came = format!("shape {:?} beside {lead} {shape:?}", array.shape);
                    return Err(refuse(Fault::Kind { field, expected: "as long as the others", came }));
                }
            };
            if matches!(array.kind, Kind::Text(_) | Kind::Letters(_)) && field != Field::Group {
                let came = "texts".to_owned();
                return Err(refuse(Fault::Kind { field, expected: "numbers", came }));
            }
            if pass.wants(field) {
                rows.push((field, lies, array));
            }
        }
        if let Some(extents) = extents.as_ref().filter(|extents| extents.lanes() != lanes) {
            let (field, came) = (Field::Length, extents.lanes());
            return Err(refuse(Fault::Length { field, came, against: lead, expected: lanes }));
        }
        let steps = flat.then(|| shape[0]);
        let mut unread = Unread::default();
        let read = |index: usize| found.values().any(|&(_, read)| read == index);
        names.iter().enumerate().filter(|&(index, _)| !read(index)).for_each(|(_, name)| unread.add(name));
        Ok(Self {
            file: file.to_path_buf(),
            size,
            arrays: rows,
            extents,
            steps,
            lanes,
            row: 0,
            names,
            unread,
        })
    }

    /// Steps of the next trajectory, where the archive says; those of all of them fill the flat arrays.
    fn extent(&mut self) -> Result<Option<usize>, Error> {
        self.row += 1;
        let Some(extents) = &mut self.extents else { return Ok(None) };
        let length = extents.next();
        let (total, last) = (extents.total(), self.row == self.lanes);
        let length = length.map_err(|trouble| match trouble {
            Trouble::Fault(fault) => Error::Row { place: self.place(), fault },
            Trouble::Read(field, why) => {
                Error::Broken { file: shown(&self.file), layout: "npz", why: format!("{field}: {why}") }
            }
        })?;
        match self.steps {
            Some(steps) if total > steps || (last && total != steps) => {
                let came = format!("{total} for {steps} values");
                let expected = "the number of steps at its end";
                Err(Error::Row {
                    place: self.place(),
                    fault: Fault::Kind { field: Field::Offsets, expected, came },
                })
            }
            _ => Ok(Some(length)),
        }
    }
}

impl Records for Arrays {
    fn next(&mut self, record: &mut Record) -> Result<bool, Error> {
        if self.row == self.lanes {
            return Ok(false);
        }
        let length = self.extent()?;
        let place = self.place();
        for (field, rows, array) in &mut self.arrays {
            let broken = |error| Error::Broken {
                file: shown(&self.file),
                layout: "npz",
                why: format!("{field}: {error}"),
            };
            let field = *field;
            if field == Field::Group {
                record.group = array.key().map_err(broken)?;
                if record.group.is_none() {
                    let expected = "whole numbers below 2^53, or texts";
                    let came = "a float that does not tell large ones apart".to_owned();
                    return Err(Error::Row { place, fault: Fault::Kind { field, expected, came } });
                }
                continue;
            }
            if field.is_single() || (field == Field::Age && *rows == Rows::One) {
                let mut one = Vec::with_capacity(1);
                array.numbers(1, &mut one).map_err(broken)?;
                match field {
                    Field::Weight => record.weight = Some(one[0]),
                    Field::Kept => record.kept = Some(one[0]),
                    Field::Age if one[0].fract() == 0.0 && !is_blurred(one[0]) => {
                        record.age = Some(one[0] as i64)
                    }
                    Field::Iteration if one[0].fract() == 0.0 && !is_blurred(one[0]) => {
                        record.iteration = Some(one[0] as i64)
                    }
                    Field::TrainerVersion if one[0].fract() == 0.0 && !is_blurred(one[0]) => {
                        record.trainer_version = Some(one[0] as i64)
                    }
                    _ => {
                        let came = one[0].to_string();
                        let fault = Fault::Kind { field, expected: "a whole number below 2^53", came };
                        return Err(Error::Row { place, fault });
                    }
                }
                continue;
            }
            let (count, came) = match *rows {
                Rows::One => (1, Came::One),
                Rows::Padded(width) => (width, Came::Many),
                Rows::Flat => (length.unwrap_or(0), Came::Many),
            };
            let values = record.fill(field, came);
            array.numbers(count, values).map_err(broken)?;
            if let (Rows::Padded(width), Some(length)) = (*rows, length) {
                if length > width {
                    let fault =
                        Fault::Length { field, came: width, against: Field::Length, expected: length };
                    return Err(Error::Row { place, fault });
                }
                values.truncate(length);
            }
        }
        Ok(true)
    }

    fn place(&self) -> Place {
        Place { file: shown(&self.file), unit: "row", row: Some((self.row as u64).saturating_sub(1)) }
    }

    fn names(&self) -> Vec<String> {
        self.names.clone()
    }

    fn unread(&mut self) -> &mut Unread {
        &mut self.unread
    }

    fn done(&self) -> u64 {
        (self.size as f64 * self.row as f64 / self.lanes.max(1) as f64) as u64
    }
}

fn kind(field: Field, expected: &'static str, shape: &[usize]) -> Fault {
    Fault::Kind { field, expected, came: format!("shape {shape:?}") }
}

/// A member's bytes, unpacked, through a handle of its own, and how many they are.
fn member(
    file: &Path,
    archive: &mut ZipArchive<BufReader<File>>,
    index: usize,
) -> Result<(Box<dyn Read + Send>, u64), String> {
    let member = archive.by_index_raw(index).map_err(|error| error.to_string())?;
    let start = member.data_start().ok_or("a member without data")?;
    let (packed, unpacked, method) = (member.compressed_size(), member.size(), member.compression());
    let mut handle = File::open(file).map_err(|error| error.to_string())?;
    let there = handle.metadata().map_err(|error| error.to_string())?.len().saturating_sub(start);
    let most = match method {
        CompressionMethod::Stored => packed,
        CompressionMethod::Deflated => packed.saturating_mul(DEFLATE),
        other => return Err(format!("a member packed by {other}; use numpy.savez or savez_compressed")),
    };
    if packed > there || unpacked > most {
        return Err(format!("a member of {unpacked} bytes in {}", packed.min(there)));
    }
    handle.seek(SeekFrom::Start(start)).map_err(|error| error.to_string())?;
    let bytes = BufReader::with_capacity(AHEAD, handle.take(packed));
    let bytes: Box<dyn Read + Send> = match method {
        CompressionMethod::Stored => Box::new(bytes),
        _ => {
            let inflated = flate2::bufread::DeflateDecoder::new(bytes);
            Box::new(BufReader::with_capacity(AHEAD, inflated))
        }
    };
    Ok((bytes, unpacked))
}
