//! Instances in every layout, plans, schedules and known bounds. What is read is written and read again as the same, and
//! small shops are scheduled: the checker must accept what comes out.

use super::{MEGABYTE, Read, Reader, file, same, seeds, text};
use niwaki_files::Digest;
use niwaki_shop::formats::{self, Format, KnownBounds};
use niwaki_shop::general::{self, Past, Precedence, Shop};
use niwaki_shop::plan::Plan;
use niwaki_shop::planning::{self, Method, Problem};
use niwaki_shop::rules::Dispatcher;
use niwaki_shop::{Instance, Limits, Placed, Schedule, verify};
use std::io::{Cursor, Write as _};
use std::time::Duration;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

/// Operations of a shop that is also scheduled.
const SMALL: usize = 40;

/// One in so many inputs is scheduled, chosen by its bytes: a search takes as long as reading a hundred files.
const SCHEDULED: u64 = 64;

fn is_scheduled(bytes: &[u8]) -> bool {
    Digest::of(bytes).value().is_multiple_of(SCHEDULED)
}

const TEXTS: &[Format] =
    &[Format::Standard, Format::Pairs, Format::Taillard, Format::TaillardJob, Format::Fjs];
const OBJECTS: &[Format] = &[Format::JobShopLib, Format::ScheduleOpt, Format::SchedulingLab, Format::Niwaki];
const PLAN: &str = include_str!("../../corpus/plan.csv/small.csv");

pub(super) fn readers() -> Vec<Reader> {
    let shops = ["data", "crates/niwaki-shop/tests"];
    let shop = |name, endings: &[&str], read: Read, share| Reader {
        name,
        seeds: seeds(name, &shops, endings),
        read,
        floor: 8 * MEGABYTE,
        factor: 400,
        share,
    };
    let planned = |name, endings: &[&str], read: Read, share| Reader {
        name,
        seeds: seeds(name, &["examples/planner"], endings),
        read,
        // Shifts are laid out over the weeks that the work may take.
        floor: 64 * MEGABYTE,
        factor: 400,
        share,
    };
    let spreadsheet = |name, folders: &[&str], endings: &[&str], read: Read| Reader {
        name,
        seeds: seeds(name, folders, endings),
        read,
        // What archives unpack to is limited by itself, not by their size.
        floor: 256 * MEGABYTE,
        factor: 400,
        share: 1,
    };
    vec![
        shop("shop.txt", &["txt"], Box::new(|bytes, _| any_shop(bytes, TEXTS)), 8),
        shop("shop.fjs", &["fjs"], Box::new(|bytes, _| any_shop(bytes, &[Format::Fjs])), 30),
        shop("shop.json", &["json"], Box::new(|bytes, _| any_shop(bytes, OBJECTS)), 60),
        shop("shop.any", &["txt", "fjs", "json"], Box::new(|bytes, at| opened(bytes, at, "case.txt")), 2),
        shop("bounds.csv", &["csv"], Box::new(|bytes, _| text(bytes).is_some_and(bounds)), 30),
        planned("plan.csv", &["csv"], Box::new(|bytes, at| opened(bytes, at, "case.csv")), 1),
        planned("plan.json", &["json"], Box::new(|bytes, at| opened(bytes, at, "case.json")), 1),
        spreadsheet(
            "plan.xlsx",
            &["crates/niwaki-shop/tests"],
            &["xlsx"],
            Box::new(|bytes, at| opened(bytes, at, "case.xlsx")),
        ),
        spreadsheet("plan.sheet", &[], &["xml"], Box::new(|bytes, at| opened(&book(bytes), at, "case.xlsx"))),
        Reader {
            seeds: seeds("plan.schedule", &[], &["csv", "json"]),
            ..planned("plan.schedule", &[], plan_schedule(), 60)
        },
        Reader {
            name: "schedule",
            seeds: seeds("schedule", &[], &["csv", "json"]),
            read: Box::new(|bytes, _| text(bytes).is_some_and(schedule)),
            floor: MEGABYTE,
            factor: 400,
            share: 120,
        },
    ]
}

/// What one layout reads, it writes and reads again as the same.
fn any_shop(bytes: &[u8], layouts: &[Format]) -> bool {
    let Some(text) = text(bytes) else { return false };
    for layout in layouts {
        if let Ok(instance) = layout.read(text)
            && let Ok(written) = layout.write(&instance)
        {
            let back = layout.read(&written);
            same(layout.name(), &Ok(&instance), &back.as_ref().map_err(ToString::to_string));
        }
    }
    let read = formats::read(text);
    if let Ok(instance) = &read
        && is_scheduled(bytes)
    {
        dispatched(instance);
    }
    read.is_ok()
}

/// A small shop under a rule and its bound at once; the checker judges the schedule.
fn dispatched(instance: &Instance) {
    if instance.operations() > SMALL || instance.machines() > SMALL {
        return;
    }
    let rules = ["spt", "active-mwkr"].map(|rule| Dispatcher::parse(rule).map(Method::Rule));
    for method in rules.into_iter().flatten().chain([Method::Exact]) {
        let limits = Limits::new(Duration::from_millis(2), 1);
        if let Err(refusal) = planning::solve(instance, method, limits, &mut |_| {}) {
            let refusal = refusal.to_string();
            assert!(!refusal.contains("the checker refused"), "{refusal}");
        }
    }
}

/// A file as the command opens it: recognised, read, written in every layout that has a place for it.
fn opened(bytes: &[u8], folder: &std::path::Path, name: &str) -> bool {
    let Some(path) = file(folder, name, bytes) else { return false };
    let Ok(opened) = planning::open(&path, None) else { return false };
    match &opened.problem {
        Problem::Special(instance) if is_scheduled(bytes) => dispatched(instance),
        Problem::Special(_) => {}
        Problem::Plan(plan) => planned(plan, is_scheduled(bytes)),
    }
    true
}

/// A workbook whose only sheet holds the input: its checksums are right, so that the change reaches the cells.
fn book(sheet: &[u8]) -> Vec<u8> {
    let mut archive = ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    let members: [(&str, &[u8]); 4] = [
        ("xl/workbook.xml", b"<workbook><sheets><sheet name=\"operations\" r:id=\"a\"/></sheets></workbook>"),
        ("xl/_rels/workbook.xml.rels", b"<r><Relationship Id=\"a\" Target=\"sheet.xml\"/></r>"),
        (
            "xl/sharedStrings.xml",
            b"<sst><si><t>job</t></si><si><t>machine</t></si><si><t>time</t></si></sst>",
        ),
        ("xl/sheet.xml", sheet),
    ];
    for (name, content) in members {
        let kept = archive.start_file(name, stored).is_ok() && archive.write_all(content).is_ok();
        assert!(kept, "memory takes what is written to it");
    }
    archive.finish().map_or_else(|_| Vec::new(), Cursor::into_inner)
}

/// A plan comes back from both of its layouts, and a schedule of a small one passes its checker.
fn planned(plan: &Plan, scheduled: bool) {
    for written in [plan.to_csv(), plan.to_json()] {
        let back = Plan::read(&written).map(|back| back.shop);
        same("a plan", &Ok(content(&plan.shop)), &back.as_ref().map(content).map_err(ToString::to_string));
    }
    if !scheduled || plan.shop.operations() > SMALL {
        return;
    }
    let limits = Limits::new(Duration::from_millis(1), 1);
    let Ok(answer) = general::solve(&plan.shop, limits, Past::default(), &mut |_| {}) else { return };
    for written in [plan.schedule_csv(&answer.schedule), plan.schedule_json(&answer.schedule)] {
        let back = plan.read_schedule(&written);
        same(
            "a schedule",
            &Ok(placed(&answer.schedule)),
            &back.as_ref().map(placed).map_err(ToString::to_string),
        );
    }
    let checked = general::verify(&plan.shop, &answer.schedule).map(|verdict| verdict.values);
    assert_eq!(checked.ok().as_ref(), Some(&answer.verdict.values));
    // What has no date has no calendar: a refusal is an answer.
    let _ = plan.schedule_ics(&answer.schedule, "case");
    drop(planning::chart(plan, &answer.schedule, "case", None));
}

/// What a schedule places where. Rows of a file have an order of their own.
fn placed(schedule: &Schedule) -> Vec<Placed> {
    let mut operations = schedule.operations.clone();
    operations.sort_by_key(|placed| (placed.job, placed.op, placed.start));
    operations
}

/// What a shop asks for. Links have no order, and how far ahead calendars are laid out follows from the rest.
fn content(shop: &Shop) -> impl std::fmt::Debug + PartialEq + '_ {
    let mut links: Vec<&Precedence> = shop.precedences().iter().collect();
    links.sort_by_key(|link| (link.before, link.after));
    (shop.jobs(), shop.machines(), shop.setups(), shop.objective(), links)
}

fn bounds(text: &str) -> bool {
    KnownBounds::read(text).is_ok()
}

/// A schedule, judged against a shop that it was not made for.
fn schedule(text: &str) -> bool {
    let Ok(schedule) = formats::read_schedule(text) else { return false };
    if let Ok(shop) = formats::read("2 2\n0 3 1 2\n1 4 0 1\n") {
        // Most are wrong; that the checker says so is the answer.
        let _ = verify(&shop, &schedule);
    }
    true
}

/// A schedule by names and dates, for the plan of the corpus.
fn plan_schedule() -> Read {
    let plan = Plan::read(PLAN);
    Box::new(move |bytes, _| {
        let (Ok(plan), Some(text)) = (&plan, text(bytes)) else { return false };
        let Ok(schedule) = plan.read_schedule(text) else { return false };
        // As above.
        let _ = general::verify(&plan.shop, &schedule);
        true
    })
}
