//! Machines, their groups, setups and opening times, from their tables.

use super::read::Reader;
use super::shifts::Opening;
use super::table::{Cell, Table};
use crate::general::{Machine, Setups};
use crate::{Error, Result};
use std::collections::{HashMap, HashSet};

const MACHINES: [&str; 4] = ["machine", "count", "available", "family"];

/// The most machines: a row may stand for a thousand.
const MOST: usize = 100_000;

/// The most pairs of families on all machines together.
const PAIRS: usize = 50_000_000;

impl Reader<'_> {
    /// All families that operations name.
    pub(super) fn families(&self, setups: &mut Setups) -> Result<HashMap<String, u32>> {
        let mut families = HashMap::new();
        let Some(table) = self.tables.get("operations") else { return Ok(families) };
        for row in &table.rows {
            if let Some(cell) = table.cell(row, "family")
                && !families.contains_key(cell.text)
            {
                families.insert(cell.text.to_owned(), families.len() as u32);
                setups.families.push(cell.text.to_owned());
                // A table over all pairs is what setups cost.
                if families.len() > 1000 {
                    return Err(cell.fault("expected at most 1000 families"));
                }
            }
        }
        Ok(families)
    }

    pub(super) fn machines(&mut self, operations: &Table) -> Result<Machines> {
        let mut machines = Machines::default();
        if let Some(table) = self.tables.get("machines") {
            table.only(&MACHINES)?;
            for (index, row) in table.rows.iter().enumerate() {
                let name = table.need(row, "machine")?;
                let count = match table.cell(row, "count") {
                    None => 1,
                    Some(cell) => cell
                        .text
                        .parse()
                        .ok()
                        .filter(|count| (1..=1000).contains(count))
                        .ok_or_else(|| {
                            cell.fault(format!("expected a whole number from 1 to 1000, got `{}`", cell.text))
                        })?,
                };
                let available =
                    table.cell(row, "available").map(|cell| self.since_start(cell)).transpose()?;
                let family = table.cell(row, "family").map(|cell| cell.text.to_owned());
                for number in 1..=count {
                    let title =
                        if count == 1 { name.text.to_owned() } else { format!("{} {number}", name.text) };
                    let mut machine = Machine::new(title);
                    machine.available = available.unwrap_or(0);
                    if let Some(family) = &family {
                        machines.family_cells.push((machines.all.len(), family.clone(), index));
                    }
                    machines.add(name.text, machine).map_err(|what| name.fault(what))?;
                }
            }
            return Ok(machines);
        }
        for row in &operations.rows {
            for name in operations.need(row, "machine")?.entries()? {
                if !machines.groups.contains_key(name) {
                    machines.add(name, Machine::new(name)).map_err(Error::Instance)?;
                }
            }
        }
        Ok(machines)
    }

    pub(super) fn setup_times(
        &mut self,
        machines: &Machines,
        families: &HashMap<String, u32>,
        setups: &mut Setups,
    ) -> Result<()> {
        let Some(table) = self.tables.get("setups") else { return Ok(()) };
        table.only(&["machine", "from", "to", "time"])?;
        let size = families.len();
        let mut own: Vec<Option<Vec<u32>>> = vec![None; machines.all.len()];
        let (mut given, mut pairs) = (HashMap::new(), 0);
        for row in &table.rows {
            let text = |column| table.cell(row, column).map_or("*", |cell| cell.text);
            if let Some(place) = given.insert([text("machine"), text("from"), text("to")], row.place) {
                let what = format!("row {place} gives this setup as well; keep one of them");
                return Err(table.fault(row, "time", what));
            }
            let time = self.length(table.need(row, "time")?)?;
            let side = |column| {
                let cell = table.need(row, column)?;
                match cell.text {
                    "*" => Ok(None),
                    name => families.get(name).copied().map(Some).ok_or_else(|| {
                        cell.fault(format!("expected a family that operations name, or *, got `{name}`"))
                    }),
                }
            };
            let (from, to) = (side("from")?, side("to")?);
            let chosen: Vec<usize> = match table.cell(row, "machine") {
                None => (0..machines.all.len()).collect(),
                Some(cell) => machines.named(cell)?,
            };
            for machine in chosen {
                if own[machine].is_none() {
                    pairs += size * size;
                }
                if pairs > PAIRS {
                    let what = format!("expected at most {PAIRS} pairs of families on all machines together");
                    return Err(table.fault(row, "machine", what));
                }
                let times = own[machine].get_or_insert_with(|| vec![0; size * size]);
                // A star stands for every other family; a family needs no setup after itself unless a row says so.
                let both = from.is_some() && to.is_some();
                let side = |one: Option<u32>| one.map_or(0..size, |one| one as usize..one as usize + 1);
                for one in side(from) {
                    for other in side(to).filter(|&other| both || other != one) {
                        times[one * size + other] = time;
                    }
                }
            }
        }
        let mut known: HashMap<Vec<u32>, u32> = HashMap::new();
        for times in own {
            let table = times.map(|times| {
                let next = setups.tables.len() as u32;
                *known.entry(times).or_insert_with_key(|times| {
                    setups.tables.push(times.clone());
                    next
                })
            });
            setups.of_machine.push(table);
        }
        Ok(())
    }

    pub(super) fn opening(&mut self, machines: &Machines) -> Result<Opening> {
        let mut opening = Opening::new(machines.all.len(), self.settings.start);
        if let Some(table) = self.tables.get("shifts") {
            table.only(&["machine", "days", "from", "to"])?;
            for row in &table.rows {
                let chosen = match table.cell(row, "machine") {
                    None => (0..machines.all.len()).collect(),
                    Some(cell) => machines.named(cell)?,
                };
                let seen = opening.add_shift(table, row, &chosen)?;
                if let Some(times) = &mut self.seen {
                    times.extend(seen);
                }
            }
        }
        if let Some(table) = self.tables.get("breaks") {
            table.only(&["machine", "from", "to"])?;
            for row in &table.rows {
                let (from, to) = (table.need(row, "from")?, table.need(row, "to")?);
                if self.instant(from)? >= self.instant(to)? {
                    return Err(to.fault(format!("expected a time after {}, got `{}`", from.text, to.text)));
                }
                // What of a break was before the start is over.
                let (start, end) = (self.since_start(from)?, self.since_start(to)?);
                let chosen = match table.cell(row, "machine") {
                    None => (0..machines.all.len()).collect(),
                    Some(cell) => machines.named(cell)?,
                };
                opening.add_break(table, row, &chosen, (start, end))?;
            }
        }
        Ok(opening)
    }
}

/// Machines, and the names under which they are found: their own and their group's.
#[derive(Default)]
pub(super) struct Machines {
    pub(super) all: Vec<Machine>,
    pub(super) groups: HashMap<String, Vec<u32>>,
    names: HashSet<String>,
    /// Machine, family and row of what machines are set up for at the beginning.
    pub(super) family_cells: Vec<(usize, String, usize)>,
}

impl Machines {
    fn add(&mut self, group: &str, machine: Machine) -> std::result::Result<(), String> {
        let number = self.all.len() as u32;
        if !self.names.insert(machine.name.clone()) {
            return Err(format!("expected each machine once, got {} twice", machine.name));
        }
        if self.all.len() == MOST {
            return Err(format!("expected at most {MOST} machines"));
        }
        if machine.name != group {
            self.groups.insert(machine.name.clone(), vec![number]);
        }
        self.groups.entry(group.to_owned()).or_default().push(number);
        self.all.push(machine);
        Ok(())
    }

    fn named(&self, cell: Cell<'_>) -> Result<Vec<usize>> {
        if cell.text == "*" {
            return Ok((0..self.all.len()).collect());
        }
        let group = self.groups.get(cell.text);
        let group =
            group.ok_or_else(|| cell.fault(format!("expected a machine or *, got `{}`", cell.text)))?;
        Ok(group.iter().map(|&machine| machine as usize).collect())
    }
}
