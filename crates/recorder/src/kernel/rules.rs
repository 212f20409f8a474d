//! Rules about events of the kernel, beside the pages: programs in the kernel write a record of each event that they keep.
//!
//! ```text
//! words ── asked ──> request for the helper, and the tables of records
//! look n      records of all CPUs, and a mark ──> spool
//! converter   records up to a mark ──> events with the fields of their tracepoint, and `took_ns`
//! kymo limit ──> memory that the programs have mapped
//! ```

mod asked;
mod control;
mod explained;
mod feed;

use std::io;
use std::sync::Arc;

pub(super) use asked::{AskedRules, RuleEventTable, asked};
pub(super) use control::RuleControl;
pub use explained::{ExplainedRule, RuleProgram, kernel_rule_programs};
pub(super) use feed::RuleFeed;
use kymo_ftrace::EventCatalog;
use kymo_lane::ClockSource;
use kymo_probe::rings::ProgramRings;
use kymo_probe::rules::{MappedRule, RuleFiles};

use crate::kernel::marked::{MarkedSpool, MarkedWriter};

/// Bytes of an entry of a CPU before its records: how many were lost until then.
const LOST_BYTES: usize = 8;

/// Moves records from rings to their spool.
#[derive(Debug)]
pub(super) struct RuleReader {
    rings: ProgramRings,
    memories: Vec<MappedRule>,
    writer: MarkedWriter,
    /// By ring: records that were lost until the last look.
    lost: Vec<u64>,
    bytes: Vec<u8>,
}

impl RuleReader {
    /// Moves all records, if there is room for them, and marks that. `may_forget`: no snapshot needs the oldest.
    pub(super) fn read(&mut self, has_room: bool, may_forget: bool) -> io::Result<()> {
        let Self { rings, memories, writer, lost, bytes } = self;
        writer.begin();
        if has_room && !writer.is_crowded() {
            for (number, lost) in lost.iter_mut().enumerate() {
                let cpu = rings.cpu(number);
                let now: u64 = memories.iter().map(|memory| memory.lost_of(cpu)).sum();
                bytes.clear();
                rings.drain_one(number, bytes);
                if !bytes.is_empty() || now != *lost {
                    *lost = now;
                    writer.entry(cpu, |batch| {
                        batch.extend_from_slice(&now.to_le_bytes());
                        batch.extend_from_slice(bytes);
                    });
                }
            }
        }
        writer.end(lost.iter().sum(), 0)?;
        rings.release();
        if may_forget { writer.keep_newest(|_| {}) } else { Ok(()) }
    }

    /// Bytes that wait for conversion.
    pub(super) fn waiting(&self) -> u64 {
        self.writer.waiting()
    }
}

/// The way of records to converters.
#[derive(Debug)]
pub(super) struct RuleSource {
    marked: MarkedSpool,
    tables: Arc<Vec<Vec<RuleEventTable>>>,
    /// Names of the rules.
    names: Arc<Vec<String>>,
    /// Descriptions of system calls.
    calls: Arc<EventCatalog>,
    /// For the environment of traces: events that rules are about.
    told: String,
}

impl RuleSource {
    /// The entry of a trace's environment that tells which events its rules are about.
    pub(super) fn environment(&self) -> (String, String) {
        ("kernel_ruled".to_owned(), self.told.clone())
    }
}

/// The reader of records, their way to converters, and the limits. A flight recorder keeps so many bytes.
pub(super) fn begin(
    files: RuleFiles,
    asked: AskedRules,
    source: ClockSource,
    kept_bytes: Option<u64>,
) -> Result<(RuleReader, Arc<RuleSource>, RuleControl), String> {
    let RuleFiles { rings: files, memories } = files;
    let map = || memories.iter().map(|(file, shape)| MappedRule::map(file, *shape)).collect::<io::Result<Vec<_>>>();
    let mapped = ProgramRings::map(&files).and_then(|rings| Ok((rings, map()?, map()?)));
    let (rings, of_reader, of_control) = mapped.map_err(|error| format!("rings of rules cannot be mapped: {error}"))?;
    let kept_bytes = kept_bytes.map(|bytes| bytes * files.cpus.len() as u64);
    let marked = MarkedSpool::open(files.spool, kept_bytes).map_err(|error| error.to_string())?;
    let writer = MarkedWriter::new(marked.clone(), source).map_err(|error| error.to_string())?;
    let lost = vec![0; rings.count()];
    let reader = RuleReader { rings, memories: of_reader, writer, lost, bytes: Vec::new() };
    let AskedRules { options, kinds, tables, calls, told, .. } = asked;
    let names = Arc::new(options.iter().map(|rule| rule.name.clone()).collect());
    let (tables, calls, told) = (Arc::new(tables), Arc::new(calls), told.join("; "));
    let source = RuleSource { marked, tables, names, calls, told };
    let files = memories.into_iter().map(|(file, _)| file).zip(of_control).collect();
    Ok((reader, Arc::new(source), RuleControl::new(options, kinds, files)))
}
