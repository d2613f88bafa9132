//! A script that submits job arrays to Slurm.

use super::encode::shell;
use super::{Block, Launch, Resources};
use crate::machines::Split;
use std::fmt::Write as _;

/// Tasks of an array: Slurm's usual limit is a thousand.
const ARRAY: usize = 1000;

/// Seconds before a time limit at which a task is told, so that it saves what it has and is queued again. Slurm may be a
/// minute late.
const NOTICE: u64 = 120;

/// The script: an array per block of units, those that come after others once the arrays before them have ended. (A unit
/// whose predecessors failed then refuses, and the others go on.) What a site asks for beside resources (a partition, an
/// account) is given as `options` of sbatch. The job itself is the same text for every plan, and is given its paths as
/// arguments.
#[must_use]
pub fn slurm(split: &Split, launch: &Launch<'_>, options: &[String]) -> String {
    let Launch { program, plan, out, attempts, at_once, resources } = launch;
    let asked = asked(resources);
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
    --output="${{logs//[%]/%%}}/%x.%A_%a.slurm"{asked} "$@"{options} \
    /dev/stdin "$first" {attempts} "$niwaki" "$plan" "$out" "$logs" <<'JOB'
#!/usr/bin/env bash
unit=$(($1 + SLURM_ARRAY_TASK_ID)) attempts=$2 niwaki=$3 plan=$4 out=$5 logs=$6
exec >> "$logs/unit-$unit.log" 2>&1
[ -z "${{SLURM_CPUS_PER_TASK-}}" ] || export RAYON_NUM_THREADS=$SLURM_CPUS_PER_TASK
# USR1 comes before the time limit; TERM where the task is moved or cancelled.
worker= limit= told=
trap 'limit=near told=yes; kill -TERM "$worker"' USR1
trap 'told=yes; kill -TERM "$worker"' TERM
for attempt in $(seq "$attempts"); do
  "$niwaki" cluster work --plan "$plan" --out "$out" --unit "$unit" &
  worker=$!
  # A signal ends the wait, not the worker.
  while :; do
    told=
    wait "$worker"
    status=$?
    [ -n "$told" ] || break
  done
  if [ -n "$limit" ] && [ $status -eq 130 ]; then
    scontrol requeue "${{SLURM_ARRAY_JOB_ID}}_$SLURM_ARRAY_TASK_ID"
  fi
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
            format!(" --dependency=\"afterany:{}\"", jobs.join(":"))
        };
        let gres = match &resources.gpu {
            _ if !gpu => String::new(),
            None => " --gres=gpu:1".to_owned(),
            Some(kind) => format!(" {}", shell(&format!("--gres=gpu:{kind}:1"))),
        };
        // A string is always written.
        let _ = writeln!(script, "job_{place}=$(submit {} {}{gres}{after})", units.start, units.len());
        let _ = writeln!(script, "echo \"units {} to {}: job $job_{place}\"", units.start, units.end - 1);
    }
    script
}

/// Options of sbatch for what each unit asks for.
fn asked(resources: &Resources) -> String {
    let mut asked = String::new();
    if let Some(seconds) = resources.seconds() {
        // Slurm counts whole minutes, and takes what is shorter for none.
        let minutes = seconds.div_ceil(60);
        let notice = NOTICE.min(minutes * 60 / 2);
        asked += &format!(" --time={minutes} --signal=B:USR1@{notice}");
    }
    if let Some(memory) = resources.memory {
        asked += &format!(" --mem={memory}M");
    }
    if let Some(cpus) = resources.cpus {
        asked += &format!(" --cpus-per-task={cpus}");
    }
    asked
}
