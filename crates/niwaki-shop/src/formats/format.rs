//! The table of layouts, and telling them apart.

use super::json::Node;
use super::{
    fjs, job_shop_lib, native, pairs, schedule_opt, scheduling_lab, standard, taillard, taillard_job, text,
};
use crate::{Error, Instance, Result};
use std::path::Path;

/// A layout of instance files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The job shop's standard layout (OR-Library).
    Standard,
    /// The flow shop's pair layout (VFR).
    Pairs,
    /// Taillard's flow-shop layout.
    Taillard,
    /// Taillard's job-shop layout.
    TaillardJob,
    /// The flexible job shop's `.fjs`.
    Fjs,
    /// JobShopLib's JSON.
    JobShopLib,
    /// ScheduleOpt's JSON.
    ScheduleOpt,
    /// SchedulingLab's JSON.
    SchedulingLab,
    /// Niwaki's own JSON.
    Niwaki,
}

impl Format {
    /// All layouts.
    pub const ALL: [Self; 9] = [
        Self::Standard,
        Self::Pairs,
        Self::Taillard,
        Self::TaillardJob,
        Self::Fjs,
        Self::JobShopLib,
        Self::ScheduleOpt,
        Self::SchedulingLab,
        Self::Niwaki,
    ];

    /// The layout's name, as users type it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Pairs => "pairs",
            Self::Taillard => "taillard",
            Self::TaillardJob => "taillard-job",
            Self::Fjs => "fjs",
            Self::JobShopLib => "jobshoplib",
            Self::ScheduleOpt => "scheduleopt",
            Self::SchedulingLab => "schedulinglab",
            Self::Niwaki => "niwaki",
        }
    }

    /// The layout of a name.
    ///
    /// # Errors
    /// If no layout has it.
    pub fn named(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|format| format.name()).collect();
            Error::Choice(format!("expected one of {}, got {name}", known.join(", ")))
        })
    }

    /// How the names of its files usually end.
    #[must_use]
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Standard | Self::Pairs | Self::Taillard | Self::TaillardJob => "txt",
            Self::Fjs => "fjs",
            Self::JobShopLib | Self::ScheduleOpt | Self::SchedulingLab | Self::Niwaki => "json",
        }
    }

    /// The layout that holds this instance and that most tools read.
    #[must_use]
    pub fn usual(instance: &Instance) -> Self {
        match instance {
            Instance::Flow(_) => Self::Pairs,
            Instance::Job(_) => Self::Standard,
            Instance::Flexible(shop) if !shop.has_windows() => Self::Fjs,
            Instance::Flexible(_) | Instance::Lags(_) | Instance::Single(_) => Self::Niwaki,
        }
    }

    /// Which layout a text has.
    ///
    /// The pair layout is the standard one in which every job visits machines in order. A text of that kind is a job shop
    /// unless its first line is the comment `# flow shop`, which [`Self::write`] adds: a job shop may have a shorter
    /// schedule than the permutation flow shop of the same numbers, never a longer one.
    ///
    /// # Errors
    /// If a JSON text is broken or is none of the known layouts.
    pub fn detect(text: &str) -> Result<Self> {
        if text.trim_start().starts_with(['{', '[']) {
            return Self::detect_json(text);
        }
        if pairs::is_marked(text) {
            return Ok(Self::Pairs);
        }
        if taillard::sniff(text) {
            return Ok(Self::Taillard);
        }
        if taillard_job::sniff(text) {
            return Ok(Self::TaillardJob);
        }
        let lines = text::numeric_lines(text);
        let standard = pairs::sniff(&lines) || !fjs::sniff(&lines);
        Ok(if standard { Self::Standard } else { Self::Fjs })
    }

    /// Whether a text that was taken for a job shop could be a flow shop's as well.
    #[must_use]
    pub fn could_be_flow_shop(self, text: &str) -> bool {
        self == Self::Standard && pairs::sniff(&text::numeric_lines(text))
    }

    fn detect_json(text: &str) -> Result<Self> {
        let root = Node::parse(text)?;
        let fields = root.object("an object with `jobs`, `data`, `operations` or `duration_matrix`")?;
        let table = [
            (native::sniff as fn(&_) -> bool, Self::Niwaki),
            (job_shop_lib::sniff, Self::JobShopLib),
            (schedule_opt::sniff, Self::ScheduleOpt),
            (scheduling_lab::sniff, Self::SchedulingLab),
        ];
        table.into_iter().find(|(sniff, _)| sniff(&fields)).map(|(_, format)| format).ok_or_else(|| {
            root.fault("expected one of the fields `kind`, `duration_matrix`, `data`, `operations`, `jobs`, got none")
        })
    }

    /// Reads a text in this layout.
    ///
    /// # Errors
    /// The first mistake, with line and column.
    pub fn read(self, text: &str) -> Result<Instance> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        match self {
            Self::Standard => standard::read(text),
            Self::Pairs => pairs::read(text),
            Self::Taillard => taillard::read(text),
            Self::TaillardJob => taillard_job::read(text),
            Self::Fjs => fjs::read(text),
            Self::JobShopLib => job_shop_lib::read(text),
            Self::ScheduleOpt => schedule_opt::read(text),
            Self::SchedulingLab => scheduling_lab::read(text),
            Self::Niwaki => native::read(text),
        }
    }

    /// Writes an instance in this layout.
    ///
    /// # Errors
    /// If the layout has no place for the problem.
    pub fn write(self, instance: &Instance) -> Result<String> {
        match self {
            Self::Standard => standard::write(instance),
            Self::Pairs => pairs::write(instance),
            Self::Taillard => taillard::write(instance),
            Self::TaillardJob => taillard_job::write(instance),
            Self::Fjs => fjs::write(instance),
            Self::JobShopLib => job_shop_lib::write(instance),
            Self::ScheduleOpt => schedule_opt::write(instance),
            Self::SchedulingLab => scheduling_lab::write(instance),
            Self::Niwaki => Ok(native::write(instance)),
        }
    }
}

/// Reads an instance in whatever layout it has.
///
/// # Errors
/// The first mistake, with line and column.
pub fn read(text: &str) -> Result<Instance> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    Format::detect(text)?.read(text)
}

/// Writes an instance in its usual layout.
///
/// # Errors
/// None for the layouts of [`Format::usual`].
pub fn write(instance: &Instance) -> Result<String> {
    Format::usual(instance).write(instance)
}

/// Reads an instance file. The ending `.fjs` settles a layout that the text leaves open.
///
/// # Errors
/// If the file cannot be read, or its first mistake; both name the file.
pub fn load(path: &Path) -> Result<Instance> {
    Ok(super::recognise(path, None)?.instance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_told_apart() {
        let cases = [
            ("2 2\n0 3 1 2\n1 4 0 1\n", Format::Standard),
            ("2 2\n0 3 1 2\n0 4 1 1\n", Format::Standard),
            ("# flow shop\n2 2\n0 3 1 2\n0 4 1 1\n", Format::Pairs),
            ("t :\n1 1\nprocessing times :\n4\n", Format::Taillard),
            ("t\n1 1\nTimes\n4\nMachines\n1\n", Format::TaillardJob),
            ("1 2 1.5\n1 1 1 5\n", Format::Fjs),
            ("1 2\n1 2 1 5 2 3\n", Format::Fjs),
            (r#"{"duration_matrix": [[1]], "machines_matrix": [[0]]}"#, Format::JobShopLib),
            (r#"{"machines": 1, "jobs": 1, "data": []}"#, Format::ScheduleOpt),
            (r#"{"operations": [], "precedences": []}"#, Format::ScheduleOpt),
            (r#"{"machines": 1, "jobs": []}"#, Format::SchedulingLab),
            (r#"{"kind": "flow shop", "machines": 1, "jobs": [[1]]}"#, Format::Niwaki),
        ];
        for (text, format) in cases {
            assert_eq!(Format::detect(text).unwrap(), format, "{text}");
        }
        assert!(Format::detect("[1]").is_err() && Format::detect("{}").is_err());
    }

    #[test]
    fn a_job_shop_whose_routes_are_in_order_stays_a_job_shop() {
        let text = "2 2\n0 3 1 2\n0 4 1 1\n";
        let shop = read(text).unwrap();
        assert_eq!((shop.kind(), Format::Standard.could_be_flow_shop(text)), ("job shop", true));
        assert_eq!(Format::Standard.write(&shop).unwrap(), text);
        let flow = Format::Pairs.read(text).unwrap();
        assert_eq!(
            read(&Format::Pairs.write(&flow).unwrap()).unwrap(),
            flow,
            "a flow shop stays a flow shop"
        );
        assert!(!Format::Standard.could_be_flow_shop("2 2\n0 3 1 2\n1 4 0 1\n"));
    }

    #[test]
    fn names_come_back() {
        for format in Format::ALL {
            assert_eq!(Format::named(format.name()).unwrap(), format);
        }
        assert!(Format::named("cobol").is_err());
    }
}
