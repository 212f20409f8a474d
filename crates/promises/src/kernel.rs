//! Any bytes are descriptions of the kernel's events and a page of its ring buffer, or are refused; each event that is written
//! is as its fields say, to the last byte.
//!
//! ```text
//! descriptions, with an empty line and `--` between them │ 0 │ page, and records of all other sources: texts, call stacks, switches
//!                                                            │ of perf, and the state of the system
//! ```

use kymo_ftrace::format::EventFormat;
use kymo_ftrace::stacks::{StackRecord, lost_record, next_record};
use kymo_ftrace::texts::KnownTexts;
use kymo_ftrace::{
    ARGUMENTS_MAX, CallTable, EVENT_HEAD_BYTES, EventCatalog, KernelThreads, Page, PageLayout, RecordContext,
};

#[cfg(target_os = "linux")]
use crate::kernel_state;
use crate::measured::measured;
use crate::{kernel_switches, kernel_texts};

/// Between two descriptions.
const BETWEEN: &str = "\n--\n";

/// The promise; how many events there were.
///
/// # Panics
///
/// If it is broken.
pub fn hold(data: &[u8]) -> u64 {
    let end = data.iter().position(|byte| *byte == 0).unwrap_or(data.len());
    let text = String::from_utf8_lossy(&data[..end]);
    let mut catalog = EventCatalog::default();
    let table = if data.len().is_multiple_of(2) { CallTable::Native } else { CallTable::Compat };
    let mut texts = KnownTexts::default();
    if !data.len().is_multiple_of(3) {
        catalog.expect_texts();
        texts.texts[data.len() % ARGUMENTS_MAX] = Some(data[end.min(60)..end.min(100)].into());
    }
    for description in text.split(BETWEEN) {
        let (system, description) = description.split_once('\n').unwrap_or(("", description));
        match EventFormat::parse(system, description) {
            Ok(format) => catalog.add(format, system.len().is_multiple_of(2)),
            Err(problem) => {
                assert!(problem.line >= 1 && problem.line <= description.lines().count().max(1), "{problem}");
            }
        }
    }
    let (mut threads, mut events) = (KernelThreads::default(), 0);
    let records = data.get(end + 1..).unwrap_or_default();
    let joined = kernel_texts::hold(records) + kernel_switches::hold(records);
    #[cfg(target_os = "linux")]
    let joined = joined + kernel_state::hold(records);
    stacks(records);
    let Ok(page) = Page::read(PageLayout::default(), records) else { return joined };
    for record in page.records() {
        let Ok(record) = record else { return joined + events };
        let Ok(Some(number)) = catalog.plan(0, record.bytes, table, &mut threads) else { continue };
        let plan = catalog.plan_of(number);
        let mut bytes = b"before".to_vec();
        let mut context = RecordContext { cpu: 0, threads: &mut threads, texts: &texts };
        match plan.write((number, record.ticks), record.bytes, &mut context, &mut bytes) {
            Ok(()) => {
                assert!(bytes.starts_with(b"before"));
                let fields = &bytes[6 + EVENT_HEAD_BYTES..];
                assert_eq!(measured(&plan.payload, fields, &mut Vec::new()), Some(fields.len()), "{}", plan.name);
                // Elements and texts may be told again by each field that points to them.
                assert!(fields.len() <= (record.bytes.len() + 64) * 257, "{}", plan.name);
                events += 1;
            }
            Err(_) => assert_eq!(bytes, b"before", "{}", plan.name),
        }
    }
    joined + events
}

/// Inputs to begin with.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let common = "format:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n";
    let described = |system: &str, name: &str, id: u16, fields: &[(&str, u32, u32)]| {
        let fields: String = fields
            .iter()
            .map(|(declared, offset, size)| format!("\tfield:{declared};\toffset:{offset};\tsize:{size};\tsigned:1;\n"))
            .collect();
        format!("{system}\nname: {name}\nID: {id}\n{common}{fields}")
    };
    let descriptions = [
        described(
            "sched",
            "sched_switch",
            1,
            &[
                ("char prev_comm[16]", 8, 16),
                ("pid_t prev_pid", 24, 4),
                ("int prev_prio", 28, 4),
                ("long prev_state", 32, 8),
            ],
        ),
        described("irq", "irq_handler_entry", 2, &[("int irq", 8, 4), ("__data_loc char[] name", 12, 4)]),
        described(
            "block",
            "block_rq_issue",
            3,
            &[
                ("dev_t dev", 8, 4),
                ("char rwbs[10]", 12, 10),
                ("__rel_loc u32[] cmd", 24, 4),
                ("char comm[16]", 28, 16),
            ],
        ),
        described("raw_syscalls", "sys_enter", 4, &[("long id", 8, 8), ("unsigned long args[6]", 16, 48)]),
        described("raw_syscalls", "sys_exit", 5, &[("long id", 8, 8), ("long ret", 16, 8)]),
        described(
            "syscalls",
            "sys_enter_read",
            6,
            &[("int __syscall_nr", 8, 4), ("unsigned int fd", 16, 8), ("char * buf", 24, 8)],
        ),
        described(
            "syscalls",
            "sys_enter_openat",
            6,
            &[("int __syscall_nr", 8, 4), ("int dfd", 16, 8), ("const char * filename", 24, 8), ("long flags", 32, 8)],
        ),
        described("task", "task_newtask", 7, &[("pid_t pid", 8, 4), ("u64 clone_flags", 16, 8)]),
        described(
            "sched",
            "sched_process_fork",
            8,
            &[
                ("__data_loc char[] parent_comm", 8, 4),
                ("pid_t parent_pid", 12, 4),
                ("__data_loc char[] child_comm", 16, 4),
                ("pid_t child_pid", 20, 4),
            ],
        ),
    ];
    let page = page();
    descriptions
        .iter()
        .map(String::as_str)
        .chain([descriptions.join(BETWEEN).as_str()])
        .map(|text| [text.as_bytes(), b"\0", &page].concat())
        .chain(other_seeds().into_iter().map(|records| [b"\0", &records[..]].concat()))
        .chain([[b"\0", &stack_records()[..]].concat()])
        .collect()
}

/// Records of other sources.
fn other_seeds() -> Vec<Vec<u8>> {
    let seeds = [kernel_texts::seeds(), kernel_switches::seeds()].concat();
    #[cfg(target_os = "linux")]
    let seeds = [seeds, kernel_state::seeds()].concat();
    seeds
}

/// Any bytes are records of call stacks, up to one that is not whole; none has more addresses or a longer path than it has bytes.
fn stacks(mut bytes: &[u8]) {
    while let Some((record, rest)) = next_record(bytes) {
        let length = bytes.len() - rest.len();
        match record {
            StackRecord::Stack(stack) => assert!((stack.kernel.len() + stack.user.len()) * 8 < length),
            StackRecord::Map(map) => {
                assert!(map.path.len() < length && map.build_id.len() <= 20 && !map.path.contains(&0));
            }
            _ => {}
        }
        assert!(length >= 8, "it goes on");
        bytes = rest;
    }
}

/// A call stack, a map with a build id, and a number of lost records.
fn stack_records() -> Vec<u8> {
    let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let record = |kind: u64, flags: u64, body: Vec<u8>| {
        [words(&[kind | flags << 32 | (body.len() as u64 + 8) << 48]), body].concat()
    };
    let map = [words(&[1 << 32, 16, 32, 0, 4, 5, 0, 6]), b"/bin/a\0\0".to_vec(), words(&[0, 0, 0])].concat();
    let stack = words(&[9, 1 << 32 | 1, 100, 1, 4, -128_i64 as u64, 3, -512_i64 as u64, 4]);
    [record(9, 0, stack), record(10, 1 << 14, map), lost_record(5)].concat()
}

/// A page with a record of each event.
fn page() -> Vec<u8> {
    let mut page = 77_u64.to_le_bytes().to_vec();
    let mut records = Vec::new();
    for id in (1..=8_u16).chain([4, 7, 8, 2]) {
        let mut record = vec![0; 64];
        record[..2].copy_from_slice(&id.to_le_bytes());
        record[4] = 9;
        // A place, a number of a call, or letters.
        record[8..16].copy_from_slice(&[0, 0, 0, 0, 40, 0, 8, 0]);
        record[16..20].copy_from_slice(&[44, 0, 6, 0]);
        record[40..48].copy_from_slice(b"timer\0ab");
        records.extend((16_u32 | 5 << 5).to_le_bytes());
        records.extend(record);
    }
    records.extend([30 | 1 << 5, 0, 0, 0, 2, 0, 0, 0]);
    page.extend((records.len() as u64).to_le_bytes());
    page.extend(records);
    page
}
