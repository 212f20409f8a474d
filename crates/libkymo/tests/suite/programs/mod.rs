//! Programs in C and C++, built with what the machine has and run beside a recorder that knows nothing but their memory.

#![allow(dead_code, reason = "each test needs some of it")]

#[path = "../../../../recorder/src/program/control.rs"]
mod control;
pub mod expected;

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output};
use std::rc::Rc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use kymo_lane::contexts::FIRST_OWN;
use kymo_lane::{MemoryLayout, MemoryView, OverflowMode, RecorderSide, RecordingSettings, WriterThread};

use control::Control;

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("it is there")
}

/// Whether a compiler or an emulator is there; says so where it is not.
pub fn has(tool: &str) -> bool {
    let is_there = Command::new(tool).arg("--version").output().is_ok_and(|output| output.status.success());
    if !is_there {
        eprintln!("NOT TESTED: there is no {tool} on this machine");
    }
    is_there
}

/// The folder with libkymo.so and libkymo.a, as they are handed out: built beside what cargo has built these tests in.
pub fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| build_library(&[], &[]).join("libkymo"))
}

/// Builds it with more arguments and variables; where cargo puts what it builds.
pub fn build_library(arguments: &[&str], variables: &[(&str, &str)]) -> PathBuf {
    let test = std::env::current_exe().expect("it runs");
    let target = test.ancestors().nth(3).expect("it lies in target/PROFILE/deps");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.args(["build", "--quiet", "--profile", "libkymo", "--package", "kymo-libkymo", "--target-dir"]).arg(target);
    cargo.args(arguments).envs(variables.iter().copied());
    let output = cargo.current_dir(root()).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    target.to_owned()
}

/// Flags that everything is built with: what compilers warn of is an error.
pub const STRICT: &[&str] =
    &["-Wall", "-Wextra", "-Wpedantic", "-Werror", "-Wshadow", "-Wconversion", "-Wundef", "-pthread"];

/// A folder of a test alone, for programs and for files of processes; gone afterwards.
pub struct Folder(PathBuf);

impl Folder {
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = Path::new("/dev/shm").join(format!("kymo-c-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("there is room");
        // Programs look for the library by the name that says which one they can do with.
        std::os::unix::fs::symlink(library().join("libkymo.so"), folder.join("libkymo.so.0")).expect("it is new");
        Self(folder)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Runs a compiler over a file of `tests/c`.
    pub fn compile(&self, compiler: &str, source: &Path, flags: &[&str], to: &str) -> (PathBuf, Output) {
        let built = self.0.join(to);
        let mut command = Command::new(compiler);
        // Flags of the linker stand behind what needs them.
        let (link, flags): (Vec<&str>, Vec<&str>) = flags
            .iter()
            .partition(|flag| ["-W", "-l", "-L"].iter().any(|begin| flag.starts_with(begin)) || flag.ends_with(".a"));
        command.args(STRICT).args(&flags).arg("-I").arg(root().join("include")).arg(source);
        command.args(["-x", "none", "-o"]).arg(&built).args(link);
        let library = library();
        if !["-c", "-DKYMO_OFF", "-DKYMO_STATIC"].iter().any(|flag| flags.contains(flag)) {
            command.arg("-L").arg(library).arg("-lkymo");
            command.arg(format!("-Wl,-rpath,{}", self.0.display()));
        }
        (built, command.output().expect("it starts"))
    }

    /// A program; `None`: there is no such compiler, which was said.
    pub fn build_with(&self, compiler: &str, source: &str, flags: &[&str]) -> Option<PathBuf> {
        if !has(compiler) {
            return None;
        }
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(source);
        let name = source.split('.').next().expect("it has a name");
        let (built, output) = self.compile(compiler, &path, flags, name);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{compiler} {flags:?} {source}: {said}");
        Some(built)
    }

    /// Calls what was built something else.
    pub fn rename(&self, built: &Path, name: &str) -> PathBuf {
        let to = self.0.join(name);
        std::fs::rename(built, &to).expect("it is there");
        to
    }

    /// A program in C.
    pub fn build(&self, source: &str) -> Option<PathBuf> {
        self.build_with("cc", source, &["-std=gnu11", "-O2", "-g"])
    }

    /// A program that is on from the begin.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("KYMO_SESSION", "test").env("XDG_RUNTIME_DIR", &self.0).current_dir(&self.0);
        command
    }

    /// Runs it to its end and takes what all of its processes recorded.
    pub fn run(&self, command: &mut Command) -> Vec<Recording> {
        let mut child = command.spawn().expect("it starts");
        let recordings = self.watch(&mut child);
        let status = child.wait().expect("it ends");
        assert!(status.success(), "{command:?}: {status}");
        recordings
    }

    /// Drains all processes until a child has ended.
    pub fn watch(&self, child: &mut Child) -> Vec<Recording> {
        let mut all: Vec<Recording> = Vec::new();
        loop {
            let is_over = child.try_wait().expect("it can be asked").is_some();
            self.take(&mut all);
            if is_over {
                self.take(&mut all);
                return all;
            }
        }
    }

    /// Takes what is there.
    pub fn take(&self, all: &mut Vec<Recording>) {
        for path in self.files() {
            if all.iter().all(|known| known.path != path) {
                all.extend(Recording::of(&path));
            }
        }
        all.iter_mut().for_each(Recording::drain);
    }

    fn files(&self) -> Vec<PathBuf> {
        let Ok(entries) = std::fs::read_dir(self.0.join("kymo")) else { return Vec::new() };
        let all = entries.map(|entry| entry.expect("it can be read").path());
        let mut files: Vec<PathBuf> = all.filter(|path| path.extension().is_some_and(|kind| kind == "ctl")).collect();
        files.sort();
        files
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// What a field was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// The bytes of a number.
    Number(u64),
    Text(String),
    /// Bytes of elements.
    Elements(Vec<u8>),
}

impl Value {
    pub fn number(&self) -> u64 {
        match self {
            Self::Number(number) => *number,
            other => panic!("{other:?} is no number"),
        }
    }
}

/// An event that was found.
#[derive(Clone, Debug)]
pub struct Found {
    pub name: Rc<str>,
    pub thread: WriterThread,
    pub lane: u16,
    pub ticks: u64,
    /// Contexts of the program that it carries.
    pub own: Vec<Value>,
    pub values: Vec<Value>,
}

/// Whoever drains here is slow: 64 MiB of sub-buffers.
fn wants(contexts: u64) -> RecordingSettings {
    RecordingSettings { mode: OverflowMode::DiscardNewest, lane: 2048, pool: 2048, contexts }
}

/// What one process records.
pub struct Recording {
    pub path: PathBuf,
    pub pid: u32,
    recorder: RecorderSide<Control>,
    layout: MemoryLayout,
    /// By id: name and types of fields.
    classes: HashMap<u16, (Rc<str>, Vec<String>)>,
    /// By number: types of contexts of the program.
    contexts: HashMap<u16, String>,
    last: Option<kymo_lane::DefinitionPlace>,
    known: HashMap<u16, (u64, u32)>,
    epoch: u64,
    pub definitions: Vec<String>,
    pub found: Vec<Found>,
}

impl Recording {
    /// `None`: it has not begun.
    fn of(path: &Path) -> Option<Self> {
        let file = File::options().read(true).write(true).open(path).ok()?;
        let bytes = file.metadata().ok()?.len();
        let view = Control(file);
        let layout = MemoryLayout::read(&view, bytes).ok()?.ok()?;
        let pid = view.word(56).ok()? as u32;
        let recorder = RecorderSide::new(view, layout);
        recorder.say(&wants(0)).ok()?;
        Some(Self {
            path: path.to_owned(),
            pid,
            recorder,
            layout,
            classes: HashMap::new(),
            contexts: HashMap::new(),
            last: None,
            known: HashMap::new(),
            epoch: 0,
            definitions: Vec::new(),
            found: Vec::new(),
        })
    }

    /// Switches all events of a name.
    pub fn switch(&mut self, name: &str, to: u8) {
        self.define();
        for id in self.classes.iter().filter(|class| &*class.1.0 == name).map(|class| *class.0) {
            self.recorder.switch(id, to).expect("it can be written");
        }
    }

    /// Asks that events carry so many contexts of the program, and nothing else.
    pub fn want_own(&self, count: u32) {
        self.recorder.say(&wants(((1 << count) - 1) * FIRST_OWN)).expect("it can be written");
    }

    fn define(&mut self) {
        while let Some(next) = self.recorder.definition(self.last.as_ref()).expect("it can be read") {
            let mut text = vec![0; next.bytes as usize];
            self.recorder.said(&next, &mut text).expect("it can be read");
            let text = String::from_utf8(text).expect("it is text");
            self.last = Some(next);
            let field = |line: &str| {
                line.strip_prefix("field ").map(|field| field.rsplit_once(' ').expect("it has a name").0.to_owned())
            };
            if next.is_context {
                let kind = text.lines().find_map(field).expect("it has a type");
                assert!(self.contexts.insert(next.id, kind).is_none(), "{text}");
                continue;
            }
            let name = text.lines().next().expect("it is there").trim_start_matches("event ").into();
            self.classes.insert(next.id, (name, text.lines().filter_map(field).collect()));
            self.definitions.push(text);
        }
    }

    /// Takes what is there.
    pub fn drain(&mut self) {
        let look = |number| self.recorder.look(number).expect("it can be read");
        let mut all: Vec<_> = (0..self.recorder.ready().expect("it can be read")).filter_map(look).collect();
        all.sort_by_key(|seen| (seen.lane, seen.sequence));
        for seen in all {
            let (next, copied) = self.known.get(&seen.lane).copied().unwrap_or_default();
            if seen.sequence != next {
                continue;
            }
            let mut bytes = vec![0; (seen.bytes - copied) as usize];
            assert!(self.recorder.copy(&seen, copied, &mut bytes).expect("it can be read"));
            let mut rest = &bytes[..];
            // Whoever has seen an event finds its definition.
            self.define();
            while !rest.is_empty() {
                let id = u16::from_le_bytes(take(&mut rest));
                let low = u32::from_le_bytes(take(&mut rest));
                let numbers = (0..16).filter(|number| seen.contexts & FIRST_OWN << number != 0);
                assert_eq!(seen.contexts % FIRST_OWN, 0, "nothing else was asked for");
                let own = numbers.map(|number| value(&self.contexts[&number], &mut rest)).collect();
                let (name, types) = &self.classes[&id];
                let values = types.iter().map(|field| value(field, &mut rest)).collect();
                let ticks = seen.begin + u64::from(low.wrapping_sub(seen.begin as u32));
                self.found.push(Found { name: name.clone(), thread: seen.thread, lane: seen.lane, ticks, own, values });
            }
            if seen.is_full {
                self.recorder.free(&seen).expect("it can be written");
                self.epoch += 1;
                self.recorder.freed(self.epoch).expect("it can be written");
                self.known.insert(seen.lane, (next + 1, 0));
            } else {
                self.known.insert(seen.lane, (next, seen.bytes));
            }
        }
    }

    fn losses(&self) -> impl Iterator<Item = kymo_lane::Losses> + '_ {
        (0..self.layout.lanes as u16).map(|lane| self.recorder.losses(lane).expect("it is there"))
    }

    /// Events that were lost.
    pub fn lost(&self) -> u64 {
        self.losses().map(|losses| losses.discarded).sum::<u64>() + self.recorder.discarded().expect("it is there")
    }

    /// Events of which something was cut.
    pub fn cut(&self) -> u64 {
        self.losses().map(|losses| losses.cut).sum()
    }

    /// How many events of a name were found.
    pub fn count(&self, name: &str) -> u64 {
        self.of_name(name).count() as u64
    }

    pub fn of_name<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Found> {
        self.found.iter().filter(move |found| &*found.name == name)
    }

    /// Times never step back in a lane.
    pub fn check_times(&self) {
        let mut last = HashMap::new();
        for found in &self.found {
            let before = last.insert(found.lane, found.ticks);
            assert!(before.is_none_or(|before| before <= found.ticks), "{found:?} is before {before:?}");
        }
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> [u8; N] {
    let (bytes, behind) = rest.split_first_chunk().expect("an event is whole");
    *rest = behind;
    *bytes
}

fn some(rest: &mut &[u8], bytes: usize) -> Vec<u8> {
    let (bytes, behind) = rest.split_at(bytes);
    *rest = behind;
    bytes.to_vec()
}

fn size(of: &str) -> usize {
    match of {
        "u8" | "i8" | "x8" | "bool" => 1,
        "u16" | "i16" | "x16" => 2,
        "u32" | "i32" | "x32" | "f32" => 4,
        "u64" | "i64" | "x64" | "f64" | "pointer" => 8,
        other => panic!("{other} is no type"),
    }
}

fn value(field: &str, rest: &mut &[u8]) -> Value {
    let words: Vec<&str> = field.split([' ', '(']).collect();
    match words[..] {
        ["text"] => {
            let length = u16::from_le_bytes(take(rest));
            Value::Text(String::from_utf8(some(rest, length.into())).expect("it is text"))
        }
        ["array", count, of] => Value::Elements(some(rest, size(of) * count.parse::<usize>().expect("it is a number"))),
        ["sequence", of] => {
            let count = usize::from(u16::from_le_bytes(take(rest)));
            Value::Elements(some(rest, size(of) * count))
        }
        ["enum", of, ..] | [of] => {
            let mut number = [0; 8];
            let bytes = some(rest, size(of));
            number[..bytes.len()].copy_from_slice(&bytes);
            Value::Number(u64::from_le_bytes(number))
        }
        _ => panic!("{field} is no field"),
    }
}

/// What a program said it has recorded: `counts.h`.
pub struct Counts(Vec<u8>);

impl Counts {
    pub fn of(folder: &Folder) -> Self {
        Self(std::fs::read(folder.path().join("counts")).expect("the program writes it"))
    }

    fn word(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.0[8 * at..8 * at + 8].try_into().expect("8 bytes"))
    }

    pub fn begun(&self, slot: usize) -> u64 {
        self.word(2 * slot)
    }

    pub fn ended(&self, slot: usize) -> u64 {
        self.word(2 * slot + 1)
    }
}
