//! A manifest with an Indexed Job for Kubernetes.

use super::encode::{container, flag, printable, string};
use super::{Launch, Resources};
use crate::Error;
use crate::machines::Split;
use std::fmt::Write as _;

/// The largest plan that travels in the manifest: a ConfigMap holds a megabyte.
const LARGEST: usize = 900_000;

/// What a pod is made of.
#[derive(Clone, Debug)]
pub struct Pods<'a> {
    /// The image that holds the program.
    pub image: &'a str,
    /// A claim on a volume that every pod can write, mounted at the folder of the results.
    pub volume: Option<&'a str>,
    /// A Secret whose keys become the pods' environment.
    pub secret: Option<&'a str>,
}

/// The manifest: the plan in a ConfigMap, and a Job with one index per unit. Pods with higher indices begin later, so units
/// that come after others stand behind them and wait.
///
/// # Errors
/// Where the plan is too large for a ConfigMap, or a word cannot stand in a manifest.
pub fn kubernetes(split: &Split, launch: &Launch<'_>, pods: &Pods<'_>) -> Result<String, Error> {
    let refuse = |mend: String| Error::Plan { name: format!("plan {}", split.id), mend };
    // What a string of the plan holds must not end a line of the manifest.
    let document = printable(&split.to_json()?);
    if document.len() > LARGEST {
        let mend = format!(
            "its {} bytes do not fit into a ConfigMap of 1 MB; give more runs to each unit",
            document.len()
        );
        return Err(refuse(mend));
    }
    if pods.volume.is_none() && !launch.out.contains("://") {
        let mend = format!(
            "its results would stay in each pod's own '{}'; give --volume CLAIM, or a bucket as --out",
            launch.out.escape_debug()
        );
        return Err(refuse(mend));
    }
    if pods.volume.is_some() && !launch.out.starts_with('/') {
        let mend = format!(
            "a volume is mounted at a path from the root, and '{}' is not; give e.g. --out /runs",
            launch.out.escape_debug()
        );
        return Err(refuse(mend));
    }
    let gpu = split.units.iter().any(|unit| unit.device != "cpu");
    if let Some(kind) = launch.resources.gpu.as_ref().filter(|kind| gpu && !kind.contains('/')) {
        let mend = format!(
            "Kubernetes knows kinds of GPU by the names of resources, and '{}' is not one; give e.g. nvidia.com/gpu",
            kind.escape_debug()
        );
        return Err(refuse(mend));
    }
    let [volume, secret] = [pods.volume, pods.secret].map(Option::unwrap_or_default);
    let kind = launch.resources.gpu.as_deref().unwrap_or_default();
    let words = [launch.program, launch.out, pods.image, volume, secret, kind];
    if let Some(word) = words.into_iter().find(|word| word.chars().any(char::is_control)) {
        return Err(refuse(format!("'{}' holds a control character", word.escape_debug())));
    }
    let [program, image] = [container(launch.program), string(pods.image)];
    let results = match flag("--out", launch.out).as_slice() {
        [flag, out] => format!("{flag}, {}", container(out)),
        words => words.iter().map(|word| container(word)).collect(),
    };
    let (id, units) = (&split.id, split.units.len());
    let at_once = launch.at_once.unwrap_or(units).min(units).max(1);
    let mut manifest =
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: niwaki-{id}\ndata:\n  plan.json: |\n");
    for line in document.lines() {
        // A string is always written.
        let _ = writeln!(manifest, "    {line}");
    }
    let retries = launch.attempts.saturating_sub(1);
    let deadline = launch.resources.seconds();
    let deadline =
        deadline.map_or_else(String::new, |seconds| format!("      activeDeadlineSeconds: {seconds}\n"));
    let _ = write!(
        manifest,
        r#"---
apiVersion: batch/v1
kind: Job
metadata:
  name: niwaki-{id}
spec:
  completionMode: Indexed
  completions: {units}
  parallelism: {at_once}
  backoffLimitPerIndex: {retries}
  maxFailedIndexes: {units}
  podFailurePolicy:
    rules:
      # A pod that was asked to stop has saved what it had; it counts as no attempt.
      - action: Ignore
        onExitCodes:
          containerName: niwaki
          operator: In
          values: [130]
      - action: Ignore
        onPodConditions:
          - type: DisruptionTarget
  template:
    spec:
      restartPolicy: Never
{deadline}      containers:
        - name: niwaki
          image: {image}
          command: [{program}, cluster, work, --plan, /etc/niwaki/plan.json, {results}, --unit, $(JOB_COMPLETION_INDEX), --wait]
"#
    );
    manifest += &asked(&launch.resources, gpu);
    if let Some(secret) = pods.secret {
        let name = string(secret);
        let _ =
            writeln!(manifest, "          envFrom:\n            - secretRef:\n                name: {name}");
    }
    manifest += "          volumeMounts:\n            - name: plan\n              mountPath: /etc/niwaki\n";
    if pods.volume.is_some() {
        let out = string(launch.out);
        let _ = writeln!(manifest, "            - name: results\n              mountPath: {out}");
    }
    let _ = write!(
        manifest,
        "      volumes:\n        - name: plan\n          configMap:\n            name: niwaki-{id}\n"
    );
    if let Some(volume) = pods.volume {
        let claim = string(volume);
        let _ = writeln!(
            manifest,
            "        - name: results\n          persistentVolumeClaim:\n            claimName: {claim}"
        );
    }
    Ok(manifest)
}

/// What the container of a unit asks for.
fn asked(resources: &Resources, gpu: bool) -> String {
    let mut limits = Vec::new();
    if let Some(cpus) = resources.cpus {
        limits.push(format!("cpu: {cpus}"));
    }
    if let Some(memory) = resources.memory {
        limits.push(format!("memory: {memory}Mi"));
    }
    if gpu {
        let kind = resources.gpu.as_deref().map_or_else(|| "nvidia.com/gpu".to_owned(), string);
        limits.push(format!("{kind}: 1"));
    }
    if limits.is_empty() {
        return String::new();
    }
    format!("          resources:\n            limits:\n              {}\n", limits.join("\n              "))
}
