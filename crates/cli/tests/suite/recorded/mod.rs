//! A program that records what it is told to, and a folder in which nobody else's programs are.

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::rc::{Rc, Weak};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use kymo_tracer::Event;
use serde_json::Value;

/// How long is waited for what has to happen.
const PATIENCE: Duration = Duration::from_secs(60);

static COUNT: Event = Event::new(b"event test:count\nlevel 6\nfield u64 value\n");
static OTHER: Event = Event::new(b"event test:other\nlevel 14\nfield u64 value\nfield text host\n");
/// No recorder can use this definition: two fields have one name.
static TWICE: Event = Event::new(b"event test:twice\nlevel 6\nfield u32 same\nfield u16 same\n");
static BEGIN: Event = Event::new(b"event test:begin\nlevel 6\nfield u64 value\nfield text kind\n");
static END: Event = Event::new(b"event test:end\nlevel 6\nfield text kind\nfield u64 value\n");
static LATE: Event = Event::new(b"event late:count\nlevel 6\nfield u64 value\n");

/// What the program does: lines say what, and each is answered by one.
pub fn act() {
    assert!(COUNT.register() && OTHER.register() && BEGIN.register() && END.register());
    let (mut counted, mut others) = (0_u64, 0_u64);
    println!("@begun {}", std::process::id());
    for line in std::io::stdin().lines() {
        let line = line.expect("lines are text");
        let (word, number) = line.split_once(' ').unwrap_or((&line, "0"));
        let number: u64 = number.parse().expect("a number");
        match word {
            "count" => {
                for _ in 0..number {
                    COUNT.record(&counted.to_le_bytes());
                    counted += 1;
                }
            }
            // As sites of programs do it: the event's filters and triggers are asked.
            "offer" => {
                (counted..counted + number).for_each(offer);
                counted += number;
            }
            "from" => counted = number,
            "slowly" => {
                for _ in 0..number {
                    COUNT.record(&counted.to_le_bytes());
                    counted += 1;
                    let began = Instant::now();
                    while began.elapsed() < Duration::from_micros(4) {
                        std::hint::spin_loop();
                    }
                }
            }
            "other" => {
                (others..others + number).for_each(record_other);
                others += number;
            }
            "late" => {
                assert!(LATE.register());
                until(|| LATE.is_on());
                (0..number).for_each(|value| LATE.record(&value.to_le_bytes()));
            }
            // Whether events are on at once, and not when somebody has switched them.
            "late-is" => {
                assert!(LATE.register());
                assert_eq!(LATE.is_on(), number > 0);
            }
            "child-is" => {
                let words = words();
                let mut child = Program::of(Command::new(&words[0]).args(&words[1..]));
                child.tell(&format!("is {number}"));
                child.tell(&format!("late-is {number}"));
            }
            "twice" => {
                assert!(TWICE.register());
                (0..number).for_each(|_| TWICE.record(&[0; 6]));
            }
            // Definitions of 60 KB each; the lines of unknown words are skipped.
            "fill" => (0..number).for_each(|number| {
                let text = format!("event fill:e{number}\nlevel 6\nnote {}\n", "x".repeat(60_000));
                Box::leak(Box::new(Event::new(Box::leak(text.into_bytes().into_boxed_slice())))).register();
            }),
            "calls" => call_across(),
            "thread" => std::thread::scope(|scope| {
                scope.spawn(|| {
                    (0..number).for_each(|more| COUNT.record(&(counted + more).to_le_bytes()));
                });
            }),
            "is" => assert_eq!(COUNT.is_on(), number > 0),
            "on" => until(|| COUNT.is_on()),
            "off" => until(|| !COUNT.is_on()),
            "others-on" => until(|| OTHER.is_on()),
            "exit" => std::process::exit(number as i32),
            "die" => std::process::abort(),
            word => act_as_component(word, number, counted),
        }
        println!("@done");
    }
    std::process::exit(0);
}

/// The words about threads with names, and marks.
fn act_as_component(word: &str, number: u64, counted: u64) {
    match word {
        "worker" => on_thread("worker", || (0..number).for_each(|_| offer(counted))),
        "marks" => on_thread("ep", marks),
        "durations" => (0..number).for_each(durations),
        word => act_on_jobs(word, number),
    }
}

fn offer(value: u64) {
    if COUNT.is_on()
        && COUNT.is_kept(&value)
        && let Some(mut write) = COUNT.enter(8)
    {
        write.put(&value.to_le_bytes());
        write.leave();
    }
}

/// The words about jobs.
fn act_on_jobs(word: &str, number: u64) {
    match word {
        "begin" => begin(number),
        "end" => end(number),
        "end-elsewhere" => std::thread::scope(|scope| _ = scope.spawn(|| end(number))),
        "packets" => (0..number).for_each(|count| {
            kymo_tracer::packet!("lan", kymo_tracer::marks::Direction::Inbound, &[count as u8; 60]);
        }),
        // Of ten jobs one takes longer than the others.
        "jobs" => (0..number).for_each(|job| {
            begin(job);
            let (began, takes) = (Instant::now(), if job % 10 == 9 { 200 } else { 2 });
            while began.elapsed() < Duration::from_micros(takes) {
                std::hint::spin_loop();
            }
            end(job);
        }),
        word => panic!("{word}"),
    }
}

/// Kinds of jobs.
const KINDS: [&str; 2] = ["even", "odd"];

fn begin(value: u64) {
    #[repr(C)]
    struct BeginArguments(u64, *const u8, u64);
    let kind = KINDS[value as usize % 2];
    if BEGIN.is_on() && BEGIN.is_kept(&BeginArguments(value, kind.as_ptr(), kind.len() as u64)) {
        put(&BEGIN, &[&value.to_le_bytes(), &(kind.len() as u16).to_le_bytes(), kind.as_bytes()]);
    }
}

fn end(value: u64) {
    #[repr(C)]
    struct EndArguments(*const u8, u64, u64);
    let kind = KINDS[value as usize % 2];
    if END.is_on() && END.is_kept(&EndArguments(kind.as_ptr(), kind.len() as u64, value)) {
        put(&END, &[&(kind.len() as u16).to_le_bytes(), kind.as_bytes(), &value.to_le_bytes()]);
    }
}

fn put(event: &Event, fields: &[&[u8]]) {
    let fields = fields.concat();
    if let Some(mut write) = event.enter(fields.len() as u64) {
        write.put(&fields);
        write.leave();
    }
}

fn record_other(value: u64) {
    let mut bytes = value.to_le_bytes().to_vec();
    bytes.extend([2, 0, b'h', b'0' + (value % 10) as u8]);
    OTHER.record(&bytes);
}

fn on_thread(name: &str, act: impl FnOnce() + Send) {
    std::thread::scope(|scope| {
        let named = std::thread::Builder::new().name(name.to_owned());
        named.spawn_scoped(scope, act).expect("it starts").join().expect("it does not panic");
    });
}

/// All marks that Genode's recorder has a name for.
fn marks() {
    use kymo_tracer::marks::Checkpoint;
    let object = std::ptr::null();
    kymo_tracer::signal_receive!(0x7F00_1000, 2);
    kymo_tracer::checkpoint!("handle", 32, object, Checkpoint::Start);
    kymo_tracer::rpc_call!("submit", 7);
    kymo_tracer::rpc_return!("submit", 7);
    kymo_tracer::rpc_dispatch!("trigger_once", 8);
    kymo_tracer::begin!("part", 1);
    kymo_tracer::end!("part", 1);
    kymo_tracer::rpc_reply!("trigger_once", 8);
    kymo_tracer::checkpoint!("handle", 32, object, Checkpoint::End);
    kymo_tracer::signal_submit!(0x7F00_1000, 1);
}

/// Calls itself, with a duration in each call; each second call from outside is told.
fn durations(number: u64) {
    kymo_tracer::trace_tsc!(2);
    kymo_tracer::log_tsc!(2, "durations");
    kymo_tracer::checkpoint_here!(number);
    kymo_tracer::checkpoint_scope!(10 + number);
    kymo_tracer::checkpoint_scope!("inside", 20 + number);
    if number > 0 {
        durations(number - 1);
    }
}

/// Two threads call at the same time; calls with a number end on the other one.
fn call_across() {
    let both = std::sync::Barrier::new(2);
    let call = |numbers: [u64; 2]| {
        kymo_tracer::rpc_call!("open", 0);
        kymo_tracer::rpc_call!("far", numbers[0]);
        both.wait();
        kymo_tracer::rpc_return!("far", numbers[1]);
        kymo_tracer::rpc_return!("open", 0);
    };
    std::thread::scope(|scope| {
        scope.spawn(|| call([7, 8]));
        scope.spawn(|| call([8, 7]));
    });
}

/// Waits for a condition.
pub fn until(mut is_true: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_true() {
        assert!(began.elapsed() < PATIENCE, "it does not come about");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// A program that runs.
pub struct Program {
    pub child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    pub pid: u32,
}

/// The words that make this test the program.
pub fn words() -> Vec<String> {
    let own = std::env::current_exe().expect("it runs").display().to_string();
    [&own, "--exact", "the_program", "--nocapture", "--test-threads=1"].map(str::to_owned).to_vec()
}

impl Program {
    /// Of a command that becomes the program in the end.
    pub fn of(command: &mut Command) -> Self {
        let command = command.env("KYMO_TEST_PROGRAM", "1").stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let to = child.stdin.take();
        let from = BufReader::new(child.stdout.take().expect("it is piped"));
        let mut program = Self { child, to, from, pid: 0 };
        program.pid = program.hear().strip_prefix("begun ").expect("it says so").parse().expect("a number");
        program
    }

    fn hear(&mut self) -> String {
        loop {
            let mut line = String::new();
            assert!(self.from.read_line(&mut line).expect("it is text") > 0, "it is gone");
            // The test's name may stand before it.
            if let Some((_, said)) = line.trim_end().split_once('@') {
                return said.to_owned();
            }
        }
    }

    /// Tells it to do something, and waits until it is done.
    pub fn tell(&mut self, line: &str) {
        self.say(line);
        assert_eq!(self.hear(), "done", "{line}");
    }

    /// Waits until what it was told is done.
    pub fn wait(&mut self) {
        assert_eq!(self.hear(), "done");
    }

    /// Tells it to do something.
    pub fn say(&mut self, line: &str) {
        writeln!(self.to.as_mut().expect("it listens"), "{line}").expect("it listens");
    }

    /// Waits until it is over.
    pub fn end(mut self) -> Output {
        self.to = None;
        let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
        self.from.read_to_end(&mut stdout).expect("it can be read");
        self.child.stderr.take().map(|mut from| from.read_to_end(&mut stderr).expect("it can be read"));
        let status = self.child.wait().expect("it ends");
        Output { status, stdout, stderr }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
    }
}

/// Who has places: tests beside each other, or one alone.
static PLACES: RwLock<()> = RwLock::new(());

/// What a test has of [`PLACES`].
#[allow(dead_code, reason = "it is held, and not read")]
enum Having {
    Beside(RwLockReadGuard<'static, ()>),
    Alone(RwLockWriteGuard<'static, ()>),
}

thread_local! {
    /// The lock that this thread's test holds, shared by all of its places: a test with two places cannot wait for itself.
    static HAVING: RefCell<Weak<Having>> = const { RefCell::new(Weak::new()) };
}

/// A folder for programs and traces of one test.
pub struct Place {
    folder: tempfile::TempDir,
    /// Given back when all else is over.
    having: Rc<Having>,
}

impl Place {
    pub fn new() -> Self {
        Self::having(|| Having::Beside(PLACES.read().unwrap_or_else(PoisonError::into_inner)))
    }

    /// The place of a test beside which no other test has one: it shows programs to the recorders of all places, which
    /// would record them, or it takes so much of the machine that others would wait for too long.
    pub fn alone() -> Self {
        let this = Self::having(|| Having::Alone(PLACES.write().unwrap_or_else(PoisonError::into_inner)));
        assert!(matches!(*this.having, Having::Alone(_)), "this test has another place already");
        this
    }

    fn having(wait: impl FnOnce() -> Having) -> Self {
        let having = HAVING.with_borrow_mut(|had| {
            had.upgrade().unwrap_or_else(|| {
                let having = Rc::new(wait());
                *had = Rc::downgrade(&having);
                having
            })
        });
        let folder = tempfile::Builder::new().prefix("kymo-record-").tempdir().expect("there is room");
        Self { folder, having }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A command in which programs and recorders of this test meet.
    pub fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder.path()).env("XDG_RUNTIME_DIR", self.folder.path());
        command.env("XDG_CACHE_HOME", self.path("cache")).env_remove("KYMO_SESSION");
        // Tests that root runs by `sudo` are root's.
        command.env_remove("SUDO_UID").env_remove("PKEXEC_UID");
        command
    }

    /// `kymo`, which is to be asked something.
    pub fn kymo(&self, words: &[&str]) -> Command {
        let mut command = self.command(env!("CARGO_BIN_EXE_kymo"));
        command.args(words);
        command
    }

    /// What it says, when it has to end with this status.
    pub fn says(&self, words: &[&str], status: i32) -> String {
        let output = self.kymo(words).output().expect("it starts");
        let (said, told) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(status), "kymo {}\n{said}{told}", words.join(" "));
        format!("{said}{told}")
    }

    pub fn json(&self, words: &[&str]) -> Value {
        let output = self.kymo(words).output().expect("it starts");
        serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{words:?}: {error}: {output:?}"))
    }

    pub fn program(&self) -> Program {
        let words = words();
        Program::of(self.command(&words[0]).args(&words[1..]))
    }

    /// Values of the events of this name, in the order of the trace.
    pub fn values(&self, trace: &Path, event: &str) -> Vec<u64> {
        let trace = trace.display().to_string();
        let text = self.says(&["print", "--event", event, &trace], 0);
        let value = |line: &str| {
            let digits = line.split_once("value = ").unwrap_or_else(|| panic!("{line}")).1;
            digits.split(|character: char| !character.is_ascii_digit()).next().and_then(|digits| digits.parse().ok())
        };
        // A recorder may have been killed before it had anything.
        let events = text.lines().filter(|line| !line.to_lowercase().starts_with("warning: "));
        events.map(|line| value(line).unwrap_or_else(|| panic!("{line}"))).collect()
    }
}

impl Place {
    /// Waits until a session has a program.
    pub fn waits_for_program(&self) {
        until(|| {
            let status = self.json(&["status", "--json"]);
            let attached = |program: &Value| program["is_attached"] == true;
            status["programs"].as_array().is_some_and(|programs| programs.iter().any(attached))
        });
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Recorders end with their last session.
        let _ = self.kymo(&["stop", "--all"]).output();
    }
}

/// A disk of 1 MiB in memory, gone with its test.
pub struct Disk(pub PathBuf);

impl Disk {
    /// `None`: none can be mounted here, which is said.
    pub fn mount(folder: PathBuf) -> Option<Self> {
        std::fs::create_dir(&folder).expect("there is room");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=1m,mode=700", "tmpfs"]).arg(&folder).stderr(Stdio::null());
        if mount.status().is_ok_and(|status| status.success()) {
            return Some(Self(folder));
        }
        eprintln!("NOT TESTED: what is full, as no small disk can be mounted here");
        None
    }

    /// No room is left.
    pub fn fill(&self) {
        let _ = std::fs::write(self.0.join("fill"), vec![0; 2 << 20]);
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}
