//! Rows that share a prompt, tokens that are left out, candidates alone.

use crate::support::{MODELS, distance, model, run, text_program, weight};
use niwaki_lm::{Decoder, Tree, Vocabulary};
use niwaki_nn::{Graph, Value};

const PROMPT: [u32; 4] = [12, 250, 7, 31];
const ROWS: [[u32; 3]; 2] = [[9, 33, 270], [31, 9, 40]];
const CANDIDATES: [u32; 3] = [33, 40, 9];

/// Candidates' logits at the last token of the prompt and at every token of two rows that continue it.
fn program(name: &str, vocabulary: &Vocabulary, shared: bool) -> (Graph, Value) {
    let model = model(name);
    let (mut tree, mut tokens, mut asked) = (Tree::default(), Vec::new(), Vec::new());
    let mut last = None;
    for (place, row) in ROWS.iter().enumerate() {
        if place == 0 || !shared {
            last = tree.grow(None, PROMPT.len());
            tokens.extend(PROMPT);
        }
        if place == 0 {
            asked.push(last.unwrap() as i32);
        }
        let end = tree.grow(last, row.len()).unwrap() as i32;
        tokens.extend(row);
        asked.extend([end - 2, end - 1, end]);
    }
    let mut graph = Graph::new();
    let rows = |tokens: &[u32]| -> Vec<i32> { tokens.iter().map(|&t| vocabulary.row(t).unwrap()).collect() };
    let index = graph.constant(&rows(&tokens));
    let decoder = Decoder::new(&mut graph, model.config(), vocabulary, index, &tree).unwrap();
    let logits = decoder.candidates(&mut graph, &asked, &rows(&CANDIDATES)).unwrap();
    (graph, logits)
}

#[test]
fn a_shared_prompt_gives_the_gradient_of_copied_ones() {
    for name in MODELS {
        let model = model(name);
        let vocabulary = Vocabulary::whole(model.config());
        let of = |shared: bool| {
            let (graph, logits) = program(name, &vocabulary, shared);
            run::<f64>(&model, &graph, logits, &vocabulary, weight)
        };
        let ((shared, shared_gradient), (copied, copied_gradient)) = (of(true), of(false));
        assert!(distance(&shared, &copied) < 1e-13, "{name}");
        assert!(distance(&shared_gradient, &copied_gradient) < 1e-13, "{name}");
    }
}

#[test]
fn tokens_that_do_not_occur_can_be_left_out() {
    for name in MODELS {
        let model = model(name);
        let whole = Vocabulary::whole(model.config());
        let cut = Vocabulary::of(PROMPT.into_iter().chain(ROWS.concat()).chain(CANDIDATES));
        let of = |vocabulary: &Vocabulary| {
            let (graph, logits) = program(name, vocabulary, true);
            let (outputs, gradient) = run::<f64>(&model, &graph, logits, vocabulary, weight);
            let table =
                graph.layout().slice(graph.layout().find("model.embed_tokens.weight").unwrap()).range();
            (outputs, gradient[table].to_vec())
        };
        let ((all, all_gradient), (few, few_gradient)) = (of(&whole), of(&cut));
        assert_eq!(all, few, "{name}");
        let width = model.config().width;
        let mut left = all_gradient.clone();
        for (token, row) in cut.tokens().zip(few_gradient.chunks_exact(width)) {
            assert_eq!(&all_gradient[token as usize * width..][..width], row, "{name}: token {token}");
            left[token as usize * width..][..width].fill(0.0);
        }
        assert!(left.iter().all(|&g| g == 0.0), "{name}: a token that does not occur has a gradient");
    }
}

#[test]
fn candidates_have_the_logits_of_the_whole_head() {
    for name in MODELS {
        let model = model(name);
        let vocabulary = Vocabulary::whole(model.config());
        let (graph, few) = program(name, &vocabulary, true);
        let (few, _) = run::<f64>(&model, &graph, few, &vocabulary, weight);
        let chain: Vec<i32> = PROMPT.iter().chain(&ROWS[0]).map(|&token| token as i32).collect();
        let (graph, all) = text_program(&model, &chain);
        let (all, _) = run::<f64>(&model, &graph, all, &vocabulary, weight);
        // The prompt's last token and the first row's three.
        let wanted =
            (3..7).flat_map(|row| CANDIDATES.map(|token| all[row * model.config().vocab + token as usize]));
        assert!(distance(&few[..12], &wanted.collect::<Vec<f64>>()) < 1e-13, "{name}");
    }
}
