//! Records, lines and maps of programs on standard output, for people and as JSON: the same wherever programs run.

use std::io::{self, Write};

use kymo_session::bpf::{BpfMapContents, BpfOutput};
use serde_json::{Value, json};

use super::words;
use crate::answer::words::InstantFormat;
use crate::message::plain_output;

/// Writes the output of programs.
pub(crate) struct BpfPrinter {
    is_json: bool,
    times: InstantFormat,
    /// Nothing was written yet.
    is_first: bool,
}

impl BpfPrinter {
    pub(crate) fn new(is_json: bool, times: InstantFormat) -> Self {
        Self { is_json, times, is_first: true }
    }

    /// Something that a program has put out.
    pub(crate) fn output(&mut self, output: &BpfOutput<'_>) -> io::Result<()> {
        let line = if self.is_json { output_json(output).to_string() } else { output_line(output, &self.times) };
        self.is_first = false;
        writeln!(plain_output(), "{line}")
    }

    /// Maps at the end.
    pub(crate) fn maps(&mut self, maps: &[BpfMapContents]) -> io::Result<()> {
        let mut out = plain_output();
        for map in maps {
            if self.is_json {
                writeln!(out, "{}", contents_json(map))?;
                continue;
            }
            if !std::mem::take(&mut self.is_first) {
                writeln!(out)?;
            }
            words::show_map(map, &mut out)?;
        }
        Ok(())
    }

    /// The last line of people, or objects of programs that read this.
    pub(crate) fn end(&mut self, line: &str, objects: &[Value]) -> io::Result<()> {
        let mut out = plain_output();
        if self.is_json {
            objects.iter().try_for_each(|object| writeln!(out, "{object}"))?;
        } else {
            let space = if self.is_first { "" } else { "\n" };
            writeln!(out, "{space}{line}")?;
        }
        out.flush()
    }
}

fn output_line(output: &BpfOutput<'_>, times: &InstantFormat) -> String {
    let time = |nanos: &Option<i64>| nanos.map_or_else(String::new, |nanos| format!("[{}] ", times.word(nanos)));
    match output {
        BpfOutput::Record { nanos, map, value } => format!("{}{}: {}", time(nanos), map.name, words::text(value)),
        BpfOutput::Line { nanos, text } => format!("{}{text}", time(nanos)),
    }
}

fn output_json(output: &BpfOutput<'_>) -> Value {
    match output {
        BpfOutput::Record { nanos, map, value } => {
            json!({ "kind": "record", "time_ns": nanos, "map": map.name, "value": words::value_json(value) })
        }
        BpfOutput::Line { nanos, text } => json!({ "kind": "line", "time_ns": nanos, "text": text }),
    }
}

/// A map for machines.
pub(crate) fn contents_json(contents: &BpfMapContents) -> Value {
    let is_per_cpu = contents.map.type_name().contains("percpu");
    let entries = contents.entries.iter().map(|entry| {
        let key = words::value_json(&entry.key);
        let mut values = entry.values.iter().map(|(cpu, value)| (*cpu, words::value_json(value)));
        if is_per_cpu {
            let values: Vec<Value> = values.map(|(cpu, value)| json!({ "cpu": cpu, "value": value })).collect();
            json!({ "key": key, "values": values })
        } else {
            json!({ "key": key, "value": values.next().map(|(_, value)| value) })
        }
    });
    let entries: Vec<Value> = entries.collect();
    json!({
        "kind": "map", "name": contents.map.name, "type": contents.map.type_name(), "entries": entries,
        "zero_entries": contents.zeros,
    })
}
