//! `kymo count`

use std::collections::HashMap;
use std::io::{self, Write};

use kymo_session::{
    Bounded, Cell, CellClass, ClassCount, Column, CountOptions, Counts, Headline, Plot, Progress, Session, Table, Zone,
    json as answers,
};
use serde_json::json;

use crate::CommandOutcome;
use crate::analyses::{TOP, is_lossy};
use crate::answer::InstantFormat;
use crate::answer::screen::{Screen, ScreenTone};
use crate::answer::table::{self, TableLook};
use crate::answer::words::{CellDetail, CellFormatter, escaped};
use crate::arguments::{By, Color, CountArguments};
use crate::message::plain_output;
use crate::progress::watched;
use crate::select::selection;
use crate::show::{self, bytes, grouped};
use crate::stop::StopReason;

/// Shows how often each class occurs.
pub(crate) fn run(session: &Session, arguments: &CountArguments) -> Result<CommandOutcome, StopReason> {
    let progress = Progress::default();
    let selection = selection(session, &arguments.event, arguments.filter.as_deref(), Zone::Local)?;
    let options = CountOptions { selection, sizes: arguments.sizes };
    let counts = watched(&progress, || session.count(&options, &progress)).map_err(io::Error::other)?;
    let screen = Screen::of_output(Color::Auto, arguments.wide);
    let text = text(&counts, arguments, screen)?;
    match screen.width {
        // It has its colors, and no controls but these.
        Some(_) if !arguments.json => io::stdout().write_all(text.as_bytes())?,
        _ => plain_output().write_all(text.as_bytes())?,
    }
    Ok(show::report(&counts.report, arguments.common.strict))
}

/// Counts as the arguments want them. A pipe gets rows that are easy to cut apart, a terminal those that fit.
pub(crate) fn text(counts: &Counts, arguments: &CountArguments, screen: Screen) -> io::Result<String> {
    let table = CountTable::new(counts, &arguments.by);
    let mut text = Vec::new();
    if arguments.json {
        writeln!(text, "{}", table.as_json())?;
    } else if screen.width.is_some() {
        let top = arguments.top.map_or(Some(TOP), |top| top.0);
        table.show_on_terminal(screen, top, &mut text)?;
    } else {
        table.show(&mut text)?;
    }
    Ok(String::from_utf8_lossy(&text).into_owned())
}

/// Counts as a table of an answer, and as they are shown.
pub(crate) fn as_table(counts: &Counts, by: &[By]) -> (Table, String) {
    let table = CountTable::new(counts, by);
    let mut text = Vec::new();
    table.show(&mut text).expect("memory takes all bytes");
    (table.as_answer(), String::from_utf8_lossy(&text).into_owned())
}

/// Event records that share the labels of a row of the table.
struct LabelGroup<'a> {
    trace: &'a str,
    stream: usize,
    stream_name: &'a str,
    class: String,
    events: u64,
    bits: u64,
}

struct CountTable<'a> {
    counts: &'a Counts,
    /// The labels that the records of each group share, in the order of columns.
    by: Vec<By>,
    /// Most frequent first.
    groups: Vec<LabelGroup<'a>>,
    /// Nanoseconds in which the events occurred, where packets give times.
    span: Option<i128>,
}

impl<'a> CountTable<'a> {
    fn new(counts: &'a Counts, by: &[By]) -> Self {
        let span = counts.span_ns.map(|(begin, end)| i128::from(end) - i128::from(begin)).filter(|span| *span > 0);
        let mut by: Vec<By> =
            [By::Trace, By::Stream, By::Class].into_iter().filter(|column| by.contains(column)).collect();
        // A file's name alone does not tell streams of several traces apart.
        let several = counts.classes.iter().any(|class| class.trace != counts.classes[0].trace);
        if by.first() == Some(&By::Stream) && several {
            by.insert(0, By::Trace);
        }
        let groups = group(&counts.classes, &by);
        Self { counts, by, groups, span }
    }

    fn show(&self, out: &mut impl Write) -> io::Result<()> {
        let numbers = |group: &LabelGroup<'_>| self.numbers(group.events, group.bits);
        let mut rows: Vec<Vec<String>> = vec![self.titles()];
        rows.extend(self.groups.iter().map(|group| [numbers(group), self.labels(group)].concat()));
        let records = self.counts.sizes.map_or(0, |sizes| sizes.records_bits);
        rows.push([self.numbers(self.counts.total, records), vec!["all events".to_owned()]].concat());
        let width =
            |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max();
        let widths: Vec<usize> = (0..rows[0].len()).map(|column| width(column).unwrap_or(0)).collect();
        let first_label = rows[0].len() - self.by.len();
        for row in &rows {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let width = widths[column];
                line += &if column < first_label { format!("{cell:>width$}  ") } else { format!("{cell:<width$}  ") };
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        self.rest(out)
    }

    /// The headline, and the greatest groups as wide as the terminal.
    fn show_on_terminal(&self, screen: Screen, top: Option<usize>, out: &mut impl Write) -> io::Result<()> {
        let words =
            CellFormatter { times: InstantFormat::default(), unicode: screen.unicode, detail: CellDetail::Telling };
        for line in screen.wrapped(&self.headline()) {
            writeln!(out, "{}", screen.toned(ScreenTone::Title, &line))?;
        }
        let table = self.for_terminal();
        if !table.rows.is_empty() {
            writeln!(out)?;
            let look = TableLook { rows: top, ..TableLook::WHOLE };
            table::rows(&table, &words, screen, look, out)?;
        }
        let mut rest = Vec::new();
        self.rest(&mut rest)?;
        for line in String::from_utf8_lossy(&rest).lines().flat_map(|line| screen.wrapped(line)) {
            writeln!(out, "{line}")?;
        }
        Ok(())
    }

    /// How many events there are, and which are most frequent.
    fn headline(&self) -> String {
        let Some(most) = self.groups.first() else {
            return "Nothing was found. Looked for: all events within the chosen names and filter.".to_owned();
        };
        let is_lossy = is_lossy(&self.counts.report);
        let at_least = |begin: &'static str| if is_lossy { begin } else { "" };
        let rate = |rate: f64| format!(", {}{} per second", at_least("at least "), grouped(rate.round() as u64));
        let rate = self.per_second(self.counts.total).map(rate).unwrap_or_default();
        let all = format!("{}{}{rate}", at_least("At least "), show::counted(self.counts.total, "event"));
        let name = escaped(&self.labels(most).join(", ")).into_owned();
        let share = self.share(most.events, self.counts.total);
        let equals = self.groups.iter().skip(1).take_while(|group| group.events == most.events).count();
        let end = Headline::end(equals, !is_lossy);
        match self.groups.len() {
            1 => format!("{all}, all of {name}{end}"),
            _ => format!("{all}. {name} is most frequent: {share}{}{end}", at_least(" of those seen")),
        }
    }

    /// The groups by name, with their shares.
    fn for_terminal(&self) -> Table {
        let label = |by: &By| match by {
            By::Trace => Column::new("trace", "Trace", CellClass::Text),
            By::Stream => Column::new("stream", "Stream", CellClass::Text),
            By::Class => Column::new("class", "Event", CellClass::Text),
        };
        let mut columns: Vec<Column> = self.by.iter().map(label).collect();
        let value = columns.len();
        columns.push(Column::of("events", "Events", "events"));
        columns.push(Column::new("share", "Share", CellClass::Ratio));
        columns.push(Column::of("events_per_second", "Per second", "events/s").detail());
        if self.counts.sizes.is_some() {
            columns.push(Column::new("size", "Size", CellClass::Size));
            columns.push(Column::new("size_share", "Of all bytes", CellClass::Ratio));
            columns.push(Column::new("event_size", "Per event", CellClass::Size).detail());
        }
        let mut table = Table { plot: Some(Plot::Bars { value }), ..Table::new("count", "Events", columns) };
        let ratio = |part: u64, all: u64| Cell::Ratio(Bounded::exact(part as f64 / all.max(1) as f64));
        let row = |group: &LabelGroup<'_>| {
            let mut row: Vec<Cell> = self.labels(group).into_iter().map(Cell::Text).collect();
            row.push(Cell::Count(Bounded::exact(group.events)));
            row.push(ratio(group.events, self.counts.total));
            let rate = self.per_second(group.events).map(|rate| Cell::Count(Bounded::exact(rate.round() as u64)));
            row.push(rate.unwrap_or(Cell::Empty));
            if let Some(sizes) = self.counts.sizes {
                let bytes = group.bits.div_ceil(8);
                row.push(Cell::Size(Bounded::exact(bytes)));
                row.push(ratio(group.bits, sizes.records_bits));
                row.push(Cell::Size(Bounded::exact(bytes / group.events.max(1))));
            }
            row
        };
        table.rows = self.groups.iter().map(row).collect();
        table
    }

    fn share(&self, part: u64, all: u64) -> String {
        format!("{:.1}%", part as f64 * 100.0 / all.max(1) as f64)
    }

    /// Where bits are that are in no event, so that the sizes add up to those of the files.
    fn rest(&self, out: &mut impl Write) -> io::Result<()> {
        let Some(sizes) = self.counts.sizes else { return Ok(()) };
        let rest = sizes.packets_bits - sizes.records_bits - sizes.heads_bits;
        let [all, heads, rest] = [sizes.packets_bits, sizes.heads_bits, rest].map(|bits| bytes(bits.div_ceil(8)));
        let unread = if self.counts.report.is_complete() { "unused" } else { "unused or could not be read" };
        writeln!(out, "\npackets have {all}, of which {heads} are their heads and {rest} {unread}")
    }

    fn titles(&self) -> Vec<String> {
        let sizes: &[&str] = if self.counts.sizes.is_some() { &["size", "share", "B/event"] } else { &[] };
        let label = |by: &By| match by {
            By::Trace => "trace",
            By::Stream => "stream",
            By::Class => "event",
        };
        let numbers = ["events", "share", "events/s"].into_iter().chain(sizes.iter().copied());
        numbers.chain(self.by.iter().map(label)).map(str::to_owned).collect()
    }

    fn numbers(&self, events: u64, bits: u64) -> Vec<String> {
        let share = |part: u64, all: u64| self.share(part, all);
        let rate = self.per_second(events).map_or("-".to_owned(), |rate| grouped(rate.round() as u64));
        let mut cells = vec![grouped(events), share(events, self.counts.total), rate];
        if let Some(sizes) = self.counts.sizes {
            let each = bits as f64 / 8.0 / events.max(1) as f64;
            cells.extend([bytes(bits.div_ceil(8)), share(bits, sizes.records_bits), format!("{each:.1}")]);
        }
        cells
    }

    fn labels(&self, group: &LabelGroup<'_>) -> Vec<String> {
        let label = |by: &By| match by {
            By::Trace => group.trace.to_owned(),
            By::Stream => format!("{} {}", group.stream, group.stream_name),
            By::Class => group.class.clone(),
        };
        self.by.iter().map(label).collect()
    }

    fn per_second(&self, events: u64) -> Option<f64> {
        self.span.map(|span| events as f64 * 1e9 / span as f64)
    }

    /// With the names of `as_json`.
    fn as_answer(&self) -> Table {
        let mut columns = Vec::new();
        for by in &self.by {
            match by {
                By::Trace => columns.push(Column::new("trace", "Trace", CellClass::Text)),
                By::Stream => columns.extend([
                    Column::new("stream", "Stream", CellClass::Number),
                    Column::new("stream_name", "Name of the stream", CellClass::Text),
                ]),
                By::Class => columns.push(Column::new("class", "Event", CellClass::Text)),
            }
        }
        columns.push(Column::of("events", "Events", "events"));
        columns.push(Column::of("events_per_second", "Events per second", "events/s"));
        if self.counts.sizes.is_some() {
            columns.push(Column::of("size_bits", "Size", "bits"));
        }
        let mut table = Table::new("count", "Events", columns);
        table.span_ns = self.counts.span_ns;
        table.rows = self.groups.iter().map(|group| self.cells(group)).collect();
        table
    }

    fn cells(&self, group: &LabelGroup<'_>) -> Vec<Cell> {
        let count = |number: u64| Cell::Count(Bounded::exact(number));
        let mut cells = Vec::new();
        for by in &self.by {
            match by {
                By::Trace => cells.push(Cell::Text(group.trace.to_owned())),
                By::Stream => {
                    cells.extend([count(group.stream as u64), Cell::Text(group.stream_name.to_owned())]);
                }
                By::Class => cells.push(Cell::Text(group.class.clone())),
            }
        }
        cells.push(count(group.events));
        // Of a column without any whole number, none is whole.
        cells.push(self.per_second(group.events).map_or(Cell::Number(f64::NAN), Cell::Number));
        cells.extend(self.counts.sizes.map(|_| count(group.bits)));
        cells
    }

    fn as_json(&self) -> serde_json::Value {
        let group = |group: &LabelGroup<'_>| {
            let mut object = serde_json::Map::new();
            for by in &self.by {
                match by {
                    By::Trace => drop(object.insert("trace".to_owned(), json!(group.trace))),
                    By::Stream => {
                        object.insert("stream".to_owned(), json!(group.stream));
                        object.insert("stream_name".to_owned(), json!(group.stream_name));
                    }
                    By::Class => drop(object.insert("class".to_owned(), json!(group.class))),
                }
            }
            object.insert("events".to_owned(), json!(group.events));
            object.insert("events_per_second".to_owned(), json!(self.per_second(group.events)));
            if self.counts.sizes.is_some() {
                object.insert("size_bits".to_owned(), json!(group.bits));
            }
            serde_json::Value::Object(object)
        };
        let mut object = json!({
            "events": self.counts.total,
            "events_per_second": self.per_second(self.counts.total),
            "size_bits": self.counts.sizes.map(|sizes| json!({
                "events": sizes.records_bits, "packet_heads": sizes.heads_bits, "packets": sizes.packets_bits,
            })),
            "groups": self.groups.iter().map(group).collect::<Vec<_>>(),
        });
        let losses = answers::losses(&self.counts.report).into_iter().map(|(name, value)| (name.to_owned(), value));
        object.as_object_mut().expect("it was made one").extend(losses);
        object
    }
}

/// Adds up counts with the same labels.
fn group<'a>(classes: &'a [ClassCount], by: &[By]) -> Vec<LabelGroup<'a>> {
    let mut places: HashMap<(&str, usize, String), usize> = HashMap::new();
    let mut groups: Vec<LabelGroup<'a>> = Vec::new();
    for class in classes {
        let name = class.name.clone().unwrap_or_else(|| format!("<event {}>", class.id));
        let key = (
            if by.contains(&By::Trace) { &*class.trace } else { "" },
            if by.contains(&By::Stream) { class.stream } else { 0 },
            if by.contains(&By::Class) { name } else { String::new() },
        );
        let place = *places.entry(key.clone()).or_insert(groups.len());
        if place == groups.len() {
            let (trace, stream, name) = key;
            groups.push(LabelGroup { trace, stream, stream_name: &class.stream_name, class: name, events: 0, bits: 0 });
        }
        groups[place].events += class.events;
        groups[place].bits += class.bits.unwrap_or(0);
    }
    groups.sort_by(|one, other| {
        let key = |group: &LabelGroup<'a>| (group.trace.to_owned(), group.stream, group.class.clone());
        other.events.cmp(&one.events).then_with(|| key(one).cmp(&key(other)))
    });
    groups
}

#[cfg(test)]
mod tests {
    use super::*;
    use kymo_session::Report;

    fn headline(events: &[u64], events_discarded: u64) -> String {
        let class = |(id, &events): (usize, &u64)| ClassCount {
            trace: "trace".to_owned(),
            stream: 0,
            stream_name: "0".to_owned(),
            id: id as u64,
            name: Some(format!("event{id}")),
            events,
            bits: None,
        };
        let counts = Counts {
            classes: events.iter().enumerate().map(class).collect(),
            total: events.iter().sum(),
            sizes: None,
            span_ns: Some((0, 1_000_000_000)),
            report: Report { events_discarded, ..Report::default() },
        };
        CountTable::new(&counts, &[By::Class]).headline()
    }

    /// Lost events change the rate, the share and which event is most frequent.
    #[test]
    fn headlines_are_as_certain_as_the_trace_is_whole() {
        assert_eq!(headline(&[3, 2], 0), "5 events, 5 per second. event0 is most frequent: 60.0%.");
        assert_eq!(
            headline(&[3, 2], 9),
            "At least 5 events, at least 5 per second. event0 is most frequent: 60.0% of those seen, as far as the trace \
             shows."
        );
        assert_eq!(headline(&[1], 0), "1 event, 1 per second, all of event0.");
        assert_eq!(
            headline(&[1], 9),
            "At least 1 event, at least 1 per second, all of event0, as far as the trace shows."
        );
    }

    #[test]
    fn events_that_are_as_frequent_are_mentioned() {
        let most = "event0 is most frequent: ";
        assert_eq!(headline(&[4, 4], 0), format!("8 events, 8 per second. {most}50.0%; another is equal."));
        assert_eq!(headline(&[2; 4], 0), format!("8 events, 8 per second. {most}25.0%; others are equal."));
    }
}
