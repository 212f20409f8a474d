//! The names of a dump's numbers: from `.pleco`, from a schema, from the JSON that `pleco` writes, or built in.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use kymo_define::SchemaSubsystem;

use super::names::{BARE, CURRENT, LEGACY, SubsystemNames};

/// Names by numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct DumpDefinitions {
    pub(super) subsystems: BTreeMap<u16, SubsystemNames>,
    /// Names of records that are a number as a whole: the last 32 bits of it, all others are zero.
    pub(super) bare: &'static [(&'static str, u32)],
}

/// The subsystem that bare records are of.
pub(super) const BARE_SUBSYSTEM: &str = "domain";

/// Where names are from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum DefinitionsOrigin {
    /// A file that the user named.
    Named,
    /// A file beside the dump.
    Beside(PathBuf),
    /// The last revision of Barrelfish's.
    BuiltIn,
    /// The fixed numbers before 2013.
    Legacy,
}

/// Bytes of a file of definitions.
const BYTES_MAX: u64 = 16 << 20;

/// The definitions of a dump: those of `named`, else those beside the dump, else built-in ones.
///
/// # Errors
///
/// The error in the file, with its path.
pub(super) fn find(
    dump: &Path,
    named: Option<&Path>,
    is_legacy: bool,
) -> Result<(DumpDefinitions, DefinitionsOrigin), String> {
    if let Some(named) = named {
        return Ok((DumpDefinitions::read(named)?, DefinitionsOrigin::Named));
    }
    if is_legacy {
        return Ok((DumpDefinitions::legacy(), DefinitionsOrigin::Legacy));
    }
    match beside(dump) {
        Some(path) => Ok((DumpDefinitions::read(&path)?, DefinitionsOrigin::Beside(path))),
        None => Ok((DumpDefinitions::current(), DefinitionsOrigin::BuiltIn)),
    }
}

/// A file of definitions in the folder of a dump: of the same name, or called as in Barrelfish's source.
fn beside(dump: &Path) -> Option<PathBuf> {
    let named = ["json", "pleco"].map(|extension| dump.with_extension(extension));
    let common = ["trace_defs.json", "trace_defs.pleco"].map(|name| dump.with_file_name(name));
    named.into_iter().chain(common).find(|path| path != dump && path.is_file())
}

impl DumpDefinitions {
    /// Built in: the last revision.
    pub(super) fn current() -> Self {
        let events = |names: &[&str]| (0..).zip(names.iter().map(|name| (*name).to_owned())).collect();
        let subsystems = CURRENT.iter().map(|(name, names)| (*name, events(names)));
        Self { subsystems: numbered(subsystems), bare: &[] }
    }

    /// Built in: the numbers before 2013.
    pub(super) fn legacy() -> Self {
        let events = |names: &[(&str, u16)]| names.iter().map(|(name, number)| (*number, (*name).to_owned())).collect();
        let subsystems = LEGACY
            .iter()
            .map(|(name, number, names)| (*number, SubsystemNames { name: (*name).to_owned(), events: events(names) }));
        Self { subsystems: subsystems.collect(), bare: BARE }
    }

    /// Those of a file.
    fn read(path: &Path) -> Result<Self, String> {
        let wrong = |what: String| format!("definitions {}: {what}", path.display());
        let size = fs::metadata(path).map_err(|error| wrong(error.to_string()))?.len();
        if size > BYTES_MAX {
            return Err(wrong(format!("{size} bytes are too many for definitions: 16 MiB at most")));
        }
        let bytes = fs::read(path).map_err(|error| wrong(error.to_string()))?;
        Self::parse(path, &String::from_utf8_lossy(&bytes)).map_err(wrong)
    }

    /// The text of a file in any form.
    pub(super) fn parse(path: &Path, text: &str) -> Result<Self, String> {
        if text.trim_start().starts_with('{') {
            return super::json::parse(text).map(|subsystems| Self { subsystems: with_names(subsystems), bare: &[] });
        }
        let reader =
            |file: &Path| if file == path { Ok(text.to_owned()) } else { kymo_define::read_import(path, file) };
        let (schema, problems) = kymo_define::read(path, &reader).map_err(|error| error.to_string())?;
        let Some(schema) = schema else {
            let error = problems.problems.iter().find(|problem| !problem.is_warning);
            let error = error.map(|error| format!("{}:{}: {}", error.place.line, error.place.column, error.message));
            return Err(error.unwrap_or_default());
        };
        let subsystem = |subsystem: SchemaSubsystem| {
            let events = subsystem.events.into_iter().map(|event| (event.id, event.name)).collect();
            (subsystem.id, SubsystemNames { name: subsystem.name, events })
        };
        Ok(Self { subsystems: schema.subsystems.into_iter().map(subsystem).collect(), bare: &[] })
    }
}

/// Subsystems by their places; there are fewer numbers than a large file may have.
fn numbered<N: Into<String>>(
    subsystems: impl Iterator<Item = (N, BTreeMap<u16, String>)>,
) -> BTreeMap<u16, SubsystemNames> {
    (0..=u16::MAX).zip(subsystems.map(|(name, events)| SubsystemNames { name: name.into(), events })).collect()
}

/// The first dialect of JSON has descriptions alone. Where an event is described as one of the last revision, it has
/// its name.
fn with_names(mut subsystems: BTreeMap<u16, SubsystemNames>) -> BTreeMap<u16, SubsystemNames> {
    const DESCRIBED: [(&str, &str); 2] = [("Context Switch", "CSWITCH"), ("Buffer zeroing", "BZERO")];
    for event in subsystems.values_mut().flat_map(|subsystem| subsystem.events.values_mut()) {
        if let Some((_, name)) = DESCRIBED.iter().find(|(description, _)| description == event) {
            (*name).clone_into(event);
        }
    }
    subsystems
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(definitions: &DumpDefinitions, subsystem: u16, event: u16) -> (&str, &str) {
        let subsystem = &definitions.subsystems[&subsystem];
        (&subsystem.name, &subsystem.events[&event])
    }

    #[test]
    fn built_in_names_have_their_numbers() {
        let current = DumpDefinitions::current();
        assert_eq!(name(&current, 0, 0), ("kernel", "CSWITCH"));
        assert_eq!(name(&current, 16, 3), ("xmpl", "EV2"));
        assert_eq!((current.subsystems.len(), current.subsystems[&0].events.len()), (20, 36));
        let legacy = DumpDefinitions::legacy();
        assert_eq!(name(&legacy, 0xFFFF, 0xCCCC), ("kernel", "CSWITCH"));
        assert_eq!(name(&legacy, 0x7337, 4), ("xmpl", "XMPL_EV2"));
    }

    #[test]
    fn files_of_either_form_are_read() {
        let parse = |text: &str| DumpDefinitions::parse(Path::new("a"), text);
        let pleco = parse("subsystem kernel { event CSWITCH \"Context Switch\", };").unwrap();
        assert_eq!(name(&pleco, 0, 0), ("kernel", "CSWITCH"));
        let json = parse("{\n0 : {\n\t\"name\" : \"kernel\",\n\t\"events\" : {\n\t\t0 : \"Context Switch\"\n\t}\n}\n}");
        assert_eq!(json.unwrap(), pleco);
        assert_eq!(parse("schema a 1; subsystem kernel { event CSWITCH };").unwrap(), pleco);
        let schema = parse("schema a 1; subsystem s id 7 { event one id 3, event two };").unwrap();
        assert_eq!(name(&schema, 7, 4), ("s", "two"));
        assert_eq!(parse("").unwrap_err(), "1:1: expected `subsystem`, found the end of the file");
    }

    #[test]
    fn the_nearest_file_counts() {
        let folder = tempfile::tempdir().unwrap();
        let dump = folder.path().join("a.trc");
        let find = |named: Option<&Path>, is_legacy| find(&dump, named, is_legacy).map(|(_, origin)| origin);
        assert_eq!(find(None, false), Ok(DefinitionsOrigin::BuiltIn));
        assert_eq!(find(None, true), Ok(DefinitionsOrigin::Legacy));
        for name in ["trace_defs.pleco", "a.json"] {
            let path = folder.path().join(name);
            fs::write(&path, "subsystem kernel { event CSWITCH \"\", };").unwrap();
            assert_eq!(find(None, false), Ok(DefinitionsOrigin::Beside(path.clone())));
            // Fixed numbers are not in such files.
            assert_eq!(find(None, true), Ok(DefinitionsOrigin::Legacy));
            assert_eq!(find(Some(&path), true), Ok(DefinitionsOrigin::Named));
        }
        let missing = folder.path().join("missing");
        let error = find(Some(&missing), false).unwrap_err();
        assert!(error.starts_with(&format!("definitions {}: ", missing.display())), "{error}");
    }
}
