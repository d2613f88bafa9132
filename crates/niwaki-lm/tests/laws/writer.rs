//! Free text: what is drawn on chains has the log-probabilities of the shared program, and ends where it ends.

use crate::support::{MODELS, distance, folder, model, run, text_program, weight};
use niwaki_lm::{Model, Vocabulary, WriterPolicy, WriterScratch};
use niwaki_nn::{Cpu, Graph, Span, Value};
use niwaki_policies::{Draw, DrawRequest, Policy, Rollout};
use niwaki_tasks::TextTask;

const HORIZON: usize = 4;

fn task() -> TextTask {
    TextTask::read(&folder("text.toml")).unwrap()
}

/// One text at a time: the whole text as a chain, the whole head, the softmax over the tokens of `2`, `5` and `d` and of the end.
fn slowly(model: &Model, prompt: &str, choices: &[u32], written: &[usize], temperature: f64) -> Vec<f64> {
    let mut tokens: Vec<i32> =
        model.text().encode(prompt).unwrap().iter().map(|&token| token as i32).collect();
    let first = tokens.len() - 1;
    tokens.extend(written.iter().map(|&choice| choices[choice] as i32));
    let (graph, logits) = text_program(model, &tokens);
    let (all, _) = run::<f64>(model, &graph, logits, &Vocabulary::whole(model.config()), weight);
    let width = model.config().vocab;
    let log_prob = |(step, &choice): (usize, &usize)| {
        let row = &all[(first + step) * width..][..width];
        let own: Vec<f64> = choices.iter().map(|&token| row[token as usize] / temperature).collect();
        own[choice] - own.iter().map(|x| x.exp()).sum::<f64>().ln()
    };
    written.iter().enumerate().map(log_prob).collect()
}

#[test]
fn texts_are_scored_as_each_alone_and_end_where_they_end() {
    let task = task();
    for name in MODELS {
        let model = model(name);
        let policy = WriterPolicy::new(&model, &task, 2, 0.7).unwrap();
        let make = |graph: &Graph, outputs: &[Value]| Ok(Cpu::boxed(graph, outputs, 1));
        let mut engine = make(policy.graph(), &policy.heads().outputs()).unwrap();
        engine.set_parameters(0, &policy.initial_parameters(3)).unwrap();
        let (mut scratch, mut rollout) = (WriterScratch::default(), Rollout::default());
        let lanes = 24;
        let mut uniforms: Vec<f64> =
            (0..lanes * HORIZON).map(|place| (0.37 * place as f64).fract()).collect();
        // The first text takes the last choice, which ends nothing, as often as it can.
        uniforms[..HORIZON].fill(0.999_999);
        let instances: Vec<u32> = (0..lanes as u32 / 2).map(|group| group % 3).collect();
        let request =
            DrawRequest { lanes, instances: &instances, how: Draw::Sampled(&uniforms), score: true };
        policy.draw(engine.as_mut(), &mut scratch, &make, &task, request, &mut rollout).unwrap();
        engine.forward().unwrap();
        // In the order of their tokens: what the model ends with, then letters.
        let choices: Vec<u32> = (0..model.config().vocab as u32)
            .filter(|token| {
                let text = model.text().decode(&[*token]).unwrap();
                model.config().ends.contains(token) || ["2", "5", "d"].contains(&text.as_str())
            })
            .collect();
        assert_eq!(choices.len(), 4, "{name}");
        let scored = engine.output(0, 0).to_vec();
        let mut lengths = Vec::new();
        for (lane, text) in rollout.trajectories(0).enumerate() {
            let text: Vec<usize> = text.iter().map(|&choice| choice as usize).collect();
            let prompt = &task.prompts()[instances[lane / 2] as usize].text;
            let expected = slowly(&model, prompt, &choices, &text, 0.7);
            let own: Vec<f64> =
                scored[lane * HORIZON..][..text.len()].iter().map(|&x| f64::from(x)).collect();
            assert!(distance(&own, &expected) < 1e-5, "{name}, lane {lane}");
            // Only the last may be an end, and one that is shorter than the horizon has one.
            let ends = |choice: &usize| {
                let token = choices[*choice];
                model.config().ends.contains(&token) || model.text().decode(&[token]).unwrap() == "5"
            };
            assert_eq!(text.iter().position(ends).map_or(HORIZON, |place| place + 1), text.len(), "{name}");
            lengths.push(text.len());
        }
        assert!(lengths.iter().any(|&length| length < HORIZON) && lengths.contains(&HORIZON), "{lengths:?}");
    }
}

#[test]
fn a_group_has_the_gradient_of_its_texts_alone() {
    let (task, model) = (task(), model("tiny-llama"));
    let gradient = |group: usize| {
        let policy = WriterPolicy::new(&model, &task, group, 1.0).unwrap();
        let mut engine = Cpu::boxed(policy.graph(), &policy.heads().outputs(), 1);
        engine.set_parameters(0, &policy.initial_parameters(0)).unwrap();
        let actions = [[1, 2, 1, 1], [2, 1, -1, -1], [1, 1, 1, 1], [2, 2, 2, 0]].concat();
        let instances = [0, 0, 1, 1].into_iter().step_by(group).collect();
        let mut rollout = Rollout { actions, instances, reward: vec![0.0; 4], ..Rollout::default() };
        rollout.cut(4, HORIZON, None);
        policy.load(engine.as_mut(), &task, &rollout).unwrap();
        engine
            .pull_back(&|span: Span, _: &[&[f32]], wanted: &mut [&mut [f32]]| {
                let first = span.items.start * group * HORIZON;
                for (place, wanted) in wanted[0].iter_mut().enumerate() {
                    *wanted = weight(first + place, 1) as f32;
                }
                wanted[1].fill(0.1);
            })
            .unwrap();
        engine.gradient(0).unwrap()
    };
    assert!(distance(&gradient(2), &gradient(1)) < 1e-5);
}

#[test]
fn what_cannot_be_written_is_named() {
    let model = model("tiny-qwen2");
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("text.toml");
    let text = std::fs::read_to_string(folder("text.toml")).unwrap();
    let refusal = |from: &str, to: &str| {
        std::fs::write(&path, text.replace(from, to)).unwrap();
        let line =
            WriterPolicy::new(&model, &TextTask::read(&path).unwrap(), 2, 1.0).unwrap_err().to_string();
        line.split_once("text.toml: ").unwrap().1.to_owned()
    };
    assert_eq!(
        refusal("\"25d\"", "\"λ\""),
        "'only' leaves fewer than two tokens of this model to choose from"
    );
    let line = refusal("tokens = 4", "tokens = 600");
    assert!(line.ends_with("and 600 more; the model has 512 positions"), "{line}");
}
