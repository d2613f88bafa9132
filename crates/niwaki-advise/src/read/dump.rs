//! Several files as one run.

use super::records::{Pass, Records, Unread, shown};
use super::{jsonl, npz, parquet};
use crate::error::{Error, Fault, Place};
use crate::schema::{Field, Naming};
use crate::trajectory::{Against, Baselines, Came, Chunk, Clock, LastUses, LeftOut, Record};
use crate::verdict::Trainer;
use niwaki_words::nearest;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{channel, sync_channel};

/// Steps of a chunk: enough to be worth a pass, few enough to stay small.
const CHUNK_STEPS: usize = 1 << 16;

/// Fields of which no trainer writes two: which of them was meant would change every number.
const ONE: [Field; 3] = [Field::OldLogProb, Field::NewLogProb, Field::Advantage];

/// Chunks that are read ahead.
const CHUNKS: usize = 2;

/// The trajectories of one or more files, chunk by chunk.
pub struct Dump {
    files: Vec<(PathBuf, u64)>,
    naming: Naming,
    against: Against,
    baselines: Option<Baselines>,
    last_uses: Option<LastUses>,
    /// What tells how old steps are in the first row.
    clock: Option<Clock>,
    /// Whether the last line of a file may still be on its way.
    growing: bool,
    /// Names of the first row.
    spoken: Vec<String>,
    current: Option<Box<dyn Records>>,
    next_file: usize,
    /// Names that files behind the current one had and that were not read.
    unread: Unread,
    /// Bytes of the passes and files before the current one.
    behind: u64,
    record: Record,
}

impl Dump {
    /// Looks at the files: their sizes, and whether the first trajectory has an advantage. Of files that are `growing` a
    /// last line without its end is left for later.
    ///
    /// # Errors
    /// Where a file cannot be opened, or the first row cannot be read.
    pub fn open(files: &[PathBuf], naming: Naming, against: Against, growing: bool) -> Result<Self, Error> {
        let sized = |file: &PathBuf| {
            let size = std::fs::metadata(file).map_err(|source| Error::File { file: shown(file), source })?;
            Ok((file.clone(), size.len()))
        };
        let mut dump = Self {
            files: files.iter().map(sized).collect::<Result<_, Error>>()?,
            naming,
            against,
            baselines: None,
            last_uses: None,
            clock: None,
            growing,
            spoken: Vec::new(),
            current: None,
            next_file: 0,
            unread: Unread::default(),
            behind: 0,
            record: Record::default(),
        };
        let mut record = Record::default();
        if dump.advance(&mut record, Pass::Whole)? {
            if record.came(Field::Advantage) == Came::Absent && record.came(Field::Reward) != Came::Absent {
                dump.baselines = Some(Baselines::default());
            }
            dump.last_uses = record.age.map(|_| LastUses::default());
            dump.clock = record.clock();
            dump.spoken = dump.current.as_ref().map_or_else(Vec::new, |current| current.names());
        }
        dump.rewind();
        Ok(dump)
    }

    /// Bytes that all passes will read.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let passes = if self.baselines.is_some() || self.last_uses.is_some() { 2 } else { 1 };
        passes * self.files.iter().map(|(_, size)| size).sum::<u64>()
    }

    /// About how many of [`Dump::bytes`] are done.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.behind + self.current.as_ref().map_or(0, |current| current.done())
    }

    /// The trainer that wrote the first row, as far as its names or the folder tell.
    #[must_use]
    pub fn trainer(&self) -> Option<Trainer> {
        let folder = self.files.first().and_then(|(file, _)| file.parent());
        Trainer::of(&self.spoken, folder)
    }

    /// Whether advantages are made from rewards.
    #[must_use]
    pub fn from_rewards(&self) -> bool {
        self.baselines.is_some()
    }

    /// Takes the mean rewards, where there are no advantages, and the last uses, where there are ages; calls `progress`
    /// with the bytes done.
    ///
    /// # Errors
    /// As [`Dump::next`].
    pub fn prepare(&mut self, mut progress: impl FnMut(u64)) -> Result<(), Error> {
        let (mut baselines, mut last_uses) = (self.baselines.take(), self.last_uses.take());
        if baselines.is_none() && last_uses.is_none() {
            return Ok(());
        }
        let mut record = Record::default();
        let mut rows = 0_u64;
        while self.advance(&mut record, Pass::Rewards)? {
            if let Some(baselines) = &mut baselines {
                baselines.add(&record).map_err(|fault| self.at_row(fault))?;
            }
            if let Some(last_uses) = &mut last_uses {
                last_uses.add(&record);
            }
            rows += 1;
            if rows.is_multiple_of(1024) {
                progress(self.done());
            }
        }
        let behind = self.behind;
        self.rewind();
        self.behind = behind;
        (self.baselines, self.last_uses) = (baselines, last_uses);
        Ok(())
    }

    /// Fills the chunk with the next trajectories; false at the end.
    ///
    /// # Errors
    /// The first fault, with its file, row and field.
    pub fn next(&mut self, chunk: &mut Chunk) -> Result<bool, Error> {
        chunk.clear();
        let mut record = std::mem::take(&mut self.record);
        let filled = self.fill(chunk, &mut record);
        self.record = record;
        filled
    }

    /// Calls `visit` with every chunk in order and the bytes done; the next ones are read meanwhile, in a thread of
    /// their own. Gives the names that were there and not read.
    ///
    /// # Errors
    /// As [`Dump::next`].
    pub fn each(mut self, mut visit: impl FnMut(&Chunk, u64)) -> Result<Vec<String>, Error> {
        let (give, filled) = sync_channel::<Result<(Chunk, u64), Error>>(CHUNKS);
        let (hand_back, empty) = channel::<Chunk>();
        for _ in 0..=CHUNKS {
            // This cannot fail: `empty`, the receiving end, is still alive.
            let _ = hand_back.send(self.chunk());
        }
        std::thread::scope(|scope| {
            let reader = scope.spawn(move || {
                for mut chunk in empty {
                    let message = match self.next(&mut chunk) {
                        Ok(true) => Ok((chunk, self.done())),
                        Ok(false) => break,
                        Err(error) => Err(error),
                    };
                    let last = message.is_err();
                    if give.send(message).is_err() || last {
                        break;
                    }
                }
                self.unread.names.into_iter().collect()
            });
            for message in filled {
                let (chunk, done) = message?;
                visit(&chunk, done);
                let _ = hand_back.send(chunk);
            }
            // A reader that panicked panics here.
            Ok(reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        })
    }

    fn fill(&mut self, chunk: &mut Chunk, record: &mut Record) -> Result<bool, Error> {
        while chunk.steps() < CHUNK_STEPS && chunk.lanes.len() < CHUNK_STEPS {
            if !self.advance(record, Pass::Whole)? {
                break;
            }
            self.check_age(record)
                .and_then(|()| self.check_clock(record))
                .map_err(|fault| self.at_row(fault))?;
            if self.last_uses.as_ref().is_some_and(|uses| uses.is_earlier(record)) {
                chunk.left_out.earlier_uses += 1;
                continue;
            }
            chunk.push(record, self.baselines.as_ref()).map_err(|fault| self.at_row(fault))?;
        }
        Ok(!chunk.lanes.is_empty() || chunk.left_out != LeftOut::default())
    }

    /// Refuses an age below 0, and one that only some trajectories have: earlier uses would pass for last ones.
    fn check_age(&self, record: &Record) -> Result<(), Fault> {
        match (record.age, &self.last_uses) {
            (Some(age), _) if age < 0 => {
                Err(Fault::Kind { field: Field::Age, expected: "0 or more", came: age.to_string() })
            }
            (Some(_), None) => Err(Fault::SomeAges { here: true }),
            (None, Some(_)) => Err(Fault::SomeAges { here: false }),
            _ => Ok(()),
        }
    }

    /// Refuses versions or ages of steps that only some trajectories have. One whose steps were left out may have none.
    fn check_clock(&self, record: &Record) -> Result<(), Fault> {
        let (came, first) = (record.clock(), self.clock);
        if came == first || record.kept == Some(0.0) {
            return Ok(());
        }
        Err(Fault::Clocks { came, first })
    }

    /// An empty chunk for [`Dump::next`].
    #[must_use]
    pub fn chunk(&self) -> Chunk {
        Chunk::new(self.against)
    }

    /// The files, for messages.
    #[must_use]
    pub fn names(&self) -> String {
        self.files.iter().map(|(file, _)| shown(file)).collect::<Vec<_>>().join(", ")
    }

    fn rewind(&mut self) {
        (self.current, self.next_file, self.behind) = (None, 0, 0);
    }

    /// Reads the next row, going on to the next file where one ends.
    fn advance(&mut self, record: &mut Record, pass: Pass) -> Result<bool, Error> {
        loop {
            if let Some(current) = &mut self.current {
                record.clear();
                let more = current.next(record)?;
                if pass == Pass::Whole {
                    for name in std::mem::take(&mut current.unread().fresh) {
                        if let Some(field) = self.naming.meant(&name).filter(|&field| !record.has(field)) {
                            return Err(Error::Row {
                                place: current.place(),
                                fault: Fault::Misnamed { field, name },
                            });
                        }
                        let second = |field: &Field| ONE.contains(field) && record.has(*field);
                        if let Some(field) = self.naming.field(&name).map(|(field, _)| field).filter(second) {
                            return Err(Error::Row {
                                place: current.place(),
                                fault: Fault::Second { field, name },
                            });
                        }
                        self.unread.add(&name);
                    }
                }
                if more {
                    return Ok(true);
                }
                self.behind += self.files[self.next_file - 1].1;
                self.current = None;
            }
            let Some((file, size)) = self.files.get(self.next_file) else { return Ok(false) };
            self.current = Some(open(file, *size, &self.naming, pass, self.growing)?);
            self.next_file += 1;
        }
    }

    /// A fault with its place, and with the stranger that a missing field may hide behind.
    fn at_row(&self, fault: Fault) -> Error {
        let Some(current) = &self.current else {
            return Error::Row { place: Place { file: self.names(), unit: "row", row: None }, fault };
        };
        let fault = match fault {
            Fault::Missing { field, near: None } => {
                let mut strangers = current.names();
                strangers.retain(|name| self.naming.field(name).is_none());
                let near = self.naming.names(field).into_iter().find_map(|name| {
                    nearest(name, strangers.iter().map(String::as_str)).map(ToOwned::to_owned)
                });
                Fault::Missing { field, near }
            }
            other => other,
        };
        Error::Row { place: current.place(), fault }
    }
}

fn open(
    file: &Path,
    size: u64,
    naming: &Naming,
    pass: Pass,
    growing: bool,
) -> Result<Box<dyn Records>, Error> {
    let ending = file.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    Ok(match ending.as_str() {
        "jsonl" | "ndjson" => Box::new(jsonl::Lines::open(file, naming, pass, growing)?),
        "npz" => Box::new(npz::Arrays::open(file, size, naming, pass)?),
        "parquet" => Box::new(parquet::Table::open(file, size, naming, pass)?),
        _ => return Err(Error::Layout { file: shown(file), ending }),
    })
}
