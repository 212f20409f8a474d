//! The machine for eBPF: maps, rings, helper functions, limits, and the words in which it refuses and stops.

use kymo_ir::machine::{
    BpfMachine, BpfMapType, MachineProgram, MapDefinition, OutputRecord, RunInput, RunMoment, data_address,
};

fn word(opcode: u8, to: u8, from: u8, offset: i16, constant: i32) -> [u8; 8] {
    let ([o0, o1], [c0, c1, c2, c3]) = (offset.to_le_bytes(), constant.to_le_bytes());
    [opcode, to | from << 4, o0, o1, c0, c1, c2, c3]
}

const EXIT: [u8; 8] = [0x95, 0, 0, 0, 0, 0, 0, 0];

fn set(to: u8, constant: i32) -> [u8; 8] {
    word(0xb7, to, 0, 0, constant)
}

fn copy(to: u8, from: u8) -> [u8; 8] {
    word(0xbf, to, from, 0, 0)
}

fn add(to: u8, constant: i32) -> [u8; 8] {
    word(0x07, to, 0, 0, constant)
}

fn call(number: i32) -> [u8; 8] {
    word(0x85, 0, 0, 0, number)
}

fn map(to: u8, index: i32) -> [[u8; 8]; 2] {
    [word(0x18, to, 5, 0, index), [0; 8]]
}

fn function(to: u8, distance: i32) -> [[u8; 8]; 2] {
    [word(0x18, to, 4, 0, distance), [0; 8]]
}

/// r0 = the value of the key in 4 bytes at r10 - 4, in a map.
fn look_up(index: i32) -> Vec<[u8; 8]> {
    [&map(1, index)[..], &[copy(2, 10), add(2, -4), call(1)]].concat()
}

fn table(map_type: BpfMapType, entries_max: u32) -> MapDefinition {
    let name = "counts".into();
    MapDefinition { name, map_type, key_bytes: 4, value_bytes: 8, entries_max, is_read_only: false }
}

fn moment() -> RunMoment {
    let thread_name = Some(b"worker with a long name"[..].into());
    RunMoment { nanos: Some(1_000), cpu: Some(1), process: Some(7), thread: Some(9), thread_name }
}

/// A machine with maps, and a program on it.
#[track_caller]
fn load(code: &[[u8; 8]], maps: &[MapDefinition]) -> (BpfMachine, MachineProgram) {
    let program = MachineProgram::new(code, maps).unwrap_or_else(|problem| panic!("{problem}"));
    (BpfMachine::new(maps).expect("the maps are small"), program)
}

/// The result of a program, or the words in which it stops.
#[track_caller]
fn run((machine, program): &mut (BpfMachine, MachineProgram), context: &mut [u8]) -> Result<u64, String> {
    let input = RunInput { context, data: b"a text\0and more", moment: &moment() };
    machine.run(program, input).map_err(|fault| fault.to_string())
}

#[track_caller]
fn refuses(code: &[[u8; 8]], maps: &[MapDefinition], expected: &str) {
    let found = MachineProgram::new(code, maps).err().map(|problem| problem.to_string());
    assert_eq!(found.as_deref(), Some(expected));
}

#[track_caller]
fn stops(code: &[[u8; 8]], maps: &[MapDefinition], expected: &str) {
    assert_eq!(run(&mut load(code, maps), &mut [0; 8]), Err(expected.to_owned()));
}

/// Adds 1 to the value of the key that is the context's first 4 bytes, and inserts it with 1 if it is not there.
fn counting() -> Vec<[u8; 8]> {
    let head = [word(0x61, 6, 1, 0, 0), word(0x63, 10, 6, -4, 0)];
    let insert = [
        &[word(0x7a, 10, 0, -16, 1)][..],
        &map(1, 0),
        &[copy(2, 10), add(2, -4), copy(3, 10), add(3, -16), set(4, 1), call(2), EXIT],
    ]
    .concat();
    let found = [set(1, 1), word(0xdb, 0, 1, 0, 0), set(0, 0), EXIT];
    [&head[..], &look_up(0), &[word(0x55, 0, 0, insert.len() as i16, 0)], &insert, &found].concat()
}

#[test]
fn tables_count() {
    let mut hash = load(&counting(), &[table(BpfMapType::Hash, 2)]);
    for (key, expected) in [(3, 0), (4, 0), (3, 0), (3, 0), (5, -7_i64)] {
        assert_eq!(run(&mut hash, &mut [key, 0, 0, 0]), Ok(expected as u64), "the third key finds no room");
    }
    let entries: Vec<_> = hash.0.maps()[0].entries().collect();
    let counts: Vec<_> = entries.iter().map(|entry| (entry.key[0], entry.values[0].1[0], entry.values.len())).collect();
    assert_eq!(counts, [(3, 3, 1), (4, 1, 1)]);
}

#[test]
fn each_cpu_has_its_values() {
    for map_type in [BpfMapType::PerCpuHash, BpfMapType::PerCpuArray, BpfMapType::LruPerCpuHash] {
        let (mut machine, program) = load(&counting(), &[table(map_type, 4)]);
        for cpu in [0, 2, 2] {
            let moment = RunMoment { cpu: Some(cpu), ..moment() };
            let input = RunInput { context: &mut [1, 0, 0, 0], data: &[], moment: &moment };
            assert_eq!(machine.run(&program, input), Ok(0));
        }
        let map = &machine.maps()[0];
        let entry = map.entries().find(|entry| *entry.key == [1, 0, 0, 0]).expect("it was counted");
        let counts: Vec<(usize, u8)> =
            entry.values.iter().map(|(cpu, value)| (*cpu, value[0])).filter(|(_, count)| *count > 0).collect();
        assert_eq!(counts, [(0, 1), (2, 2)], "{map_type:?}");
    }
}

#[test]
fn a_full_lru_table_drops_what_was_not_used() {
    let mut lru = load(&counting(), &[table(BpfMapType::LruHash, 3)]);
    for key in [1, 2, 3, 1, 3, 4, 1, 5] {
        assert_eq!(run(&mut lru, &mut [key, 0, 0, 0]), Ok(0));
    }
    let mut keys: Vec<u8> = lru.0.maps()[0].entries().map(|entry| entry.key[0]).collect();
    keys.sort_unstable();
    assert_eq!(keys.len(), 3);
    assert!(keys.contains(&1) && keys.contains(&5) && !keys.contains(&2), "{keys:?}");
}

#[test]
fn entries_are_removed_and_their_memory_is_cleared() {
    let delete = [&[word(0x62, 10, 0, -4, 3)][..], &map(1, 0), &[copy(2, 10), add(2, -4), call(3), EXIT]].concat();
    let maps = [table(BpfMapType::Hash, 8)];
    let mut hash = load(&counting(), &maps);
    let delete = MachineProgram::new(&delete, &maps).expect("it is sound");
    for expected in [0, -2_i64] {
        assert_eq!(run(&mut hash, &mut [3, 0, 0, 0]), Ok(0));
        assert_eq!(run(&mut hash, &mut [3, 0, 0, 0]), Ok(0));
        for expected in [0, expected.min(-2)] {
            let input = RunInput { context: &mut [], data: &[], moment: &moment() };
            assert_eq!(hash.0.run(&delete, input), Ok(expected as u64));
        }
        assert_eq!(hash.0.maps()[0].entries().count(), 0);
    }
    assert_eq!(run(&mut hash, &mut [4, 0, 0, 0]), Ok(0));
    assert_eq!(hash.0.maps()[0].entries().next().expect("it is there").values[0].1[0], 1, "not 3, of the key before");
}

#[test]
fn records_go_out_when_they_are_submitted() {
    let ring = MapDefinition { entries_max: 64, ..table(BpfMapType::RingBuffer, 64) };
    let reserve = |then: i32| {
        let head =
            [&map(1, 0)[..], &[set(2, 8), set(3, 0), call(131), word(0x55, 0, 0, 2, 0), set(0, -1), EXIT]].concat();
        [&head[..], &[word(0x7a, 0, 0, 0, 77), copy(1, 0), set(2, 0), call(then), set(0, 0), EXIT]].concat()
    };
    let mut submits = load(&reserve(132), std::slice::from_ref(&ring));
    assert_eq!(run(&mut submits, &mut []), Ok(0));
    let outputs = submits.0.take_outputs();
    assert_eq!(outputs.records, [OutputRecord { map: 0, bytes: vec![77, 0, 0, 0, 0, 0, 0, 0] }]);
    let mut discards = load(&reserve(133), std::slice::from_ref(&ring));
    assert_eq!((run(&mut discards, &mut []), discards.0.take_outputs().records), (Ok(0), vec![]));

    // Four records of 8 bytes with 8 bytes each before them fill it.
    let put =
        [&[word(0x7a, 10, 0, -8, 5)][..], &map(1, 0), &[copy(2, 10), add(2, -8), set(3, 8), set(4, 0), call(130)]]
            .concat();
    let mut fills = load(&[put.repeat(5), vec![EXIT]].concat(), std::slice::from_ref(&ring));
    assert_eq!(run(&mut fills, &mut []), Ok(-11_i64 as u64));
    let outputs = fills.0.take_outputs();
    assert_eq!((outputs.records.len(), outputs.lost), (4, 1));

    let twice =
        [&reserve(132)[..11], &[copy(6, 1), set(2, 0), call(132), copy(1, 6), set(2, 0), call(132), EXIT]].concat();
    let found = run(&mut load(&twice, &[ring]), &mut []).unwrap_err();
    assert_eq!(found, "instruction 16: bpf_ringbuf_submit is given 0x5000000000000000 for a reserved record");
}

#[test]
fn facts_of_the_moment_are_told_or_end_the_run() {
    assert_eq!(run(&mut load(&[call(14), EXIT], &[]), &mut []), Ok(7 << 32 | 9));
    assert_eq!(run(&mut load(&[call(5), EXIT], &[]), &mut []), Ok(1_000));
    assert_eq!(run(&mut load(&[call(8), EXIT], &[]), &mut []), Ok(1));
    let name = [copy(1, 10), add(1, -16), set(2, 16), call(16), word(0x79, 0, 10, -8, 0), EXIT];
    assert_eq!(run(&mut load(&name, &[]), &mut []), Ok(u64::from_le_bytes(*b"ith a l\0")));
    let (mut machine, program) = load(&[call(14), EXIT], &[]);
    let input = RunInput { context: &mut [], data: &[], moment: &RunMoment::default() };
    let fault = machine.run(&program, input).unwrap_err().to_string();
    assert_eq!(fault, "instruction 0: bpf_get_current_pid_tgid asks for its process, and the event does not tell it");
}

#[test]
fn pointers_of_the_context_lead_to_data() {
    let read = [
        word(0x79, 3, 1, 0, 0),
        copy(1, 10),
        add(1, -16),
        set(2, 16),
        call(115),
        word(0x79, 6, 10, -16, 0),
        copy(0, 6),
        EXIT,
    ];
    let context = &mut data_address(0).to_le_bytes();
    assert_eq!(run(&mut load(&read, &[]), context), Ok(u64::from_le_bytes(*b"a text\0\0")));
    let (mut machine, mut length) = (load(&read, &[]).0, read);
    length[5] = copy(6, 0);
    let length = MachineProgram::new(&length, &[]).expect("it is sound");
    for (address, expected) in [(data_address(0), 7), (data_address(2), 5), (0, -14_i64), (data_address(100), -14)] {
        let input = RunInput { context: &mut address.to_le_bytes(), data: b"a text\0and more", moment: &moment() };
        assert_eq!(machine.run(&length, input), Ok(expected as u64), "{address:#x}");
    }
}

#[test]
fn functions_are_called_in_loops_and_with_entries() {
    // The function adds its index to the number at its second argument; it says 1 at index 5.
    let adding = [
        word(0x79, 3, 2, 0, 0),
        word(0x0f, 3, 1, 0, 0),
        word(0x7b, 2, 3, 0, 0),
        set(0, 0),
        word(0x55, 1, 0, 1, 5),
        set(0, 1),
        EXIT,
    ];
    for (count, calls, sum) in [(0, 0, 0), (3, 3, 3), (100, 6, 15)] {
        let [low, high] = function(2, 8);
        let head = [word(0x7a, 10, 0, -8, 0), set(1, count), low, high, copy(3, 10), add(3, -8), set(4, 0), call(181)];
        for (result, expected) in [(copy(6, 0), calls), (word(0x79, 6, 10, -8, 0), sum)] {
            let code = [&head[..], &[result, copy(0, 6), EXIT], &adding].concat();
            assert_eq!(run(&mut load(&code, &[]), &mut []), Ok(expected));
        }
    }
}

#[test]
fn a_function_sees_the_entries_of_a_table() {
    let maps = [table(BpfMapType::Hash, 8)];
    let mut hash = load(&counting(), &maps);
    for key in [3, 4, 3] {
        assert_eq!(run(&mut hash, &mut [key, 0, 0, 0]), Ok(0));
    }
    // The sum of keys times counts, at the address that is its fourth argument.
    let adding = [
        word(0x61, 2, 2, 0, 0),
        word(0x79, 3, 3, 0, 0),
        word(0x2f, 2, 3, 0, 0),
        word(0x79, 5, 4, 0, 0),
        word(0x0f, 5, 2, 0, 0),
        word(0x7b, 4, 5, 0, 0),
        set(0, 0),
        EXIT,
    ];
    let [low, high] = function(2, 8);
    let head =
        [&[word(0x7a, 10, 0, -8, 0)][..], &map(1, 0), &[low, high, copy(3, 10), add(3, -8), set(4, 0), call(164)]];
    let code = [&head.concat()[..], &[word(0x79, 0, 10, -8, 0), EXIT], &[EXIT], &adding].concat();
    let program = MachineProgram::new(&code, &maps).expect("it is sound");
    let input = RunInput { context: &mut [], data: &[], moment: &moment() };
    assert_eq!(hash.0.run(&program, input), Ok(3 * 2 + 4));
}

#[test]
fn lines_are_printed() {
    let format = MapDefinition { value_bytes: 16, is_read_only: true, ..table(BpfMapType::Array, 1) };
    let print = [word(0x18, 1, 6, 0, 0), [0; 8], set(2, 16), set(3, -5), set(4, 3), call(6), EXIT];
    let mut prints = load(&print, &[format]);
    prints.0.fill(0, b"n = %d of %u\n\0");
    assert_eq!(run(&mut prints, &mut []), Ok(12));
    assert_eq!(prints.0.take_outputs().lines, ["n = -5 of 3"]);
}

#[test]
fn programs_that_cannot_run_are_refused_with_their_instruction() {
    let jump = |distance| word(0x05, 0, 0, distance, 0);
    refuses(&[], &[], "instruction 0: the program is empty");
    refuses(&[jump(5), EXIT], &[], "instruction 0: a jump leads to instruction 6, outside of the program");
    refuses(&[jump(-2), EXIT], &[], "instruction 0: a jump leads to instruction -1, outside of the program");
    refuses(
        &[jump(1), word(0x18, 0, 0, 0, 1), [0; 8], EXIT],
        &[],
        "instruction 0: a jump leads to instruction 2, into a constant of 64 bits",
    );
    refuses(&[word(0x18, 0, 0, 0, 1)], &[], "instruction 0: the second half of a constant of 64 bits is missing");
    refuses(&[word(0xff, 0, 0, 0, 0), EXIT], &[], "instruction 0: no instruction has the opcode 0xff");
    refuses(&[set(11, 1), EXIT], &[], "instruction 0: register 11 does not exist: there are r0 to r10");
    refuses(&[set(10, 1), EXIT], &[], "instruction 0: r10 is written, which is the end of the stack and cannot change");
    refuses(&[word(0x37, 0, 0, 0, 0), EXIT], &[], "instruction 0: a division by the constant 0");
    refuses(
        &[word(0x64, 0, 0, 0, 32), EXIT],
        &[],
        "instruction 0: a shift by 32 bits: they must be fewer than the number has",
    );
    refuses(
        &[set(0, 1), word(0x55, 0, 0, -2, 0)],
        &[],
        "instruction 1: the program goes on behind its last instruction: it must end with an exit or a jump",
    );
    refuses(
        &[call(27), EXIT],
        &[],
        "instruction 0: it calls bpf_get_stackid (helper function 27), which only the kernel can do",
    );
    refuses(&[call(9999), EXIT], &[], "instruction 0: it calls helper function 9999, which does not exist");
    refuses(
        &[word(0x85, 0, 2, 0, 1), EXIT],
        &[],
        "instruction 0: it calls a function of the kernel by its BTF number (a kfunc), which user space does not have",
    );
    let [low, high] = map(1, 1);
    refuses(&[low, high, EXIT], &[table(BpfMapType::Hash, 1)], "instruction 0: map 1 is used; there are 1");
}

#[test]
fn programs_that_leave_their_memory_stop_there() {
    stops(
        &[set(1, 0), word(0x79, 0, 1, 16, 0), EXIT],
        &[],
        "instruction 1: it reads 8 bytes at 0x10: a null pointer, or a number that is no pointer",
    );
    stops(
        &[word(0x79, 0, 1, 4, 0), EXIT],
        &[],
        "instruction 0: it reads 8 bytes at offset 4 of the context, which has 8",
    );
    stops(
        &[word(0x61, 0, 1, -4, 0), EXIT],
        &[],
        "instruction 0: it reads 4 bytes at 0xfffffffc: a null pointer, or a number that is no pointer",
    );
    stops(
        &[word(0x7a, 10, 0, 0, 1), EXIT],
        &[],
        "instruction 0: it writes 8 bytes at offset 4096 of the stack, which has 4096",
    );
    stops(
        &[word(0x05, 0, 0, -1, 0), EXIT],
        &[],
        "instruction 0: the program has not ended after 1000000 steps (an instruction, or 64 bytes that a helper copies)",
    );
    stops(&[word(0x85, 0, 1, 0, -1), EXIT], &[], "instruction 0: calls are nested more than 8 deep");
    let maps = [table(BpfMapType::Hash, 1)];
    stops(
        &[map(1, 0).to_vec(), vec![word(0x79, 0, 1, 0, 0), EXIT]].concat(),
        &maps,
        "instruction 2: it reads 8 bytes at a map: values are found by bpf_map_lookup_elem",
    );
    let fixed = MapDefinition { is_read_only: true, ..table(BpfMapType::Array, 1) };
    let write = [word(0x18, 1, 6, 0, 0), [0; 8], word(0x7a, 1, 0, 0, 1), EXIT];
    stops(
        &write,
        &[fixed],
        "instruction 2: it writes 8 bytes at byte 0 of the values of map counts, of 8 bytes each, and can only be read",
    );
    // A value of 8 bytes is 4 bytes before the next one.
    let across = [word(0x18, 1, 6, 0, 0), word(0, 0, 0, 0, 4), word(0x79, 0, 1, 0, 0), EXIT];
    stops(
        &across,
        &[table(BpfMapType::Array, 2)],
        "instruction 2: it reads 8 bytes at byte 4 of the values of map counts, of 8 bytes each",
    );
    let ring = [table(BpfMapType::RingBuffer, 4096)];
    stops(
        &[word(0x62, 10, 0, -4, 1)].into_iter().chain(look_up(0)).chain([EXIT]).collect::<Vec<_>>(),
        &ring,
        "instruction 5: bpf_map_lookup_elem is given a map of the type ringbuf",
    );
    stops(&[set(1, 3), call(1), EXIT], &[], "instruction 1: bpf_map_lookup_elem is given 0x3 for a map");
}

#[test]
fn bytes_that_helper_functions_copy_are_steps() {
    let big = MapDefinition { value_bytes: 1 << 24, ..table(BpfMapType::Array, 1) };
    let value = |to: u8| [word(0x18, to, 6, 0, 0), [0; 8]];
    let read = [&value(1)[..], &[set(2, 1 << 24)], &value(3), &[call(113)]].concat();
    // Each takes 262,144 steps: three of them end, and the fourth does not.
    let program = |reads: usize| [read.repeat(reads), vec![EXIT]].concat();
    assert_eq!(run(&mut load(&program(3), std::slice::from_ref(&big)), &mut [0; 8]), Ok(0));
    stops(
        &program(4),
        &[big],
        "instruction 23: the program has not ended after 1000000 steps (an instruction, or 64 bytes that a helper copies)",
    );
}

#[test]
fn free_slots_of_tables_are_steps() {
    // A function sees none of the entries, which are all removed: looking for them takes steps.
    let maps = [table(BpfMapType::Hash, 1000)];
    let mut filled = load(&counting(), &maps);
    for key in 0_u32..1000 {
        run(&mut filled, &mut [key.to_le_bytes(), [0; 4]].concat()).expect("there is room");
    }
    let remove = [&map(1, 0)[..], &[copy(2, 6), call(3), EXIT]].concat();
    let remove = MachineProgram::new(&[&[copy(6, 1)], &remove[..]].concat(), &maps).expect("it is one");
    filled.1 = remove;
    for key in 0_u32..1000 {
        assert_eq!(run(&mut filled, &mut [key.to_le_bytes(), [0; 4]].concat()), Ok(0));
    }
    let each = [&map(1, 0)[..], &function(2, 4), &[set(3, 0), set(4, 0), call(164), EXIT, set(0, 0), EXIT]].concat();
    let each = MachineProgram::new(&each, &maps).expect("it is one");
    let mut enough = (filled.0.clone().with_steps_max(1100), each.clone());
    assert_eq!(run(&mut enough, &mut [0; 8]), Ok(0));
    let mut few = (filled.0.with_steps_max(900), each);
    assert!(run(&mut few, &mut [0; 8]).is_err_and(|why| why.contains("has not ended after 900 steps")));
}

#[test]
fn records_of_any_size_are_refused_when_the_ring_is_full() {
    let ring = [table(BpfMapType::RingBuffer, 4096)];
    for size in [-1, -8, 4096, 4089] {
        let code = [&map(1, 0)[..], &[set(2, size), set(3, 0), call(131), EXIT]].concat();
        let mut loaded = load(&code, &ring);
        assert_eq!((run(&mut loaded, &mut [0; 8]), loaded.0.take_outputs().lost), (Ok(0), 1), "{size}");
    }
}

#[test]
fn values_of_cpus_that_no_machine_has_are_not_there() {
    let maps = [table(BpfMapType::PerCpuArray, 1)];
    let found = |cpu: i32| {
        let key = [word(0x62, 10, 0, -4, 0)];
        let code = [&key[..], &map(1, 0), &[copy(2, 10), add(2, -4), set(3, cpu), call(195), EXIT]].concat();
        run(&mut load(&code, &maps), &mut [0; 8]).expect("it ends") != 0
    };
    assert_eq!([3, 4095, 4096, 65_535, -1].map(found), [true, true, false, false, false]);
}

#[test]
fn memory_of_maps_has_a_limit() {
    let huge = MapDefinition { value_bytes: 1 << 20, ..table(BpfMapType::Array, 1 << 20) };
    let text = BpfMachine::new(&[huge]).unwrap_err().to_string();
    assert_eq!(text, "map counts: 1099511627776 bytes are needed; all maps together may take 1073741824");
    let keyless = MapDefinition { key_bytes: 0, ..table(BpfMapType::Hash, 1) };
    let text = BpfMachine::new(&[keyless]).unwrap_err().to_string();
    assert_eq!(text, "map counts: keys have 0 bytes and values 8: a table needs both, each of at most 16777216");
}
