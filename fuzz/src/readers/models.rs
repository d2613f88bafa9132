//! Files of pretrained decoders: each file of a Hugging Face folder among the others as they are, GGUF, and the files that say
//! what a decoder is to write.

use super::{MEGABYTE, Read, Reader, file, folder, seeds};
use niwaki_lm::weights::Gguf;
use niwaki_lm::{Model, RecordTokens, Vocabulary};
use niwaki_nn::Graph;
use niwaki_tasks::{Record, Sequence, TextTask};
use std::fs;
use std::path::Path;
use tempfile::TempDir;

const FIXTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../crates/niwaki-lm/tests/fixtures");

pub(super) fn readers() -> Vec<Reader> {
    let of_folder = |name, model: &str, changed: &'static str, share| {
        let seed = fs::read(Path::new(FIXTURES).join(model).join(changed)).expect("the fixture is there");
        let read = opened(copy(model), changed);
        Reader { name, seeds: vec![seed], read, floor: 16 * MEGABYTE, factor: 400, share }
    };
    let of_text = |name, places: &[&str], read: fn(&Path) -> bool| Reader {
        name,
        seeds: seeds(name, places, &["toml"]),
        read: Box::new(move |bytes, at| file(at, "case.toml", bytes).is_some_and(|file| read(&file))),
        // A regular expression may take ten megabytes, and no more, when it is compiled.
        floor: 32 * MEGABYTE,
        factor: 400,
        share: 8,
    };
    vec![
        of_folder("model.config", "tiny-qwen2", "config.json", 4),
        of_folder("model.tokenizer", "tiny-qwen2", "tokenizer.json", 2),
        of_folder("model.weights", "tiny-qwen2", "model.safetensors", 2),
        of_folder("model.index", "tiny-llama", "model.safetensors.index.json", 2),
        Reader {
            name: "model.gguf",
            seeds: seeds("model.gguf", &[], &["gguf"]),
            read: Box::new(|bytes, at| file(at, "case.gguf", bytes).is_some_and(|file| unpacked(&file))),
            floor: 2 * MEGABYTE,
            factor: 400,
            share: 20,
        },
        of_text("task.record", &["examples/records", "crates/niwaki-lm/tests/fixtures"], record),
        of_text("task.text", &["examples/texts", "crates/niwaki-lm/tests/fixtures"], prompts),
    ]
}

/// A fixture's folder, without what only its laws read.
fn copy(model: &str) -> TempDir {
    let home = folder().expect("a folder for temporary files");
    for entry in fs::read_dir(Path::new(FIXTURES).join(model)).expect("the fixture is there").flatten() {
        if entry.file_name() != "expected.safetensors" {
            fs::copy(entry.path(), home.path().join(entry.file_name())).expect("a folder of our own");
        }
    }
    home
}

fn opened(home: TempDir, changed: &'static str) -> Read {
    let record = Record::read(&Path::new(FIXTURES).join("record.toml")).expect("the fixture is there");
    Box::new(move |bytes, _| {
        fs::write(home.path().join(changed), bytes).expect("a folder of our own");
        Model::open(home.path()).is_ok_and(|model| used(&model, &record))
    })
}

/// What a model is opened for: a record in its tokens, and the rows of its tables for them.
fn used(model: &Model, record: &Record) -> bool {
    let Ok(tokens) = RecordTokens::new(model.text(), record, Some("neutral")) else { return false };
    rows(model, &tokens.vocabulary())
}

/// The embedding's rows of some tokens.
fn rows(model: &Model, vocabulary: &Vocabulary) -> bool {
    let mut graph = Graph::new();
    let (index, tree) = (graph.constant(&[0]), niwaki_lm::Tree::chain(1));
    niwaki_lm::Decoder::new(&mut graph, model.config(), vocabulary, index, &tree).is_ok()
        && model.parameters(graph.layout(), vocabulary).is_ok()
}

/// Tables and tensors that they name; and, where it is whole, the model.
fn unpacked(path: &Path) -> bool {
    if let Ok(gguf) = Gguf::open(path) {
        for name in ["token_embd.weight", "output_norm.weight", "blk.0.attn_q.weight"] {
            gguf.place(name).map(|place| gguf.scalars(place));
        }
    }
    Model::open(path).is_ok_and(|model| {
        let tokens = model.text().encode("abcab a").unwrap_or_default();
        !tokens.is_empty() && rows(&model, &Vocabulary::of(tokens))
    })
}

/// A record under each of its rewards, filled with first candidates and with last ones.
fn record(path: &Path) -> bool {
    let Ok(record) = Record::read(path) else { return false };
    let (first, last): (Vec<usize>, Vec<usize>) =
        record.slots().iter().map(|slot| (0, slot.candidates.len() - 1)).unzip();
    for name in record.rewards() {
        let task = record.task(Some(name)).expect("a reward of its own");
        assert!(task.reward(&first).is_finite() && task.reward(&last).is_finite(), "{name} pays no number");
    }
    record.prompt(None).is_ok_and(|prompt| record.text(&last).starts_with(&prompt))
}

/// Prompts, and what a few texts behind the first and the last of them pay.
fn prompts(path: &Path) -> bool {
    let Ok(task) = TextTask::read(path) else { return false };
    for text in ["", "12", "-3.5 and {\"code\": 5}", "{\"code\": [1e999]}", "é22d5\u{1F600}7"] {
        for prompt in [0, task.prompts().len() - 1] {
            let paid = task.reward(prompt, text);
            assert!(paid == 0.0 || paid == 1.0, "{paid} was paid");
        }
    }
    true
}
