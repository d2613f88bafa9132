//! Dumps of log-probs, and tables of numbers.

use super::{MEGABYTE, Read, Reader, file, seeds};
use niwaki_advise::Error;
use niwaki_advise::measure::Measure;
use niwaki_advise::read::{Dump, Numbers};
use niwaki_advise::schema::Naming;
use niwaki_advise::trajectory::Against;
use niwaki_exact::{Payoff, Process};
use std::fs::File;
use std::io::{Read as _, Write};
use std::path::Path;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

pub(super) fn readers() -> Vec<Reader> {
    let fixtures = "crates/niwaki-advise/tests/fixtures";
    let dump = |name: &'static str, ending: &'static str, share| Reader {
        name,
        seeds: seeds(name, &[fixtures, "examples/advise"], &[ending]),
        read: dumped(ending),
        // Buffers of a file, a chunk of trajectories, and sums over twenty folds.
        floor: 64 * MEGABYTE,
        // Deflate makes 1032 bytes of one; a number of one byte takes eight, thrice over.
        factor: 1100,
        share,
    };
    vec![
        dump("dump.jsonl", "jsonl", 6),
        dump("dump.npz", "npz", 6),
        dump("dump.parquet", "parquet", 6),
        Reader {
            name: "npz.member",
            seeds: members(fixtures),
            read: packed(fixtures),
            ..dump("npz.member", "", 6)
        },
        Reader {
            name: "table.npy",
            seeds: seeds("table.npy", &[], &["npy"]),
            read: Box::new(|bytes, at| {
                file(at, "case.npy", bytes).is_some_and(|file| Numbers::read(&file).is_ok())
            }),
            floor: MEGABYTE,
            factor: 16,
            share: 3,
        },
        Reader {
            name: "oracle.table",
            seeds: seeds("table.npy", &[], &["npy"]),
            read: Box::new(|bytes, at| file(at, "case.npy", bytes).is_some_and(|file| paid(&file))),
            floor: MEGABYTE,
            factor: 64,
            share: 3,
        },
    ]
}

/// A table as the oracle takes it: what each sequence pays, and the logits of a policy.
fn paid(file: &Path) -> bool {
    let Ok(Numbers { shape, values }) = Numbers::read(file) else { return false };
    let process = Process::new(2, 2).expect("a small process");
    let payoff = Payoff::from_table(process, values).is_ok();
    let logits =
        matches!(shape[..], [rows, vocab] if vocab > 1 && Process::horizon_of(rows, vocab).is_some());
    payoff || logits
}

fn dumped(ending: &'static str) -> Read {
    Box::new(move |bytes: &[u8], folder: &Path| {
        file(folder, &format!("case.{ending}"), bytes).is_some_and(|file| measured(&file).is_ok())
    })
}

/// The arrays of an archive, by name.
fn archive(fixtures: &str) -> Vec<(String, Vec<u8>)> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(fixtures).join("flat.npz");
    let mut archive =
        ZipArchive::new(File::open(path).expect("the fixture is there")).expect("it is an archive");
    let mut arrays = Vec::new();
    for place in 0..archive.len() {
        let mut entry = archive.by_index(place).expect("as many entries as it has");
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).expect("a sound entry");
        let name = entry.name().expect("a sound name").into_owned();
        arrays.push((name, bytes));
    }
    arrays
}

/// One array of the archive each, behind its place.
fn members(fixtures: &str) -> Vec<Vec<u8>> {
    let arrays = archive(fixtures).into_iter().enumerate();
    arrays.map(|(place, (_, bytes))| [&[place as u8][..], &bytes].concat()).collect()
}

/// The archive with one array in the place of its own: the checksums of the archive fit, so that the array is read.
fn packed(fixtures: &str) -> Read {
    let arrays = archive(fixtures);
    Box::new(move |input, folder| {
        let Some((&place, changed)) = input.split_first() else { return false };
        let path = folder.join("case.npz");
        let write = || -> zip::result::ZipResult<()> {
            let mut writer = ZipWriter::new(File::create(&path)?);
            for (at, (name, bytes)) in arrays.iter().enumerate() {
                writer.start_file(
                    name,
                    SimpleFileOptions::default().compression_method(CompressionMethod::Stored),
                )?;
                writer.write_all(if at == usize::from(place) % arrays.len() { changed } else { bytes })?;
            }
            writer.finish().map(|_| ())
        };
        write().is_ok() && measured(&path).is_ok()
    })
}

/// All of a dump, measured: what a reader lets through must not break the sums either.
fn measured(file: &Path) -> Result<(), Error> {
    let mut dump = Dump::open(&[file.to_owned()], Naming::default(), Against::Old, false)?;
    dump.prepare(|_| {})?;
    let (mut chunk, mut measure) = (dump.chunk(), Measure::new(Default::default()));
    while dump.next(&mut chunk)? {
        measure.add(&chunk);
    }
    if !measure.is_empty() {
        drop(measure.finish());
    }
    Ok(())
}
