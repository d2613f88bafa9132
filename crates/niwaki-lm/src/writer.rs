//! A decoder as policy over free text: it writes behind a prompt, token by token, until it ends or has no tokens left.
//!
//! An item holds several texts behind one prompt, which share its keys and values. Prompts differ in length, so tokens,
//! parents and positions of rows are inputs of the program. Texts are drawn side by side, one chain each, with the keys and
//! values of earlier tokens kept.

use crate::{Config, Decoder, Model, Result, Rows, Text, Tree, Vocabulary};
use niwaki_nn::{DynEngine, Graph, Index, Value, log_softmax};
use niwaki_policies::{Draw, DrawRequest, Error, Heads, Item, MakeEngine, Policy, Rollout, RolloutShape};
use niwaki_stream::{by_log_chance, likeliest};
use niwaki_tasks::TextTask;
use std::sync::Arc;

/// A decoder that writes behind prompts.
#[derive(Clone, Debug)]
pub struct WriterPolicy {
    graph: Graph,
    heads: Heads,
    rows: Rows,
    /// The row that decides each token, `[group, horizon]`.
    asked: Index,
    actions: Index,
    group: usize,
    shared: Arc<Shared>,
}

/// What all sizes of groups have in common.
#[derive(Debug)]
struct Shared {
    config: Config,
    vocabulary: Vocabulary,
    /// Rows of the tables of each prompt.
    prompts: Vec<Vec<i32>>,
    /// Tokens of the longest of them.
    longest: usize,
    horizon: usize,
    choices: Choices,
    temperature: f64,
    /// The model's parameters, with which every run begins.
    start: Vec<f32>,
    chain: Chain,
}

/// The program that draws: one text behind its prompt, the logits of all its tokens at every row.
#[derive(Debug)]
struct Chain {
    graph: Graph,
    tokens: Index,
    logits: Value,
    rows: usize,
}

/// The tokens that may be written, and the text that they make.
#[derive(Clone, Debug)]
pub struct Choices {
    text: Text,
    /// Each one's token.
    tokens: Vec<u32>,
    /// Each one's row of the tables.
    rows: Vec<i32>,
    /// Whether a text ends with it.
    ends: Vec<bool>,
    /// Whether it is only an end and no text.
    silent: Vec<bool>,
}

impl Choices {
    /// The tokens whose letters the task allows, and those that end a text.
    fn new(model: &Model, task: &TextTask) -> Result<Self> {
        let mut own = Self {
            text: model.text().clone(),
            tokens: Vec::new(),
            rows: Vec::new(),
            ends: Vec::new(),
            silent: Vec::new(),
        };
        for token in 0..model.config().vocab as u32 {
            let silent = model.config().ends.contains(&token);
            let text = model.text().decode(&[token])?;
            let allowed = task
                .only()
                .is_none_or(|only| !text.is_empty() && text.chars().all(|letter| only.contains(letter)));
            if silent || allowed {
                own.tokens.push(token);
                own.silent.push(silent);
                own.ends.push(silent || task.stop().is_some_and(|stop| text.contains(stop)));
            }
        }
        Ok(own)
    }

    /// What was written.
    ///
    /// # Errors
    /// If the tokenizer refuses it.
    pub fn written(&self, choices: &[i32]) -> Result<String> {
        let chosen = choices.iter().filter_map(|&choice| usize::try_from(choice).ok());
        let spoken = chosen.filter(|&choice| self.silent.get(choice) == Some(&false));
        self.text.decode(&spoken.map(|choice| self.tokens[choice]).collect::<Vec<_>>())
    }

    /// Whether nothing follows a choice, or the absence of one.
    fn is_over(&self, choice: i32) -> bool {
        usize::try_from(choice).map_or(true, |choice| self.ends[choice])
    }
}

/// What drawing keeps: an engine for chains.
#[derive(Debug, Default)]
pub struct WriterScratch {
    chain: Option<Box<DynEngine>>,
}

impl WriterPolicy {
    /// A model behind the prompts of a task, with `group` texts that share a prompt in each item.
    ///
    /// # Errors
    /// If a prompt has no token, nothing may be written, or texts would be longer than the model's positions.
    pub fn new(model: &Model, task: &TextTask, group: usize, temperature: f64) -> Result<Self> {
        let refuse = |reason: String| Err(crate::Error::file(task.path(), reason));
        let mut choices = Choices::new(model, task)?;
        if choices.tokens.len() < 2 {
            return refuse("'only' leaves fewer than two tokens of this model to choose from".to_owned());
        }
        let prompts = task.prompts().iter().map(|prompt| model.text().encode(&prompt.text));
        let prompts: Vec<Vec<u32>> = prompts.collect::<Result<_>>()?;
        if let Some(place) = prompts.iter().position(Vec::is_empty) {
            return refuse(format!("prompt {}: it has no token", place + 1));
        }
        let (longest, horizon) = (prompts.iter().map(Vec::len).max().unwrap_or(1), task.tokens());
        if longest + horizon > model.config().positions {
            let most = model.config().positions;
            return refuse(format!(
                "{longest} tokens of a prompt and {horizon} more; the model has {most} positions"
            ));
        }
        let vocabulary = Vocabulary::of(prompts.iter().flatten().chain(&choices.tokens).copied());
        let rows =
            |tokens: &[u32]| tokens.iter().map(|&token| vocabulary.row(token)).collect::<Result<Vec<i32>>>();
        choices.rows = rows(&choices.tokens)?;
        let prompts = prompts.iter().map(|prompt| rows(prompt)).collect::<Result<Vec<_>>>()?;
        let config = model.config().clone();
        let chain = Chain::new(&config, &vocabulary, longest + horizon - 1)?;
        let start = model.parameters(chain.graph.layout(), &vocabulary)?;
        let shared =
            Shared { config, vocabulary, prompts, longest, horizon, choices, temperature, start, chain };
        Self::over(Arc::new(shared), group)
    }

    fn over(shared: Arc<Shared>, group: usize) -> Result<Self> {
        let Shared { longest, horizon, .. } = *shared;
        let count = longest + group * (horizon - 1);
        let mut graph = Graph::new();
        let rows = Rows {
            tokens: graph.indices("tokens", count, shared.vocabulary.entries()),
            parents: graph.indices("parents", count, count),
            positions: graph.indices("positions", count, longest + horizon),
        };
        let decoder = Decoder::over(&mut graph, &shared.config, &shared.vocabulary, rows)?;
        let asked = graph.indices("asked", group * horizon, count);
        let logits =
            decoder.candidates_at(&mut graph, asked, &shared.choices.rows, 1.0 / shared.temperature)?;
        let actions = graph.indices("actions", group * horizon, shared.choices.tokens.len());
        let (log_prob, entropy) = graph.pick_log_prob(logits, actions, None)?;
        let heads = Heads { log_prob, entropy, logits: None, value: None };
        Ok(Self { graph, heads, rows, asked, actions, group, shared })
    }

    /// The tokens that it writes.
    #[must_use]
    pub fn choices(&self) -> &Choices {
        &self.shared.choices
    }

    /// The tokens that its tables have rows for.
    #[must_use]
    pub fn vocabulary(&self) -> &Vocabulary {
        &self.shared.vocabulary
    }

    /// Draws texts on their chains, `[member, lane, horizon]` with −1 behind each one's end.
    fn write(&self, chain: &mut DynEngine, request: DrawRequest<'_>) -> niwaki_nn::Result<Vec<i32>> {
        let Shared { prompts, horizon, choices, chain: program, vocabulary, temperature, .. } = &*self.shared;
        let (lanes, horizon, rows, width) = (request.lanes, *horizon, program.rows, vocabulary.entries());
        chain.set_items(lanes)?;
        let count = chain.members() * lanes;
        let prompt = |text: usize| &prompts[request.instances[text / self.group] as usize];
        let mut tokens = vec![-1; count * rows];
        for (text, tokens) in tokens.chunks_exact_mut(rows).enumerate() {
            tokens[..prompt(text).len()].copy_from_slice(prompt(text));
        }
        let mut actions = vec![-1; count * horizon];
        let (mut logits, mut log_probs) = (Vec::new(), vec![0.0; choices.tokens.len()]);
        for row in 0..rows {
            chain.load_indices(program.tokens, &tokens)?;
            chain.forward_row(row)?;
            for text in 0..count {
                // The last token of the prompt decides the first of the text.
                let step = (row + 1).checked_sub(prompt(text).len()).filter(|&step| step < horizon);
                let Some(step) = step else { continue };
                let place = text * horizon + step;
                if step > 0 && choices.is_over(actions[place - 1]) {
                    continue;
                }
                let all = &chain.output(text / lanes, 0)[(text % lanes * rows + row) * width..][..width];
                logits.clear();
                logits.extend(choices.rows.iter().map(|&own| all[own as usize] / *temperature as f32));
                log_softmax(&logits, None, &mut log_probs);
                let choice = match request.how {
                    Draw::Sampled(uniforms) => by_log_chance(&log_probs, uniforms[place]),
                    Draw::Greedy => likeliest(&log_probs),
                };
                actions[place] = choice as i32;
                if row + 1 < rows {
                    tokens[text * rows + row + 1] = choices.rows[choice];
                }
            }
        }
        Ok(actions)
    }
}

impl Chain {
    fn new(config: &Config, vocabulary: &Vocabulary, rows: usize) -> Result<Self> {
        let mut graph = Graph::new();
        let tokens = graph.indices("tokens", rows, vocabulary.entries());
        let decoder = Decoder::new(&mut graph, config, vocabulary, tokens, &Tree::chain(rows))?;
        let logits = decoder.logits(&mut graph)?;
        Ok(Self { graph, tokens, logits, rows })
    }
}

impl Policy for WriterPolicy {
    type View = TextTask;
    type Scratch = WriterScratch;

    fn graph(&self) -> &Graph {
        &self.graph
    }

    fn heads(&self) -> Heads {
        self.heads
    }

    fn item(&self) -> Item {
        Item::Trajectories(self.group)
    }

    fn horizon(&self) -> usize {
        self.shared.horizon
    }

    fn initial_parameters(&self, _: u64) -> Vec<f32> {
        self.shared.start.clone()
    }

    fn single(&self) -> std::result::Result<Self, Error> {
        Ok(Self::over(self.shared.clone(), 1)?)
    }

    fn draw(
        &self,
        engine: &mut DynEngine,
        scratch: &mut WriterScratch,
        make: &MakeEngine,
        task: &TextTask,
        request: DrawRequest<'_>,
        rollout: &mut Rollout,
    ) -> std::result::Result<(), Error> {
        let program = &self.shared.chain;
        let chain = match &mut scratch.chain {
            Some(chain) => chain,
            none => none.insert(make(&program.graph, &[program.logits])?),
        };
        chain.copy_parameters(engine)?;
        rollout.actions = self.write(chain.as_mut(), request)?;
        // Scoring gives them, over rows that share a prompt.
        rollout.log_prob.clear();
        rollout.outcome.clear();
        rollout.instances = request.instances.to_vec();
        rollout.choices = self.shared.choices.tokens.len();
        rollout.shape = RolloutShape::uniform(chain.members(), request.lanes, self.shared.horizon);
        rollout.cut(request.lanes, self.shared.horizon, None);
        self.load(engine, task, rollout)
    }

    fn load(
        &self,
        engine: &mut DynEngine,
        _: &TextTask,
        rollout: &Rollout,
    ) -> std::result::Result<(), Error> {
        let Shared { prompts, longest, horizon, choices, .. } = &*self.shared;
        let (group, longest, horizon) = (self.group, *longest, *horizon);
        let lanes = rollout.shape.lanes();
        if lanes == 0
            || !lanes.is_multiple_of(group)
            || rollout.instances.len() * group != rollout.shape.members() * lanes
        {
            let reason = format!("{lanes} texts do not divide into groups of {group}, one prompt each");
            return Err(niwaki_nn::Error::Unsupported { op: "text", reason }.into());
        }
        engine.set_items(lanes / group)?;
        let (count, actions) = (longest + group * (horizon - 1), rollout.padded_actions());
        let [mut tokens, mut parents, mut positions, mut asked] = [const { Vec::new() }; 4];
        for (&instance, texts) in rollout.instances.iter().zip(actions.chunks_exact(group * horizon)) {
            let (prompt, first) = (&prompts[instance as usize], tokens.len());
            // Rows behind a short prompt and behind a text's end are roots that nobody reads.
            tokens.resize(first + count, -1);
            parents.resize(first + count, -1);
            positions.resize(first + count, 0);
            let mut put = |row: usize, token: i32, parent: i32, position: usize| {
                tokens[first + row] = token;
                parents[first + row] = parent;
                positions[first + row] = position as i32;
            };
            for (row, &token) in prompt.iter().enumerate() {
                put(row, token, row as i32 - 1, row);
            }
            let last = prompt.len() - 1;
            for (lane, text) in texts.chunks_exact(horizon).enumerate() {
                let start = longest + lane * (horizon - 1);
                asked.push(last as i32);
                for (step, &choice) in text[..horizon - 1].iter().enumerate() {
                    let row = start + step;
                    asked.push(row as i32);
                    if let Ok(choice) = usize::try_from(choice) {
                        let parent = if step == 0 { last } else { row - 1 };
                        put(row, choices.rows[choice], parent as i32, prompt.len() + step);
                    }
                }
            }
        }
        engine.load_indices(self.rows.tokens, &tokens)?;
        engine.load_indices(self.rows.parents, &parents)?;
        engine.load_indices(self.rows.positions, &positions)?;
        engine.load_indices(self.asked, &asked)?;
        Ok(engine.load_indices(self.actions, &actions)?)
    }
}
