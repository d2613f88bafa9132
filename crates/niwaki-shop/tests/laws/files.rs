//! Every shipped file is read and agrees with its table; every layout returns what it was given.

use crate::data::{SETS, bounds, files};
use niwaki_shop::formats::{Format, load, read};
use niwaki_shop::generate::{Size, Task, generate};
use niwaki_shop::{FlexibleShop, Instance};
use proptest::prelude::*;

#[test]
fn every_file_agrees_with_its_table() {
    let (mut read_files, mut known_rows) = (0, 0);
    for set in SETS {
        let table = bounds(set);
        known_rows += table.rows().count();
        let kind = match set {
            "jsp" => "job shop",
            "fjsp" => "flexible job shop",
            _ => "flow shop",
        };
        for path in files(set) {
            let instance = load(&path).unwrap();
            let (_, known) =
                table.of_file(&path).unwrap_or_else(|| panic!("{} has no bounds", path.display()));
            assert_eq!(
                (instance.kind(), instance.jobs(), instance.machines()),
                (kind, known.jobs, known.machines),
                "{}",
                path.display()
            );
            read_files += 1;
        }
    }
    // 242 job shops, 120 + 240 + 31 flow shops, 276 flexible job shops.
    assert_eq!((read_files, known_rows), (909, 909));
}

#[test]
fn every_file_comes_back_from_every_layout_that_holds_it() {
    for set in SETS {
        for path in files(set).into_iter().step_by(5) {
            let instance = load(&path).unwrap();
            assert!(round_trips(&instance) >= 3, "{}", path.display());
        }
    }
}

/// ScheduleOpt's files as they are published, not as we would write them.
#[test]
fn published_layouts_are_read() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/published");
    let shop = load(&folder.join("fattahi1.json")).unwrap();
    assert_eq!(
        (shop.kind(), shop.jobs(), shop.machines(), shop.operations()),
        ("flexible job shop", 2, 2, 4)
    );
    // Fattahi's first is also shipped as .fjs; machines there count from 1.
    assert_eq!(shop, load(&crate::data::folder().join("fjsp/fattahi/sfjs01.fjs")).unwrap());
    let written = Format::ScheduleOpt.write(&shop).unwrap();
    assert!(written.contains(r#"{"after":1,"before":0,"job":0}"#), "{written}");
}

/// Writes and reads the instance in every layout that holds it; how many did.
fn round_trips(instance: &Instance) -> usize {
    let mut done = 0;
    for format in Format::ALL {
        let Ok(text) = format.write(instance) else { continue };
        // JobShopLib and ScheduleOpt's flexible layout do not say how many machines there are.
        let silent = format == Format::JobShopLib
            || format == Format::ScheduleOpt && matches!(instance, Instance::Flexible(_));
        // A file in .fjs that names neither its first nor its last machine is read by custom.
        if !silent || uses_all_machines(instance) {
            assert_eq!(&format.read(&text).unwrap(), instance, "{}", format.name());
            assert_eq!(&read(&text).unwrap(), instance, "{}: not recognised", format.name());
        }
        done += 1;
    }
    done
}

fn uses_all_machines(instance: &Instance) -> bool {
    let last = instance.machines() as u32 - 1;
    match instance {
        Instance::Job(shop) => shop.flat().iter().any(|step| step.machine == last),
        Instance::Flexible(shop) => used(shop).any(|machine| machine == last),
        Instance::Flow(_) | Instance::Lags(_) | Instance::Single(_) => true,
    }
}

fn used(shop: &FlexibleShop) -> impl Iterator<Item = u32> + '_ {
    (0..shop.operations()).flat_map(|op| shop.alternatives(op).iter().map(|choice| choice.machine))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn drawn_instances_come_back(task in 0..14_usize, jobs in 2..12_usize, machines in 2..8_usize, seed: u64) {
        let task = Task::all().nth(task).unwrap();
        let own = task.size();
        let size = if task.fixed_machines() { own } else { Size { jobs, machines } };
        let instance = generate(task, size, seed, 0).unwrap();
        prop_assert!(round_trips(&instance) >= 1);
    }
}
