//! Maps of an object: those that it defines in `.maps`, and one for each section with variables.

use std::collections::HashMap;

use kymo_ir::machine::{BpfMapType, MapDefinition};

use crate::btf::{BtfKind, BtfMember, BtfTypes};
use crate::elf::{ElfParts, is_variables};
use crate::value::{BpfValueMember, BpfValueType, ValueTypes};

/// Names of types of maps in Linux, as bpftool writes them, by their numbers.
const TYPES: [&str; 34] = [
    "unspec",
    "hash",
    "array",
    "prog_array",
    "perf_event_array",
    "percpu_hash",
    "percpu_array",
    "stack_trace",
    "cgroup_array",
    "lru_hash",
    "lru_percpu_hash",
    "lpm_trie",
    "array_of_maps",
    "hash_of_maps",
    "devmap",
    "sockmap",
    "cpumap",
    "xskmap",
    "sockhash",
    "cgroup_storage",
    "reuseport_sockarray",
    "percpu_cgroup_storage",
    "queue",
    "stack",
    "sk_storage",
    "devmap_hash",
    "struct_ops",
    "ringbuf",
    "inode_storage",
    "task_storage",
    "bloom_filter",
    "user_ringbuf",
    "cgrp_storage",
    "arena",
];
const ARRAY: u32 = 2;
/// Perf rings of CPUs, and a ring buffer.
const RINGS: [u32; 2] = [4, 27];

/// A map of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectMap {
    /// Its name: that of its variable or of its section.
    pub name: String,
    /// Its type, by its number in Linux.
    pub type_number: u32,
    /// Bytes of a key.
    pub key_bytes: u32,
    /// Bytes of a value.
    pub value_bytes: u32,
    /// Entries at most; of a ring: its bytes.
    pub entries_max: u32,
    /// The type of keys.
    pub key: Option<BpfValueType>,
    /// The type of values; of a ring: of its records.
    pub value: Option<BpfValueType>,
    /// Variables of a section: their bytes at the start.
    pub contents: Option<Vec<u8>>,
    /// Programs cannot change it.
    pub is_read_only: bool,
    /// The section has addresses that a loader would have to fill in.
    pub(crate) has_addresses: bool,
    /// Its section, and its place in there.
    pub(crate) section: usize,
    pub(crate) offset: u64,
}

impl ObjectMap {
    /// The name of its type, as bpftool writes it.
    #[must_use]
    pub fn type_name(&self) -> String {
        TYPES
            .get(self.type_number as usize)
            .map_or_else(|| format!("type {}", self.type_number), |name| (*name).to_owned())
    }

    /// It is the variables of a section.
    #[must_use]
    pub fn is_variables(&self) -> bool {
        self.contents.is_some()
    }

    /// It is variables that programs cannot change.
    #[must_use]
    pub fn is_constant(&self) -> bool {
        self.is_read_only && self.is_variables()
    }

    /// It has records, and no keys and values.
    #[must_use]
    pub fn is_ring(&self) -> bool {
        RINGS.contains(&self.type_number)
    }

    /// Its definition for the machine.
    ///
    /// # Errors
    ///
    /// Why the machine has no such map, to be put behind its name.
    pub fn definition(&self) -> Result<MapDefinition, String> {
        if self.has_addresses {
            return Err("whose variables are addresses of other variables: these are not filled in".to_owned());
        }
        let map_type = BpfMapType::of(self.type_number);
        let map_type =
            map_type.ok_or_else(|| format!("of the type {}, which only the kernel has", self.type_name()))?;
        Ok(MapDefinition {
            name: self.name.as_str().into(),
            map_type,
            key_bytes: self.key_bytes,
            value_bytes: self.value_bytes,
            entries_max: self.entries_max,
            is_read_only: self.is_read_only,
        })
    }
}

/// Every map of an object, in the order of sections and places.
pub(crate) fn read(elf: &ElfParts, types: Option<&BtfTypes>) -> Vec<ObjectMap> {
    let mut maps = Vec::new();
    // One for all maps: its limit is that of the object.
    let mut types =
        types.map(|types| SectionTypes { values: ValueTypes::new(types), types, variables: variables(types) });
    if let (Some(section), Some(types)) = (elf.section_named(".maps"), &mut types) {
        maps.extend(defined(elf, types, section));
    }
    let mut numbers: Vec<usize> = elf.sections.keys().copied().collect();
    numbers.sort_unstable();
    for number in numbers {
        let section = &elf.sections[&number];
        if is_variables(&section.name) && !section.bytes.is_empty() {
            maps.push(of_section(elf, types.as_mut(), number));
        }
    }
    maps.sort_by_key(|map| (map.section, map.offset));
    maps
}

/// Types of the variables of sections.
struct SectionTypes<'t> {
    types: &'t BtfTypes,
    values: ValueTypes<'t>,
    /// By the names of sections.
    variables: HashMap<&'t str, &'t [[u32; 3]]>,
}

/// The variables of each section; of two with one name, those of the first.
fn variables(types: &BtfTypes) -> HashMap<&str, &[[u32; 3]]> {
    let mut all = HashMap::new();
    for found in types.types() {
        if let BtfKind::Section(variables) = &found.kind {
            all.entry(types.text(found.name)).or_insert(&variables[..]);
        }
    }
    all
}

fn defined(elf: &ElfParts, types: &mut SectionTypes<'_>, section: usize) -> Vec<ObjectMap> {
    let SectionTypes { types, values, variables } = types;
    let variables = variables.get(".maps").copied().unwrap_or_default();
    let map = |[number, ..]: &[u32; 3]| {
        let BtfKind::Variable(of) = types.types().get(*number as usize)?.kind else { return None };
        let name = types.name(*number);
        let offset = elf.place_of(section, name)?;
        let mut map = ObjectMap {
            name: name.to_owned(),
            type_number: 0,
            key_bytes: 0,
            value_bytes: 0,
            entries_max: 0,
            key: None,
            value: None,
            contents: None,
            is_read_only: false,
            has_addresses: false,
            section,
            offset,
        };
        for member in types.members(of)? {
            define(&mut map, types, values, member);
        }
        // Values of the map of perf rings are the kernel's affair: records have the type that is meant.
        if map.is_ring() {
            map.value = record(types, &map.name).map(|number| values.read(number)).or(map.value);
        }
        Some(map)
    };
    variables.iter().filter_map(map).collect()
}

/// One member of a definition: `__uint(max_entries, 64)` is a pointer to an array of 64, `__type(key, T)` one to a `T`.
fn define(map: &mut ObjectMap, types: &BtfTypes, values: &mut ValueTypes<'_>, member: &BtfMember) {
    let Some((_, BtfKind::Pointer(to))) = types.plain(member.type_number) else { return };
    let count = match types.plain(*to) {
        Some((_, BtfKind::Array { count, .. })) => *count,
        _ => 0,
    };
    let size = types.size(*to).and_then(|size| u32::try_from(size).ok()).unwrap_or(0);
    match types.member_name(member) {
        "type" => map.type_number = count,
        "max_entries" => map.entries_max = count,
        "key_size" => map.key_bytes = count,
        "value_size" => map.value_bytes = count,
        "key" => (map.key, map.key_bytes) = (Some(values.read(*to)), size),
        "value" => (map.value, map.value_bytes) = (Some(values.read(*to)), size),
        _ => {}
    }
}

/// The type of a ring's records: a structure with its name, which may say that there are many.
fn record(types: &BtfTypes, map: &str) -> Option<u32> {
    let named = |name: &str| {
        let is_it = |number: &usize| {
            matches!(types.types()[*number].kind, BtfKind::Structure { .. }) && types.name(*number as u32) == name
        };
        (1..types.types().len()).find(is_it)
    };
    let number = named(map).or_else(|| named(map.strip_suffix('s')?))?;
    Some(number as u32)
}

fn of_section(elf: &ElfParts, types: Option<&mut SectionTypes<'_>>, number: usize) -> ObjectMap {
    let section = &elf.sections[&number];
    let members = types.map(|types| {
        let SectionTypes { types, values, variables } = types;
        let variables = variables.get(&section.name[..]).copied().unwrap_or_default();
        let members = variables.iter().filter_map(|[variable, ..]| {
            let BtfKind::Variable(of) = types.types().get(*variable as usize)?.kind else { return None };
            let name = types.name(*variable);
            let bit_offset = u32::try_from(elf.place_of(number, name)?).ok()?.checked_mul(8)?;
            Some(BpfValueMember { name: name.into(), bit_offset, value_type: values.read(of) })
        });
        let mut members: Vec<BpfValueMember> = members.collect();
        members.sort_by_key(|member| member.bit_offset);
        members
    });
    let members = members.filter(|members| !members.is_empty());
    ObjectMap {
        name: section.name.clone(),
        type_number: ARRAY,
        key_bytes: 4,
        value_bytes: u32::try_from(section.bytes.len()).unwrap_or(u32::MAX),
        entries_max: 1,
        key: Some(BpfValueType::Integer { bits: 32, is_signed: false }),
        value: members.map(|members| BpfValueType::Structure { name: "".into(), members }),
        contents: Some(section.bytes.clone()),
        is_read_only: section.name.starts_with(".rodata"),
        has_addresses: !section.relocations.is_empty(),
        section: number,
        offset: 0,
    }
}
