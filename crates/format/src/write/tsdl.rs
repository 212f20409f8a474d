//! A trace class in the terms of CTF 1.8 as TSDL.
//!
//! References become names: relative to the innermost structure that holds the field meant, unless another
//! field of that name is nearer; then from the scope's root.

use kymo_units::ByteOrder;

use crate::check::has_role;
use crate::model::{
    ClockClass, ClockOrigin, DataStreamClass, DisplayBase, EnvironmentValue, EventRecordClass, FieldClass, FieldKind,
    FieldPath, FieldPathStep, FixedBits, FixedInteger, Role, Scope, Structure, TextEncoding, TraceClass, Variant,
};
use crate::write::walk::{self, ScopeOwner};
use crate::write::{MetadataPart, Reason, Unwritable, names};

type Result<T> = std::result::Result<T, Unwritable>;

/// Writes a trace class that TSDL can express.
pub(crate) fn text(trace: &TraceClass) -> Result<String> {
    let mut writer =
        TsdlWriter { trace, out: "/* CTF 1.8 */\n".to_owned(), indent: 0, owner: NOBODY, open: Vec::new() };
    writer.trace_block()?;
    writer.environment();
    for clock in &trace.clock_classes {
        writer.clock(clock);
    }
    writer.streams()?;
    Ok(writer.out)
}

/// Writes one part of it.
pub(crate) fn part(trace: &TraceClass, part: MetadataPart) -> Result<String> {
    let mut writer = TsdlWriter { trace, out: String::new(), indent: 0, owner: NOBODY, open: Vec::new() };
    match part {
        MetadataPart::Beginning => {
            writer.out.push_str("/* CTF 1.8 */\n");
            writer.trace_block()?;
            writer.environment();
            trace.clock_classes.iter().for_each(|clock| writer.clock(clock));
        }
        MetadataPart::Stream(index) => writer.stream(index)?,
        MetadataPart::Event(index, event) => writer.event_of(index, event)?,
    }
    Ok(writer.out)
}

const NOBODY: ScopeOwner = ScopeOwner { stream: None, event: None };

struct TsdlWriter<'t> {
    trace: &'t TraceClass,
    out: String,
    indent: usize,
    owner: ScopeOwner,
    open: Vec<WriterFrame<'t>>,
}

/// A structure that is being written.
struct WriterFrame<'t> {
    structure: &'t Structure,
    path: FieldPath,
    /// Members that are written or begun.
    begun: usize,
}

impl<'t> TsdlWriter<'t> {
    fn line(&mut self, text: &str) {
        self.start();
        self.out.push_str(text);
        self.out.push('\n');
    }

    fn start(&mut self) {
        self.out.extend(std::iter::repeat_n('\t', self.indent));
    }

    fn open(&mut self, text: &str) {
        self.line(text);
        self.indent += 1;
    }

    fn close(&mut self) {
        self.indent -= 1;
        self.line("};");
    }

    fn trace_block(&mut self) -> Result<()> {
        // The environment follows: no length of ours refers to it.
        self.out.push('\n');
        self.open("trace {");
        self.line("major = 1;");
        self.line("minor = 8;");
        if let Some(uuid) = self.trace.uuid {
            self.line(&format!("uuid = \"{uuid}\";"));
        }
        self.line(&format!("byte_order = {};", order_name(self.native())));
        self.scope("packet.header", Scope::PacketHeader)?;
        self.close();
        Ok(())
    }

    fn native(&self) -> ByteOrder {
        self.trace.native_byte_order.unwrap_or(ByteOrder::Little)
    }

    fn environment(&mut self) {
        if self.trace.environment.is_empty() {
            return;
        }
        self.out.push('\n');
        self.open("env {");
        for (name, value) in &self.trace.environment {
            match value {
                EnvironmentValue::Integer(number) => self.line(&format!("{name} = {number};")),
                EnvironmentValue::Text(text) => self.line(&format!("{name} = {};", quoted(text))),
            }
        }
        self.close();
    }

    fn clock(&mut self, clock: &ClockClass) {
        self.out.push('\n');
        self.open("clock {");
        let name = if names::is_identifier(&clock.id) { clock.id.clone() } else { quoted(&clock.id) };
        self.line(&format!("name = {name};"));
        if let Some(uuid) = clock.uuid {
            self.line(&format!("uuid = \"{uuid}\";"));
        }
        if let Some(description) = &clock.description {
            self.line(&format!("description = {};", quoted(description)));
        }
        self.line(&format!("freq = {};", clock.frequency_hz));
        if let Some(precision) = clock.precision_cycles {
            self.line(&format!("precision = {precision};"));
        }
        self.line(&format!("offset_s = {};", clock.offset_s));
        self.line(&format!("offset = {};", clock.offset_cycles));
        self.line(&format!("absolute = {};", clock.origin == ClockOrigin::UnixEpoch));
        self.close();
    }

    fn streams(&mut self) -> Result<()> {
        (0..self.trace.stream_classes.len()).try_for_each(|index| self.stream(index))?;
        for (index, stream) in self.trace.stream_classes.iter().enumerate() {
            (0..stream.event_classes.len()).try_for_each(|event| self.event_of(index, event))?;
        }
        Ok(())
    }

    fn stream(&mut self, index: usize) -> Result<()> {
        self.owner = ScopeOwner { stream: Some(index), event: None };
        self.out.push('\n');
        self.open("stream {");
        if self.packets_name_their_stream() {
            self.line(&format!("id = {};", self.trace.stream_classes[index].id));
        }
        self.scope("packet.context", Scope::PacketContext)?;
        self.scope("event.header", Scope::EventHeader)?;
        self.scope("event.context", Scope::EventCommonContext)?;
        self.close();
        Ok(())
    }

    fn event_of(&mut self, index: usize, event: usize) -> Result<()> {
        self.owner = ScopeOwner { stream: Some(index), event: Some(event) };
        let stream = &self.trace.stream_classes[index];
        self.event(stream, &stream.event_classes[event])
    }

    /// An id that no field has is refused by other readers.
    fn packets_name_their_stream(&self) -> bool {
        let header = self.trace.packet_header.as_ref();
        header.is_some_and(|header| has_role(header, Role::DataStreamClassId))
    }

    fn event(&mut self, stream: &DataStreamClass, event: &EventRecordClass) -> Result<()> {
        self.out.push('\n');
        self.open("event {");
        if let Some(name) = &event.name {
            self.line(&format!("name = {};", quoted(name)));
        }
        if stream.event_header.as_ref().is_some_and(|header| has_role(header, Role::EventRecordClassId)) {
            self.line(&format!("id = {};", event.id));
        }
        if self.packets_name_their_stream() {
            self.line(&format!("stream_id = {};", stream.id));
        }
        if let Some(level) = event.log_level {
            self.line(&format!("loglevel = {level};"));
        }
        if let Some(uri) = &event.emf_uri {
            self.line(&format!("model.emf.uri = {};", quoted(uri)));
        }
        self.scope("context", Scope::EventSpecificContext)?;
        self.scope("fields", Scope::EventPayload)?;
        self.close();
        Ok(())
    }

    fn scope(&mut self, name: &str, scope: Scope) -> Result<()> {
        let Some(class) = walk::root(self.trace, self.owner, scope) else { return Ok(()) };
        self.start();
        self.out.push_str(name);
        self.out.push_str(" := ");
        let lengths = self.class(class, &FieldPath { scope, steps: Vec::new() })?;
        debug_assert!(lengths.is_empty(), "a scope is a structure");
        self.out.push_str(";\n");
        Ok(())
    }

    /// Writes the part before the field's name; returns the part behind it.
    fn class(&mut self, class: &'t FieldClass, path: &FieldPath) -> Result<String> {
        match &class.kind {
            FieldKind::Integer(integer) => self.integer(integer, path)?,
            FieldKind::Real(bits) => self.real(bits, path)?,
            FieldKind::NullTerminatedText(encoding) => {
                let plain = *encoding == TextEncoding::Utf8;
                self.out.push_str(if plain { "string" } else { "string { encoding = ASCII; }" });
            }
            FieldKind::StaticText(text) => {
                self.character(text.encoding);
                return Ok(format!("[{}]", text.length));
            }
            FieldKind::DynamicText(text) => {
                self.character(text.encoding);
                return Ok(format!("[{}]", self.name_of(&text.length, path)?));
            }
            FieldKind::StaticBlob(blob) => {
                self.out.push_str("integer { size = 8; }");
                return Ok(format!("[{}]", blob.length));
            }
            FieldKind::StaticArray(array) => {
                let lengths = self.class(&array.element, &further(path, FieldPathStep::Element))?;
                return Ok(format!("[{}]{lengths}", array.length));
            }
            FieldKind::DynamicArray(array) => {
                let lengths = self.class(&array.element, &further(path, FieldPathStep::Element))?;
                return Ok(format!("[{}]{lengths}", self.name_of(&array.length, path)?));
            }
            FieldKind::Structure(structure) => self.structure(structure, path)?,
            FieldKind::Variant(variant) => self.variant(variant, path)?,
            FieldKind::BitArray(_)
            | FieldKind::BitMap(_)
            | FieldKind::Boolean(_)
            | FieldKind::VariableInteger(_)
            | FieldKind::DynamicBlob(_)
            | FieldKind::Optional(_) => unreachable!("CTF 1.8 has no such field class"),
        }
        Ok(String::new())
    }

    fn character(&mut self, encoding: TextEncoding) {
        let encoding = if encoding == TextEncoding::Ascii { "ASCII" } else { "UTF8" };
        self.out.push_str(&format!("integer {{ size = 8; encoding = {encoding}; }}"));
    }

    fn integer(&mut self, integer: &FixedInteger, path: &FieldPath) -> Result<()> {
        let FixedInteger { bits, meaning } = integer;
        if meaning.enumeration {
            self.out.push_str("enum : ");
        }
        let mut attributes = vec![format!("size = {}", bits.length)];
        let natural = if bits.length % 8 == 0 { 8 } else { 1 };
        attributes.extend((bits.alignment != natural).then(|| format!("align = {}", bits.alignment)));
        attributes.extend(meaning.signed.then(|| "signed = true".to_owned()));
        attributes.extend(self.byte_order(bits));
        let base = match meaning.base {
            DisplayBase::Binary => Some("base = 2"),
            DisplayBase::Octal => Some("base = 8"),
            DisplayBase::Decimal => None,
            DisplayBase::Hexadecimal => Some("base = 16"),
        };
        attributes.extend(base.map(str::to_owned));
        attributes.extend(
            meaning.encoding.map(|encoding| {
                format!("encoding = {}", if encoding == TextEncoding::Ascii { "ASCII" } else { "UTF8" })
            }),
        );
        if let Some(clock) = meaning.clock {
            attributes.extend(self.map(clock, path)?);
        }
        self.out.push_str(&format!("integer {{ {}; }}", attributes.join("; ")));
        if meaning.enumeration {
            self.labels(&meaning.mappings);
        }
        Ok(())
    }

    /// Timestamps of packets belong to the only clock even if it has no name that TSDL can refer to.
    fn map(&self, clock: usize, path: &FieldPath) -> Result<Option<String>> {
        let name = &self.trace.clock_classes[clock].id;
        match names::is_identifier(name) {
            true => Ok(Some(format!("map = clock.{name}.value"))),
            false if self.trace.clock_classes.len() == 1 && path.scope == Scope::PacketContext => Ok(None),
            false => self.fault(path, Reason::Name(name.clone())),
        }
    }

    fn labels(&mut self, mappings: &[crate::model::EnumerationMapping]) {
        self.out.push_str(" {\n");
        self.indent += 1;
        for mapping in mappings {
            for range in &mapping.ranges {
                let label = quoted(&mapping.label);
                match range.lower == range.upper {
                    true => self.line(&format!("{label} = {},", range.lower)),
                    false => self.line(&format!("{label} = {} ... {},", range.lower, range.upper)),
                }
            }
        }
        self.indent -= 1;
        self.start();
        self.out.push('}');
    }

    fn byte_order(&self, bits: &FixedBits) -> Option<String> {
        (bits.byte_order != self.native()).then(|| format!("byte_order = {}", order_name(bits.byte_order)))
    }

    fn real(&mut self, bits: &FixedBits, path: &FieldPath) -> Result<()> {
        let (exponent, mantissa) = match bits.length {
            16 => (5, 11),
            32 => (8, 24),
            64 => (11, 53),
            128 => (15, 113),
            other => return self.fault(path, Reason::RealLength(other)),
        };
        let mut attributes = vec![format!("exp_dig = {exponent}; mant_dig = {mantissa}")];
        attributes.extend((bits.alignment != 8).then(|| format!("align = {}", bits.alignment)));
        attributes.extend(self.byte_order(bits));
        self.out.push_str(&format!("floating_point {{ {}; }}", attributes.join("; ")));
        Ok(())
    }

    fn structure(&mut self, structure: &'t Structure, path: &FieldPath) -> Result<()> {
        self.out.push_str("struct {");
        self.open.push(WriterFrame { structure, path: path.clone(), begun: 0 });
        for (index, member) in structure.members.iter().enumerate() {
            self.open.last_mut().expect("pushed above").begun = index + 1;
            self.field(index == 0, &member.name, &member.class, &further(path, FieldPathStep::Member(index)))?;
        }
        self.open.pop();
        self.end(structure.members.is_empty());
        if structure.minimum_alignment > 1 {
            self.out.push_str(&format!(" align({})", structure.minimum_alignment));
        }
        Ok(())
    }

    fn field(&mut self, first: bool, name: &str, class: &'t FieldClass, path: &FieldPath) -> Result<()> {
        if first {
            self.out.push('\n');
            self.indent += 1;
        }
        self.start();
        let lengths = self.class(class, path)?;
        self.out.push_str(&format!(" {name}{lengths};\n"));
        Ok(())
    }

    fn end(&mut self, empty: bool) {
        if !empty {
            self.indent -= 1;
            self.start();
        }
        self.out.push('}');
    }

    fn variant(&mut self, variant: &'t Variant, path: &FieldPath) -> Result<()> {
        let tag = self.name_of(&variant.selector, path)?;
        self.out.push_str(&format!("variant <{tag}> {{"));
        for (index, option) in variant.options.iter().enumerate() {
            let name = option.name.as_deref().expect("options of CTF 1.8 have names");
            self.field(index == 0, name, &option.class, &further(path, FieldPathStep::Option(index)))?;
        }
        self.end(variant.options.is_empty());
        Ok(())
    }

    /// The name by which the field at `user` finds the one at `path`.
    fn name_of(&self, path: &FieldPath, user: &FieldPath) -> Result<String> {
        let Some(root) = walk::root(self.trace, self.owner, path.scope) else {
            return self.fault(user, Reason::Reference);
        };
        if path.scope == user.scope {
            if let Some(relative) = self.relative(path) {
                return Ok(relative);
            }
            // From the root no name leads into the element of an array.
            if path.steps.contains(&FieldPathStep::Element) {
                return self.fault(user, Reason::Reference);
            }
        }
        match walk::names(root, &path.steps) {
            Some(names) => Ok(format!("{}.{}", absolute(path.scope), names.join("."))),
            None => self.fault(user, Reason::Reference),
        }
    }

    fn relative(&self, path: &FieldPath) -> Option<String> {
        let is_around = |frame: &&WriterFrame<'_>| path.steps.starts_with(&frame.path.steps);
        let place = self.open.len() - 1 - self.open.iter().rev().position(|frame| is_around(&frame))?;
        let frame = &self.open[place];
        let (FieldPathStep::Member(first), rest) = path.steps[frame.path.steps.len()..].split_first()? else {
            return None;
        };
        let member = &frame.structure.members[*first];
        let names = walk::names(&member.class, rest)?;
        let is_nearer =
            |frame: &WriterFrame<'_>| frame.structure.members[..frame.begun].iter().any(|it| it.name == member.name);
        let reserved = ["trace", "stream", "event", "env"].contains(&member.name.as_str());
        if reserved || self.open[place + 1..].iter().any(is_nearer) {
            return None;
        }
        Some([&[member.name.as_str()][..], &names].concat().join("."))
    }

    fn fault<T>(&self, path: &FieldPath, reason: Reason) -> Result<T> {
        Err(Unwritable { place: walk::place(self.trace, self.owner, path), reason })
    }
}

fn further(path: &FieldPath, step: FieldPathStep) -> FieldPath {
    let mut steps = path.steps.clone();
    steps.push(step);
    FieldPath { scope: path.scope, steps }
}

fn order_name(order: ByteOrder) -> &'static str {
    match order {
        ByteOrder::Little => "le",
        ByteOrder::Big => "be",
    }
}

fn absolute(scope: Scope) -> &'static str {
    match scope {
        Scope::PacketHeader => "trace.packet.header",
        Scope::PacketContext => "stream.packet.context",
        Scope::EventHeader => "stream.event.header",
        Scope::EventCommonContext => "stream.event.context",
        Scope::EventSpecificContext => "event.context",
        Scope::EventPayload => "event.fields",
    }
}

fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            control if control.is_ascii_control() => out.push_str(&format!("\\{:03o}", u32::from(control))),
            other => out.push(other),
        }
    }
    out.push('"');
    out
}
