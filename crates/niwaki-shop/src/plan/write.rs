//! A shop to tables, for shops that did not come from tables.

use super::table::{Row, Table, Tables};
use super::{Clock, Plan, Unit};
use crate::general::{Job, Machine, Objective, Precedence, Shop};
use crate::{Instance, Result};

impl Plan {
    /// A special problem as a plan, with numbers for names.
    ///
    /// # Errors
    /// If a general shop cannot say what the problem asks for.
    pub fn from_instance(instance: &Instance, objective: Objective) -> Result<Self> {
        Self::from_shop(Shop::from_instance(instance, objective)?)
    }

    /// A shop of bare numbers as a plan.
    ///
    /// # Errors
    /// If its times cannot be counted in tables.
    pub fn from_shop(shop: Shop) -> Result<Self> {
        let clock = Clock::fine(Unit::Bare, None).ticking([]);
        let tables = tables(&shop, &clock);
        Ok(Self { objective: shop.objective().clone(), shop, clock, tables })
    }

    /// The same plan with another objective.
    ///
    /// # Errors
    /// If its sums could overflow.
    pub fn with_objective(self, objective: &Objective) -> Result<Self> {
        let mut tables = self.tables;
        let value = objective.to_string();
        let at = tables.all.iter().position(|table| table.name == "settings").unwrap_or_else(|| {
            let columns = ["setting", "value"].map(String::from).to_vec();
            tables.all.insert(0, Table { name: "settings".into(), columns, rows: Vec::new() });
            0
        });
        let settings = &mut tables.all[at];
        let column = settings.columns.iter().position(|name| name == "setting").unwrap_or(0);
        settings.rows.retain(|row| row.cells.get(column).is_none_or(|cell| cell.trim() != "objective"));
        let cell = |name: &String| if name == "setting" { "objective".to_owned() } else { value.clone() };
        settings.rows.push(Row { place: 0, cells: settings.columns.iter().map(cell).collect() });
        let shop = self.shop.with_objective(super::settings::in_ticks(objective, &self.clock)?)?;
        Ok(Self { shop, clock: self.clock, objective: objective.clone(), tables })
    }
}

fn table(name: &str, columns: &[&str], rows: Vec<Vec<String>>) -> Table {
    let columns = columns.iter().map(|&column| column.to_owned()).collect();
    Table {
        name: name.into(),
        columns,
        rows: rows.into_iter().map(|cells| Row { place: 0, cells }).collect(),
    }
}

/// The tables of a shop without calendars and setups: what other layouts have.
fn tables(shop: &Shop, clock: &Clock) -> Tables {
    let moment = |time: Option<u32>| time.map_or(String::new(), |time| clock.number(time));
    let positive = |time: u32| moment((time > 0).then_some(time));
    let settings = vec![vec!["objective".to_owned(), shop.objective().to_string()]];
    let mut all = vec![table("settings", &["setting", "value"], settings)];
    let row = |job: &Job| {
        let weight = if job.weight == 1 { String::new() } else { job.weight.to_string() };
        let due = match job.overdue {
            0 => moment(job.due),
            overdue => format!("-{}", clock.number(overdue)),
        };
        vec![job.name.clone(), positive(job.release), due, moment(job.deadline), weight]
    };
    let columns = ["job", "release", "due", "deadline", "weight"];
    all.push(table("jobs", &columns, shop.jobs().iter().map(row).collect()));
    let machine = |machine: &Machine| vec![machine.name.clone(), positive(machine.available)];
    all.push(table("machines", &["machine", "available"], shop.machines().iter().map(machine).collect()));
    let mut rows = Vec::new();
    let mut before: Vec<Vec<&Precedence>> = vec![Vec::new(); shop.operations()];
    for link in shop.precedences() {
        before[link.after as usize].push(link);
    }
    for (number, job) in shop.jobs().iter().enumerate() {
        let range = shop.of_job(number);
        for (flat, operation) in range.clone().zip(&job.operations) {
            let names: Vec<_> = operation
                .modes
                .iter()
                .map(|mode| shop.machines()[mode.machine as usize].name.as_str())
                .collect();
            let mut times: Vec<_> = operation.modes.iter().map(|mode| clock.number(mode.time)).collect();
            if times.iter().all(|time| *time == times[0]) {
                times.truncate(1);
            }
            let links = std::mem::take(&mut before[flat]);
            // The row before it in its job is what an operation waits for unless it says otherwise.
            let usual = match links[..] {
                [] => flat == range.start,
                [link] => link.before as usize + 1 == flat && flat > range.start,
                _ => false,
            };
            let name = |link: &&Precedence| {
                let (job, index) = shop.place_of(link.before as usize);
                format!("{}/{}", shop.jobs()[job].name, shop.jobs()[job].operations[index].name)
            };
            let after = match (usual, links.is_empty()) {
                (true, _) => String::new(),
                (false, true) => "-".to_owned(),
                (false, false) => links.iter().map(name).collect::<Vec<_>>().join(" | "),
            };
            rows.push(vec![
                job.name.clone(),
                operation.name.clone(),
                names.join(" | "),
                times.join(" | "),
                positive(operation.earliest),
                moment(operation.latest),
                after,
                positive(links.iter().map(|link| link.min).max().unwrap_or(0)),
                moment(links.iter().filter_map(|link| link.max).min()),
            ]);
        }
    }
    let columns = ["job", "operation", "machine", "time", "earliest", "latest", "after", "wait", "max wait"];
    all.push(table("operations", &columns, rows));
    for table in &mut all {
        drop_empty(table);
    }
    Tables { all, ..Tables::default() }
}

/// Leaves out columns in which nothing stands.
fn drop_empty(table: &mut Table) {
    for column in (1..table.columns.len()).rev() {
        if table.rows.iter().all(|row| row.cells[column].is_empty()) {
            table.columns.remove(column);
            table.rows.iter_mut().for_each(|row| drop(row.cells.remove(column)));
        }
    }
}
