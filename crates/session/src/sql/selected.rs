//! Maps of eBPF programs and counts of the kernel as functions: `map('counts')`, `watch('syscalls')`.
//!
//! Both are events of a trace, of which these functions take some columns and classes.

use std::sync::Arc;

use kymo_filter::{Filter, nearest};
use kymo_format::model::EventRecordClass;
use kymo_sql::{Argument, TableError, TableQuestion, Term, TraceScan, TraceTable, WrongArgument};
use kymo_table::arrow::datatypes::SchemaRef;

use super::events::EventRelation;
use super::shared::TableContext;

const MAP: &str = "map";
const WATCH: &str = "watch";
/// Names of events before that of a map, and before that of a kind of counts.
const MAP_EVENT: &str = "map:";
const WATCH_EVENT: &str = "watch:";
/// The URI of classes with counts, before the name of the question.
const WATCH_URI: &str = "kymo:watch/";
/// Kinds of counts; the first is meant if none is named.
const KINDS: [&str; 5] = ["row", "total", "bucket", "interval", "end"];
/// Columns that functions leave out, and the beginning of others.
const OF_TRACE: [&str; 3] = ["time", "cycles", "stream"];
const OF_PACKETS: &str = "packet_context.";

/// Columns of events, of some of their classes.
#[derive(Debug)]
pub(super) struct FunctionEvents {
    name: String,
    events: EventRelation,
    /// The columns, by their places in those of the events.
    columns: Vec<usize>,
    schema: SchemaRef,
    /// A condition of all rows.
    filter: Option<String>,
}

/// The table of such a function; `None`: it is another one.
pub(super) fn call(
    shared: &Arc<TableContext>,
    function: &str,
    arguments: &[Argument],
) -> Result<Option<FunctionEvents>, TableError> {
    let texts =
        || -> Result<Vec<&str>, TableError> { arguments.iter().map(|argument| text(function, argument)).collect() };
    match function {
        MAP => map(shared, &texts()?).map(Some),
        WATCH => watch(shared, &texts()?).map(Some),
        _ => Ok(None),
    }
}

fn text<'a>(function: &str, argument: &'a Argument) -> Result<&'a str, TableError> {
    match argument {
        Argument::Text(text) => Ok(text.trim()),
        _ => Err(wrong(format!("{function}() takes texts, which are names"))),
    }
}

/// The query is at fault.
fn wrong(problem: String) -> TableError {
    WrongArgument(problem).into()
}

fn map(shared: &Arc<TableContext>, texts: &[&str]) -> Result<FunctionEvents, TableError> {
    let known: Vec<&str> = shared.names().iter().filter_map(|name| name.strip_prefix(MAP_EVENT)).collect();
    let name = match texts {
        [name] => *name,
        _ => return Err(wrong(format!("map() takes the name of a map: map('NAME'); {}", maps(&known)))),
    };
    if !known.contains(&name) {
        return Err(wrong(format!("there is no map `{name}`{}; {}", near(name, &known), maps(&known))));
    }
    let events = EventRelation::of_class(shared, &format!("{MAP_EVENT}{name}"))?;
    let wanted = |column: &str| !is_of_trace(column);
    FunctionEvents::new(format!("map('{name}')"), events, wanted, None)
}

fn maps(known: &[&str]) -> String {
    match known {
        [] => "the trace has no maps: `kymo bpf run OBJECT ... --output DIR` writes them".to_owned(),
        known => format!("the trace has {}", known.join(", ")),
    }
}

/// Counts of a question, of one kind.
fn watch(shared: &Arc<TableContext>, texts: &[&str]) -> Result<FunctionEvents, TableError> {
    let mut known: Vec<&str> = classes(shared).filter_map(question).collect();
    known.sort_unstable();
    known.dedup();
    let none = "the trace has no counts: `kymo watch ... --output DIR` and `kymo record --watch` write them";
    let all =
        || if known.is_empty() { none.to_owned() } else { format!("the trace has counts of {}", known.join(", ")) };
    let (name, kind) = match texts {
        [] => (None, KINDS[0]),
        // A kind alone is that of the only question.
        [kind] if KINDS.contains(kind) && !known.contains(kind) => (None, *kind),
        [name] => (Some(*name), KINDS[0]),
        [name, kind] => (Some(*name), *kind),
        _ => return Err(wrong("watch() takes the name of a question, and a kind: watch('NAME', 'total')".to_owned())),
    };
    if !KINDS.contains(&kind) {
        let near = near(kind, &KINDS);
        return Err(wrong(format!(
            "there are no counts of the kind `{kind}`{near}; the kinds are {}",
            KINDS.join(", ")
        )));
    }
    let name = match (name, &known[..]) {
        (Some(name), known) if known.contains(&name) => name,
        (Some(name), known) => {
            return Err(wrong(format!("there is no question `{name}`{}; {}", near(name, known), all())));
        }
        (None, [only]) => *only,
        (None, []) => return Err(wrong(none.to_owned())),
        (None, _) => return Err(wrong(format!("watch() needs a name: watch('NAME'); {}", all()))),
    };
    let event = format!("{WATCH_EVENT}{kind}");
    let is_it =
        |class: &&EventRecordClass| class.name.as_deref() == Some(event.as_str()) && question(class) == Some(name);
    if !classes(shared).any(|class| is_it(&class)) {
        return Err(wrong(format!("`{name}` has no counts of the kind `{kind}` in this trace")));
    }
    let filter = format!("event.emf_uri == \"{WATCH_URI}{name}\"");
    let events = EventRelation::of_class(shared, &event)?;
    let own = EventRelation::columns_of(shared, &event, parsed(&filter)?)?;
    let wanted = |column: &str| own.field_with_name(column).is_ok() && (column == "time" || !is_of_trace(column));
    FunctionEvents::new(format!("watch('{name}', '{kind}')"), events, wanted, Some(filter))
}

fn is_of_trace(column: &str) -> bool {
    OF_TRACE.contains(&column) || column.starts_with(OF_PACKETS)
}

fn parsed(filter: &str) -> Result<Filter, TableError> {
    Filter::parse(filter)
        .map_err(|problems| problems.iter().map(|problem| problem.render(filter)).collect::<String>().into())
}

fn classes(shared: &TableContext) -> impl Iterator<Item = &EventRecordClass> {
    let streams = shared.session.traces.iter().flat_map(|trace| &trace.class.stream_classes);
    streams.flat_map(|stream| &stream.event_classes)
}

/// The question of a class of counts.
fn question(class: &EventRecordClass) -> Option<&str> {
    class.emf_uri.as_deref()?.strip_prefix(WATCH_URI)
}

/// A name that may have been meant.
fn near(name: &str, known: &[&str]) -> String {
    let near = nearest(name, known.iter().copied());
    near.first().map_or_else(String::new, |near| format!("; did you mean `{near}`?"))
}

impl FunctionEvents {
    fn new(
        name: String,
        events: EventRelation,
        wanted: impl Fn(&str) -> bool,
        filter: Option<String>,
    ) -> Result<Self, TableError> {
        let all = events.schema();
        let columns: Vec<usize> = (0..all.fields().len()).filter(|column| wanted(all.field(*column).name())).collect();
        let schema = Arc::new(all.project(&columns)?);
        Ok(Self { name, events, columns, schema, filter })
    }
}

impl TraceTable for FunctionEvents {
    fn name(&self) -> &str {
        &self.name
    }

    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn order(&self) -> Option<usize> {
        let order = self.events.order()?;
        self.columns.iter().position(|column| *column == order)
    }

    fn term(&self, column: usize) -> Option<Term> {
        self.events.term(self.columns[column])
    }

    fn takes(&self, filter: &str) -> bool {
        self.events.takes(filter)
    }

    fn scan(&self, question: &TableQuestion) -> Result<Arc<dyn TraceScan>, TableError> {
        let columns = match &question.columns {
            Some(wanted) => wanted.iter().map(|column| self.columns[*column]).collect(),
            None => self.columns.clone(),
        };
        let filters = self.filter.iter().chain(&question.filters).cloned().collect();
        self.events.scan(&TableQuestion { columns: Some(columns), filters, ..question.clone() })
    }
}
