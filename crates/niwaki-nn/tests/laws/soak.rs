//! A long run takes no more memory than a short one.

use crate::harness::{loaded, pull};
use crate::population::program;
use niwaki_nn::{Engine, Optimiser};

/// Resident bytes of this process.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    1024 * line.split_whitespace().next().unwrap().parse::<u64>().unwrap()
}

/// 10,000 steps with a forward pass and a row-by-row pass now and then. A leak of even one output buffer (8 lanes × 6
/// steps × 4 bytes) per step would show as 1.7 MB; other tests of this binary run beside, so those count too: hence
/// the run is alone in its process, through the environment, and the margin is half a leak.
#[cfg(target_os = "linux")]
#[test]
fn ten_thousand_steps_take_no_more_memory_than_one_thousand() {
    const ALONE: &str = "NIWAKI_SOAK_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let name = "soak::ten_thousand_steps_take_no_more_memory_than_one_thousand";
        let status = std::process::Command::new(std::env::current_exe().unwrap())
            .args([name, "--exact"])
            .env(ALONE, "1")
            .stdout(std::process::Stdio::null())
            .status()
            .unwrap();
        assert!(status.success(), "the soak failed; run it alone with {ALONE}=1");
        return;
    }
    let (graph, outputs, _) = program();
    let seeds = [1, 2];
    let mut engine = loaded::<f32>(&graph, &outputs, &seeds, 8);
    let mut after_thousand = 0;
    for step in 0..10_000 {
        pull(&mut engine, &graph, &outputs, &seeds);
        engine.step(&Optimiser::adam(), &[1e-4, 1e-4]).unwrap();
        if step % 10 == 0 {
            engine.forward().unwrap();
            (0..6).for_each(|row| engine.forward_row(row).unwrap());
        }
        if step == 999 {
            after_thousand = resident();
        }
    }
    let grown = resident().saturating_sub(after_thousand);
    assert!(grown < 850_000, "{grown} bytes more after 10,000 steps than after 1,000");
}
