//! Columns that a table does not have, and which one was probably meant.

/// What others call a column, and what it is called here; the first that the table has is meant.
const OTHERS: [(&str, &[&str]); 12] = [
    (
        "time",
        &[
            "duration",
            "processing time",
            "process time",
            "run time",
            "runtime",
            "cycle time",
            "length",
            "minutes",
            "hours",
        ],
    ),
    (
        "machine",
        &[
            "resource",
            "station",
            "workstation",
            "work center",
            "work centre",
            "workcenter",
            "equipment",
            "line",
        ],
    ),
    ("operation", &["task", "step", "op", "activity", "process"]),
    ("job", &["order", "work order", "job id", "job name", "lot", "part", "product", "item"]),
    ("due", &["due date", "duedate", "delivery", "delivery date", "promised"]),
    (
        "release",
        &["release date", "start", "start date", "arrival", "arrival time", "available", "earliest start"],
    ),
    ("earliest", &["start", "not before", "earliest start"]),
    ("latest", &["end", "finish", "not after", "latest end"]),
    ("weight", &["priority", "importance"]),
    ("after", &["predecessor", "predecessors", "depends on", "before", "prerequisite"]),
    ("count", &["quantity", "qty", "number", "amount"]),
    ("days", &["day", "weekday", "weekdays"]),
];

/// What is said of a column that is not read, beside the columns that are.
pub(super) fn unread(column: &str, known: &[&str]) -> String {
    let plain = column.replace(['_', '-'], " ");
    let named = OTHERS.iter().find(|(name, others)| known.contains(name) && others.contains(&plain.as_str()));
    let meant = named.map(|(name, _)| *name).or_else(|| niwaki_words::nearest(&plain, known.iter().copied()));
    let advice = match (meant, plain.as_str()) {
        (Some(meant), _) => format!("did you mean `{meant}`?"),
        (None, "quantity" | "qty" | "pieces" | "amount" | "lot size") => {
            "each operation is done once, so its time is that of all pieces".to_owned()
        }
        (None, "setup" | "setup time" | "changeover") => {
            "times between families stand in the table setups".to_owned()
        }
        _ => format!("expected only the columns {}", known.join(", ")),
    };
    format!("this column is not read; {advice}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_names_and_slips_are_recognised() {
        let known =
            ["job", "operation", "machine", "time", "family", "earliest", "latest", "max wait", "due"];
        for (column, meant) in [
            ("duration", "time"),
            ("processing_time", "time"),
            ("work-center", "machine"),
            ("start", "earliest"),
            ("max_wait", "max wait"),
            ("machnie", "machine"),
            ("due date", "due"),
        ] {
            assert_eq!(
                unread(column, &known),
                format!("this column is not read; did you mean `{meant}`?"),
                "{column}"
            );
        }
        assert!(
            unread("qty", &known).contains("all pieces")
                && unread("qty", &["machine", "count"]).contains("`count`")
        );
        assert!(unread("setup time", &known).ends_with("the table setups"));
        assert!(unread("colour", &["job"]).ends_with("expected only the columns job"));
    }
}
