//! Checkpoints: what is written comes back to the bit; anything else is refused in words. The fixture is what Python's
//! safetensors reads; `read_checkpoint.py` beside it shows that.

use niwaki_nn::{Checkpoint, Error, Graph, Init, Layout, checkpoint_state, restate_checkpoint};
use std::path::{Path, PathBuf};

fn layout(width: usize) -> Layout {
    let mut graph = Graph::new();
    graph.param("a.weight", &[2, width], Init::Zeros).unwrap();
    graph.param("a.bias", &[3], Init::Zeros).unwrap();
    graph.layout().clone()
}

/// Parameters 0, 1, 2, … and moments −1, −2, … within the slices, zero in the gaps.
fn example(layout: &Layout) -> Checkpoint {
    let fill = |sign: f32| {
        let mut flat = vec![0.0; layout.len()];
        for slice in layout.slices() {
            slice.range().for_each(|place| flat[place] = sign * (place as f32 + 0.5));
        }
        flat
    };
    let state = serde_json::json!({"iteration": 7, "arm": "tempered"});
    Checkpoint { parameters: fill(1.0), moments: vec![fill(-1.0), fill(2.0)], steps: 28, state }
}

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/checkpoint.safetensors")
}

#[test]
fn what_is_written_comes_back_and_the_bytes_never_change() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("checkpoint.safetensors");
    let layout = layout(5);
    let checkpoint = example(&layout);
    checkpoint.save(&layout, &path).unwrap();
    checkpoint.save(&layout, &path).unwrap();
    assert_eq!(Checkpoint::load(&layout, &path).unwrap(), checkpoint);
    // The committed file was read by Python's safetensors; ours has its bytes.
    assert_eq!(std::fs::read(&path).unwrap(), std::fs::read(fixture()).unwrap());
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 1, "no temporary file is left");
}

#[test]
fn anything_else_is_refused_in_words() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.safetensors");
    let refusal = |layout: &Layout| {
        let text = Checkpoint::<f32>::load(layout, &path).unwrap_err().to_string();
        assert!(text.starts_with(&format!("checkpoint {}: ", path.display())), "{text}");
        text
    };
    let good = std::fs::read(fixture()).unwrap();
    assert!(refusal(&layout(5)).contains("No such file"));
    for length in [0, 5, 60, good.len() / 2, good.len() - 1] {
        std::fs::write(&path, &good[..length]).unwrap();
        assert!(refusal(&layout(5)).contains("truncated, or no safetensors file"));
    }
    std::fs::write(&path, b"{\"not\": \"safetensors\"}").unwrap();
    assert!(refusal(&layout(5)).contains("truncated, or no safetensors file"));
    let empty: [(&str, safetensors::tensor::TensorView<'_>); 0] = [];
    std::fs::write(&path, safetensors::serialize(empty, None).unwrap()).unwrap();
    assert!(refusal(&layout(5)).contains("not written by niwaki"));
    std::fs::write(&path, &good).unwrap();
    assert!(refusal(&layout(6)).contains("tensor a.weight is F32 [2, 5], the policy has F32 [2, 6]"));
}

#[test]
fn no_flipped_bit_passes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.safetensors");
    let good = std::fs::read(fixture()).unwrap();
    let layout = layout(5);
    for place in 0..good.len() {
        let mut bytes = good.clone();
        bytes[place] ^= 1 << (place % 8);
        std::fs::write(&path, &bytes).unwrap();
        assert!(Checkpoint::<f32>::load(&layout, &path).is_err(), "byte {place}");
        assert!(checkpoint_state(&path).is_err(), "byte {place}");
    }
    std::fs::write(&path, &good).unwrap();
    assert_eq!(checkpoint_state(&path).unwrap(), example(&layout).state);
    let mut bytes = good;
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    let text = checkpoint_state(&path).unwrap_err().to_string();
    assert!(text.ends_with("the file was changed after it was written"), "{text}");
}

#[test]
fn another_state_leaves_the_numbers_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.safetensors");
    let layout = layout(5);
    let first = Checkpoint { state: serde_json::json!({"spec": "a"}), ..example(&layout) };
    first.save(&layout, &path).unwrap();
    restate_checkpoint(&path, example(&layout).state).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), std::fs::read(fixture()).unwrap());
}

#[test]
fn what_is_not_finite_never_replaces_a_good_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.safetensors");
    let layout = layout(5);
    let good = example(&layout);
    good.save(&layout, &path).unwrap();
    let before = std::fs::read(&path).unwrap();
    for (value, in_moments, named) in [
        (f32::NAN, false, "a.bias"),
        (f32::INFINITY, true, "moments.1.a.bias"),
        (-f32::INFINITY, false, "a.bias"),
    ] {
        let mut bad = good.clone();
        let place = layout.slices()[1].range().start;
        if in_moments {
            bad.moments[1][place] = value;
        } else {
            bad.parameters[place] = value;
        }
        let refusal = bad.save(&layout, &path).unwrap_err();
        assert!(matches!(&refusal, Error::NotFinite { tensor, .. } if tensor == named), "{refusal}");
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }
}
