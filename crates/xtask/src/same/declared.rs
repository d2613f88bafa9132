//! Formats that change on purpose, each with its reason. A change that is not in the table fails the comparison.

use std::fmt;

/// How two files may differ.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Change {
    /// Only today's command writes the file.
    Added,
    /// The bytes differ.
    Bytes,
    /// The bytes are the same but for quotation marks.
    Quotes,
    /// The lines are the same but for those that begin so.
    Lines(&'static str),
    /// The words are the same but for numbers with a decimal point.
    Numbers,
    /// A table as CSV that is the same but for these columns.
    Columns(&'static [&'static str]),
    /// Safetensors that hold the same tensors, byte for byte; what is noted beside them differs.
    Notes,
    /// JSON fields that one side has and the other has not, or that differ; all others are compared as values.
    Fields(&'static [&'static str]),
}

/// A file's declared difference.
pub(super) struct Declared {
    /// A part of the path that the file has, from the item's folder on; `*` stands for anything.
    pub(super) path: &'static str,
    pub(super) change: Change,
    pub(super) reason: &'static str,
}

impl Declared {
    /// Whether it is about a file.
    pub(super) fn names(&self, file: &str) -> bool {
        let mut parts = self.path.split('*');
        parts.try_fold(file, |rest, part| rest.split_once(part).map(|(_, rest)| rest)).is_some()
    }
}

impl fmt::Display for Declared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.change {
            Change::Added => write!(f, "{} is new: {}", self.path, self.reason),
            Change::Bytes | Change::Quotes | Change::Lines(_) | Change::Numbers | Change::Notes => {
                write!(f, "{}: {}", self.path, self.reason)
            }
            Change::Fields(names) | Change::Columns(names) => {
                write!(f, "{} in {}: {}", names.join(", "), self.path, self.reason)
            }
        }
    }
}

/// Every difference that is meant.
pub(super) const DECLARED: &[Declared] = &[
    Declared {
        path: "index.html",
        change: Change::Bytes,
        reason: "pages use the width of a screen, have a form for phones, toggles, values and zoom, and begin with the verdict",
    },
    Declared { path: "train-*/index.html", change: Change::Added, reason: "a run ends with a page" },
    Declared {
        path: ".json",
        change: Change::Fields(&["niwaki"]),
        reason: "documents say which version made them",
    },
    Declared {
        path: "rows.json",
        change: Change::Bytes,
        reason: "rows stand in an object beside the version; rows.csv has the same numbers",
    },
    Declared {
        path: "oracle/*.json",
        change: Change::Bytes,
        reason: "the same; oracle.csv has the same numbers",
    },
    Declared {
        path: "advise-*/advise.json",
        change: Change::Fields(&["niwaki", "verdict"]),
        reason: "the verdict says \"sure\" only where the whole interval does, and of a bias that the update may have fitted that \
                 it may; what was measured is compared",
    },
    Declared {
        path: "advise-*/printed.txt",
        change: Change::Bytes,
        reason: "the same, as it is printed; advise.json has the numbers",
    },
    Declared {
        path: "printed.txt",
        change: Change::Lines("wrote "),
        reason: "files that were written are named alike by every command",
    },
    Declared {
        path: "events.out.tfevents",
        change: Change::Bytes,
        reason: "TensorBoard's events carry the time at which they were written",
    },
    Declared {
        path: "events.out.tfevents",
        change: Change::Added,
        reason: "the runs of a study are shown by TensorBoard too",
    },
    Declared {
        path: "checkpoint.safetensors",
        change: Change::Added,
        reason: "the runs of a study keep their policy, so that `solve --policy` can use it",
    },
    Declared {
        path: ".csv",
        change: Change::Quotes,
        reason: "a name is quoted where it holds a comma, not always",
    },
    Declared { path: "oracle-csv/printed.txt", change: Change::Quotes, reason: "the same, as it is printed" },
    Declared {
        path: "checkpoint.safetensors",
        change: Change::Notes,
        reason: "a checkpoint notes a checksum of its tensors; the tensors are the same",
    },
    Declared {
        path: "curve.jsonl",
        change: Change::Fields(&[
            "check",
            "first",
            "last",
            "drift",
            "ess",
            "prefix_ess",
            "dose",
            "rollout_dose",
            "kl",
            "entropy",
            "clip_fraction",
        ]),
        reason: "every line vouches for those before it; how often a pointer's candidates came first says nothing; and what an \
                 update did to the policy is measured after its last step, not before it",
    },
    Declared {
        path: "dump.jsonl",
        change: Change::Fields(&["check", "new_log_prob"]),
        reason: "every line vouches for those before it, and new log-probs are those after the last step of the update",
    },
    Declared {
        path: "train-*/printed.txt",
        change: Change::Numbers,
        reason: "the mean drift that `train` prints is measured after the last step of an update",
    },
    Declared {
        path: "reproduce/printed.txt",
        change: Change::Bytes,
        reason: "statements were added and moved to where the paper makes them, two seeds decide no sign test, and a range over \
                 seeds agrees where ours lies in it; the numbers behind them are compared as rows.json and endpoints.csv",
    },
    Declared {
        path: "pointer-study/printed.txt",
        change: Change::Bytes,
        reason: "two seeds decide no sign test; dose and drift are measured after the last step of an update",
    },
    Declared {
        path: "pointer-study/*/endpoints.csv",
        change: Change::Columns(&["dose:2", "first-drift"]),
        reason: "dose and drift are measured after the last step of an update",
    },
    Declared {
        path: "/shops/",
        change: Change::Lines("#"),
        reason: "a flow shop in the layout of pairs says that it is one, because a job shop could look the same",
    },
    Declared { path: "optima.json", change: Change::Bytes, reason: "optima carry a check of what they say" },
    Declared {
        path: "optima.json",
        change: Change::Added,
        reason: "a study's runs keep the optima that they were paid by",
    },
    Declared {
        path: "spec.toml",
        change: Change::Bytes,
        reason: "the resolved spec shows the keys of its own kinds, with a sentence each, in studies too",
    },
    Declared {
        path: "summary.json",
        change: Change::Fields(&[
            "check",
            "curve",
            "dump",
            "iterations",
            "done",
            "device",
            "mean_drift",
            "mean_clip_fraction",
        ]),
        reason: "a summary vouches for its curve, and its means are over updates measured after their last step",
    },
    Declared {
        path: "train-folder/run/summary.json",
        change: Change::Fields(&[
            "check",
            "curve",
            "done",
            "device",
            "mean_drift",
            "mean_clip_fraction",
            "spec",
        ]),
        reason: "the same, and the spec's hash names the content of its instances, whose files have a new first line",
    },
    Declared {
        path: "summary.json",
        change: Change::Fields(&[
            "check",
            "curve",
            "final_eta",
            "best_eta",
            "auc",
            "broke_through",
            "solved",
            "success",
            "final_greedy",
            "greedy_auc",
            "alpha",
            "unproven",
            "mean_drift",
            "mean_clip_fraction",
            "zero_reward_batches",
        ]),
        reason: "a study's runs have the summary that every run has",
    },
];
