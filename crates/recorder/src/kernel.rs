//! The kernel as a source of a session's events: its ring buffers are read into a spool, and the spool becomes a trace.
//!
//! ```text
//! helper ── open files ──> reader ── pages, as they are ──> spool ──> converter ──> OUTPUT/kernel/cpu_N
//!                          every 20 ms                      memory    at idle priority, at the end at once
//! ```
//!
//! The reader copies pages, so that the rings have room again; the converter makes events of them when a CPU has nothing else to
//! do. When the session ends, or when the spool is long, it no longer waits for that.

mod convert;
mod dump;
mod reader;
mod spool;

use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use kymo_ftrace::format::EventFormat;
use kymo_ftrace::{EventCatalog, PageLayout};
use kymo_lane::ClockSource;
pub use kymo_probe::helper::{HELPER_WORD, help, listen};
use kymo_probe::helper::{Helper, HelperProblem, KernelClock, KernelFiles, KernelRequest};

use crate::clock::TickSource;
use crate::kernel::convert::KernelConverter;
use crate::kernel::reader::RingReader;
use crate::kernel::spool::PageSpool;
use crate::trace::OutputOptions;
use crate::tracepoints::{KernelOptions, KernelSummary, chosen};

/// The folder of the kernel's trace in that of a session, and that of programs beside it.
pub const KERNEL_FOLDER: &str = "kernel";
pub(crate) const PROGRAMS_FOLDER: &str = "programs";
/// State that a recording's threads share.
#[derive(Debug, Default)]
struct KernelShared {
    /// The reader reads what is there, and ends.
    is_over: AtomicBool,
    /// The reader has ended.
    is_read: AtomicBool,
    /// The thread that converts.
    converter: AtomicI32,
    summary: Mutex<KernelSummary>,
    problems: Mutex<Vec<String>>,
}

impl KernelShared {
    fn count(&self, change: impl FnOnce(&mut KernelSummary)) {
        change(&mut self.summary.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn problem(&self, problem: String) {
        let mut problems = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
        if problems.len() < 20 && !problems.contains(&problem) {
            problems.push(problem);
        }
    }
}

/// A recording of the kernel's events.
#[derive(Debug)]
pub(crate) struct KernelRecording {
    shared: Arc<KernelShared>,
    helper: Helper,
    switch: std::fs::File,
    reader: JoinHandle<()>,
    converter: JoinHandle<KernelConverter>,
}

/// The state of the threads, the switch, the reader and the converter.
type BegunRecording = (Arc<KernelShared>, std::fs::File, JoinHandle<()>, JoinHandle<KernelConverter>);

impl KernelRecording {
    /// Begins to record.
    ///
    /// # Errors
    ///
    /// Why not, in sentences.
    pub(crate) fn begin(
        options: &KernelOptions,
        output: &Path,
        trace: &OutputOptions,
        clock: &mut TickSource,
        earliest: u64,
    ) -> Result<Self, String> {
        let mut helper = Helper::connect(&options.helper).map_err(|problem| told(&problem))?;
        match Self::begin_with(&mut helper, options, output, trace, clock, earliest) {
            Ok((shared, switch, reader, converter)) => Ok(Self { shared, helper, switch, reader, converter }),
            Err(why) => {
                let _ = helper.end();
                Err(why)
            }
        }
    }

    fn begin_with(
        helper: &mut Helper,
        options: &KernelOptions,
        output: &Path,
        trace: &OutputOptions,
        clock: &mut TickSource,
        earliest: u64,
    ) -> Result<BegunRecording, String> {
        let events = chosen(&options.events, &helper.events().map_err(|problem| told(&problem))?)?;
        let clock_of = match clock.source() {
            ClockSource::Counter => KernelClock::Counter,
            ClockSource::Monotonic => KernelClock::Monotonic,
        };
        let wants_new_tasks = events.iter().any(|event| event == NEW_TASK);
        let mut asked = events.clone();
        // Forks do not tell of the process of a new thread: this does.
        if !wants_new_tasks && asked.iter().any(|event| event == "sched:sched_process_fork") {
            asked.push(NEW_TASK.to_owned());
        }
        let request = KernelRequest { events: asked, clock: clock_of, ring_bytes: options.ring_bytes };
        let KernelFiles { header_page, page_bytes, formats, switch, cpus } =
            helper.begin(&request).map_err(|problem| told(&problem))?;
        let layout = PageLayout::parse(&header_page).map_err(|problem| problem.to_string())?;
        let mut catalog = EventCatalog::default();
        for (system, text) in &formats {
            let format = EventFormat::parse(system, text).map_err(|problem| {
                format!("the kernel's description of an event of {system} cannot be read: {problem}")
            })?;
            let is_wanted = wants_new_tasks || format.name != "task_newtask";
            catalog.add(format, is_wanted);
        }
        let shared = Arc::new(KernelShared::default());
        shared.count(|summary| summary.classes = events.len() as u64);
        let spools = PageSpool::create(cpus.iter().map(|files| files.cpu));
        let spools = spools.map_err(|error| format!("there is no memory for the kernel's events: {error}"))?;
        let facts = clock.facts(earliest);
        let converter = KernelConverter::create(
            &output.join(KERNEL_FOLDER),
            trace,
            (clock, facts),
            (catalog, layout),
            spools.clone(),
        )
        .map_err(|error| error.to_string())?;
        let reader = RingReader::new(cpus, page_bytes, spools);
        let turned = std::io::Write::write_all(&mut &switch, b"1");
        turned.map_err(|error| format!("the kernel does not begin to record: {error}"))?;
        let (for_reader, for_converter) = (Arc::clone(&shared), Arc::clone(&shared));
        let start = |name: &str| std::thread::Builder::new().name(name.to_owned());
        let (tell, told_thread) = std::sync::mpsc::channel();
        let read = move || {
            let _ = tell.send(rustix::thread::gettid());
            reader.run(&for_reader);
        };
        let reader = start("kymo-kernel").spawn(read);
        let reader = reader.map_err(|error| format!("no thread can be started: {error}"))?;
        let converter = start("kymo-converts").spawn(move || converter.run(&for_converter));
        let converter = converter.map_err(|error| {
            shared.is_over.store(true, Ordering::SeqCst);
            format!("no thread can be started: {error}")
        })?;
        // Where the helper has no right to do that, the reader has its turns as others do.
        if let Ok(thread) = told_thread.recv() {
            let _ = helper.hurry(thread.as_raw_nonzero().get().unsigned_abs());
        }
        Ok((shared, switch, reader, converter))
    }

    /// How far it is.
    pub(crate) fn summary(&self) -> KernelSummary {
        *self.shared.summary.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ends: all that the kernel has recorded until now is in the trace. Returns problems, in sentences.
    pub(crate) fn end(self, clock: &mut TickSource) -> (KernelSummary, Vec<String>) {
        let Self { shared, helper, switch, reader, converter } = self;
        if let Err(error) = std::io::Write::write_all(&mut &switch, b"0") {
            shared.problem(format!("the kernel does not stop to record: {error}"));
        }
        let until = clock.now();
        shared.is_over.store(true, Ordering::SeqCst);
        reader::hurry(shared.converter.load(Ordering::SeqCst));
        let _ = reader.join();
        drop(switch);
        match converter.join() {
            Ok(converter) => converter.finish(clock, until, &shared),
            Err(_) => shared.problem("events of the kernel could not be converted: that is a fault of kymo".to_owned()),
        }
        if let Err(problem) = helper.end() {
            shared.problem(format!("the kernel's buffer was not removed: {problem}"));
        }
        let summary = *shared.summary.lock().unwrap_or_else(PoisonError::into_inner);
        let problems = std::mem::take(&mut *shared.problems.lock().unwrap_or_else(PoisonError::into_inner));
        (summary, problems)
    }
}

/// Why the helper has not done it, and a remedy.
fn told(problem: &HelperProblem) -> String {
    let help = match problem {
        HelperProblem::Forbidden(_) => {
            "\nhelp: `sudo kymo record --kernel` has a helper set up the kernel's buffers as root, and does everything else as you"
        }
        _ => "",
    };
    format!("{problem}{help}")
}

/// The clock of the kernel's events: that of programs, where the kernel has it.
pub(crate) fn kernel_source() -> ClockSource {
    if cfg!(target_arch = "x86_64") { kymo_tracer::usual_source() } else { ClockSource::Monotonic }
}

/// Removes the folder of a recording that could not begin.
pub(crate) fn discard(output: &Path) {
    let _ = std::fs::remove_dir_all(output.join(KERNEL_FOLDER));
    // If nothing else is there.
    let _ = std::fs::remove_dir(output);
}

/// Tells of new threads, with their flags.
const NEW_TASK: &str = "task:task_newtask";
