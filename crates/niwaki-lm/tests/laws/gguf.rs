//! GGUF files, written here by hand: the same logits as the folder, and what damaged ones are told.

use crate::support::{distance, folder, model, run, text_program, weight};
use niwaki_lm::weights::Packing;
use niwaki_lm::{Form, Model, Vocabulary};
use niwaki_nn::Rotary;
use safetensors::SafeTensors;
use std::path::Path;

const TOKENS: [i32; 5] = [3, 271, 40, 88, 7];

/// A value of the table of keys.
#[derive(Clone)]
enum Value {
    Long(u64),
    Count(u32),
    Number(f32),
    Text(&'static str),
}

/// Writes a GGUF file; tensors are `(name, shape with the slowest axis first, kind, bytes)`.
fn write(path: &Path, keys: &[(&str, Value)], tensors: &Tensors) {
    let mut out = b"GGUF".to_vec();
    let text = |out: &mut Vec<u8>, text: &str| {
        out.extend((text.len() as u64).to_le_bytes());
        out.extend(text.as_bytes());
    };
    out.extend(3_u32.to_le_bytes());
    out.extend((tensors.len() as u64).to_le_bytes());
    out.extend((keys.len() as u64).to_le_bytes());
    for (key, value) in keys {
        text(&mut out, key);
        match value {
            Value::Count(count) => {
                out.extend(4_u32.to_le_bytes());
                out.extend(count.to_le_bytes());
            }
            Value::Long(long) => {
                out.extend(10_u32.to_le_bytes());
                out.extend(long.to_le_bytes());
            }
            Value::Number(number) => {
                out.extend(6_u32.to_le_bytes());
                out.extend(number.to_le_bytes());
            }
            Value::Text(value) => {
                out.extend(8_u32.to_le_bytes());
                text(&mut out, value);
            }
        }
    }
    let mut offset = 0_u64;
    for (name, shape, kind, bytes) in tensors {
        text(&mut out, name);
        out.extend((shape.len() as u32).to_le_bytes());
        shape.iter().rev().for_each(|&size| out.extend((size as u64).to_le_bytes()));
        out.extend(kind.to_le_bytes());
        out.extend(offset.to_le_bytes());
        offset += bytes.len().next_multiple_of(32) as u64;
    }
    out.resize(out.len().next_multiple_of(32), 0);
    for (.., bytes) in tensors {
        out.extend(bytes);
        out.resize(out.len().next_multiple_of(32), 0);
    }
    std::fs::write(path, out).unwrap();
}

type Tensors = Vec<(String, Vec<usize>, u32, Vec<u8>)>;

/// The tiny Qwen as GGUF in f32; its architecture may be said to be another.
fn qwen(path: &Path, architecture: &'static str, change: impl Fn(&mut Tensors)) {
    let model = model("tiny-qwen2");
    converted(&model, path, architecture, &[], change);
    std::fs::write(path.with_file_name("tokenizer.json"), model.text().description()).unwrap();
}

/// A model as GGUF in f32, with more keys and without a tokenizer.
fn converted(
    model: &Model,
    path: &Path,
    architecture: &'static str,
    more: &[(&'static str, Value)],
    change: impl Fn(&mut Tensors),
) {
    let config = model.config();
    let (graph, _) = text_program(model, &TOKENS);
    let vocabulary = Vocabulary::whole(config);
    let flat = model.parameters(graph.layout(), &vocabulary).unwrap();
    let mut tensors = Vec::new();
    for tensor in config.tensors() {
        let mut scalars = tensor.taken(graph.layout(), &flat).unwrap();
        if tensor.form == Form::Matrix {
            let (rows, columns) = (tensor.shape[0], tensor.shape[1]);
            // A Llama's file has the halves of a head's rows by turns.
            let heads = [("q_proj", config.heads), ("k_proj", config.key_heads)];
            if let Some((_, heads)) = heads.into_iter().find(|(part, _)| tensor.name.contains(part))
                && architecture == "llama"
            {
                let (head, before) = (rows / heads, scalars.clone());
                for row in 0..rows {
                    let (first, within) = (row / head * head, row % head);
                    let to = first + within % (head / 2) * 2 + within / (head / 2);
                    scalars[to * columns..][..columns].copy_from_slice(&before[row * columns..][..columns]);
                }
            }
        }
        let bytes = scalars.iter().flat_map(|x| x.to_le_bytes()).collect();
        tensors.push((file_name(&tensor.name), tensor.shape.clone(), 0, bytes));
    }
    change(&mut tensors);
    let of = |key: &str| -> &'static str { format!("{architecture}.{key}").leak() };
    let count = |size: usize| Value::Count(size as u32);
    let mut keys = vec![
        ("general.architecture", Value::Text(architecture)),
        (of("embedding_length"), count(config.width)),
        (of("feed_forward_length"), count(config.hidden)),
        (of("block_count"), count(config.layers)),
        (of("attention.head_count"), count(config.heads)),
        (of("attention.head_count_kv"), count(config.key_heads)),
        (of("context_length"), count(config.positions)),
        (of("attention.layer_norm_rms_epsilon"), Value::Number(config.epsilon as f32)),
        (of("rope.freq_base"), Value::Number(config.rotary.base as f32)),
    ];
    keys.extend(more.iter().cloned());
    write(path, &keys, &tensors);
}

fn file_name(name: &str) -> String {
    let parts = [
        ("model.embed_tokens", "token_embd"),
        ("model.norm", "output_norm"),
        ("lm_head", "output"),
        ("model.layers", "blk"),
        ("input_layernorm", "attn_norm"),
        ("self_attn.q_proj", "attn_q"),
        ("self_attn.k_proj", "attn_k"),
        ("self_attn.v_proj", "attn_v"),
        ("self_attn.o_proj", "attn_output"),
        ("post_attention_layernorm", "ffn_norm"),
        ("mlp.gate_proj", "ffn_gate"),
        ("mlp.up_proj", "ffn_up"),
        ("mlp.down_proj", "ffn_down"),
    ];
    parts.iter().fold(name.to_owned(), |name, (from, to)| name.replace(from, to))
}

fn logits(model: &Model) -> Vec<f32> {
    let (graph, logits) = text_program(model, &TOKENS);
    run::<f32>(model, &graph, logits, &Vocabulary::whole(model.config()), weight).0
}

#[test]
fn a_gguf_file_has_the_logits_of_its_folder() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("tiny.gguf");
    let expected = logits(&model("tiny-qwen2"));
    qwen(&path, "qwen2", |_| ());
    let read = Model::open(&path).unwrap();
    assert_eq!(logits(&read), expected);
    // With the rows of queries and keys in a Llama's order, and its biases left out of the order: they are zeroed.
    let still = |tensors: &mut Tensors| {
        for (name, .., bytes) in tensors {
            if name.ends_with(".bias") {
                bytes.fill(0);
            }
        }
    };
    qwen(&path, "qwen2", still);
    let expected = logits(&Model::open(&path).unwrap());
    qwen(&path, "llama", still);
    assert_eq!(logits(&Model::open(&path).unwrap()), expected);
}

#[test]
fn a_gguf_file_becomes_a_folder() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("tiny.gguf");
    qwen(&path, "qwen2", |_| ());
    let read = Model::open(&path).unwrap();
    let (graph, _) = text_program(&read, &TOKENS);
    let vocabulary = Vocabulary::whole(read.config());
    let flat = read.parameters(graph.layout(), &vocabulary).unwrap();
    let folder = place.path().join("saved");
    read.save(&folder, graph.layout(), &vocabulary, &flat).unwrap();
    let again = Model::open(&folder).unwrap();
    assert_eq!((again.config().rotary, again.config().tied), (read.config().rotary, true));
    assert_eq!(logits(&again), logits(&read));
}

/// A Llama 3 as GGUF: `rope_freqs.weight` is all that is left of its `rope_scaling`.
#[test]
fn a_llama_with_divisors_has_the_positions_of_its_folder() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("tiny.gguf");
    let folder = model("tiny-llama");
    std::fs::write(path.with_file_name("tokenizer.json"), folder.text().description()).unwrap();
    let (rotary, width) = (folder.config().rotary, folder.config().head_width);
    let plain = Rotary::plain(rotary.base);
    let divisors: Vec<f32> =
        (0..width / 2).map(|i| (plain.frequency(i, width) / rotary.frequency(i, width)) as f32).collect();
    // One pair is left, one in between, two are slowed whole.
    assert!(divisors[0] == 1.0 && 1.0 < divisors[1] && divisors[1] < 8.0 && divisors[2..] == [8.0, 8.0]);
    let file = |more: &[(&'static str, Value)], divisors: &[f32]| {
        let bytes: Vec<u8> = divisors.iter().flat_map(|x| x.to_le_bytes()).collect();
        converted(&folder, &path, "llama", more, |tensors| {
            tensors.push(("rope_freqs.weight".to_owned(), vec![divisors.len()], 0, bytes.clone()));
        });
        Model::open(&path)
    };
    let read = file(&[], &divisors).unwrap();
    for i in 0..width / 2 {
        let (found, expected) = (read.config().rotary.frequency(i, width), rotary.frequency(i, width));
        assert!((found / expected - 1.0).abs() < 1e-6, "pair {i}: {found} for {expected}");
    }
    assert!(distance(&logits(&read), &logits(&folder)) < 1e-5);
    // Without them positions turn otherwise, and it shows.
    converted(&folder, &path, "llama", &[], |_| ());
    assert!(distance(&logits(&Model::open(&path).unwrap()), &logits(&folder)) > 1e-3);
    let refusal = |more: &[(&'static str, Value)], divisors: &[f32]| {
        let line = file(more, divisors).unwrap_err().to_string();
        line.strip_prefix(&format!("{}: tensor 'rope_freqs.weight': ", path.display())).unwrap().to_owned()
    };
    assert_eq!(refusal(&[], &divisors[..3]), "has shape [3], expected [4]");
    assert_eq!(
        refusal(&[], &[1.0, 8.0, 2.0, 8.0]),
        "its divisors are not those of Llama 3's rule; take the model's Hugging Face folder"
    );
    let linear = [
        ("llama.rope.scaling.type", Value::Text("linear")),
        ("llama.rope.scaling.factor", Value::Number(2.0)),
    ];
    assert_eq!(
        refusal(&linear, &divisors),
        "divides frequencies that the file's keys slow already; take the model's Hugging Face folder"
    );
}

/// Random bits of every packing, and the scalars that the `gguf` package reads from them, to the last bit.
#[test]
fn packings_are_read_as_by_the_gguf_package() {
    let bytes = std::fs::read(folder("packings.safetensors")).unwrap();
    let read = SafeTensors::deserialize(&bytes).unwrap();
    let packings = [
        ("F16", Packing::F16),
        ("BF16", Packing::Bf16),
        ("Q8_0", Packing::Q8_0),
        ("Q4_0", Packing::Q4_0),
        ("Q4_1", Packing::Q4_1),
        ("Q5_0", Packing::Q5_0),
        ("Q5_1", Packing::Q5_1),
        ("Q2_K", Packing::Q2K),
        ("Q3_K", Packing::Q3K),
        ("Q4_K", Packing::Q4K),
        ("Q5_K", Packing::Q5K),
        ("Q6_K", Packing::Q6K),
    ];
    for (name, packing) in packings {
        let of = |what: &str| read.tensor(&format!("{name}.{what}")).unwrap().data().to_vec();
        let expected = Packing::F32.unpack(&of("scalars"));
        assert_eq!(expected.len(), 512, "{name}");
        assert_eq!(packing.unpack(&of("packed")), expected, "{name}");
    }
}

#[test]
fn damaged_files_are_one_line_with_the_tensors_name() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("tiny.gguf");
    let refusal = || Model::open(&path).unwrap_err().to_string();
    let of = |line: &str| format!("{}: {line}", path.display());
    qwen(&path, "qwen2", |tensors| tensors.retain(|(name, ..)| name != "blk.1.ffn_up.weight"));
    assert_eq!(refusal(), of("tensor 'blk.1.ffn_up.weight': is missing"));
    qwen(&path, "qwen2", |tensors| {
        let Some((_, _, kind, _)) = tensors.iter_mut().find(|(name, ..)| name == "blk.0.attn_q.weight")
        else {
            panic!("no such tensor");
        };
        *kind = 16;
    });
    let line = refusal();
    assert!(line.starts_with(&of("tensor 'blk.0.attn_q.weight': is packed as type 16; F32")), "{line}");
    qwen(&path, "gpt2", |_| ());
    assert_eq!(
        refusal(),
        of("general.architecture: no decoder of architecture 'gpt2' is known; llama and qwen2 are")
    );
    qwen(&path, "qwen2", |_| ());
    let whole = std::fs::read(&path).unwrap();
    // Cut anywhere, it is refused in one line and never a panic.
    for length in (0..whole.len()).step_by(211).chain([3, 9, 23, whole.len() - 33]) {
        std::fs::write(&path, &whole[..length]).unwrap();
        let line = refusal();
        assert!(line.starts_with(&path.display().to_string()) && !line.contains('\n'), "{length}: {line}");
    }
    // Lengths that no file has take no memory.
    let mut huge = whole;
    huge[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
    std::fs::write(&path, &huge).unwrap();
    assert!(refusal().contains("cut short within the number of tensors"), "{}", refusal());
}

#[test]
fn keys_that_lie_are_one_line() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("tiny.gguf");
    let refusal = |key: &'static str, value: Value| {
        converted(&model("tiny-qwen2"), &path, "qwen2", &[(key, value)], |_| ());
        let line = Model::open(&path).unwrap_err().to_string();
        line.strip_prefix(&format!("{}: ", path.display())).unwrap().to_owned()
    };
    for alignment in [u64::MAX, 0] {
        assert_eq!(
            refusal("general.alignment", Value::Long(alignment)),
            "general.alignment: is not a number of bytes to align tensors to"
        );
    }
    let line = refusal("general.alignment", Value::Long(i64::MAX as u64));
    assert!(line.starts_with("tensor '") && line.contains("ends behind the end of the file"), "{line}");
    // More blocks than any file has: the first that is missing is named, and nothing is made of the others.
    assert_eq!(
        refusal("qwen2.block_count", Value::Count(1 << 24)),
        "tokenizer.ggml.model: 'nothing' is not read, only 'gpt2'; put the model's tokenizer.json beside the file"
    );
    let tokenizer = model("tiny-qwen2").text().description().to_vec();
    std::fs::write(path.with_file_name("tokenizer.json"), tokenizer).unwrap();
    let line = refusal("qwen2.block_count", Value::Count(1 << 24));
    assert_eq!(line, "tensor 'blk.2.attn_norm.weight': is missing");
    let line = refusal("qwen2.block_count", Value::Count(1_000_000_000));
    assert_eq!(line, "num_hidden_layers: 1000000000 is not between 1 and 16777216");
    let line = refusal("qwen2.rope.freq_base", Value::Number(f32::NAN));
    assert_eq!(line, "rope_theta: NaN is out of range for a decoder");
    let line = refusal("qwen2.attention.key_length", Value::Count(3));
    assert_eq!(line, "head_dim: 3 columns of a head cannot turn in pairs");
}

#[test]
fn tensors_that_share_bytes_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("tiny.gguf");
    qwen(&path, "qwen2", |_| ());
    let mut bytes = std::fs::read(&path).unwrap();
    // The offset is the last word of a tensor's entry: name, number of axes, two axes, packing, offset.
    let name = b"blk.1.ffn_up.weight";
    let at = bytes.windows(name.len()).position(|window| window == name).unwrap() + name.len() + 4 + 16 + 4;
    bytes[at..at + 8].copy_from_slice(&0_u64.to_le_bytes());
    std::fs::write(&path, &bytes).unwrap();
    let line = Model::open(&path).unwrap_err().to_string();
    let expected = "tensor 'token_embd.weight': begins within tensor 'blk.1.ffn_up.weight'";
    assert!(line.ends_with(expected), "{line}");
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    let line = Model::open(Path::new("/dev/zero")).unwrap_err().to_string();
    assert_eq!(line, "/dev/zero: is not a file, and only a file can be mapped");
}
