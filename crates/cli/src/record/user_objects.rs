//! Users' eBPF objects that recorded programs run: `kymo record --bpf`, and their maps at the end.

use std::path::PathBuf;

use kymo_recorder::protocol::SessionSummary;
use kymo_recorder::rule::RuleOptions;
use kymo_recorder::user_programs::{ObjectContents, ObjectOptions, SharedMapContents, StoppedProgram};
use kymo_session::bpf::{BpfMapContents, BpfObject, ObjectMap, bpf_contents};
use serde_json::{Value, json};

use crate::bpf::{contents_json, object_and_bytes, show_map};
use crate::show::{counted, grouped};
use crate::stop::StopReason;

/// Bytes of all objects of a session, at most.
const OBJECTS_BYTES_MAX: usize = 2 << 20;

/// Reads objects; their programs become rules behind those that there are.
pub(super) fn read(
    files: &[PathBuf],
    mut rules: Vec<RuleOptions>,
) -> Result<(Vec<ObjectOptions>, Vec<RuleOptions>), StopReason> {
    let (mut objects, mut all_bytes) = (Vec::<ObjectOptions>::new(), 0);
    for file in files {
        let (_, bytes) = object_and_bytes(file)?;
        let name =
            file.file_name().map_or_else(|| file.display().to_string(), |name| name.to_string_lossy().into_owned());
        if objects.iter().any(|known| known.name == name) {
            return Err(StopReason::Usage(format!("there are two objects `{name}`")));
        }
        all_bytes += bytes.len();
        if all_bytes > OBJECTS_BYTES_MAX {
            let sentence =
                format!("objects of {all_bytes} bytes: those of a session have at most {OBJECTS_BYTES_MAX} together");
            return Err(StopReason::Usage(sentence));
        }
        let object = ObjectOptions::new(&name, &bytes);
        for rule in object.rules().map_err(StopReason::Usage)? {
            rules.push(with_free_name(rule, &rules));
        }
        objects.push(object);
    }
    Ok((objects, rules))
}

/// A rule with a name that no other one has.
fn with_free_name(rule: RuleOptions, known: &[RuleOptions]) -> RuleOptions {
    let is_free = |name: &str| known.iter().all(|known| known.name != name);
    let numbered = |number: u32| if number == 1 { rule.name.clone() } else { format!("{}-{number}", rule.name) };
    let name = (1..).map(numbered).find(|name| is_free(name)).unwrap_or_default();
    RuleOptions { name, ..rule }
}

/// The objects of a summary by name.
fn files(summary: &SessionSummary) -> Vec<(&str, BpfObject)> {
    let object = |options: &'_ ObjectOptions| BpfObject::read(&options.bytes()?).ok();
    let read = |options| object(options).map(|object| (options.name.as_str(), object));
    summary.object_files.iter().filter_map(read).collect()
}

fn contents(object: &BpfObject, found: &SharedMapContents) -> Option<BpfMapContents> {
    let map: &ObjectMap = object.maps().iter().find(|map| map.name == found.name)?;
    let is_per_cpu = map.type_name().contains("percpu");
    let entries = found.entries.iter().map(|entry| {
        let all = || entry.values.iter().map(Vec::as_slice).enumerate();
        // As where each CPU has a value: those that were never used are left out.
        let is_used = |value: &[u8]| !is_per_cpu || value.iter().any(|byte| *byte != 0);
        let used: Vec<(usize, &[u8])> = all().filter(|(_, value)| is_used(value)).collect();
        (&entry.key, if used.is_empty() { all().take(1).collect() } else { used })
    });
    let mut contents = bpf_contents(map, entries);
    contents.zeros += found.zeros;
    Some(contents)
}

/// Maps of each program as tables.
pub(super) fn maps(summary: &SessionSummary) -> String {
    let (files, mut text) = (files(summary), Vec::new());
    for ObjectContents { object, process, pid, maps, .. } in &summary.objects {
        let Some((_, file)) = files.iter().find(|(name, _)| name == object) else { continue };
        for found in maps {
            let Some(contents) = contents(file, found) else { continue };
            text.extend(format!("\nmap of {object} in {process} ({pid}): ").bytes());
            // Memory takes any text.
            show_map(&contents, &mut text).expect("there is memory");
            if found.more > 0 {
                text.extend(format!("  ... and {} more\n", grouped(found.more)).bytes());
            }
        }
    }
    if summary.more_objects > 0 {
        let programs = counted(summary.more_objects, "program");
        text.extend(format!("\nmaps of {programs} more are not shown\n").bytes());
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// Runs that stopped before their end.
pub(super) fn stopped(summary: &SessionSummary) -> String {
    let mut text = String::new();
    for ObjectContents { object, process, pid, stopped, .. } in &summary.objects {
        for StoppedProgram { program, runs, why, busy } in stopped {
            if *runs > 0 {
                let why = if why.is_empty() { String::new() } else { format!(", the first one by {why}") };
                text += &format!(
                    "  stopped   {program} of {object} in {process} ({pid}): {} before its end{why}; these events are kept\n",
                    counted(*runs, "run")
                );
            }
            if *busy > 0 {
                text += &format!(
                    "  busy      {program} of {object} in {process} ({pid}): {} of maps not possible, as they were being changed, by others or by the code that a signal handler had interrupted\n",
                    counted(*busy, "use")
                );
            }
        }
    }
    text
}

/// The same for machines: values by their types, instead of bytes.
pub(super) fn add_json(summary: &SessionSummary, object: &mut Value) {
    let files = files(summary);
    let told = summary.objects.iter().map(|contents_of| {
        let file = files.iter().find(|(name, _)| *name == contents_of.object).map(|(_, file)| file);
        let maps: Vec<Value> = contents_of
            .maps
            .iter()
            .filter_map(|found| {
                let mut json = contents_json(&contents(file?, found)?);
                json["more_entries"] = found.more.into();
                Some(json)
            })
            .collect();
        let ObjectContents { object, process, pid, stopped, .. } = contents_of;
        json!({ "object": object, "process": process, "pid": pid, "maps": maps, "stopped": stopped })
    });
    let told: Vec<Value> = told.collect();
    if let Some(members) = object.as_object_mut().filter(|_| !summary.objects.is_empty()) {
        members.remove("object_files");
        members.insert("objects".to_owned(), told.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_two_objects_have_two_names() {
        let rule = RuleOptions::parse("a:b every 2").expect("it is one");
        let named = with_free_name(rule.clone(), std::slice::from_ref(&rule));
        assert_eq!(named.name, "b-2");
        assert_eq!(with_free_name(rule.clone(), &[]).name, "b");
    }
}
