//! Users' eBPF objects at events of traced programs: their programs become images, which programs run, and their maps lie in the
//! memory that programs share with the recorder.
//!
//! ```text
//! object ── SEC("kymo/EVENT") ── a rule ── class of events ──> image ── behind the slots of the program, which runs it
//!   └── maps ──> places in the shared memory, the same for all of its programs ── read at the end
//! ```

mod contents;
mod image;

use kymo_bpf::{AttachPoint, BpfObject, MachineMaps, ObjectProgram};
use kymo_bytecode::object::KEY_BYTES_MAX;
use kymo_ir::machine::{BpfMapType, MapDefinition};
use kymo_lane::{
    KeyHash, MemoryView, OBJECT_HEAD_BYTES, OBJECT_PROGRAMS_MAX, OBJECTS_BYTES, ObjectPlace, RecorderSide, SharedMap,
};
use kymo_schema::definition::EventClass;
use serde::{Deserialize, Serialize};

use crate::rule::words::plain;
use crate::rule::{RuleOptions, RuleQuestion, RuleTest};

#[doc(hidden)]
pub use image::machine_image;

pub use contents::{ObjectContents, SharedMapContents, SharedMapEntry, StoppedProgram};

/// Bytes of an object, at most.
pub const USER_OBJECT_BYTES_MAX: usize = 1 << 20;
/// Values of an entry of a map for each CPU: runs at the same time.
const LINES: u32 = 16;
/// Bytes of keys and values that a session tells of all of its programs, at most.
pub(crate) const TOLD_BYTES_MAX: usize = 4 << 20;

/// A session, which is another one than an earlier one of its name: its name, and when it began.
pub(crate) type SessionInstance = (String, i64);

/// An object of a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ObjectOptions {
    /// Its name: that of its file.
    pub name: String,
    /// Its bytes in hexadecimal.
    pub bytes: String,
}

impl ObjectOptions {
    /// An object of these bytes.
    #[must_use]
    pub fn new(name: &str, bytes: &[u8]) -> Self {
        let digit = |nibble: u8| char::from_digit(nibble.into(), 16).unwrap_or('0');
        let text = bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect();
        Self { name: name.to_owned(), bytes: text }
    }

    /// Its bytes; `None`: the text has none.
    #[must_use]
    pub fn bytes(&self) -> Option<Vec<u8>> {
        let (pairs, rest) = self.bytes.as_bytes().as_chunks::<2>();
        let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        pairs.iter().map(byte).collect::<Option<_>>().filter(|_| rest.is_empty())
    }

    /// Its rules: one for each of its programs that are for events.
    ///
    /// # Errors
    ///
    /// It is no object, none of its programs is for events, or one of them or a map cannot be in programs.
    pub fn rules(&self) -> Result<Vec<RuleOptions>, String> {
        let user = UserObject::new(self)?;
        let mut rules = Vec::new();
        for program in user.object.programs() {
            let (pattern, is_filter) = match &program.attach {
                AttachPoint::Event(pattern) => (pattern, false),
                AttachPoint::EventFilter(pattern) => (pattern, true),
                AttachPoint::Kernel { .. } | AttachPoint::Unknown => continue,
            };
            user.check(program).map_err(|why| format!("{}: program {}: {why}", self.name, program.name))?;
            let test = RuleTest::Program { object: self.name.clone(), program: program.name.clone(), is_filter };
            rules.push(RuleOptions {
                name: plain(std::slice::from_ref(&program.name)),
                events: vec![pattern.clone()],
                asks: RuleQuestion { test, keys: Vec::new() },
                set: None,
                limits: std::collections::BTreeMap::new(),
                condition: None,
            });
        }
        match rules.is_empty() {
            true => Err(format!(
                "{}: no program of the object is for events of programs: these are in sections SEC(\"kymo/PROVIDER:EVENT\") and \
                 SEC(\"kymo.filter/PROVIDER:EVENT\")",
                self.name
            )),
            false => Ok(rules),
        }
    }
}

/// Its programs for events that cannot be in recorded programs, by their names, and why.
///
/// # Errors
///
/// The object cannot be in recorded programs, whatever its programs do.
pub fn refused_programs(options: &ObjectOptions) -> Result<Vec<(String, String)>, String> {
    let user = UserObject::new(options)?;
    let programs = user.object.programs().iter().filter(|program| program.attach.events().is_some());
    Ok(programs.filter_map(|program| Some((program.name.clone(), user.check(program).err()?))).collect())
}

/// An object that was read.
#[derive(Debug)]
pub(crate) struct UserObject {
    pub(crate) name: String,
    object: BpfObject,
    machine: MachineMaps,
    /// Maps of the machine, with their distances from the object's place.
    maps: Vec<SharedMap>,
    pub(crate) bytes: u64,
    hash: u64,
}

/// A map of the machine that programs have, too; else why not.
fn shared(kind: BpfMapType) -> Result<(bool, bool, bool), &'static str> {
    Ok(match kind {
        BpfMapType::Array => (false, false, false),
        BpfMapType::PerCpuArray => (false, false, true),
        BpfMapType::Hash => (true, false, false),
        BpfMapType::PerCpuHash => (true, false, true),
        BpfMapType::LruHash => (true, true, false),
        BpfMapType::LruPerCpuHash => (true, true, true),
        BpfMapType::PerfEventArray | BpfMapType::RingBuffer => {
            return Err("its records have no way out of a traced program: `kymo bpf run` has rings");
        }
    })
}

/// Maps in the memory of programs, before they have a place. Rings have none, nor those with long keys: a program that uses one is refused.
fn places(maps: &[MapDefinition], lines: u32) -> Vec<SharedMap> {
    let map = |definition: &MapDefinition| {
        let (is_hash, is_lru, is_per_cpu) = shared(definition.map_type).unwrap_or_default();
        let is_ring = !definition.map_type.is_table() || is_hash && definition.key_bytes as usize > KEY_BYTES_MAX;
        SharedMap {
            is_hash: is_hash && !is_ring,
            is_lru,
            key_bytes: if is_ring { 4 } else { definition.key_bytes },
            value_bytes: if is_ring { 8 } else { definition.value_bytes },
            entries: if is_ring { 1 } else { definition.entries_max },
            lines: if is_per_cpu && !is_ring { lines } else { 1 },
            place: 0,
        }
    };
    maps.iter().map(map).collect()
}

impl UserObject {
    /// Reads an object and gives its maps their places.
    pub(crate) fn new(options: &ObjectOptions) -> Result<Self, String> {
        let bytes = options.bytes().ok_or_else(|| format!("{}: no bytes of an object", options.name))?;
        if bytes.len() > USER_OBJECT_BYTES_MAX {
            let found = bytes.len();
            return Err(format!("{}: {found} bytes; an object has at most {USER_OBJECT_BYTES_MAX}", options.name));
        }
        let object = BpfObject::read(&bytes).map_err(|problem| format!("{}: {problem}", options.name))?;
        let machine = object.machine_maps();
        let (mut maps, mut end) = (places(&machine.definitions, LINES), OBJECT_HEAD_BYTES);
        for map in &mut maps {
            map.place = end;
            end = end.saturating_add(map.bytes());
        }
        let hash = KeyHash::new(0).text(&bytes).word();
        Ok(Self { name: options.name.clone(), object, machine, maps, bytes: end, hash })
    }

    /// Why a program cannot be in traced programs, whatever its events are.
    fn check(&self, program: &ObjectProgram) -> Result<(), String> {
        if self.object.types().is_none() {
            return Err("the object has no types: clang writes them with -g".to_owned());
        }
        let number = self.object.programs().iter().position(|known| known.name == program.name);
        if number.is_none_or(|number| number >= OBJECT_PROGRAMS_MAX as usize) {
            return Err(format!(
                "the object has too many programs: in traced programs it has at most {OBJECT_PROGRAMS_MAX}"
            ));
        }
        if self.bytes > OBJECTS_BYTES - 4096 {
            return Err(format!(
                "the maps of the object need {} bytes; in a traced program they have {}",
                self.bytes,
                OBJECTS_BYTES - 4096
            ));
        }
        let linked = self.object.link(program, None).map_err(|problem| problem.to_string())?;
        let machine = self.object.for_machine(&linked, &self.machine).map_err(|problem| problem.to_string())?;
        image::code(&machine, &self.machine.definitions).map(drop)
    }

    /// The place of the object in a program's memory, which is filled if it is new. A session is its name and when it began: another one
    /// of this name has maps of its own.
    pub(crate) fn place<V: MemoryView>(
        &self,
        session: &SessionInstance,
        lane: &RecorderSide<V>,
    ) -> Result<Option<ObjectPlace>, V::Fault> {
        let (name, began_ns) = session;
        let hash = KeyHash::new(self.hash).text(name.as_bytes()).number(began_ns.cast_unsigned()).word();
        let Some((place, is_known)) = lane.object_place(hash, self.bytes)? else { return Ok(None) };
        if !is_known {
            for (number, map) in self.maps_at(place.place).enumerate() {
                let map_of_object = &self.object.maps()[self.machine.of_object[number]];
                if let Some(contents) = &map_of_object.contents {
                    lane.fill_map(&map, contents)?;
                }
            }
            lane.keep_object(&place)?;
        }
        Ok(Some(place))
    }

    fn maps_at(&self, place: u64) -> impl Iterator<Item = SharedMap> + '_ {
        self.maps.iter().map(move |map| SharedMap { place: place + map.place, ..*map })
    }

    /// The image of a program for a class of events. `put_code` compiles it for the traced program, and says where the code is there.
    pub(crate) fn image(
        &self,
        (program, is_filter): (&str, bool),
        class: &EventClass,
        place: ObjectPlace,
        put_code: impl FnOnce(image::ProgramCode<'_>) -> Option<(u32, u32)>,
    ) -> Result<Vec<u8>, String> {
        let mut all = self.object.programs().iter().zip(0..);
        let known = all.find(|(known, _)| known.name == program).ok_or_else(|| format!("no program {program}"))?;
        image::image((self, known), is_filter, class, place, put_code)
    }
}

/// Objects of a session; each was read before.
pub(crate) fn read_all(all: &[ObjectOptions]) -> Vec<UserObject> {
    all.iter().filter_map(|options| UserObject::new(options).ok()).collect()
}
