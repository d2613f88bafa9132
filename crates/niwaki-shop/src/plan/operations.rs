//! Rows of the table `operations` to operations: which rows are one operation, what each is called, what it waits for.
//!
//! Rows of a job that follow one another under one name are alternatives: one operation on several machines. The same name
//! again after another operation is an operation of its own, `inspect (2)`.

use super::machines::Machines;
use super::read::Reader;
use super::table::{Row, Table};
use crate::Result;
use crate::general::{Mode, Operation, Precedence};
use std::collections::{HashMap, HashSet};

/// The columns that say something of an operation as a whole, whatever machine runs it.
const OF_OPERATION: [&str; 7] =
    ["family", "interruptible", "earliest", "latest", "after", "wait", "max wait"];

/// The most machines that operations may choose from, all operations together.
const MODES: usize = 5_000_000;

/// The most entries of `after`, all operations together.
const AFTER: usize = 1_000_000;

/// An operation as its rows give it.
pub(super) struct Draft {
    pub(super) job: usize,
    pub(super) operation: Operation,
    after: After,
    pub(super) min: u32,
    max: Option<u32>,
    /// The index of its first row.
    row: usize,
}

enum After {
    Previous,
    Nothing,
    Named(Vec<String>),
}

/// An operation's number, and the name that its rows give.
type Last = (usize, Option<String>);

/// All operations in the order of their rows.
pub(super) struct Drafts<'a> {
    table: &'a Table,
    pub(super) all: Vec<Draft>,
    /// Of each job: how many operations it has, and the last of them with the name that its rows give.
    jobs: Vec<(usize, Option<Last>)>,
    /// Operations by job and what rows call them, and by job and the name that they have.
    called: HashMap<(usize, String), Vec<usize>>,
    titles: HashMap<(usize, String), usize>,
    /// Operations of several rows, and the row that names each of their machines.
    chosen: HashSet<usize>,
    machines: HashMap<(usize, u32), usize>,
}

impl<'a> Drafts<'a> {
    pub(super) fn new(table: &'a Table, jobs: usize) -> Self {
        let jobs = vec![(0, None); jobs];
        Self {
            table,
            all: Vec::new(),
            jobs,
            called: HashMap::new(),
            titles: HashMap::new(),
            chosen: HashSet::new(),
            machines: HashMap::new(),
        }
    }

    /// Adds a job without operations, and says which number it has.
    pub(super) fn add_job(&mut self) -> usize {
        self.jobs.push((0, None));
        self.jobs.len() - 1
    }

    /// A job that has no operation, if there is one.
    pub(super) fn job_without(&self) -> Option<usize> {
        self.jobs.iter().position(|(count, _)| *count == 0)
    }

    /// The operation that a row begins, which is then to be added; nothing if the row is an alternative of the one before it.
    pub(super) fn begin(&mut self, job: usize, index: usize, modes: Vec<Mode>) -> Result<Option<Operation>> {
        let row = &self.table.rows[index];
        let given = self.table.cell(row, "operation").map(|cell| cell.text);
        if let (Some(name), (_, Some((last, Some(known))))) = (given, &self.jobs[job])
            && known == name
        {
            let first = &mut self.all[*last];
            agree(self.table, row, &self.table.rows[first.row])?;
            if self.chosen.insert(*last) {
                let modes = first.operation.modes.iter();
                self.machines.extend(modes.map(|mode| ((*last, mode.machine), first.row)));
            }
            for mode in &modes {
                if let Some(other) = self.machines.insert((*last, mode.machine), index) {
                    let what = format!(
                        "row {} is this operation on this machine already; if `{known}` is done twice, give each its own name",
                        self.table.rows[other].place
                    );
                    return Err(self.table.fault(row, "machine", what));
                }
            }
            first.operation.modes.extend(modes);
            return Ok(None);
        }
        let number = self.all.len();
        let (count, last) = &mut self.jobs[job];
        *count += 1;
        *last = Some((number, given.map(str::to_owned)));
        let name = given.map_or_else(|| count.to_string(), str::to_owned);
        let same = self.called.entry((job, name.clone())).or_default();
        same.push(number);
        let title = if same.len() == 1 { name } else { format!("{name} ({})", same.len()) };
        if let Some(&other) = self.titles.get(&(job, title.clone())) {
            let what = format!(
                "row {} of this job is an operation called `{title}` as well; give one of them another name",
                self.table.rows[self.all[other].row].place
            );
            return Err(self.table.fault(row, "operation", what));
        }
        self.titles.insert((job, title.clone()), number);
        Ok(Some(Operation::new(title, modes)))
    }

    /// What waits for what, by the flat numbers of operations, job after job.
    pub(super) fn precedences(&self, job_of: &HashMap<String, usize>) -> Result<Vec<Precedence>> {
        let mut sorted: Vec<usize> = (0..self.all.len()).collect();
        sorted.sort_by_key(|&draft| self.all[draft].job);
        let mut number = vec![0_u32; self.all.len()];
        for (flat, &draft) in sorted.iter().enumerate() {
            number[draft] = flat as u32;
        }
        let mut precedences = Vec::new();
        let mut previous: HashMap<usize, u32> = HashMap::new();
        for (index, draft) in self.all.iter().enumerate() {
            let after = number[index];
            let mut link =
                |before| precedences.push(Precedence { before, after, min: draft.min, max: draft.max });
            match &draft.after {
                After::Nothing => {}
                After::Previous => previous.get(&draft.job).copied().into_iter().for_each(link),
                After::Named(names) => {
                    for name in names {
                        link(number[self.named(name, draft, job_of)?]);
                    }
                }
            }
            previous.insert(draft.job, after);
        }
        Ok(precedences)
    }

    /// The operation that an entry of `after` names: `operation` of the same job, or `job/operation`.
    fn named(&self, name: &str, draft: &Draft, job_of: &HashMap<String, usize>) -> Result<usize> {
        let fault = |what: String| Err(self.table.fault(&self.table.rows[draft.row], "after", what));
        let slashes = name
            .match_indices('/')
            .filter_map(|(at, _)| Some((*job_of.get(name[..at].trim())?, name[at + 1..].trim())));
        let readings = std::iter::once((draft.job, name)).chain(slashes);
        let mut found = readings.filter_map(|(job, title)| {
            let key = (job, title.to_owned());
            let known = self.titles.get(&key)?;
            Some((*known, self.called.get(&key)))
        });
        match (found.next(), found.next()) {
            (None, _) => fault(format!("expected an operation of the job, or `job/operation`, got `{name}`")),
            (Some(_), Some(_)) => {
                fault(format!("`{name}` could be an operation of two jobs; give one of them another name"))
            }
            (Some((_, Some(same))), None) if same.len() > 1 => {
                let rows: Vec<String> =
                    same.iter().map(|&one| self.table.rows[self.all[one].row].place.to_string()).collect();
                fault(format!(
                    "`{name}` could be the operation of row {}; give them different names",
                    rows.join(" or ")
                ))
            }
            (Some((draft, _)), None) => Ok(draft),
        }
    }
}

/// Refuses an alternative that says something of its operation that the operation's first row does not say.
fn agree(table: &Table, row: &Row, first: &Row) -> Result<()> {
    for column in OF_OPERATION {
        let text = |row| table.cell(row, column).map_or("", |cell| cell.text);
        let (here, there) = (text(row), text(first));
        if !here.is_empty() && here != there {
            let what = format!(
                "expected `{there}` as in row {}, of which this row is another machine, got `{here}`",
                first.place
            );
            return Err(table.fault(row, column, what));
        }
    }
    Ok(())
}

impl Reader<'_> {
    pub(super) fn modes(&mut self, table: &Table, row: &Row, machines: &Machines) -> Result<Vec<Mode>> {
        let (names, times) = (table.need(row, "machine")?, table.need(row, "time")?);
        let (texts, lengths) = (names.entries()?, times.entries()?);
        if lengths.len() > 1 && lengths.len() != texts.len() {
            return Err(
                times.fault(format!("expected one time, or one for each of {} machines", texts.len()))
            );
        }
        let mut modes = Vec::new();
        for (index, name) in texts.iter().enumerate() {
            let text = lengths.get(index).or(lengths.first()).copied().unwrap_or("");
            let fine = self.clock.length(text).map_err(|what| times.fault(what))?;
            let time = self.count(times, fine)?;
            let group = machines.groups.get(*name).ok_or_else(|| {
                names.fault(format!("expected a machine of the table machines, got `{name}`"))
            })?;
            modes.extend(group.iter().map(|&machine| Mode { machine, time }));
        }
        // A row may name a group of thousands.
        self.modes += modes.len();
        if self.modes > MODES {
            return Err(names.fault(format!("expected at most {MODES} choices of machines in all")));
        }
        Ok(modes)
    }

    pub(super) fn draft(
        &mut self,
        table: &Table,
        index: usize,
        job: usize,
        mut operation: Operation,
        families: &HashMap<String, u32>,
    ) -> Result<Draft> {
        let row = &table.rows[index];
        operation.family = table.cell(row, "family").and_then(|cell| families.get(cell.text).copied());
        if let Some(cell) = table.cell(row, "interruptible") {
            operation.interruptible = match cell.text {
                "yes" => true,
                "no" => false,
                other => return Err(cell.fault(format!("expected yes or no, got `{other}`"))),
            };
        }
        if let Some(cell) = table.cell(row, "earliest") {
            operation.earliest = self.since_start(cell)?;
        }
        operation.latest = table.cell(row, "latest").map(|cell| self.moment(cell)).transpose()?;
        let after = match table.cell(row, "after").map(|cell| cell.text) {
            None => After::Previous,
            Some("-") => After::Nothing,
            Some(names) => After::Named(names.split('|').map(|name| name.trim().to_owned()).collect()),
        };
        if let (After::Named(names), Some(cell)) = (&after, table.cell(row, "after")) {
            self.after += names.len();
            if self.after > AFTER {
                return Err(
                    cell.fault(format!("expected at most {AFTER} entries of `after` in all rows together"))
                );
            }
        }
        let min = table.cell(row, "wait").map(|cell| self.length(cell)).transpose()?.unwrap_or(0);
        let max = table.cell(row, "max wait").map(|cell| self.length(cell)).transpose()?;
        Ok(Draft { job, operation, after, min, max, row: index })
    }
}

#[cfg(test)]
mod tests {
    use crate::general::{Past, solve};
    use crate::plan::Plan;
    use crate::{Limits, Result};
    use std::time::Duration;

    /// A route that inspects twice.
    const TWICE: &str = "job,operation,machine,time,family,after\n\
                         A,saw,saw,30,,\nA,inspect,bench 1,10,x,\nA,mill,mill,60,,\nA,inspect,bench 2,10,y,\n";

    fn changed(from: &str, to: &str) -> Result<Plan> {
        assert!(TWICE.contains(from));
        Plan::read(&TWICE.replace(from, to))
    }

    fn refusal(from: &str, to: &str) -> String {
        changed(from, to).unwrap_err().to_string()
    }

    fn names(plan: &Plan) -> Vec<&str> {
        plan.shop.jobs()[0].operations.iter().map(|one| one.name.as_str()).collect()
    }

    #[test]
    fn a_name_that_comes_again_after_another_operation_is_another_operation() {
        let plan = Plan::read(TWICE).unwrap();
        assert_eq!(names(&plan), ["saw", "inspect", "mill", "inspect (2)"]);
        let families: Vec<_> = plan.shop.jobs()[0].operations.iter().map(|one| one.family).collect();
        assert_eq!(families, [None, Some(0), None, Some(1)]);
        // 30 + 10 + 60 + 10.
        let limits = Limits::new(Duration::from_secs(1), 0);
        let answer = solve(&plan.shop, limits, Past::default(), &mut |_| {}).unwrap();
        assert_eq!((answer.verdict.values[0], answer.proven()), (110, true));
        for text in [plan.schedule_csv(&answer.schedule), plan.schedule_json(&answer.schedule)] {
            let mut back = plan.read_schedule(&text).unwrap();
            back.operations.sort_by_key(|here| here.op);
            assert_eq!(back, answer.schedule);
        }
        assert_eq!(Plan::read(&plan.to_csv()).unwrap().shop, plan.shop);
        assert_eq!(Plan::read(&plan.to_json()).unwrap().shop, plan.shop);
    }

    #[test]
    fn an_alternative_without_a_machine_or_a_time_is_refused() {
        let refusal = |cells: &str| {
            let text = format!("job,operation,machine,time\na,cut,{cells}\n");
            Plan::read(&text).unwrap_err().to_string()
        };
        for (cells, column) in
            [("saw | ,5 | 1", "machine"), ("| saw,5 | 1", "machine"), ("saw | mill,5 |", "time")]
        {
            let line = refusal(cells);
            assert!(line.starts_with(&format!("operations, row 2, column {column}: entry ")), "{line}");
        }
        assert!(
            refusal("saw |,5").ends_with("entry 2 of 2 in `saw |` is empty; fill it, or take out its `|`")
        );
    }

    #[test]
    fn names_and_lists_that_rows_repeat_for_nothing_are_refused() {
        let long = "é".repeat(201);
        for (column, row) in [
            ("job", "N,c,m,1,"),
            ("operation", "a,N,m,1,"),
            ("machine", "a,c,m | N,1,"),
            ("after", "a,c,m,1,a/N"),
        ] {
            let text = format!("job,operation,machine,time,after\n{}\n", row.replace('N', &long));
            assert_eq!(
                Plan::read(&text).unwrap_err().to_string(),
                format!("operations, row 2, column {column}: a name has at most 200 letters, got 201")
            );
        }
        assert!(Plan::read(&format!("job,machine,time\n{},m,1\n", "é".repeat(200))).is_ok());
        // A thousand rows that wait for the same 1100.
        let rows: String = (0..1100).map(|row| format!("a,{row},m,1,-\n")).collect();
        let after = (0..1100).map(|row| format!("a/{row}")).collect::<Vec<_>>().join("|");
        let later: String = (0..1000).map(|row| format!("b,{row},m,1,{after}\n")).collect();
        assert_eq!(
            Plan::read(&format!("job,operation,machine,time,after\n{rows}{later}")).unwrap_err().to_string(),
            // 909 rows have 999,900 entries, and the 910th more.
            "operations, row 2011, column after: expected at most 1000000 entries of `after` in all rows together"
        );
    }

    #[test]
    fn rows_of_one_name_that_follow_one_another_in_a_job_are_alternatives() {
        // Rows of other jobs may lie between.
        let plan = changed("A,mill,mill,60,,\n", "B,mill,mill,60,,\n").unwrap_err().to_string();
        assert_eq!(
            plan,
            "operations, row 5, column family: expected `x` as in row 3, of which this row is another machine, got `y`"
        );
        let text = TWICE.replace("A,mill,mill,60,,\n", "B,mill,mill,60,,\n").replace(",y,", ",,");
        let plan = Plan::read(&text).unwrap();
        assert_eq!((names(&plan), plan.shop.operation(1).modes.len()), (vec!["saw", "inspect"], 2));
        // Rows without a name are operations of their own, whatever the others are called.
        let plan = Plan::read("job,operation,machine,time\nA,,m,1\nA,,m,2\nA,2,n,3\nA,,m,4\n").unwrap();
        assert_eq!(names(&plan), ["1", "2", "2 (2)", "4"]);
    }

    #[test]
    fn alternatives_agree_on_what_belongs_to_their_operation() {
        for (column, cell) in
            [("family", "x"), ("wait", "5"), ("max wait", "9"), ("after", "-"), ("latest", "70")]
        {
            let text = format!("job,operation,machine,time,{column}\nA,a,m,1,\nA,b,m,1,\nA,b,n,2,{cell}\n");
            assert_eq!(
                Plan::read(&text).unwrap_err().to_string(),
                format!(
                    "operations, row 4, column {column}: expected `` as in row 3, of which this row is another machine, \
                     got `{cell}`"
                )
            );
            let both = text.replace("A,b,m,1,\n", &format!("A,b,m,1,{cell}\n"));
            assert!(Plan::read(&both).is_ok(), "{column}");
        }
    }

    #[test]
    fn a_visit_that_comes_twice_in_a_row_is_named() {
        assert_eq!(
            Plan::read("job,operation,machine,time\na,inspect,h,1\na,inspect,i,1\na,inspect,i,2\n")
                .unwrap_err()
                .to_string(),
            "operations, row 4, column machine: row 3 is this operation on this machine already; if `inspect` is done twice, \
             give each its own name"
        );
    }

    #[test]
    fn what_could_be_two_operations_is_refused() {
        assert_eq!(
            refusal("60,,", "60,,inspect"),
            "operations, row 4, column after: `inspect` could be the operation of row 3 or 5; give them different names"
        );
        assert!(changed("60,,", "60,,A/inspect").is_err());
        // By the name that it has in schedules it can be waited for.
        let plan = changed("A,saw,saw,30,,", "A,saw,saw,30,,inspect (2)").unwrap_err().to_string();
        assert!(plan.contains("waits for itself"), "{plan}");
        assert_eq!(
            refusal("A,saw,", "A,inspect (2),"),
            "operations, row 5, column operation: row 2 of this job is an operation called `inspect (2)` as well; \
             give one of them another name"
        );
        // A job's name may have a slash.
        let text = "job,operation,machine,time,after\nA/1,cut,m,1,\nB,cut,m,1,A/1/cut\n";
        assert_eq!(Plan::read(text).unwrap().shop.precedences().len(), 1);
    }
}
