//! The programs that write the state of the system, one for each of three iterators: which instructions they have.
//!
//! ```text
//! iter/task       each thread                  ── a record of it, and of its process if it is the first thread
//! iter/task_file  each open file of a process  ── its number and path
//! iter/task_vma   each mapping with code       ── its place, file and path
//! ```
//!
//! The kernel runs them when their file is read, and holds what they are about; no program runs otherwise. All that hangs on a
//! thread is read by a function of the kernel that bears any address, and gives zeros where nothing can be read.
//! Programs are inside of a read-side critical section of RCU: threads, credentials and numbers of threads stay. Namespaces may go:
//! these are believed only if the thread still has them afterwards.

use std::os::fd::BorrowedFd;

use crate::assembly::{BpfAssembly, Condition, KernelFunction, Label, R0, R1, R2, R3, R6, R7, R8, R9, Register, STACK};
use crate::btf::KernelTypes;
use crate::state_records::{
    FILE_HEAD_BYTES, LEVELS_MAX, MAP_HEAD_BYTES, PATH_BYTES_MAX, PLAIN_NAMESPACES, TASK_BYTES, file_places, map_places,
    task_places,
};

/// Bytes of a record with a path at most.
pub(crate) const SCRATCH_BYTES: u32 = (MAP_HEAD_BYTES + PATH_BYTES_MAX) as u32;
/// The flag of mappings with code.
const CODE: i32 = 1 << 2;

/// Bytes of an entry with a number and a namespace.
const NUMBER_BYTES: i32 = 16;

/// Places on the stack.
const RECORD: i16 = -(TASK_BYTES as i16);
const POINTER: i16 = RECORD - 8;
const KEPT: i16 = RECORD - 16;
const WORD: i16 = RECORD - 24;

/// Places in structures of this kernel.
#[derive(Clone, Debug)]
pub(crate) struct StatePlaces {
    sequence: i32,
    thread: i32,
    process: i32,
    of_task: TaskPlaces,
}

/// Those that tell of threads.
#[derive(Clone, Debug)]
struct TaskPlaces {
    /// Where a value of so many bytes is in a thread, and in the record.
    plain: Vec<(i32, i16, i32)>,
    /// The numbers of a thread: a structure with the level, and entries with a number and a namespace.
    numbers: i32,
    level: i32,
    first_number: i32,
    namespace_in_number: i32,
    pid_namespace: i32,
    parent: i32,
    credentials: i32,
    user: i32,
    group: i32,
    user_namespace: i32,
    user_namespace_number: i32,
    /// The pointer to the other namespaces; pointers to each of them, and where their numbers are. Old kernels lack one.
    namespaces: i32,
    plain_namespaces: Vec<(usize, i32, i32)>,
}

/// Those of open files.
#[derive(Clone, Debug)]
pub(crate) struct FilePlaces {
    path: i32,
}

/// Those of mapped memory.
#[derive(Clone, Debug)]
pub(crate) struct MapPlaces {
    file: FilePlaces,
    flags: i32,
    /// Where a value of 8 bytes is in a mapping, and in the record.
    plain: Vec<(i32, i16)>,
    file_of: i16,
    inode_of: i32,
    inode: i32,
    memory_of: i32,
    vdso: Option<i32>,
}

/// The place of a member, which is near.
fn place(types: &KernelTypes, structure: &str, members: &[&str]) -> Option<i32> {
    // Programs add it to an address.
    types.place(structure, members).and_then(|place| i32::try_from(place).ok())
}

impl StatePlaces {
    /// Finds them; `None`: this kernel does not tell them.
    pub(crate) fn find(types: &KernelTypes) -> Option<Self> {
        let of_task = |members: &[&str]| place(types, "task_struct", members);
        Some(Self {
            sequence: place(types, "bpf_iter_meta", &["seq"])?,
            thread: of_task(&["pid"])?,
            process: of_task(&["tgid"])?,
            of_task: TaskPlaces::find(types)?,
        })
    }
}

impl TaskPlaces {
    fn find(types: &KernelTypes) -> Option<Self> {
        use task_places::{CPU, EXIT_STATE, FLAGS, NAME, PROCESS, STATE, THREAD};
        let of = |structure: &str, members: &[&str]| place(types, structure, members);
        let of_task = |members: &[&str]| of("task_struct", members);
        // Linux 5.14 has given the state another name.
        let state = of_task(&["__state"]).or_else(|| of_task(&["state"]))?;
        let cpu = of_task(&["thread_info", "cpu"]).or_else(|| of_task(&["cpu"]))?;
        let plain = vec![
            (of_task(&["pid"])?, THREAD, 4),
            (of_task(&["tgid"])?, PROCESS, 4),
            (of_task(&["flags"])?, FLAGS, 4),
            (state, STATE, 4),
            (of_task(&["exit_state"])?, EXIT_STATE, 4),
            (cpu, CPU, 4),
            (of_task(&["comm"])?, NAME, 16),
        ];
        // The control group's is `cgroup_ns`; that of networks is a structure of another name.
        let namespace = |(at, name): (usize, &&str)| {
            let member = format!("{name}_ns");
            let structure = match *name {
                "mnt" => "mnt_namespace",
                "net" => "net",
                "cgroup" => "cgroup_namespace",
                "ipc" => "ipc_namespace",
                "uts" => "uts_namespace",
                _ => "time_namespace",
            };
            Some((at, of("nsproxy", &[&member])?, of(structure, &["ns", "inum"])?))
        };
        let pid_namespace = of("pid_namespace", &["ns", "inum"])?;
        let namespace_in_number = of("upid", &["ns"])?;
        if namespace_in_number + 8 != NUMBER_BYTES {
            return None;
        }
        Some(Self {
            plain,
            numbers: of_task(&["thread_pid"])?,
            level: of("pid", &["level"])?,
            first_number: of("pid", &["numbers"])?,
            namespace_in_number,
            pid_namespace,
            parent: of_task(&["real_parent"])?,
            credentials: of_task(&["real_cred"])?,
            user: of("cred", &["euid"])?,
            group: of("cred", &["egid"])?,
            user_namespace: of("cred", &["user_ns"])?,
            user_namespace_number: of("user_namespace", &["ns", "inum"])?,
            namespaces: of_task(&["nsproxy"])?,
            plain_namespaces: PLAIN_NAMESPACES.iter().enumerate().filter_map(namespace).collect(),
        })
    }
}

impl FilePlaces {
    pub(crate) fn find(types: &KernelTypes) -> Option<Self> {
        Some(Self { path: place(types, "file", &["f_path"])? })
    }
}

impl MapPlaces {
    pub(crate) fn find(types: &KernelTypes) -> Option<Self> {
        use map_places::{END, OFFSET, START};
        let of = |structure: &str, members: &[&str]| place(types, structure, members);
        let of_map = |members: &[&str]| of("vm_area_struct", members);
        Some(Self {
            file: FilePlaces::find(types)?,
            flags: of_map(&["vm_flags"])?,
            plain: vec![(of_map(&["vm_start"])?, START), (of_map(&["vm_end"])?, END), (of_map(&["vm_pgoff"])?, OFFSET)],
            file_of: i16::try_from(of_map(&["vm_file"])?).ok()?,
            inode_of: of("file", &["f_inode"])?,
            inode: of("inode", &["i_ino"])?,
            memory_of: of_map(&["vm_mm"])?,
            // Other processors have none, or another name for it.
            vdso: of("mm_struct", &["context", "vdso"]),
        })
    }
}

/// Writes a program. Registers: r6 the arguments, r7 the thread, r8 the output, r9 the object, or what hangs on the thread.
struct StateProgram<'a> {
    code: BpfAssembly,
    places: &'a StatePlaces,
    end: Label,
}

impl<'a> StateProgram<'a> {
    /// Begins: without an object, at the end of the iteration, nothing follows.
    fn new(places: &'a StatePlaces, object: Option<i16>) -> Self {
        let mut code = BpfAssembly::default();
        let end = code.label();
        code.copy(R6, R1);
        code.load(R7, (R6, 8), 8);
        code.jump_if(Condition::Equal, R7, 0, end);
        code.load(R1, (R6, 0), 8);
        code.load(R8, (R1, places.sequence as i16), 8);
        if let Some(object) = object {
            code.load(R9, (R6, object), 8);
            code.jump_if(Condition::Equal, R9, 0, end);
        }
        Self { code, places, end }
    }

    fn finish(mut self) -> Vec<[u8; 8]> {
        self.code.place(self.end);
        self.code.exit();
        self.code.finish()
    }

    /// Reads so many bytes at an address to the stack; zeros, if nothing is there.
    fn read(&mut self, to: i16, bytes: i32, (base, offset): (Register, i32)) {
        let code = &mut self.code;
        code.copy(R3, base);
        code.add(R3, offset);
        code.copy(R1, STACK);
        code.add(R1, to.into());
        code.set(R2, bytes);
        code.call(KernelFunction::ReadKernel);
    }

    /// `to` is the pointer at an address.
    fn follow(&mut self, to: Register, from: (Register, i32)) {
        self.read(POINTER, 8, from);
        self.code.load(to, (STACK, POINTER), 8);
    }

    /// Ends if it is not the first thread of its process.
    fn first_threads(&mut self) {
        self.read(WORD, 4, (R7, self.places.thread));
        self.read(KEPT, 4, (R7, self.places.process));
        let code = &mut self.code;
        code.load(R1, (STACK, WORD), 4);
        code.load(R2, (STACK, KEPT), 4);
        code.jump_unequal(R1, R2, self.end);
    }
}

/// The program of threads.
pub(crate) fn tasks(places: &StatePlaces) -> Vec<[u8; 8]> {
    let mut program = StateProgram::new(places, None);
    for at in (0..TASK_BYTES as i16).step_by(8) {
        program.code.store_constant((STACK, RECORD + at), 0, 8);
    }
    let task = &places.of_task;
    numbers(&mut program, task);
    for (from, to, bytes) in &task.plain {
        program.read(RECORD + to, *bytes, (R7, *from));
    }
    program.follow(R9, (R7, task.parent));
    program.read(RECORD + task_places::PARENT, 4, (R9, places.process));
    let is_not_first = program.code.label();
    program.code.load(R1, (STACK, RECORD + task_places::THREAD), 4);
    program.code.load(R2, (STACK, RECORD + task_places::PROCESS), 4);
    program.code.jump_unequal(R1, R2, is_not_first);
    program.follow(R9, (R7, task.credentials));
    program.read(RECORD + task_places::USER, 4, (R9, task.user));
    program.read(RECORD + task_places::GROUP, 4, (R9, task.group));
    program.follow(R9, (R9, task.user_namespace));
    program.read(RECORD + task_places::USER_NAMESPACE, 4, (R9, task.user_namespace_number));
    namespaces(&mut program, task);
    program.code.place(is_not_first);
    program.code.copy(R1, R8);
    program.code.copy(R2, STACK);
    program.code.add(R2, RECORD.into());
    program.code.set(R3, TASK_BYTES as i32);
    program.code.call(KernelFunction::SeqWrite);
    program.finish()
}

/// The numbers of the thread in its PID namespaces. One that has none any more is gone.
fn numbers(program: &mut StateProgram<'_>, task: &TaskPlaces) {
    program.follow(R9, (R7, task.numbers));
    program.code.jump_if(Condition::Equal, R9, 0, program.end);
    program.read(RECORD + task_places::LEVEL, 4, (R9, task.level));
    let done = program.code.label();
    for at in 0..LEVELS_MAX as i16 {
        if at > 0 {
            let goes_on = program.code.label();
            program.code.load(R1, (STACK, RECORD + task_places::LEVEL), 4);
            program.code.jump_if(Condition::Above, R1, i32::from(at) - 1, goes_on);
            program.code.jump(done);
            program.code.place(goes_on);
        }
        let number = task.first_number + i32::from(at) * NUMBER_BYTES;
        program.read(RECORD + task_places::NUMBERS + 4 * at, 4, (R9, number));
    }
    program.code.place(done);
    program.code.load(R1, (STACK, RECORD + task_places::LEVEL), 4);
    program.code.shift_left(R1, NUMBER_BYTES.ilog2() as i32);
    program.code.add_register(R9, R1);
    program.follow(R9, (R9, task.first_number + task.namespace_in_number));
    program.read(RECORD + task_places::PID_NAMESPACE, 4, (R9, task.pid_namespace));
}

/// The other namespaces, if the thread still has them when they were read.
fn namespaces(program: &mut StateProgram<'_>, task: &TaskPlaces) {
    program.read(KEPT, 8, (R7, task.namespaces));
    for (at, pointer, number) in &task.plain_namespaces {
        program.code.load(R9, (STACK, KEPT), 8);
        program.follow(R9, (R9, *pointer));
        program.read(RECORD + task_places::NAMESPACES + 4 * *at as i16, 4, (R9, *number));
    }
    program.follow(R9, (R7, task.namespaces));
    let same = program.code.label();
    program.code.load(R1, (STACK, KEPT), 8);
    program.code.set(R2, 0);
    let changed = program.code.label();
    program.code.jump_unequal(R1, R9, changed);
    program.code.jump(same);
    program.code.place(changed);
    program.code.set(R2, 1);
    program.code.place(same);
    program.code.store((STACK, RECORD + task_places::CHANGED), R2, 4);
}

/// The path of the file in r9 behind the head of the record in `scratch`, and puts out both; `path_bytes`: where its length is.
fn put_out_with_path(
    program: &mut StateProgram<'_>,
    scratch: BorrowedFd<'_>,
    file: &FilePlaces,
    (head, path_bytes): (usize, i16),
) {
    let (is_read, without) = (program.code.label(), program.code.label());
    let code = &mut program.code;
    code.copy(R1, R9);
    code.add(R1, file.path);
    code.map_value(R2, scratch, head as i32);
    code.set(R3, PATH_BYTES_MAX as i32);
    code.call(KernelFunction::Path);
    code.jump_if(Condition::AtMostSigned, R0, 0, without);
    code.jump_if(Condition::Above, R0, PATH_BYTES_MAX as i32, without);
    code.jump(is_read);
    code.place(without);
    code.set(R0, 0);
    code.place(is_read);
    code.map_value(R2, scratch, 0);
    code.store((R2, path_bytes), R0, 4);
    code.copy(R3, R0);
    code.add(R3, head as i32);
    code.copy(R1, R8);
    code.call(KernelFunction::SeqWrite);
}

/// The program of open files; `scratch` is a map with a record.
pub(crate) fn open_files(places: &StatePlaces, file: &FilePlaces, scratch: BorrowedFd<'_>) -> Vec<[u8; 8]> {
    let mut program = StateProgram::new(places, Some(24));
    // Threads may have open files of their own; `/proc` has those of the first one.
    program.first_threads();
    let code = &mut program.code;
    code.map_value(R2, scratch, 0);
    code.load(R1, (STACK, WORD), 4);
    code.store((R2, file_places::PROCESS), R1, 4);
    code.load(R1, (R6, 16), 4);
    code.store((R2, file_places::FD), R1, 4);
    code.store_constant((R2, file_places::PATH_BYTES + 4), 0, 4);
    put_out_with_path(&mut program, scratch, file, (FILE_HEAD_BYTES, file_places::PATH_BYTES));
    program.finish()
}

/// The program of mappings with code; `scratch` is a map with a record.
pub(crate) fn code_maps(places: &StatePlaces, map: &MapPlaces, scratch: BorrowedFd<'_>) -> Vec<[u8; 8]> {
    let mut program = StateProgram::new(places, Some(16));
    program.read(WORD, 8, (R9, map.flags));
    program.code.load(R1, (STACK, WORD), 8);
    program.code.and(R1, CODE);
    program.code.jump_if(Condition::Equal, R1, 0, program.end);
    program.code.load(R1, (STACK, WORD), 8);
    program.code.map_value(R2, scratch, 0);
    program.code.store((R2, map_places::FLAGS), R1, 8);
    program.first_threads();
    program.code.map_value(R2, scratch, 0);
    program.code.load(R1, (STACK, WORD), 4);
    program.code.store((R2, map_places::PROCESS), R1, 4);
    for (from, to) in &map.plain {
        program.follow(R1, (R9, *from));
        program.code.map_value(R2, scratch, 0);
        program.code.store((R2, *to), R1, 8);
    }
    let has_file = program.code.label();
    for to in [map_places::INODE, map_places::VDSO] {
        program.code.store_constant((R2, to), 0, 8);
    }
    program.code.copy(R1, R9);
    program.code.load(R9, (R9, map.file_of), 8);
    program.code.jump_if(Condition::NotEqual, R9, 0, has_file);
    no_file(&mut program, map, scratch);
    program.code.jump(program.end);
    program.code.place(has_file);
    program.read(POINTER, 8, (R9, map.inode_of));
    program.code.load(R1, (STACK, POINTER), 8);
    program.read(WORD, 8, (R1, map.inode));
    program.code.load(R1, (STACK, WORD), 8);
    program.code.map_value(R2, scratch, 0);
    program.code.store((R2, map_places::INODE), R1, 8);
    put_out_with_path(&mut program, scratch, &map.file, (MAP_HEAD_BYTES, map_places::PATH_BYTES));
    program.finish()
}

/// Puts out the record of the mapping in r1, which has no file.
fn no_file(program: &mut StateProgram<'_>, map: &MapPlaces, scratch: BorrowedFd<'_>) {
    if let Some(vdso) = map.vdso {
        program.follow(R9, (R1, map.memory_of));
        program.follow(R9, (R9, vdso));
        program.code.map_value(R2, scratch, 0);
        program.code.store((R2, map_places::VDSO), R9, 8);
    }
    let code = &mut program.code;
    code.map_value(R2, scratch, 0);
    code.store_constant((R2, map_places::PATH_BYTES), 0, 4);
    code.set(R3, MAP_HEAD_BYTES as i32);
    code.copy(R1, R8);
    code.call(KernelFunction::SeqWrite);
}
