//! Hugging Face folders: read, saved, damaged.

use crate::support::{MODELS, folder, model, tensors, text_program};
use niwaki_lm::{Model, Vocabulary};
use std::fs;
use std::path::Path;

/// A copy of a fixture.
fn copied(name: &str) -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    for entry in fs::read_dir(folder(name)).unwrap() {
        let entry = entry.unwrap();
        fs::copy(entry.path(), place.path().join(entry.file_name())).unwrap();
    }
    place
}

fn refusal(folder: &Path) -> String {
    let line = Model::open(folder).unwrap_err().to_string();
    assert!(!line.contains('\n'), "{line}");
    line.replace(&format!("{}/", folder.display()), "").replace(&folder.display().to_string(), "DIR")
}

#[test]
fn a_saved_model_is_the_same_model() {
    for name in MODELS {
        let model = model(name);
        let (graph, _) = text_program(&model, &[1, 2]);
        let vocabulary = Vocabulary::whole(model.config());
        let flat = model.parameters(graph.layout(), &vocabulary).unwrap();
        let place = tempfile::tempdir().unwrap();
        model.save(place.path(), graph.layout(), &vocabulary, &flat).unwrap();
        let again = Model::open(place.path()).unwrap();
        assert_eq!(again.config(), model.config());
        assert_eq!(again.parameters(graph.layout(), &vocabulary).unwrap(), flat, "{name}");
        let written = tensors(&place.path().join("model.safetensors"));
        let expected: Vec<String> = tensors(&folder(name).join("expected.safetensors"))
            .into_keys()
            .filter_map(|name| name.strip_prefix("gradient.").map(ToOwned::to_owned))
            .collect();
        assert_eq!(written.into_keys().collect::<Vec<_>>(), expected, "the tensors that PyTorch has");
    }
}

#[test]
fn rows_that_a_program_left_out_are_saved_as_they_were() {
    let model = model("tiny-llama");
    let cut = Vocabulary::of([5, 17]);
    let mut graph = niwaki_nn::Graph::new();
    let index = graph.constant(&[0, 1]);
    let tree = niwaki_lm::Tree::chain(2);
    let decoder = niwaki_lm::Decoder::new(&mut graph, model.config(), &cut, index, &tree).unwrap();
    let table = graph.layout().slice(decoder.table()).range();
    let mut flat = model.parameters(graph.layout(), &cut).unwrap();
    flat[table].fill(0.25);
    let place = tempfile::tempdir().unwrap();
    model.save(place.path(), graph.layout(), &cut, &flat).unwrap();
    let (whole, _) = text_program(&model, &[1]);
    let vocabulary = Vocabulary::whole(model.config());
    let before = model.parameters(whole.layout(), &vocabulary).unwrap();
    let after = Model::open(place.path()).unwrap().parameters(whole.layout(), &vocabulary).unwrap();
    let width = model.config().width;
    for (at, (before, after)) in before.iter().zip(&after).enumerate() {
        // The embedding is the first parameter.
        let expected = if matches!(at / width, 5 | 17) { 0.25 } else { *before };
        assert_eq!(*after, expected, "scalar {at}");
    }
}

#[test]
fn damaged_folders_are_one_line_with_the_place() {
    let place = copied("tiny-qwen2");
    let path = |name: &str| place.path().join(name);
    let config = fs::read_to_string(path("config.json")).unwrap();
    let with = |from: &str, to: &str| {
        assert!(config.contains(from), "{from}");
        fs::write(path("config.json"), config.replace(from, to)).unwrap();
        refusal(place.path())
    };
    assert_eq!(
        with("\"model_type\": \"qwen2\"", "\"model_type\": \"mamba\""),
        "config.json: model_type: no decoder of architecture 'mamba' is known; llama and qwen2 are"
    );
    assert_eq!(
        with("\"intermediate_size\": 24", "\"intermediate_size\": 25"),
        "DIR: tensor 'model.layers.0.mlp.gate_proj.weight': has shape [24, 16], expected [25, 16]"
    );
    assert_eq!(
        with("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3"),
        "DIR: tensor 'model.layers.2.input_layernorm.weight': is missing"
    );
    assert_eq!(
        with("\"hidden_act\": \"silu\"", "\"hidden_act\": \"gelu\""),
        "config.json: hidden_act: only 'silu' is known"
    );
    let line = with("\"hidden_size\": 16,", "");
    assert!(line.starts_with("config.json: missing field `hidden_size`"), "{line}");
    fs::write(path("config.json"), &config).unwrap();
    let whole = fs::read(path("model.safetensors")).unwrap();
    for length in [0, 7, 40, whole.len() / 2, whole.len() - 1] {
        fs::write(path("model.safetensors"), &whole[..length]).unwrap();
        let line = refusal(place.path());
        assert!(line.starts_with("model.safetensors: no whole safetensors file: "), "{length}: {line}");
    }
    fs::remove_file(path("model.safetensors")).unwrap();
    assert!(refusal(place.path()).starts_with("model.safetensors: "), "{}", refusal(place.path()));

    let place = copied("tiny-llama");
    let index = place.path().join("model.safetensors.index.json");
    let text = fs::read_to_string(&index).unwrap();
    fs::write(&index, text.replace("lm_head.weight", "lm_tail.weight")).unwrap();
    assert_eq!(
        refusal(place.path()),
        "model.safetensors.index.json: tensor 'lm_tail.weight': is in the index and in none of its files"
    );
    fs::write(&index, text.replace("model-00001-of-", "../model-00001-of-")).unwrap();
    assert!(refusal(place.path()).contains("is not a file of this folder"), "{}", refusal(place.path()));
}

#[test]
fn a_weight_that_is_no_number_is_named() {
    let place = copied("tiny-qwen2");
    let path = place.path().join("model.safetensors");
    let mut bytes = fs::read(&path).unwrap();
    let end = bytes.len();
    bytes[end - 4..].copy_from_slice(&f32::NAN.to_le_bytes());
    fs::write(&path, bytes).unwrap();
    let model = Model::open(place.path()).unwrap();
    let (graph, _) = text_program(&model, &[1]);
    let line = model.parameters(graph.layout(), &Vocabulary::whole(model.config())).unwrap_err().to_string();
    assert!(line.contains(": tensor '") && line.ends_with("is NaN"), "{line}");
}

#[test]
fn numbers_that_no_decoder_has_are_named() {
    let place = copied("tiny-qwen2");
    let path = place.path().join("config.json");
    let config: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let with = |key: &str, value: serde_json::Value| {
        let mut changed = config.clone();
        changed[key] = value;
        fs::write(&path, changed.to_string()).unwrap();
        refusal(place.path())
    };
    // Blocks that the files do not pay for are not made: the first that is missing is named.
    assert_eq!(
        with("num_hidden_layers", (1 << 24).into()),
        "DIR: tensor 'model.layers.2.input_layernorm.weight': is missing"
    );
    assert_eq!(
        with("num_hidden_layers", 1_000_000_000.into()),
        "config.json: num_hidden_layers: 1000000000 is not between 1 and 16777216"
    );
    for value in [1e300, -1.0] {
        let line = with("rms_norm_eps", value.into());
        assert!(line.starts_with("config.json: rms_norm_eps: "), "{line}");
        assert!(line.ends_with("is out of range for a decoder"), "{line}");
    }
    let still = serde_json::json!({ "rope_type": "default", "rope_theta": 0.0 });
    let line = with("rope_parameters", still);
    assert_eq!(line, "config.json: rope_theta: 0 is out of range for a decoder");
    // Blocks that nobody asks for are no part of a model.
    assert_eq!(
        with("num_hidden_layers", 1.into()),
        "DIR: tensor 'model.layers.1.input_layernorm.weight': is there, and the model is said to have 1 blocks"
    );
    let scaling = serde_json::json!({ "rope_type": "linear", "factor": 0.0 });
    let line = with("rope_parameters", scaling);
    assert_eq!(line, "config.json: rope_scaling.factor: 0 is out of range for a decoder");
}

/// Forty doublings of a letter would be a terabyte.
#[test]
fn a_tokenizer_whose_replacements_grow_without_end_is_refused() {
    let place = copied("tiny-qwen2");
    let path = place.path().join("tokenizer.json");
    let described: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let with = |key: &str, list: &str, pattern: serde_json::Value, content: &str, times: usize| {
        let mut changed = described.clone();
        let replace = serde_json::json!({ "type": "Replace", "pattern": pattern, "content": content });
        changed[key] = serde_json::json!({ "type": "Sequence", list: vec![replace; times] });
        fs::write(&path, changed.to_string()).unwrap();
    };
    let letter = || serde_json::json!({ "String": "a" });
    for (key, list) in [("normalizer", "normalizers"), ("decoder", "decoders")] {
        with(key, list, letter(), "aa", 40);
        let said =
            format!("tokenizer.json: {key}: its replacements make a text up to 1099511627776 times as long");
        let line = refusal(place.path());
        assert!(line.starts_with(&said), "{line}");
    }
    with("normalizer", "normalizers", serde_json::json!({ "Regex": "" }), "aaaa", 3);
    assert!(refusal(place.path()).contains("up to 125 times as long"));
    // A blank that is written as three bytes is what tokenizers have.
    with("normalizer", "normalizers", serde_json::json!({ "String": " " }), "\u{2581}", 3);
    Model::open(place.path()).unwrap();
    with("normalizer", "normalizers", letter(), "aa", 6);
    Model::open(place.path()).unwrap();
}

/// Two ways to say how positions turn, of which one would be read and the other not.
#[test]
fn positions_that_are_described_twice_must_agree() {
    let place = copied("tiny-llama");
    let path = place.path().join("config.json");
    let config: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let with = |pairs: &[(&str, serde_json::Value)]| {
        let mut changed = config.clone();
        for (key, value) in pairs {
            changed[*key] = value.clone();
        }
        fs::write(&path, changed.to_string()).unwrap();
    };
    let yarn = serde_json::json!({ "rope_type": "yarn", "factor": 4.0 });
    with(&[("rope_scaling", yarn)]);
    assert_eq!(
        refusal(place.path()),
        "config.json: rope_scaling.rope_type: 'yarn' is unknown; default, linear and llama3 are known"
    );
    let linear = serde_json::json!({ "type": "linear", "factor": 4.0, "rope_theta": 500.0 });
    for (key, value) in [("rope_scaling", linear), ("rope_theta", 10_000.0.into())] {
        with(&[(key, value)]);
        let said = format!(
            "config.json: {key}: 'rope_parameters' stands beside it and says otherwise; keep the true one"
        );
        assert_eq!(refusal(place.path()), said);
    }
    with(&[("rope_parameters", serde_json::json!({ "factor": 4.0 }))]);
    assert!(
        refusal(place.path())
            .starts_with("config.json: rope_scaling.factor: a factor that no rope_type reads")
    );
    // What says the same may stand twice.
    with(&[("rope_scaling", config["rope_parameters"].clone()), ("rope_theta", 500.0.into())]);
    assert_eq!(Model::open(place.path()).unwrap().config(), model("tiny-llama").config());
}

#[test]
fn texts_beyond_the_positions_of_a_model_are_refused() {
    let place = copied("tiny-qwen2");
    let path = place.path().join("config.json");
    let mut config: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let record = niwaki_tasks::Record::read(&folder("record.toml")).unwrap();
    let tokens = niwaki_lm::RecordTokens::new(model("tiny-qwen2").text(), &record, None).unwrap();
    let whole = tokens.prompt.len() + tokens.row();
    for (most, fits) in [(whole, true), (whole - 1, false)] {
        config["max_position_embeddings"] = most.into();
        fs::write(&path, config.to_string()).unwrap();
        let model = Model::open(place.path()).unwrap();
        let found =
            niwaki_lm::enumerate(&model, &record, None).map(|_| ()).map_err(|error| error.to_string());
        assert_eq!(found.is_ok(), fits, "{found:?}");
        assert!(fits || found.unwrap_err().ends_with(&format!("; the model has {most} positions")));
        let prompt = "up and down";
        let asked = most - model.text().encode(prompt).unwrap().len();
        let write = |tokens| {
            niwaki_lm::generate(&model, prompt, niwaki_lm::Generation { tokens, temperature: 0.0, seed: 0 })
        };
        assert!(write(asked).is_ok());
        let line = write(asked + 1).unwrap_err().to_string();
        assert!(line.ends_with(&format!("{} more; the model has {most} positions", asked + 1)), "{line}");
    }
}

/// Descriptions may ask for it, and a text would silently lose its beginning or its end.
#[test]
fn texts_are_neither_cut_off_nor_filled_up() {
    let place = copied("tiny-qwen2");
    let path = place.path().join("tokenizer.json");
    let wanted = model("tiny-qwen2").text().encode("up and down, up and down").unwrap();
    let mut described: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    described["truncation"] = serde_json::json!({
        "direction": "Left", "max_length": 3, "strategy": "LongestFirst", "stride": 0
    });
    described["padding"] = serde_json::json!({
        "strategy": { "Fixed": 64 }, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0,
        "pad_type_id": 0, "pad_token": "!"
    });
    fs::write(&path, described.to_string()).unwrap();
    assert!(wanted.len() > 3);
    assert_eq!(Model::open(place.path()).unwrap().text().encode("up and down, up and down").unwrap(), wanted);
}

#[test]
fn a_token_that_the_tables_have_no_row_for_is_named() {
    let model = model("tiny-qwen2");
    let entries = model.config().vocab as u32;
    let vocabulary = Vocabulary::of([1, entries]);
    let mut graph = niwaki_nn::Graph::new();
    let index = graph.constant(&[0]);
    let tree = niwaki_lm::Tree::chain(1);
    niwaki_lm::Decoder::new(&mut graph, model.config(), &vocabulary, index, &tree).unwrap();
    let line = model.parameters(graph.layout(), &vocabulary).unwrap_err().to_string();
    let expected = format!("has {entries} rows, and the tokenizer has a token {entries}");
    assert!(line.contains("tensor 'model.embed_tokens.weight'") && line.ends_with(&expected), "{line}");
}

/// The crate that reads them panics over some; such a file is refused in one line.
#[test]
fn a_tokenizer_that_cannot_be_run_is_refused() {
    let place = copied("tiny-qwen2");
    let path = place.path().join("tokenizer.json");
    let described: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let with = |part: &str, value: serde_json::Value| {
        let mut changed = described.clone();
        *changed.pointer_mut(part).unwrap() = value;
        fs::write(&path, changed.to_string()).unwrap();
        Model::open(place.path())
    };
    let model = with("/pre_tokenizer", serde_json::json!({ "type": "FixedLength", "length": 0 })).unwrap();
    let line = model.text().encode("up").unwrap_err().to_string();
    assert_eq!(line, "tokenizer: its description asks for what cannot be done");
    let broken = serde_json::json!({ "type": "Precompiled", "precompiled_charsmap": "AAAA" });
    let line = with("/normalizer", broken).unwrap_err().to_string();
    assert!(
        line.ends_with("tokenizer.json: no tokenizer: its description asks for what cannot be done"),
        "{line}"
    );
    let line = with("/model/dropout", 0.5.into()).unwrap_err().to_string();
    assert!(
        line.ends_with("model.dropout: merges that chance leaves out give other tokens each time"),
        "{line}"
    );
}
