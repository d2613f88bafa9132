//! Readers never panic: a committed corpus of odd inputs with their exact answers, mutations of real files, random text.

use crate::data::folder;
use niwaki_shop::Instance;
use niwaki_shop::formats::{Format, KnownBounds, read, read_schedule};
use niwaki_shop::generate::{Size, Task, generate};
use niwaki_stream::{Key, Stream};
use proptest::prelude::*;
use std::fmt::Write;
use std::path::{Path, PathBuf};

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus")
}

/// What a reader says, in one line.
fn answer(text: &str) -> String {
    match read(text) {
        Ok(instance) => {
            format!("{}, {} jobs, {} machines", instance.kind(), instance.jobs(), instance.machines())
        }
        Err(error) => error.to_string(),
    }
}

#[test]
fn odd_inputs_have_clear_answers() {
    let mut files: Vec<_> = std::fs::read_dir(corpus()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| !path.ends_with("ANSWERS.tsv"));
    files.sort();
    let mut found = String::new();
    for path in &files {
        let text = String::from_utf8(std::fs::read(path).unwrap()).unwrap();
        let line = answer(&text);
        assert!(!line.contains('\n'), "{}: more than one line", path.display());
        writeln!(found, "{}\t{line}", path.file_name().unwrap().to_str().unwrap()).unwrap();
    }
    let expected = std::fs::read_to_string(corpus().join("ANSWERS.tsv")).unwrap();
    assert_eq!(found, expected);
}

/// What readers are fed with: small real files, every layout of drawn instances, the corpus, a schedule, a table.
fn seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = ["jsp/ft06.txt", "pfsp/VFR10_5_1.txt", "fjsp/fattahi/sfjs01.fjs"]
        .iter()
        .filter_map(|name| std::fs::read(folder().join(name)).ok())
        .collect();
    assert!(seeds.len() >= 3, "the shipped files have moved");
    for (index, task) in Task::all().enumerate() {
        let size = if task.fixed_machines() { task.size() } else { Size { jobs: 3, machines: 3 } };
        let instance = generate(task, size, 1, index as u64).unwrap();
        let texts = Format::ALL.iter().filter_map(|format| format.write(&instance).ok());
        seeds.extend(texts.map(String::into_bytes));
    }
    let files =
        std::fs::read_dir(corpus()).unwrap().map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
    seeds.extend(files.filter(|bytes| bytes.len() < 1000));
    seeds.push(b"job,operation,machine,start,end\n0,0,1,0,3\n1,0,0,2,7\n".to_vec());
    seeds.push(
        b"{\"operations\": [{\"job\": 0, \"operation\": 0, \"machine\": 0, \"start\": 0, \"end\": 3}]}"
            .to_vec(),
    );
    seeds.push(b"name,jobs,machines,lb,ub,source\nft06,6,6,55,55,x\n".to_vec());
    seeds
}

/// Words that readers may stumble over.
const WORDS: [&str; 24] = [
    "-1",
    "0",
    "1",
    "4294967295",
    "4294967296",
    "99999999999999999999",
    "1e9",
    "0.5",
    "nan",
    "\n",
    " ",
    "\t",
    "#",
    "{",
    "}",
    "[",
    "]",
    ",",
    "\"",
    "null",
    "\u{feff}",
    "é",
    "\0",
    "processing times :\n",
];

/// Mutates a seed: bytes, words, ranges, and splices of two seeds.
fn mutate(seeds: &[Vec<u8>], stream: &mut Stream, text: &mut Vec<u8>) {
    let below = |stream: &mut Stream, bound: usize| stream.below(bound.max(1) as u64) as usize;
    text.clear();
    text.extend_from_slice(&seeds[below(stream, seeds.len())]);
    for _ in 0..=below(stream, 5) {
        let at = below(stream, text.len() + 1);
        let end = (at + below(stream, 12)).min(text.len());
        match stream.below(8) {
            0 if at < text.len() => text[at] = stream.bits() as u8,
            1 => drop(text.drain(at..end)),
            2 => text.truncate(at),
            3 => {
                let piece = text[at..end].to_vec();
                text.splice(at..at, piece);
            }
            4 => {
                let other = &seeds[below(stream, seeds.len())];
                let from = below(stream, other.len() + 1);
                text.truncate(at);
                text.extend_from_slice(&other[from..]);
            }
            5 if at < text.len() => text[at] = b'0' + stream.below(10) as u8,
            _ => {
                let word = WORDS[below(stream, WORDS.len())];
                text.splice(at..end, word.bytes());
            }
        }
    }
}

/// Feeds one text to every reader that could take it; what is understood must come back from its own layout.
fn feed(text: &str, stream: &mut Stream) -> bool {
    let format = Format::ALL[stream.below(Format::ALL.len() as u64) as usize];
    let named = format.read(text);
    drop((read_schedule(text), KnownBounds::read(text)));
    let guessed = read(text);
    for instance in [&guessed, &named].into_iter().flatten() {
        comes_back(instance);
    }
    guessed.is_ok()
}

fn comes_back(instance: &Instance) {
    let text = Format::Niwaki.write(instance).unwrap();
    assert_eq!(&Format::Niwaki.read(&text).unwrap(), instance);
}

fn mutations(count: usize, seed: u64) -> usize {
    let seeds = seeds();
    let mut stream = Key::new(seed, "odd inputs").open();
    let mut bytes = Vec::new();
    let mut understood = 0;
    for _ in 0..count {
        mutate(&seeds, &mut stream, &mut bytes);
        understood += usize::from(feed(&String::from_utf8_lossy(&bytes), &mut stream));
    }
    understood
}

#[test]
fn mutations_of_real_files_never_panic() {
    let understood = mutations(20_000, 1);
    assert!(
        (200..20_000).contains(&understood),
        "{understood} of 20,000 were understood: mutate more, or less"
    );
}

#[test]
#[ignore = "minutes: the long run, ten million inputs"]
fn ten_million_mutations_never_panic() {
    let understood = mutations(10_000_000, 2);
    println!("10,000,000 inputs, {understood} of them understood, no panic");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn random_text_never_panics(text in "\\PC{0,200}", seed: u64) {
        feed(&text, &mut Key::new(seed, "odd inputs").open());
    }

    #[test]
    fn random_numbers_never_panic(text in "([0-9]{1,3}[ \\n]){0,60}", seed: u64) {
        feed(&text, &mut Key::new(seed, "odd inputs").open());
    }
}
