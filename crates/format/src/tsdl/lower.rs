//! The syntax tree to a trace class.
//!
//! Blocks may come in any order as far as they do not refer to each other: the trace block's byte order and
//! the clocks are taken first, then types and streams in the order of the text, then events.

use hashbrown::{HashMap, HashSet};
use std::borrow::Cow;
use std::rc::Rc;

use kymo_units::{ByteOrder, Uuid};

use crate::budget::{Budget, ClassPlaces, StreamPlaces};
use crate::model::{
    ClockClass, ClockOrigin, DataStreamClass, Dialect, EnvironmentValue, EventRecordClass, FieldClass, Scope,
    TraceClass,
};
use crate::seen::NameSet;
use crate::tsdl::ast::{
    BlockSyntax, Declarator, EntrySyntax, Expression, ExpressionKind, ItemSyntax, NameSyntax, Span, TypeSyntax,
};
use crate::tsdl::build::{Around, FieldClassBuilder, Roots};
use crate::tsdl::problem::TsdlProblem;
use crate::tsdl::types::{Proto, Shared, Types};

type Result<T> = std::result::Result<T, (Span, TsdlProblem)>;

/// The findings of lowering: errors, and doubts that are assumptions.
#[derive(Debug, Default)]
pub(crate) struct LoweringFindings {
    pub(crate) errors: Vec<(Span, TsdlProblem)>,
    pub(crate) doubts: Vec<(Span, TsdlProblem)>,
}

/// A stream class, and the types its events may refer to.
struct StreamDraft {
    class: DataStreamClass,
    roots: Roots,
}

struct TsdlLowering<'s> {
    trace: TraceClass,
    types: Types,
    packet_header: Option<Shared>,
    streams: Vec<StreamDraft>,
    /// Places in `streams` by id.
    stream_ids: HashMap<u64, usize>,
    budget: Budget,
    places: ClassPlaces,
    findings: &'s mut LoweringFindings,
}

/// Lowers the parsed items.
pub(crate) fn lower(
    items: &[ItemSyntax<'_>],
    text_end: usize,
    findings: &mut LoweringFindings,
) -> (TraceClass, ClassPlaces) {
    let mut lower = TsdlLowering {
        trace: TraceClass::empty(Dialect::Ctf1),
        types: Types::new(None, HashMap::new()),
        packet_header: None,
        streams: Vec::new(),
        stream_ids: HashMap::new(),
        budget: Budget::default(),
        places: ClassPlaces::default(),
        findings,
    };
    lower.first(items, text_end);
    lower.in_order(items);
    lower.events(items);
    lower.unused();
    lower.finish()
}

fn blocks<'i, 'a>(items: &'i [ItemSyntax<'a>], keyword: &'i str) -> impl Iterator<Item = &'i BlockSyntax<'a>> {
    items.iter().filter_map(move |item| match item {
        ItemSyntax::Block(block) if block.keyword.text == keyword => Some(block),
        _ => None,
    })
}

impl TsdlLowering<'_> {
    fn note<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|problem| self.findings.errors.push(problem)).ok()
    }

    /// The declarations that all others may need: byte order and clocks.
    fn first(&mut self, items: &[ItemSyntax<'_>], text_end: usize) {
        if blocks(items, "trace").next().is_none() {
            let problem = TsdlProblem::Missing { block: "metadata", attribute: "trace" };
            self.findings.errors.push((text_end..text_end, problem));
        }
        for (index, block) in blocks(items, "trace").enumerate() {
            if index > 0 {
                let problem = TsdlProblem::Twice { what: "`trace`".into() };
                self.findings.errors.push((block.keyword.span(), problem));
            }
            let result = self.trace_values(block);
            self.note(result);
        }
        // If it is missing, that was reported; types that need it are not to blame.
        self.types.native = self.trace.native_byte_order.or(Some(ByteOrder::Little));
        for item in items {
            // Of an environment entry that is given twice both are kept, as Babeltrace does.
            if let ItemSyntax::Block(block) = item
                && block.keyword.text != "env"
            {
                let result = once(block);
                self.note(result);
            }
        }
        for block in blocks(items, "clock") {
            let result = clock(block, &mut self.types.doubts);
            let Some(clock) = self.note(result) else {
                continue;
            };
            if self.types.clocks.insert(clock.id.clone(), self.trace.clock_classes.len()).is_some() {
                let problem = TsdlProblem::Twice { what: format!("the clock `{}`", clock.id) };
                self.findings.errors.push((block.keyword.span(), problem));
            }
            self.trace.clock_classes.push(clock);
        }
    }

    fn trace_values(&mut self, block: &BlockSyntax<'_>) -> Result<()> {
        let (mut major, mut minor) = (None, None);
        for (path, value) in values(block) {
            match &*joined(path) {
                "major" => major = self.note(number(value, "major")),
                "minor" => minor = self.note(number(value, "minor")),
                "uuid" => self.trace.uuid = self.note(uuid(value)),
                "byte_order" => self.trace.native_byte_order = self.note(trace_byte_order(value)),
                name => doubt(&mut self.types.doubts, "trace", path, name),
            }
        }
        for attribute in ["major", "minor", "byte_order"] {
            if !values(block).any(|(path, _)| joined(path) == attribute) {
                let problem = TsdlProblem::Missing { block: "trace", attribute };
                self.findings.errors.push((block.keyword.span(), problem));
            }
        }
        match (major, minor) {
            (Some(1), Some(8)) | (None, _) | (_, None) => Ok(()),
            (Some(major), Some(minor)) => Err((block.keyword.span(), TsdlProblem::Version { major, minor })),
        }
    }

    /// Types and streams in the order of the text.
    fn in_order(&mut self, items: &[ItemSyntax<'_>]) {
        for item in items {
            let result = match item {
                ItemSyntax::Declaration(declaration) => self.types.declare(declaration),
                ItemSyntax::Block(block) => match block.keyword.text {
                    "trace" => self.trace_types(block),
                    "env" => self.environment(block),
                    "stream" => self.stream(block),
                    _ => Ok(()),
                },
            };
            self.note(result);
        }
    }

    fn trace_types(&mut self, block: &BlockSyntax<'_>) -> Result<()> {
        self.types.enter();
        let result = self.trace_types_inside(block);
        self.types.leave();
        result
    }

    fn trace_types_inside(&mut self, block: &BlockSyntax<'_>) -> Result<()> {
        for entry in &block.entries {
            match entry {
                EntrySyntax::Type { path, class, declarator } if joined(path) == "packet.header" => {
                    let root = self.scope_type(class, declarator, "packet.header")?;
                    self.places.packet_header = path[0].span();
                    let clocks = self.trace.clock_classes.len();
                    let around = Around { roots: const { &Vec::new() }, clocks, budget: &self.budget };
                    let mut builder = FieldClassBuilder::new(Scope::PacketHeader, &root, class.span.clone(), around);
                    self.trace.packet_header = Some(builder.build()?);
                    self.findings.doubts.append(&mut builder.doubts);
                    self.packet_header = Some(root);
                }
                EntrySyntax::Type { path, class, .. } => self.unknown_scope("trace", path, class)?,
                EntrySyntax::Declaration(declaration) => self.types.declare(declaration)?,
                EntrySyntax::Value { .. } => {}
            }
        }
        Ok(())
    }

    /// A scope that no reader knows has no effect on the others, if its type is sound.
    fn unknown_scope(&mut self, block: &'static str, path: &[NameSyntax<'_>], class: &TypeSyntax<'_>) -> Result<()> {
        let proto = self.types.class(class)?;
        self.types.keep(&class.span, &proto);
        doubt(&mut self.types.doubts, block, path, &joined(path));
        Ok(())
    }

    fn scope_type(&mut self, class: &TypeSyntax<'_>, declarator: &Declarator<'_>, name: &str) -> Result<Shared> {
        let proto = self.types.class(class)?;
        let proto = self.types.declared(proto, declarator)?;
        match &proto.kind {
            Proto::Structure { .. } => Ok(proto),
            _ => Err((class.span.clone(), TsdlProblem::NotStructure(name.to_owned()))),
        }
    }

    fn environment(&mut self, block: &BlockSyntax<'_>) -> Result<()> {
        for (path, value) in values(block) {
            if let ExpressionKind::Integer(number) = value.kind {
                self.types.environment.insert(joined(path).into_owned(), number);
            }
            let value = match &value.kind {
                ExpressionKind::Integer(number) => EnvironmentValue::Integer(*number),
                ExpressionKind::Text(text) => EnvironmentValue::Text(text.clone().into_owned()),
                ExpressionKind::Path(_) => {
                    let problem =
                        TsdlProblem::Value { attribute: joined(path).into_owned(), expected: "a number or a string" };
                    return Err((value.span.clone(), problem));
                }
            };
            self.trace.environment.push((joined(path).into_owned(), value));
        }
        Ok(())
    }

    fn stream(&mut self, block: &BlockSyntax<'_>) -> Result<()> {
        self.types.enter();
        let result = self.stream_inside(block);
        self.types.leave();
        let draft = result?;
        if self.stream_ids.contains_key(&draft.class.id) {
            let problem = TsdlProblem::TwiceId { what: "stream", id: draft.class.id };
            return Err((block.keyword.span(), problem));
        }
        self.stream_ids.insert(draft.class.id, self.streams.len());
        self.places.streams.push(StreamPlaces { own: block.keyword.span(), events: Vec::new() });
        self.streams.push(draft);
        Ok(())
    }

    fn stream_inside(&mut self, block: &BlockSyntax<'_>) -> Result<StreamDraft> {
        let mut protos: [Option<(Shared, Span)>; 3] = [const { None }; 3];
        let mut id = 0;
        for entry in &block.entries {
            match entry {
                EntrySyntax::Value { path, value } => match &*joined(path) {
                    "id" => id = unsigned(value, "id")?,
                    name => doubt(&mut self.types.doubts, "stream", path, name),
                },
                EntrySyntax::Type { path, class, declarator } => {
                    let name = joined(path);
                    let Some(scope) = STREAM_SCOPES.iter().position(|(scope, _)| *scope == name) else {
                        self.unknown_scope("stream", path, class)?;
                        continue;
                    };
                    protos[scope] = Some((self.scope_type(class, declarator, &name)?, class.span.clone()));
                }
                EntrySyntax::Declaration(declaration) => self.types.declare(declaration)?,
            }
        }
        self.stream_class(id, protos)
    }

    fn stream_class(&mut self, id: u64, protos: [Option<(Shared, Span)>; 3]) -> Result<StreamDraft> {
        let mut draft = self.empty_stream(id);
        for ((_, scope), proto) in STREAM_SCOPES.iter().zip(protos) {
            let Some((root, span)) = proto else { continue };
            let clocks = self.trace.clock_classes.len();
            let around = Around { roots: &draft.roots, clocks, budget: &self.budget };
            let mut builder = FieldClassBuilder::new(*scope, &root, span, around);
            let class = builder.build()?;
            let (clock, mut doubts) = (builder.clock, builder.doubts);
            self.findings.doubts.append(&mut doubts);
            if clock.is_some() && clocks == 0 {
                self.trace.clock_classes.push(implicit_clock());
            }
            draft.class.default_clock = draft.class.default_clock.or(clock);
            draft.roots.push((*scope, root));
            *scope_of(&mut draft.class, *scope) = Some(class);
        }
        Ok(draft)
    }

    fn empty_stream(&self, id: u64) -> StreamDraft {
        let class = DataStreamClass::empty(id);
        let roots = self.packet_header.iter().map(|root| (Scope::PacketHeader, Rc::clone(root))).collect();
        StreamDraft { class, roots }
    }

    fn events(&mut self, items: &[ItemSyntax<'_>]) {
        if self.streams.is_empty() {
            let draft = self.empty_stream(0);
            self.stream_ids.insert(0, 0);
            self.places.streams.push(StreamPlaces::default());
            self.streams.push(draft);
        }
        let mut seen = HashSet::new();
        for block in blocks(items, "event") {
            self.types.enter();
            let result = self.event(block);
            self.types.leave();
            let Some((stream, event)) = self.note(result) else {
                continue;
            };
            if !seen.insert((stream, event.id)) {
                let problem = TsdlProblem::TwiceId { what: "event", id: event.id };
                self.findings.errors.push((block.keyword.span(), problem));
            }
            self.streams[stream].class.event_classes.push(event);
            self.places.streams[stream].events.push(block.keyword.span());
        }
    }

    fn event(&mut self, block: &BlockSyntax<'_>) -> Result<(usize, EventRecordClass)> {
        let mut event = EventRecordClass {
            id: 0,
            namespace: None,
            name: None,
            uid: None,
            log_level: None,
            emf_uri: None,
            specific_context: None,
            payload: None,
            attributes: None,
        };
        let mut stream_id = None;
        let mut types = Vec::new();
        for entry in &block.entries {
            match entry {
                EntrySyntax::Value { path, value } => match &*joined(path) {
                    "id" => event.id = unsigned(value, "id")?,
                    "stream_id" => stream_id = Some(unsigned(value, "stream_id")?),
                    "name" => event.name = Some(name_of(value)?),
                    "loglevel" => event.log_level = Some(number(value, "loglevel")? as i64),
                    "model.emf.uri" => event.emf_uri = Some(text(value, "model.emf.uri")?),
                    name => doubt(&mut self.types.doubts, "event", path, name),
                },
                EntrySyntax::Type { path, class, declarator } => {
                    let scope = match &*joined(path) {
                        "context" => Scope::EventSpecificContext,
                        "fields" => Scope::EventPayload,
                        _ => {
                            self.unknown_scope("event", path, class)?;
                            continue;
                        }
                    };
                    types.push((scope, self.scope_type(class, declarator, &joined(path))?, class.span.clone()));
                }
                EntrySyntax::Declaration(declaration) => self.types.declare(declaration)?,
            }
        }
        let stream = self.stream_of(stream_id, block.keyword)?;
        self.event_scopes(stream, &mut event, types)?;
        Ok((stream, event))
    }

    fn event_scopes(
        &mut self,
        stream: usize,
        event: &mut EventRecordClass,
        mut types: Vec<(Scope, Shared, Span)>,
    ) -> Result<()> {
        types.sort_by_key(|(scope, _, _)| *scope);
        let clocks = self.trace.clock_classes.len();
        let roots = &mut self.streams[stream].roots;
        let before = roots.len();
        let mut result = Ok(());
        for (scope, root, span) in types {
            let around = Around { roots, clocks, budget: &self.budget };
            match FieldClassBuilder::new(scope, &root, span, around).build() {
                Ok(class) if scope == Scope::EventPayload => event.payload = Some(class),
                Ok(class) => event.specific_context = Some(class),
                Err(problem) => result = Err(problem),
            }
            roots.push((scope, root));
        }
        roots.truncate(before);
        result
    }

    fn stream_of(&self, id: Option<u64>, keyword: NameSyntax<'_>) -> Result<usize> {
        let wanted = id.unwrap_or(0);
        let found = self.stream_ids.get(&wanted).copied();
        let only = (id.is_none() && self.streams.len() == 1).then_some(0);
        let unknown =
            || (keyword.span(), TsdlProblem::Unknown { what: "stream with the id", name: wanted.to_string() });
        found.or(only).ok_or_else(unknown)
    }

    /// Unused types are checked too; errors already found in use are not reported again.
    fn unused(&mut self) {
        let budget = Budget::default();
        let mut told: HashSet<usize> = self.findings.errors.iter().map(|(span, _)| span.start).collect();
        for (span, proto) in std::mem::take(&mut self.types.declared) {
            match FieldClassBuilder::check_alone(&proto, span, &budget) {
                // Checking types that may be of no use gets only limited time.
                Ok(()) | Err((_, TsdlProblem::Fields(_) | TsdlProblem::Steps(_))) => {}
                Err(problem) if told.insert(problem.0.start) => self.findings.errors.push(problem),
                Err(_) => {}
            }
        }
    }

    fn finish(self) -> (TraceClass, ClassPlaces) {
        self.findings.doubts.extend(self.types.doubts);
        let mut trace = self.trace;
        trace.stream_classes = self.streams.into_iter().map(|draft| draft.class).collect();
        (trace, self.places)
    }
}

const STREAM_SCOPES: [(&str, Scope); 3] = [
    ("packet.context", Scope::PacketContext),
    ("event.header", Scope::EventHeader),
    ("event.context", Scope::EventCommonContext),
];

fn scope_of(class: &mut DataStreamClass, scope: Scope) -> &mut Option<FieldClass> {
    match scope {
        Scope::PacketContext => &mut class.packet_context,
        Scope::EventHeader => &mut class.event_header,
        _ => &mut class.event_common_context,
    }
}

fn values<'i, 'a>(block: &'i BlockSyntax<'a>) -> impl Iterator<Item = (&'i [NameSyntax<'a>], &'i Expression<'a>)> {
    block.entries.iter().filter_map(|entry| match entry {
        EntrySyntax::Value { path, value } => Some((&path[..], value)),
        _ => None,
    })
}

/// No attribute or scope of a block is given twice.
fn once(block: &BlockSyntax<'_>) -> Result<()> {
    let paths = block.entries.iter().filter_map(|entry| match entry {
        EntrySyntax::Value { path, .. } | EntrySyntax::Type { path, .. } => Some((path[0].span(), joined(path))),
        EntrySyntax::Declaration(_) => None,
    });
    let paths: Vec<_> = paths.collect();
    let mut seen = NameSet::default();
    for (span, path) in &paths {
        if !seen.insert(path) {
            return Err((span.clone(), TsdlProblem::Twice { what: format!("`{path}`") }));
        }
    }
    Ok(())
}

fn joined<'a>(path: &[NameSyntax<'a>]) -> Cow<'a, str> {
    match path {
        [word] => Cow::Borrowed(word.text),
        _ => Cow::Owned(path.iter().map(|word| word.text).collect::<Vec<_>>().join(".")),
    }
}

fn doubt(doubts: &mut Vec<(Span, TsdlProblem)>, block: &'static str, path: &[NameSyntax<'_>], name: &str) {
    doubts.push((path[0].span(), TsdlProblem::UnknownAttribute { block, name: name.to_owned() }));
}

fn wrong<T>(value: &Expression<'_>, attribute: &str, expected: &'static str) -> Result<T> {
    Err((value.span.clone(), TsdlProblem::Value { attribute: attribute.to_owned(), expected }))
}

fn number(value: &Expression<'_>, attribute: &str) -> Result<i128> {
    match value.kind {
        ExpressionKind::Integer(number) => Ok(number),
        _ => wrong(value, attribute, "a number"),
    }
}

fn unsigned(value: &Expression<'_>, attribute: &str) -> Result<u64> {
    let number = number(value, attribute)?;
    u64::try_from(number).or_else(|_| wrong(value, attribute, "0 or more"))
}

fn text(value: &Expression<'_>, attribute: &str) -> Result<String> {
    match &value.kind {
        ExpressionKind::Text(text) => Ok(text.clone().into_owned()),
        _ => wrong(value, attribute, "a string"),
    }
}

fn uuid(value: &Expression<'_>) -> Result<Uuid> {
    let parsed = text(value, "uuid")?.parse();
    parsed.or_else(|_| wrong(value, "uuid", "a UUID: xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"))
}

fn trace_byte_order(value: &Expression<'_>) -> Result<ByteOrder> {
    match &value.kind {
        ExpressionKind::Path(path) if path.len() == 1 => match path[0].text {
            "le" => Ok(ByteOrder::Little),
            "be" | "network" => Ok(ByteOrder::Big),
            _ => wrong(value, "byte_order", "`le`, `be` or `network`"),
        },
        _ => wrong(value, "byte_order", "`le`, `be` or `network`"),
    }
}

fn clock(block: &BlockSyntax<'_>, doubts: &mut Vec<(Span, TsdlProblem)>) -> Result<ClockClass> {
    let mut clock = ClockClass::default();
    let mut name = None;
    for (path, value) in values(block) {
        match &*joined(path) {
            "name" => name = Some(name_of(value)?),
            "uuid" => clock.uuid = Some(uuid(value)?),
            "description" => clock.description = Some(text(value, "description")?),
            "freq" => {
                clock.frequency_hz = unsigned(value, "freq")?;
                if clock.frequency_hz == 0 {
                    return wrong(value, "freq", "above 0");
                }
            }
            "precision" => clock.precision_cycles = Some(unsigned(value, "precision")?),
            "offset_s" => {
                let seconds = i64::try_from(number(value, "offset_s")?);
                clock.offset_s = seconds.or_else(|_| wrong(value, "offset_s", "a signed 64-bit number"))?;
            }
            "offset" => clock.offset_cycles = number(value, "offset")?,
            "absolute" => {
                clock.origin = if absolute(value)? { ClockOrigin::UnixEpoch } else { ClockOrigin::Unknown };
            }
            other => doubt(doubts, "clock", path, other),
        }
    }
    let missing = TsdlProblem::Missing { block: "clock", attribute: "name" };
    clock.id = name.ok_or_else(|| (block.keyword.span(), missing))?;
    clock.name = Some(clock.id.clone());
    Ok(clock)
}

/// The clock of timestamps in a trace that describes none, under Babeltrace's name for it.
fn implicit_clock() -> ClockClass {
    ClockClass { id: "default".to_owned(), name: Some("default".to_owned()), ..ClockClass::default() }
}

/// Some tracers write names as strings, others as words.
fn name_of(value: &Expression<'_>) -> Result<String> {
    match &value.kind {
        ExpressionKind::Text(text) => Ok(text.clone().into_owned()),
        ExpressionKind::Path(path) => Ok(joined(path).into_owned()),
        ExpressionKind::Integer(_) => wrong(value, "name", "a string"),
    }
}

fn absolute(value: &Expression<'_>) -> Result<bool> {
    match &value.kind {
        ExpressionKind::Integer(number) => Ok(*number != 0),
        ExpressionKind::Path(path) if path.len() == 1 => match path[0].text {
            "true" | "TRUE" => Ok(true),
            "false" | "FALSE" => Ok(false),
            _ => wrong(value, "absolute", "`true` or `false`"),
        },
        _ => wrong(value, "absolute", "`true` or `false`"),
    }
}
