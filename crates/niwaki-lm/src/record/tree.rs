//! The conditionals at all prefixes of a record, in one pass in which prefixes are shared.
//!
//! An item of the program has the prompt, one choice of the first slot and everything that can follow it; so items run
//! side by side, and only the prompt is computed as often as the first slot has candidates.

use super::{Conditionals, RecordTokens};
use crate::{Config, Decoder, Error, Model, Result, Tree, Vocabulary};
use niwaki_nn::{Cpu, DynEngine, Graph, Index, Value, log_softmax};
use niwaki_tasks::Record;
use std::path::Path;

/// Prefixes that are enumerated at most.
const MOST: usize = 1 << 17;

/// The program over all prefixes of a record.
#[derive(Clone, Debug)]
pub struct RecordTree {
    graph: Graph,
    tokens: Index,
    /// `[asked, all candidates]`.
    logits: Value,
    /// Rows of the tables for each item.
    items: Vec<Vec<i32>>,
    counts: Vec<usize>,
}

impl RecordTree {
    /// The program of a decoder over a record's prefixes, its logits divided by `temperature`; `path` is the record's file.
    ///
    /// # Errors
    /// If there are too many prefixes, or a record is longer than the model's positions.
    pub fn new(
        config: &Config,
        vocabulary: &Vocabulary,
        tokens: &RecordTokens,
        path: &Path,
        temperature: f64,
    ) -> Result<Self> {
        let counts = tokens.counts();
        let (mut prefixes, mut level) = (0_usize, 1_usize);
        for count in &counts {
            prefixes = prefixes.saturating_add(level);
            level = level.saturating_mul(*count);
            if prefixes > MOST {
                return Err(Error::Prefixes { path: path.to_owned(), prefixes, most: MOST });
            }
        }
        let (prompt, row, most) = (tokens.prompt.len(), tokens.row(), config.positions);
        if prompt + row > most {
            let reason = format!(
                "{prompt} tokens of a prompt and {row} of the record; the model has {most} positions"
            );
            return Err(Error::file(path, reason));
        }
        let row = |token: u32| vocabulary.row(token);
        let mut tree = Tree::default();
        let mut own: Vec<i32> = tokens.prompt.iter().map(|&token| row(token)).collect::<Result<_>>()?;
        let prompt = tree.grow(None, own.len());
        let mut ends = vec![prompt];
        let mut asked: Vec<i32> = prompt.iter().map(|&end| end as i32).collect();
        for (slot, between) in tokens.between.iter().enumerate() {
            let choices = if slot == 0 { &tokens.candidates[0][..1] } else { &tokens.candidates[slot] };
            let mut next = Vec::with_capacity(ends.len() * choices.len());
            for &end in &ends {
                for &choice in choices {
                    next.push(tree.grow(end, 1 + between.len()));
                    own.push(row(choice)?);
                    for &token in between {
                        own.push(row(token)?);
                    }
                }
            }
            asked.extend(next.iter().flatten().map(|&end| end as i32));
            ends = next;
        }
        let first = if tokens.between.is_empty() { &[][..] } else { &tokens.candidates[0] };
        let item = |&choice: &u32| -> Result<Vec<i32>> {
            let mut own = own.clone();
            own[tokens.prompt.len()] = row(choice)?;
            Ok(own)
        };
        let mut items = first.iter().map(item).collect::<Result<Vec<_>>>()?;
        if items.is_empty() {
            items.push(own);
        }
        let mut graph = Graph::new();
        let index = graph.indices("tokens", tree.rows(), vocabulary.entries());
        let decoder = Decoder::new(&mut graph, config, vocabulary, index, &tree)?;
        let candidates: Vec<i32> =
            tokens.candidates.iter().flatten().map(|&token| row(token)).collect::<Result<_>>()?;
        let asked = graph.constant(&asked);
        let logits = decoder.candidates_at(&mut graph, asked, &candidates, 1.0 / temperature)?;
        Ok(Self { graph, tokens: index, logits, items, counts })
    }

    /// The program.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Its only output.
    #[must_use]
    pub fn outputs(&self) -> [Value; 1] {
        [self.logits]
    }

    /// What each member of an engine for this program says at every prefix.
    ///
    /// # Errors
    /// If the device fails.
    pub fn conditionals(&self, engine: &mut DynEngine) -> niwaki_nn::Result<Vec<Conditionals>> {
        engine.set_items(self.items.len())?;
        let tokens: Vec<i32> = (0..engine.members()).flat_map(|_| self.items.concat()).collect();
        engine.load_indices(self.tokens, &tokens)?;
        engine.forward()?;
        Ok((0..engine.members()).map(|member| self.read(engine.output(member, 0))).collect())
    }

    /// Shapes: `logits [item, asked, all candidates]`
    fn read(&self, logits: &[f32]) -> Conditionals {
        let shape = self.graph.shape(self.logits);
        let mut levels = Vec::with_capacity(self.counts.len());
        let (mut first_row, mut first_column) = (0, 0);
        for (slot, &count) in self.counts.iter().enumerate() {
            // The first slot is asked about once, at the prompt's end, which is the same in all items.
            let items = if slot == 0 { 1 } else { self.items.len() };
            let rows: usize = if slot == 0 { 1 } else { self.counts[1..slot].iter().product() };
            let mut level = Vec::with_capacity(items * rows * count);
            for item in 0..items {
                for row in first_row..first_row + rows {
                    let at = (item * shape.rows + row) * shape.width + first_column;
                    let wide: Vec<f64> = logits[at..at + count].iter().map(|&x| f64::from(x)).collect();
                    let mut log_probs = vec![0.0; count];
                    log_softmax(&wide, None, &mut log_probs);
                    level.extend(log_probs);
                }
            }
            levels.push(level);
            first_row += rows;
            first_column += count;
        }
        Conditionals::new(self.counts.clone(), levels)
    }
}

/// What a model says at every prefix of a record behind one of its primings, on the CPU.
///
/// # Errors
/// If the record does not suit the model's tokenizer, or has too many prefixes.
pub fn enumerate(model: &Model, record: &Record, prime: Option<&str>) -> Result<Conditionals> {
    let tokens = RecordTokens::new(model.text(), record, prime)?;
    let vocabulary = tokens.vocabulary();
    let tree = RecordTree::new(model.config(), &vocabulary, &tokens, record.path(), 1.0)?;
    let mut engine = Cpu::boxed(tree.graph(), &tree.outputs(), 1);
    engine.set_parameters(0, &model.parameters(tree.graph().layout(), &vocabulary)?)?;
    let mut found = tree.conditionals(engine.as_mut())?;
    Ok(found.swap_remove(0))
}
