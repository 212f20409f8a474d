//! Names in generated files: what is right here must be right in C, C++ and Rust too, and fit into definitions.

use std::collections::HashMap;

use kymo_schema::definition::BYTES_MAX;

use super::Resolver;
use crate::emit;
use crate::model::SchemaSubsystem;
use crate::problem::SchemaPlace;

/// Functions of kymo/kymo.h, the headers that it includes, and kymo/prepare.h.
const FUNCTIONS: [&str; 26] = [
    "kymo_compare_counters",
    "kymo_enter_slowly",
    "kymo_event_begin",
    "kymo_event_checkpoint",
    "kymo_event_counter",
    "kymo_event_end",
    "kymo_event_log",
    "kymo_event_packet",
    "kymo_event_receive",
    "kymo_event_rpc_call",
    "kymo_event_rpc_dispatch",
    "kymo_event_rpc_reply",
    "kymo_event_rpc_return",
    "kymo_event_send",
    "kymo_event_signal_receive",
    "kymo_event_signal_submit",
    "kymo_cpu_offset",
    "kymo_thread_offset",
    "kymo_register_context",
    "kymo_set_snap_length",
    "kymo_snap_length",
    "kymo_was_cut",
    "kymo_is_cut",
    "kymo_no_field",
    "kymo_label_of_type",
    "kymo_label_of_none",
];
/// Bytes of a definition beside its lines and fields: the event's name, the source's path.
const FURTHER_BYTES: usize = 5 << 10;

impl Resolver {
    /// Checks the names that generated files have. Files of `pleco` may have any: those are checked when files are made.
    pub(super) fn check_made(&mut self) {
        if self.schema.is_plain || self.found.has_errors() {
            return;
        }
        self.check_enumerations();
        self.check_events();
        self.check_definitions();
    }

    fn unlike(
        &mut self,
        known: &mut HashMap<String, String>,
        name: &str,
        of: &str,
        place: SchemaPlace,
        language: &str,
    ) {
        if let Some(other) = known.insert(name.to_owned(), of.to_owned()).filter(|other| other != of) {
            let message = format!("`{of}` and `{other}` would both be `{name}` in {language}");
            self.helped(place, message, "rename one of them");
        }
    }

    fn check_enumerations(&mut self) {
        let (mut types, mut constants) = (HashMap::new(), HashMap::new());
        for enumeration in self.schema.enumerations.clone() {
            let (name, place) = (&enumeration.name, enumeration.place);
            self.unlike(&mut types, &emit::rust::type_name(name), name, place, "Rust");
            if self.schema.name == "kymo" {
                self.helped(
                    place,
                    "a schema with enumerations cannot be called `kymo`",
                    "the headers of Kymograph have such names",
                );
            }
            let prefix = emit::c::constants_prefix(&self.schema, &enumeration);
            let mut variants = HashMap::new();
            for label in &enumeration.labels {
                let full = format!("{name}.{}", label.name);
                self.unlike(&mut variants, &emit::rust::type_name(&label.name), &full, place, "Rust");
                self.unlike(&mut constants, &format!("{prefix}_{}", label.name.to_uppercase()), &full, place, "C");
            }
        }
    }

    fn check_events(&mut self) {
        let (mut modules, mut functions) = (HashMap::new(), HashMap::new());
        for subsystem in self.schema.subsystems.clone() {
            let name = &subsystem.name;
            self.unlike(&mut modules, &name.to_lowercase(), name, subsystem.place, "Rust");
            if name.eq_ignore_ascii_case("kymo_tracer") {
                self.error(subsystem.place, "a subsystem cannot be called `kymo_tracer`: Rust has its macros in there");
            }
            for event in &subsystem.events {
                let full = format!("{name}:{}", event.name);
                let function = format!("kymo_{name}_{}", event.name).to_lowercase();
                if FUNCTIONS.contains(&&*function) || function.starts_with("kymo_inner_") {
                    let message = format!("`{full}` would be `{function}` in C, which kymo/kymo.h has already");
                    self.helped(event.place, message, "rename the event or the subsystem");
                }
                self.unlike(&mut functions, &format!("{function}_is_on"), &full, event.place, "C");
                self.unlike(&mut functions, &function, &full, event.place, "C");
            }
            self.check_durations(&subsystem);
        }
    }

    /// Functions and guards of durations in Rust are beside the functions of events; macros in C end with `_SCOPE`.
    fn check_durations(&mut self, subsystem: &SchemaSubsystem) {
        let (mut functions, mut types) = (HashMap::new(), HashMap::new());
        for event in &subsystem.events {
            functions.insert(event.name.to_lowercase(), format!("{}:{}", subsystem.name, event.name));
        }
        for duration in &subsystem.durations {
            let (full, place) = (format!("duration {}:{}", subsystem.name, duration.name), duration.place);
            self.unlike(&mut functions, &duration.name.to_lowercase(), &full, place, "Rust");
            self.unlike(&mut types, &emit::rust::type_name(&duration.name), &full, place, "Rust");
        }
    }

    /// A definition that is too long would be refused by recorders.
    fn check_definitions(&mut self) {
        let schema = self.schema.clone();
        for (place, subsystem) in schema.subsystems.iter().enumerate() {
            for (number, event) in subsystem.events.iter().enumerate() {
                let lines: usize = emit::lines(&schema, (place, number)).iter().map(|line| line.len() + 1).sum();
                let field = |field: &crate::SchemaField| {
                    schema.field_type(&field.kind).to_string().len() + field.name.len() + "field  \n".len()
                };
                let bytes = lines + event.fields.iter().map(field).sum::<usize>() + FURTHER_BYTES;
                if bytes > BYTES_MAX {
                    let message = format!(
                        "the definition of `{}:{}` is too long: some {bytes} bytes, of {BYTES_MAX}",
                        subsystem.name, event.name
                    );
                    self.helped(event.place, message, "enumerations and texts of facts are part of it");
                }
            }
        }
    }
}
