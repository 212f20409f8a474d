//! The cost of programs of eBPF: a filter over two fields of an event and a count in a hash table by a third, by the evaluator, by
//! our machine code, and by rbpf.
//!
//! ```text
//! if (event->size <= 512 || event->kind != 3) return 0;
//! u64 *count = bpf_map_lookup_elem(&counts, &event->pid);
//! if (count) ++*count; else bpf_map_update_elem(&counts, &event->pid, &one, BPF_ANY);
//! ```
//!
//! Prints `name<TAB>nanoseconds`: the median over bursts, and `name.lowest`. A round does a burst of each, in turn, so that a slow
//! moment of the machine hits all of them alike. rbpf has no maps: its helper functions reach a table of hashbrown with keys of 4 bytes
//! and values of 8 as types of Rust, which is the best that it could be given (`rbpf.words`), or one with keys and values of any size, as
//! maps of eBPF are (`rbpf.bytes`). Its machine code checks no access to memory; ours does.

use std::hint::black_box;
use std::time::Instant;

use kymo_ir::machine::{BpfMachine, BpfMapType, MachineProgram, MapDefinition, RunInput, RunMoment};
use kymo_jit::{CompiledProgram, JitEngine};
use kymo_random::RandomNumbers;

const ROUNDS: usize = 101;
const EVENTS: usize = 4096;
/// Processes of the events.
const KEYS: usize = 256;
const EVENT_BYTES: usize = 24;

fn word(opcode: u8, to: u8, from: u8, offset: i16, constant: i32) -> [u8; 8] {
    let ([o0, o1], [c0, c1, c2, c3]) = (offset.to_le_bytes(), constant.to_le_bytes());
    [opcode, to | from << 4, o0, o1, c0, c1, c2, c3]
}

/// The program, with the two words that load a map.
fn program(map: [[u8; 8]; 2]) -> Vec<[u8; 8]> {
    let map = |to: u8| {
        [[map[0][0], map[0][1] | to, map[0][2], map[0][3], map[0][4], map[0][5], map[0][6], map[0][7]], map[1]]
    };
    let head = [
        word(0x61, 2, 1, 16, 0),   // r2 = event->size
        word(0xb7, 0, 0, 0, 0),    // r0 = 0
        word(0xb5, 2, 0, 24, 512), // if r2 <= 512 goto the end
        word(0x61, 2, 1, 12, 0),   // r2 = event->kind
        word(0x55, 2, 0, 22, 3),   // if r2 != 3 goto the end
        word(0x61, 6, 1, 8, 0),    // r6 = event->pid
        word(0x63, 10, 6, -4, 0),
    ];
    let key = [word(0xbf, 2, 10, 0, 0), word(0x07, 2, 0, 0, -4)];
    let found = [
        word(0x15, 0, 0, 4, 0), // if r0 == 0 goto the insertion
        word(0x79, 1, 0, 0, 0),
        word(0x07, 1, 0, 0, 1),
        word(0x7b, 0, 1, 0, 0),
        word(0x05, 0, 0, 9, 0),
    ];
    let insertion = [&[word(0x7a, 10, 0, -16, 1)][..], &map(1), &key].concat();
    let rest = [word(0xbf, 3, 10, 0, 0), word(0x07, 3, 0, 0, -16), word(0xb7, 4, 0, 0, 0), word(0x85, 0, 0, 0, 2)];
    let end = [word(0xb7, 0, 0, 0, 0), word(0x95, 0, 0, 0, 0)];
    [&head[..], &map(1), &key, &[word(0x85, 0, 0, 0, 1)], &found, &insertion, &rest, &end].concat()
}

/// Events with sizes of a range: the filter drops those of up to 512 bytes.
fn events(sizes: std::ops::Range<usize>) -> Vec<[u8; EVENT_BYTES]> {
    let mut random = RandomNumbers::new(7);
    let event = |_| {
        let (pid, size) = (1000 + random.below(KEYS) as u32, (sizes.start + random.below(sizes.len())) as u32);
        let mut event = [0; EVENT_BYTES];
        for (at, value) in [(8, pid), (12, 3), (16, size)] {
            event[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        event
    };
    (0..EVENTS).map(event).collect()
}

fn kept(events: &[[u8; EVENT_BYTES]]) -> u64 {
    let size = |event: &[u8; EVENT_BYTES]| u32::from_le_bytes([event[16], event[17], event[18], event[19]]);
    events.iter().filter(|event| size(event) > 512).count() as u64
}

/// A way to run the program over an event.
trait EventMachine {
    fn run(&mut self, event: &mut [u8]) -> u64;
    /// The sum of all counts.
    fn counted(&self) -> u64;
}

fn counts() -> MapDefinition {
    let (name, map_type) = ("counts".into(), BpfMapType::Hash);
    MapDefinition { name, map_type, key_bytes: 4, value_bytes: 8, entries_max: 10_240, is_read_only: false }
}

fn our_program() -> MachineProgram {
    let code = program([word(0x18, 0, 5, 0, 0), [0; 8]]);
    MachineProgram::new(&code, &[counts()]).expect("it is sound")
}

fn our_count(machine: &BpfMachine) -> u64 {
    let entries = machine.maps()[0].entries();
    entries.map(|entry| u64::from_le_bytes(entry.values[0].1.try_into().expect("8 bytes"))).sum()
}

struct OurEvaluator {
    machine: BpfMachine,
    program: MachineProgram,
    moment: RunMoment,
}

impl EventMachine for OurEvaluator {
    fn run(&mut self, event: &mut [u8]) -> u64 {
        let input = RunInput { context: event, data: &[], moment: &self.moment };
        self.machine.run(&self.program, input).expect("it comes to its end")
    }

    fn counted(&self) -> u64 {
        our_count(&self.machine)
    }
}

struct OurCode {
    machine: BpfMachine,
    program: CompiledProgram,
    moment: RunMoment,
}

impl EventMachine for OurCode {
    fn run(&mut self, event: &mut [u8]) -> u64 {
        let input = RunInput { context: event, data: &[], moment: &self.moment };
        self.program.run(&mut self.machine, input).expect("it comes to its end")
    }

    fn counted(&self) -> u64 {
        our_count(&self.machine)
    }
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
mod peers {
    pub(super) fn machines() -> Vec<(&'static str, Box<dyn super::EventMachine>)> {
        Vec::new()
    }
}

/// rbpf's machine code is for x86-64 alone, and not for Windows.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod peers {
    use std::hash::BuildHasher;

    use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
    use rbpf::EbpfVmRaw;

    use super::{EventMachine, program, word};

    /// A table with types that Rust knows.
    type WordTable = HashMap<u32, u64>;

    fn words_look_up(map: u64, key: u64, _: u64, _: u64, _: u64) -> u64 {
        // SAFETY: the program gives the address of the table, and of its key in its stack; the table outlives the machine, and one
        // thread uses it.
        #[allow(unsafe_code)]
        let (map, key) = unsafe { (&mut *(map as *mut WordTable), (key as *const u32).read_unaligned()) };
        map.get_mut(&key).map_or(0, |value| std::ptr::from_mut(value) as u64)
    }

    fn words_update(map: u64, key: u64, value: u64, _: u64, _: u64) -> u64 {
        // SAFETY: as above, and of the value in its stack.
        #[allow(unsafe_code)]
        let (map, key, value) = unsafe {
            (
                &mut *(map as *mut WordTable),
                (key as *const u32).read_unaligned(),
                (value as *const u64).read_unaligned(),
            )
        };
        map.insert(key, value);
        0
    }

    /// A table with keys and values of any size.
    struct ByteTable {
        key_bytes: usize,
        value_bytes: usize,
        hasher: DefaultHashBuilder,
        /// Keys and values, by slot.
        slots: HashTable<u32>,
        keys: Vec<u8>,
        values: Vec<u8>,
    }

    impl ByteTable {
        fn key(&self, slot: u32) -> &[u8] {
            &self.keys[slot as usize * self.key_bytes..][..self.key_bytes]
        }

        fn find(&self, key: &[u8]) -> Option<usize> {
            let slot = self.slots.find(self.hasher.hash_one(key), |slot| self.key(*slot) == key);
            slot.map(|slot| *slot as usize * self.value_bytes)
        }
    }

    fn bytes_look_up(map: u64, key: u64, _: u64, _: u64, _: u64) -> u64 {
        // SAFETY: as for `words_look_up`; keys have so many bytes.
        #[allow(unsafe_code)]
        let (map, key) = unsafe {
            let map = &mut *(map as *mut ByteTable);
            let key = std::slice::from_raw_parts(key as *const u8, map.key_bytes);
            (map, key)
        };
        map.find(key).map_or(0, |at| std::ptr::from_mut(&mut map.values[at]) as u64)
    }

    fn bytes_update(map: u64, key: u64, value: u64, _: u64, _: u64) -> u64 {
        // SAFETY: as for `words_update`; keys and values have so many bytes.
        #[allow(unsafe_code)]
        let (map, key, value) = unsafe {
            let map = &mut *(map as *mut ByteTable);
            let key = std::slice::from_raw_parts(key as *const u8, map.key_bytes);
            let value = std::slice::from_raw_parts(value as *const u8, map.value_bytes);
            (map, key, value)
        };
        let at = map.find(key).unwrap_or_else(|| {
            let slot = (map.keys.len() / map.key_bytes) as u32;
            map.keys.extend(key);
            map.values.extend(std::iter::repeat_n(0, map.value_bytes));
            let (keys, key_bytes, hasher) = (&map.keys, map.key_bytes, &map.hasher);
            let again = |slot: &u32| hasher.hash_one(&keys[*slot as usize * key_bytes..][..key_bytes]);
            map.slots.insert_unique(hasher.hash_one(key), slot, again);
            slot as usize * map.value_bytes
        });
        map.values[at..at + map.value_bytes].copy_from_slice(value);
        0
    }

    /// rbpf calls with a stack that is not aligned as functions may expect: this aligns it. `words_look_up`, the time of which counts most, does
    /// without, because as it is compiled it needs none.
    macro_rules! aligned {
        ($name:ident, $function:ident) => {
            #[unsafe(naked)]
            extern "C" fn $name() {
                std::arch::naked_asm!("call {}", "ret", sym $function)
            }
        };
    }

    aligned!(words_update_aligned, words_update);
    aligned!(bytes_look_up_aligned, bytes_look_up);
    aligned!(bytes_update_aligned, bytes_update);

    fn helper(function: extern "C" fn()) -> rbpf::ebpf::Helper {
        // SAFETY: it passes its arguments on to a function of this type, with arguments and result in registers.
        #[allow(unsafe_code)]
        unsafe {
            std::mem::transmute(function)
        }
    }

    pub(super) struct Rbpf<T> {
        machine: EbpfVmRaw<'static>,
        table: Box<T>,
        counted: fn(&T) -> u64,
    }

    impl<T> Rbpf<T> {
        fn new(table: T, [look_up, update]: [rbpf::ebpf::Helper; 2], counted: fn(&T) -> u64) -> Self {
            let mut table = Box::new(table);
            let address = (std::ptr::from_mut(&mut *table) as u64).to_le_bytes();
            let half = |at: usize| i32::from_le_bytes(address[at..at + 4].try_into().expect("4 bytes"));
            let code = program([word(0x18, 0, 0, 0, half(0)), word(0, 0, 0, 0, half(4))]).concat();
            let mut machine = EbpfVmRaw::new(Some(code.leak())).expect("the program verifies");
            machine.register_helper(1, look_up).expect("it is the first one");
            machine.register_helper(2, update).expect("it is the second one");
            machine.jit_compile().expect("it has a native form");
            Self { machine, table, counted }
        }
    }

    impl<T> EventMachine for Rbpf<T> {
        fn run(&mut self, event: &mut [u8]) -> u64 {
            // SAFETY: the evaluator runs the program on the same events, with its checks; rbpf asks for a slice that lives as long as the
            // machine, and keeps none.
            #[allow(unsafe_code)]
            let result = unsafe {
                let event = std::slice::from_raw_parts_mut(event.as_mut_ptr(), event.len());
                self.machine.execute_program_jit(event)
            };
            result.expect("it is compiled")
        }

        fn counted(&self) -> u64 {
            (self.counted)(&self.table)
        }
    }

    /// rbpf with a table of either kind.
    pub(super) fn machines() -> Vec<(&'static str, Box<dyn EventMachine>)> {
        let words = [words_look_up, helper(words_update_aligned)];
        let words = Rbpf::new(WordTable::new(), words, |table| table.values().sum());
        let (hasher, slots, keys, values) = (DefaultHashBuilder::default(), HashTable::new(), Vec::new(), Vec::new());
        let table = ByteTable { key_bytes: 4, value_bytes: 8, hasher, slots, keys, values };
        let bytes = Rbpf::new(table, [helper(bytes_look_up_aligned), helper(bytes_update_aligned)], |table| {
            table.values.chunks_exact(8).map(|value| u64::from_le_bytes(value.try_into().expect("8 bytes"))).sum()
        });
        vec![("rbpf.words", Box::new(words)), ("rbpf.bytes", Box::new(bytes))]
    }
}

fn machines() -> Vec<(&'static str, Box<dyn EventMachine>)> {
    let moment = RunMoment::default();
    let machine = BpfMachine::new(&[counts()]).expect("it is small");
    let mut machines = peers::machines();
    if let Some(engine) = JitEngine::new() {
        let program = CompiledProgram::new(&engine, &our_program(), &[counts()]).expect("it is short");
        let (machine, moment) = (machine.clone(), moment.clone());
        machines.push(("native", Box::new(OurCode { machine, program, moment })));
    }
    machines.push(("evaluator", Box::new(OurEvaluator { machine, program: our_program(), moment })));
    machines
}

fn main() {
    // A name as an argument: only that one, for profiles.
    let only = std::env::args().nth(1);
    for (kind, sizes) in [("all", 513..1500), ("half", 0..1025), ("none", 0..513)] {
        let mut events = events(sizes);
        let mut machines = machines();
        machines.retain(|(name, _)| only.as_deref().is_none_or(|only| only == *name));
        let mut taken = vec![Vec::new(); machines.len()];
        for _ in 0..=ROUNDS {
            for ((_, machine), taken) in machines.iter_mut().zip(&mut taken) {
                let begin = Instant::now();
                for event in &mut events {
                    black_box(machine.run(black_box(event)));
                }
                taken.push(begin.elapsed().as_nanos() as f64 / EVENTS as f64);
            }
        }
        for ((name, machine), taken) in machines.iter().zip(&mut taken) {
            assert_eq!(machine.counted(), kept(&events) * (ROUNDS as u64 + 1), "{name} counts all");
            // The first burst fills tables and caches.
            let taken = &mut taken[1..];
            taken.sort_by(f64::total_cmp);
            println!("{name}.{kind}\t{:.2}", taken[ROUNDS / 2]);
            println!("{name}.{kind}.lowest\t{:.2}", taken[0]);
        }
    }
}
