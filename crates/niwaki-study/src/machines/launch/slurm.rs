//! A script that submits job arrays to Slurm.

use super::encode::shell;
use super::{Block, Launch};
use crate::machines::Split;
use std::fmt::Write as _;

/// Tasks of an array: Slurm's usual limit is a thousand.
const ARRAY: usize = 1000;

/// The script: an array per block of units, those that come after others with a dependency on their arrays. What a site
/// asks for beside that (a partition, an account, a time limit) is given as `options` of sbatch. The job itself is the same
/// text for every plan, and is given its paths as arguments.
#[must_use]
pub fn slurm(split: &Split, launch: &Launch<'_>, options: &[String]) -> String {
    let Launch { program, plan, out, attempts, at_once } = launch;
    let options = options.iter().map(|option| format!(" {}", shell(option))).collect::<String>();
    let limit = at_once.map_or_else(String::new, |limit| format!("%{limit}"));
    let [program, plan_file, out] = [program, plan, out].map(|word| shell(word));
    let mut script = format!(
        r#"#!/usr/bin/env bash
# The plan {id} of {count} units as job arrays. A task is one unit; it may be repeated, moved or run twice.
set -euo pipefail
niwaki={program}
plan={plan_file}
out={out}
logs=${{NIWAKI_LOGS:-niwaki-{id}-logs}}
case $logs in /*) ;; *) logs=$PWD/$logs ;; esac
# Slurm fills in patterns of --output: %% is a %, and nothing stands for a backslash.
case $logs in *\\*) echo "the folder of the logs has a backslash in its name; give another as NIWAKI_LOGS" >&2; exit 2 ;; esac
mkdir -p "$logs"

# submit FIRST COUNT OPTIONS...: units FIRST to FIRST + COUNT - 1, a log for each.
submit() {{
  local first=$1 count=$2
  shift 2
  sbatch --parsable --job-name=niwaki-{id} --array="0-$((count - 1)){limit}" --requeue --open-mode=append \
    --output="${{logs//[%]/%%}}/%x.%A_%a.slurm" "$@"{options} \
    /dev/stdin "$first" {attempts} "$niwaki" "$plan" "$out" "$logs" <<'JOB'
#!/usr/bin/env bash
unit=$(($1 + SLURM_ARRAY_TASK_ID)) attempts=$2 niwaki=$3 plan=$4 out=$5 logs=$6
exec >> "$logs/unit-$unit.log" 2>&1
for attempt in $(seq "$attempts"); do
  "$niwaki" cluster work --plan "$plan" --out "$out" --unit "$unit"
  status=$?
  # 0: done. 130: stopped by a signal, and Slurm says what happens next.
  if [ $status -eq 0 ] || [ $status -eq 130 ]; then exit $status; fi
done
exit $status
JOB
}}

"#,
        id = split.id,
        count = split.units.len(),
    );
    let blocks = split.blocks(ARRAY);
    for (place, Block { units, depth, gpu }) in blocks.iter().enumerate() {
        let before = blocks[..place].iter().enumerate().filter(|(_, block)| block.depth + 1 == *depth);
        let jobs: Vec<String> = before.map(|(place, _)| format!("${{job_{place}}}")).collect();
        let after = if jobs.is_empty() {
            String::new()
        } else {
            format!(" --dependency=\"afterok:{}\" --kill-on-invalid-dep=yes", jobs.join(":"))
        };
        let gres = if *gpu { " --gres=gpu:1" } else { "" };
        // A string is always written.
        let _ = writeln!(script, "job_{place}=$(submit {} {}{gres}{after})", units.start, units.len());
        let _ = writeln!(script, "echo \"units {} to {}: job $job_{place}\"", units.start, units.end - 1);
    }
    script
}
