//! The short pass that every check runs: each reader's seeds as they are, and changed ones.

use niwaki_fuzz::campaign;
use niwaki_fuzz::meter::{self, Counting};
use niwaki_fuzz::readers::{folder, readers};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Changed inputs per reader.
const CASES: u64 = 1000;

#[test]
fn no_reader_panics_hangs_or_takes_more_than_its_share() {
    // A backtrace of a panic that becomes a refusal would be held against the reader.
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !niwaki_lm::within_tokenizer() {
            usual(panic);
        }
    }));
    let folder = folder().unwrap();
    for reader in readers() {
        assert!(!reader.seeds.is_empty(), "{} has no seeds", reader.name);
        let cases = 0..reader.seeds.len() as u64 + CASES;
        let tally = campaign::run(&reader, cases, None, folder.path());
        assert!(tally.failures.is_empty(), "{}: {:?}", reader.name, tally.failures);
        // A reader that refuses all of its seeds is not the one that reads them.
        assert!(tally.read > 0, "{} read nothing of {} inputs", reader.name, tally.inputs);
    }
}

#[test]
fn the_meter_sees_what_is_held() {
    let (kept, peak) = meter::measure(|| {
        drop(vec![0_u8; 1 << 20]);
        vec![0_u8; 1 << 10]
    });
    assert!(kept.len() == 1 << 10 && (1 << 20..(1 << 20) + (1 << 12)).contains(&peak), "{peak}");
}
