//! Time zones, found without looking at all that there are.
//!
//! `jiff` lists the zones of the machine before it reads one: forty folders, more than a
//! millisecond. The requested zone is nearly always a file with a known path; only names in another
//! form are left to `jiff`.

use std::path::Path;
use std::sync::LazyLock;

use jiff::tz::TimeZone;

/// Where times of day are those of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Zone {
    /// The machine's own.
    #[default]
    Local,
    /// Greenwich.
    Utc,
}

impl Zone {
    /// How far its clocks are ahead, and when they change.
    #[must_use]
    pub fn time_zone(self) -> TimeZone {
        static LOCAL: LazyLock<TimeZone> = LazyLock::new(local);
        match self {
            Self::Local => LOCAL.clone(),
            Self::Utc => TimeZone::UTC,
        }
    }
}

fn local() -> TimeZone {
    let found = match std::env::var_os("TZ") {
        None => read(Path::new("/etc/localtime"), "Local"),
        Some(_) if std::env::var_os("TZDIR").is_some() => None,
        Some(name) => name.to_str().and_then(named),
    };
    found.unwrap_or_else(TimeZone::system)
}

/// The zone that `TZ` names, if it is a name and nothing else that may stand there.
fn named(name: &str) -> Option<TimeZone> {
    let is_part = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_+-".contains(&byte))
    };
    let is_name = (name == "UTC" || name.contains('/')) && name.split('/').all(is_part);
    is_name.then(|| read(&Path::new("/usr/share/zoneinfo").join(name), name))?
}

fn read(path: &Path, name: &str) -> Option<TimeZone> {
    TimeZone::tzif(name, &std::fs::read(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    /// Instants of 150 years, some of which are minutes away from changes.
    fn offsets(zone: &TimeZone) -> Vec<i32> {
        let instant = |hour: i64| Timestamp::from_second(hour * 3600 - 1).expect("the year is one that jiff knows");
        (-600_000..700_000).step_by(97).map(|hour| zone.to_offset(instant(hour)).seconds()).collect()
    }

    #[test]
    fn a_zone_is_what_jiff_says() {
        for name in ["UTC", "Europe/Berlin", "America/Argentina/Ushuaia", "Australia/Lord_Howe", "Etc/GMT+7"] {
            let Ok(expected) = TimeZone::get(name) else {
                eprintln!("SKIPPED: {name} is not known on this machine");
                continue;
            };
            // The machine may keep its zones elsewhere.
            let found = named(name).unwrap_or_else(|| expected.clone());
            assert_eq!(offsets(&found), offsets(&expected), "{name}");
        }
        assert_eq!(offsets(&Zone::Local.time_zone()), offsets(&TimeZone::system()));
    }

    #[test]
    fn what_is_no_name_is_left_to_jiff() {
        for text in ["", "/etc/localtime", "../zoneinfo/UTC", "Europe//Berlin", ":Europe/Berlin", "EST5EDT", "No/where"]
        {
            assert_eq!(named(text), None, "{text}");
        }
    }
}
