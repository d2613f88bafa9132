//! Pairs of tabular policies as dumps: all sequences with their probabilities, or samples.

use niwaki_advise::measure::{Measure, Measured, Settings};
use niwaki_advise::schema::Field;
use niwaki_advise::trajectory::{Came, Chunk, Record};
use niwaki_exact::{Process, Table, Values};
use niwaki_stream::{Key, Stream};

/// A rollout policy and one that has drifted from it.
pub(crate) fn tables(process: Process, drift: f64, seed: u64) -> (Table, Table) {
    let mut noise = Key::new(seed, "law").open();
    let old: Vec<f64> = (0..process.edges()).map(|_| 0.5 * noise.normal()).collect();
    let new: Vec<f64> = old.iter().map(|logit| logit + drift * noise.normal()).collect();
    (Table::new(process, &old).unwrap(), Table::new(process, &new).unwrap())
}

/// The trajectory of a token sequence, with exact advantages.
pub(crate) fn record(old: &Table, new: &Table, values: &Values, tokens: &[usize]) -> Record {
    let process = old.process();
    let mut record = Record::default();
    let edge = |t: usize| process.vocab() * process.row(&tokens[..t]) + tokens[t];
    for t in 0..tokens.len() {
        let mut put = |field: Field, value: f64| {
            let mut kept = record.values(field).to_vec();
            kept.push(value);
            *record.fill(field, Came::Many) = kept;
        };
        put(Field::OldLogProb, old.log_prob()[edge(t)]);
        put(Field::NewLogProb, new.log_prob()[edge(t)]);
        put(Field::Advantage, values.advantage()[edge(t)]);
    }
    record
}

/// Every sequence, weighted by its probability under the rollout policy.
pub(crate) fn enumerated(old: &Table, new: &Table, values: &Values) -> Chunk {
    let process = old.process();
    let mut chunk = Chunk::default();
    process.each_sequence(|_, tokens| {
        let mut record = record(old, new, values, tokens);
        record.weight = Some(record.values(Field::OldLogProb).iter().sum::<f64>().exp());
        chunk.push(&record, None).unwrap();
    });
    chunk
}

/// A sequence drawn from a policy.
pub(crate) fn draw(policy: &Table, noise: &mut Stream) -> Vec<usize> {
    let process = policy.process();
    let mut tokens = Vec::new();
    for _ in 0..process.horizon() {
        let row = process.row(&tokens);
        let probs = &policy.prob()[process.vocab() * row..process.vocab() * (row + 1)];
        let mut left = noise.uniform();
        let token = probs.iter().position(|prob| {
            left -= prob;
            left < 0.0
        });
        tokens.push(token.unwrap_or(process.vocab() - 1));
    }
    tokens
}

/// A batch drawn from the rollout policy.
pub(crate) fn sampled(old: &Table, new: &Table, values: &Values, lanes: usize, noise: &mut Stream) -> Chunk {
    let mut chunk = Chunk::default();
    for _ in 0..lanes {
        let tokens = draw(old, noise);
        chunk.push(&record(old, new, values, &tokens), None).unwrap();
    }
    chunk
}

/// Measures one chunk.
pub(crate) fn measure(chunk: &Chunk, settings: Settings) -> Measured {
    let mut measure = Measure::new(settings);
    measure.add(chunk);
    measure.finish()
}

/// A number by its name.
pub(crate) fn number(measured: &Measured, name: &str) -> f64 {
    measured.numbers.iter().find(|number| number.name == name).unwrap().value
}

/// Ragged random log-probs with advantages, some of them zero throughout.
pub(crate) fn ragged(lanes: usize, longest: usize, spread: f64, seed: u64) -> Chunk {
    let mut chunk = Chunk::default();
    let mut noise = Key::new(seed, "ragged").open();
    for lane in 0..lanes {
        let steps = 1 + noise.below(longest as u64) as usize;
        let mut record = Record::default();
        let old: Vec<f64> = (0..steps).map(|_| -3.0 - noise.uniform()).collect();
        let new: Vec<f64> = old.iter().map(|old| (old + spread * noise.normal()).min(0.0)).collect();
        record.fill(Field::OldLogProb, Came::Many).extend(old);
        record.fill(Field::NewLogProb, Came::Many).extend(new);
        let silent = lane % 7 == 0;
        let advantage = (0..steps).map(|_| if silent { 0.0 } else { noise.normal() });
        record.fill(Field::Advantage, Came::Many).extend(advantage);
        record.weight = Some(0.5 + noise.uniform());
        record.iteration = Some((lane % 3) as i64);
        record.group = Some((lane / 4) as u64);
        record_reward(&mut record, f64::from(u8::from(lane % 5 == 0)));
        chunk.push(&record, None).unwrap();
    }
    chunk
}

fn record_reward(record: &mut Record, reward: f64) {
    record.fill(Field::Reward, Came::One).push(reward);
}

/// The trajectories of some lanes.
pub(crate) fn part(chunk: &Chunk, lanes: impl Iterator<Item = usize>) -> Chunk {
    let mut own = Chunk::default();
    for lane in lanes {
        let row = chunk.offsets[lane]..chunk.offsets[lane + 1];
        own.old.extend(&chunk.old[row.clone()]);
        own.new.extend(&chunk.new[row.clone()]);
        own.advantage.extend(&chunk.advantage[row.clone()]);
        if !chunk.behaviour.is_empty() {
            own.behaviour.extend(&chunk.behaviour[row.clone()]);
        }
        if !chunk.versions.is_empty() {
            own.versions.extend(&chunk.versions[row]);
            own.clock = chunk.clock;
        }
        own.offsets.push(own.old.len());
        own.lanes.push(chunk.lanes[lane]);
    }
    own
}
