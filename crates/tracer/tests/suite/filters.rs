//! Filters at the sites of events: machine code, bytecode, and what cannot be run, switched one for the other; and in children.
#![allow(unsafe_code, reason = "a child is made")]

use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use kymo_bytecode::{Instruction, IntegerCondition, IntegerField, IntegerKind, RegisterSet, header};
use kymo_lane::{FilterCode, FilterCodeKind, FilterEngine};
use kymo_tracer::{Event, control_file};

use crate::alone;
use crate::recorder::{Watch, files};

static EVENT: Event = Event::new(b"event test:filtered\nfield u64 value\n");
/// How its definition begins.
const FILTERED: &str = "event test:filtered\n";

/// Keeps events of one value.
pub fn bytecode(value: i128) -> Vec<u8> {
    bytecode_of(8, value)
}

/// The same for larger arguments, whose last 8 bytes it asks for.
fn bytecode_of(size: u16, value: i128) -> Vec<u8> {
    let field = IntegerField { kind: IntegerKind::new(8, false, false).expect("there are such"), offset: size - 8 };
    let test = Instruction::Test { field, condition: IntegerCondition::NotEqual(value), skip: 1 };
    let mut bytes = header(size.into(), 3, 0).to_vec();
    for instruction in [test, Instruction::Keep, Instruction::Drop] {
        bytes.extend(instruction.encode(RegisterSet::default()));
    }
    bytes
}

/// The same as machine code.
fn native(value: u8) -> Vec<u8> {
    if cfg!(target_arch = "x86_64") {
        // cmp qword [rdi], value; sete al; movzx eax, al; ret
        return vec![0x48, 0x83, 0x3f, value, 0x0f, 0x94, 0xc0, 0x0f, 0xb6, 0xc0, 0xc3];
    }
    // ldr x1, [x0]; cmp x1, value; cset x0, eq; ret
    let code = [0xf940_0001, 0xf100_003f | u32::from(value) << 10, 0x9a9f_17e0, 0xd65f_03c0];
    code.into_iter().flat_map(u32::to_le_bytes).collect()
}

/// Offers events of some values.
fn offer() {
    for value in 1..=4_u64 {
        if EVENT.is_on() && EVENT.is_kept(&value) {
            EVENT.record(&value.to_le_bytes());
        }
    }
}

fn values(watch: &mut Watch) -> Vec<u64> {
    watch.found.clear();
    watch.drain();
    watch.found.iter().map(|found| found.value).collect()
}

/// In slots 2 and 3 bytecode, in 4 and 5 machine code, in 6 what is none.
fn put_filters(watch: &Watch) {
    let recorder = &watch.recorder;
    let arena = recorder.identity(&mut []).expect("it can be read").arena.expect("it has one");
    let path = format!("/proc/self/fd/{}", arena.descriptor);
    let file = std::fs::File::options().write(true).open(path).expect("it is there");
    let mut offset = 0;
    for (slot, bytes) in [(2, bytecode(1)), (3, bytecode(2)), (6, b"no bytecode at all".to_vec())] {
        recorder.put_bytecode(offset, &bytes).expect("it can be written");
        let code = FilterCode { kind: FilterCodeKind::Bytecode, offset, bytes: bytes.len() as u32 };
        recorder.say_code(slot, code).expect("it can be written");
        offset += bytes.len() as u32;
    }
    for (slot, bytes) in [(4, native(3)), (5, native(4))] {
        let offset = 4096 * u32::from(slot);
        file.write_all_at(&bytes, offset.into()).expect("it can be written");
        let code = FilterCode { kind: FilterCodeKind::Native, offset, bytes: bytes.len() as u32 };
        recorder.say_code(slot, code).expect("it can be written");
    }
}

const SWITCHED: [(u8, &[u64]); 9] = [
    (2, &[1]),
    (4, &[3]),
    (0, &[]),
    (3, &[2]),
    (5, &[4]),
    (6, &[1, 2, 3, 4]),
    (2, &[1]),
    (77, &[1, 2, 3, 4]),
    (1, &[1, 2, 3, 4]),
];

/// Alone: slots of filters are the process's, and so is whether others may look into it.
#[test]
fn filters_are_switched_and_inherited() {
    alone::run("filters::filters_are_switched_and_inherited", switch_and_inherit);
}

fn switch_and_inherit(folder: &Path) {
    assert!(EVENT.register());
    let own = PathBuf::from(std::ffi::OsStr::from_bytes(control_file().expect("it has begun").to_bytes()));
    let mut watch = Watch::new(&own);
    let id = watch.id(FILTERED);
    put_filters(&watch);
    for (control, kept) in SWITCHED {
        watch.recorder.switch(id, control).expect("it can be written");
        offer();
        assert_eq!(values(&mut watch), kept, "switched to {control}");
    }
    let runs = [2, 3, 4, 5, 6, 77].map(|slot| watch.recorder.runs(slot).expect("it can be read"));
    let (bytecode, native) = (FilterEngine::Interpreted, FilterEngine::Native);
    assert_eq!(runs, [bytecode, bytecode, native, native, FilterEngine::Not, FilterEngine::NotYet]);
    nothing_else_is_looked_at(&mut watch);
    for (control, kept) in [(4, &[3][..]), (3, &[2]), (77, &[1, 2, 3, 4])] {
        watch.recorder.switch(id, control).expect("it can be written");
        check_child(folder, &own, kept);
    }
}

/// Filters of programs that others may not look into are not asked, nor any of larger arguments than a site has: they would see what lies
/// behind those, and who writes to this memory would see what they say.
fn nothing_else_is_looked_at(watch: &mut Watch) {
    for (slot, bytes) in [(9, bytecode_of(16, 1)), (10, bytecode_of(16, 1)), (11, bytecode(1))] {
        let offset = 4096 * u32::from(slot);
        watch.recorder.put_bytecode(offset, &bytes).expect("it can be written");
        let code = FilterCode { kind: FilterCodeKind::Bytecode, offset, bytes: bytes.len() as u32 };
        watch.recorder.say_code(slot, code).expect("it can be written");
    }
    let runs = |watch: &Watch, slot| watch.recorder.runs(slot).expect("it can be read");
    let id = watch.id(FILTERED);
    let mut offered = |slot| {
        watch.recorder.switch(id, slot).expect("it can be written");
        if slot == 10 {
            assert!(EVENT.is_kept(&[2_u64, 1]) && !EVENT.is_kept(&[1_u64, 2]), "there are so many bytes");
        }
        offer();
        (values(watch), runs(watch, slot))
    };
    let all = vec![1, 2, 3, 4];
    assert_eq!(offered(9), (all.clone(), FilterEngine::Not));
    assert_eq!(offered(10), (all.clone(), FilterEngine::Interpreted), "another event has asked it first");
    let dump = |may: libc::c_ulong| assert_eq!(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, may) }, 0);
    dump(0);
    assert_eq!(offered(11), (all, FilterEngine::Not));
    dump(1);
}

/// A child goes on with the filter that its parent was switched to, and no slot that its parent asked is free in it.
fn check_child(folder: &Path, own: &Path, kept: &[u64]) {
    let child = unsafe { libc::fork() };
    if child == 0 {
        offer();
        unsafe { libc::_exit(0) }
    }
    let mut status = 0;
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
    let files: Vec<_> = files(folder).into_iter().filter(|path| path != own).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    let mut watch = Watch::new(&files[0]);
    assert_eq!(values(&mut watch), kept);
    for slot in 2..=8 {
        let is_free = watch.recorder.runs(slot).expect("it can be read") == FilterEngine::NotYet;
        assert_eq!(is_free, slot > 6, "slot {slot}");
        assert_eq!(
            watch.recorder.said_code(slot).expect("it can be read"),
            None,
            "nobody has said anything of it here"
        );
    }
    std::fs::remove_file(&files[0]).expect("it is ours");
}
