//! The events that patterns choose, with their fields, and where these are from; nothing is recorded.

use kymo_ftrace::format::EventFormat;
use kymo_ftrace::has_system;
use kymo_ftrace::listing::{ListedEvent, ListedField, list};
use kymo_ftrace::lttng::{LttngSource, ROWS, row_of};
use kymo_ftrace::perf_sched::{PERF_EVENTS, listed};
use kymo_ftrace::shape::ListedType;
use kymo_probe::helper::KnownEvents;
use kymo_probe::perf_sched;
use kymo_probe::tracefs::TraceFs;
use serde::Serialize;

use crate::kernel::filter::asked;
use crate::kernel::perf_sched::chosen_of;
use crate::kernel_filter::KernelFilterPlace;
use crate::tracepoints::chosen;

/// An event that a recording of the kernel would have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KernelEvent {
    /// The kernel's name, as `SYSTEM:NAME`.
    pub tracepoint: String,
    /// The name in a trace.
    pub event: String,
    /// Its fields, and those that LTTng has besides.
    pub fields: Vec<KernelField>,
}

/// A field of such an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KernelField {
    /// Its name in a trace.
    pub name: String,
    /// Its type; `None`: it is not there.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// `kernel`: the kernel's field, as it is. `derived`, `ebpf`, `absent`: as [`LttngSource`] says.
    pub source: &'static str,
    /// The kernel's name of the field, if it is another one; or the reason of another source.
    pub note: Option<String>,
}

/// Lists events.
///
/// # Errors
///
/// No event has such a name, or this process may not read the kernel's descriptions; in sentences.
pub fn kernel_events(patterns: &[String]) -> Result<Vec<KernelEvent>, String> {
    match described(patterns)? {
        DescribedEvents::OfKernel(formats) => Ok(list(&formats).into_iter().map(KernelEvent::from).collect()),
        DescribedEvents::OfPerf(wanted) => {
            let listed = listed().into_iter().filter(|event| wanted.contains(&event.kernel));
            Ok(listed.map(KernelEvent::from).collect())
        }
    }
}

/// Tells where filters of the events of patterns would run, with texts of system calls or without.
///
/// # Errors
///
/// As [`kernel_events`]; or a filter is about none of these events, or asks for what none of them has; in sentences.
pub fn kernel_filter_places(
    patterns: &[String],
    filters: &[String],
    has_texts: bool,
) -> Result<Vec<KernelFilterPlace>, String> {
    let (formats, wanted) = match described(patterns)? {
        DescribedEvents::OfKernel(formats) => (Some(formats), Vec::new()),
        DescribedEvents::OfPerf(wanted) => (None, wanted),
    };
    let mut places = asked(filters, formats.as_deref(), (has_texts, false))?.places;
    places.retain(|place| formats.is_some() || wanted.contains(&place.tracepoint));
    Ok(places)
}

/// Descriptions of the events that patterns choose.
enum DescribedEvents {
    OfKernel(Vec<EventFormat>),
    /// Where tracefs cannot be used: names of those that perf tells.
    OfPerf(Vec<String>),
}

fn described(patterns: &[String]) -> Result<DescribedEvents, String> {
    let told = |problem: kymo_probe::tracefs::TraceFsProblem| {
        let help = if problem.is_forbidden() { "\nhelp: sudo kymo record --kernel --list" } else { "" };
        format!("the kernel's events cannot be listed: {problem}{help}")
    };
    let fs = match TraceFs::find() {
        Err(problem) if perf_sched::is_possible().is_ok() => {
            let (events, why) = (PERF_EVENTS.map(str::to_owned).to_vec(), Some(problem.to_string()));
            return chosen_of(patterns, &KnownEvents { events, tracefs_absent: why }).map(DescribedEvents::OfPerf);
        }
        found => found.map_err(told)?,
    };
    let known = fs.events().map_err(told)?;
    let mut wanted = chosen(patterns, &known)?;
    if wanted.iter().any(|event| event.starts_with("raw_syscalls:")) {
        wanted.extend(known.into_iter().filter(|event| event.starts_with("syscalls:sys_enter_")));
    }
    let mut formats = Vec::with_capacity(wanted.len());
    for event in &wanted {
        let (system, name) = event.split_once(':').expect("it is one of the kernel's");
        let text = fs.format(system, name).map_err(told)?;
        formats.push(EventFormat::parse(system, &text).map_err(|problem| format!("{event}: {problem}"))?);
    }
    Ok(DescribedEvents::OfKernel(formats))
}

impl From<ListedEvent> for KernelEvent {
    fn from(event: ListedEvent) -> Self {
        let is_known = event.kernel.split_once(':').is_some_and(|(system, _)| has_system(system));
        let mut fields = Vec::new();
        for field in &event.fields {
            fields.push(own(&event.name, field, is_known));
            if let Some(text) = field.name.strip_suffix("_address").filter(|_| event.name.starts_with("syscall_entry_"))
            {
                let (note, kind) = ("text in the program's memory".to_owned(), Some(ListedType::Text.to_string()));
                let source = LttngSource::Ebpf.word();
                fields.push(KernelField { name: text.to_owned(), kind, source, note: Some(note) });
                let address = fields.iter_mut().find(|known| known.name == field.name);
                address.into_iter().for_each(|address| address.note = Some("where no eBPF reads the text".to_owned()));
            }
        }
        // Rows about this event alone: others also speak of events that never had the field.
        let about =
            ROWS.iter().filter(|row| !row.event.contains('*') && row.event.split('|').any(|name| name == event.name));
        let missing = about.filter(|row| matches!(row.source, LttngSource::Ebpf | LttngSource::Absent));
        for row in missing {
            for name in row.field.split('|').filter(|name| !name.contains([':', '*', '-'])) {
                let (name, note) = (name.to_owned(), Some(row.why.to_owned()));
                fields.push(KernelField { name, kind: None, source: row.source.word(), note });
            }
        }
        Self { tracepoint: event.kernel, event: event.name, fields }
    }
}

fn own(event: &str, field: &ListedField, is_known: bool) -> KernelField {
    let row = row_of(event, &field.name, None, Some(&field.shape)).map(|row| &ROWS[row]);
    let derived = row.filter(|row| is_known && row.source == LttngSource::Derived).map(|row| row.why.to_owned());
    let kernel = field.kernel.clone().filter(|kernel| *kernel != field.name);
    let is_derived = field.is_converted || derived.is_some();
    let source = if is_derived { LttngSource::Derived.word() } else { "kernel" };
    let note = if is_derived { derived } else { kernel };
    KernelField { name: field.name.clone(), kind: Some(field.shape.to_string()), source, note }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_are_told() {
        let text = "name: sched_process_fork\nID: 1\nformat:\n\
            \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\
            \tfield:pid_t parent_pid;\toffset:8;\tsize:4;\tsigned:1;\n\
            \tfield:pid_t child_pid;\toffset:12;\tsize:4;\tsigned:1;\n";
        let format = EventFormat::parse("sched", text).expect("it is one");
        let event = KernelEvent::from(list(&[format]).remove(0));
        let of = |name: &str| {
            let field = event.fields.iter().find(|field| field.name == name).unwrap_or_else(|| panic!("no {name}"));
            (field.kind.as_deref(), field.source, field.note.as_deref().unwrap_or(""))
        };
        assert_eq!(of("parent_tid"), (Some("i32"), "kernel", "parent_pid"));
        assert_eq!((of("child_pid").0, of("child_pid").1), (Some("i32"), "derived"));
        assert_eq!((of("vtids").0, of("vtids").1), (None, "absent"));
    }
}
