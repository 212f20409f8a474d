//! The states of CPUs and threads, computed once and kept; queried at any instant.
//!
//! ```text
//! first time    trace ── States ──> runs ──> file in the cache
//! afterwards                                 file: few blocks around the instant ──> answer
//! ```
//!
//! The file belongs to the traces as they were: their streams, their metadata, the mapping of
//! roles. Where one of them changed, everything is computed again. Without a cache, a file without
//! a name does for one answer. The states of an own analysis are another such file (`own`), which
//! belongs to the text of the analysis too.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use kymo_analysis::runs::{RunBlock, RunWriter, StateRun, runs_between};
use kymo_analysis::states::{InstantStates, RunTexts, StatesAnalysis};
use kymo_analysis::{
    Analysis, Answer, AnyAnalysis, AnyState, Headline, Room, Spool, SpoolBlock, SpoolError, SpoolErrorKind, Wishes,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::{AnalyseFailure, Analysed, Question, ReadResults, TABLE_BYTES};
use crate::answers::analysis_options::AnalysisOptions;
use crate::cache::hash;
use crate::cache::indexed::{FileKind, IndexedFile};
use crate::open::Session;
use crate::open::progress::Progress;
use crate::open::report::Report;

const KIND: FileKind = FileKind { magic: u64::from_le_bytes(*b"kymorun\x01"), extension: "runs", bytes_max: 4 << 30 };
const HASH_BYTES: usize = 8;

/// Blocks in a file, each with a hash behind it.
#[derive(Debug)]
struct RunFile(IndexedFile);

/// The index of a file's blocks.
#[derive(Debug, Serialize, Deserialize)]
struct BlockIndex<T> {
    blocks: Vec<RunBlock>,
    texts: T,
    /// From when to when lanes are.
    span_ns: Option<(i64, i64)>,
    report: Report,
}

/// Runs that can be asked.
struct StoredRuns<T> {
    file: RunFile,
    index: BlockIndex<T>,
}

/// The meanings of runs' numbers.
trait RunMeanings: Serialize + DeserializeOwned {
    /// The answer at an instant; `runs`: all those of the instant.
    fn at(&self, at: i64, wishes: &Wishes, runs: &[StateRun]) -> Answer;
}

impl RunMeanings for RunTexts {
    fn at(&self, at: i64, wishes: &Wishes, runs: &[StateRun]) -> Answer {
        InstantStates { at, texts: self, wishes }.answer(runs)
    }
}

/// The results of a state: all runs, and the meanings of their numbers.
type IntoRuns<T> = dyn Fn(&dyn AnyAnalysis, AnyState) -> (RunWriter, T);

/// How the states of an analysis become runs, of whichever type they are.
fn into_runs<A: Analysis + 'static, T>(
    into_runs: impl Fn(&A, A::State) -> (RunWriter, T),
) -> impl Fn(&dyn AnyAnalysis, AnyState) -> (RunWriter, T) {
    move |analysis, state| into_runs(analysis.downcast_ref(), state.downcast())
}

/// A request for runs.
struct RunRequest<'a, T> {
    question: &'a Question<'a>,
    into_runs: &'a IntoRuns<T>,
    /// Their name, where there are others of the same traces.
    name: &'a [u8],
    /// Their sources, beside the traces and the mapping of roles.
    text: &'a [u8],
}

impl Session {
    /// The tables that [`Session::state_at`] answers with, without rows.
    #[must_use]
    pub fn state_tables(own: Option<&OwnStates>) -> Answer {
        let mut answer = RunTexts::default().at(0, &Wishes::default(), &[]);
        answer.tables.extend(own.into_iter().flat_map(OwnStates::tables));
        answer
    }

    /// What stands out in an answer of [`Session::state_at`]; `is_lossy`: events may be missing.
    #[must_use]
    pub fn state_headline(answer: &Answer, is_lossy: bool) -> Headline {
        InstantStates::headline(answer, is_lossy)
    }

    /// The states of CPUs and threads at an instant, in nanoseconds since the clock's origin; and
    /// the states of things in an own analysis. With one, no event needs to say which thread runs.
    ///
    /// The first time, everything is read; afterwards the file in the cache answers.
    ///
    /// # Errors
    ///
    /// No event says which thread runs, the instant lies outside of the traces, a file cannot be written, or it was canceled.
    pub fn state_at(
        &self,
        at_ns: i64,
        own: Option<&OwnStates>,
        options: &AnalysisOptions,
        progress: &Progress,
    ) -> Result<Analysed, AnalyseFailure> {
        let question = StatesAnalysis::question();
        let into_runs = into_runs(StatesAnalysis::into_runs);
        let wanted = RunRequest { question: &question, into_runs: &into_runs, name: b"", text: b"" };
        let all = self.runs_at(at_ns, &wanted, options, progress);
        let asked = match own {
            None => all,
            Some(own) => own::both(all, self.own_states_at(at_ns, own, options, progress)),
        };
        progress.whole(asked)?
    }

    /// The answer of runs at an instant.
    fn runs_at<T: RunMeanings>(
        &self,
        at_ns: i64,
        wanted: &RunRequest<'_, T>,
        options: &AnalysisOptions,
        progress: &Progress,
    ) -> Result<Analysed, AnalyseFailure> {
        self.kept(wanted, options, progress, |kept| kept.at(at_ns, &options.wishes))?
    }

    /// Asks runs that are known, or that are computed now. The error of `ask`: they cannot be read.
    fn kept<T: RunMeanings, R>(
        &self,
        wanted: &RunRequest<'_, T>,
        options: &AnalysisOptions,
        progress: &Progress,
        mut ask: impl FnMut(&StoredRuns<T>) -> Result<R, SpoolError>,
    ) -> Result<R, AnalyseFailure> {
        let belongs = self.fingerprint(options, wanted.text);
        let path = self.cache.as_ref().map(|folder| self.runs_path(folder, wanted.name));
        let known = path.as_deref().zip(belongs).and_then(|(path, belongs)| StoredRuns::<T>::open(path, belongs));
        // Unreadable runs are computed again.
        if let Some(Ok(asked)) = known.map(|known| ask(&known)) {
            return Ok(asked);
        }
        Ok(ask(&self.find_runs(wanted, options, (path.as_deref(), belongs), progress)?)?)
    }

    /// All runs of CPUs and threads, in no order, the meanings of their numbers, and the
    /// differences between them and the truth. Of the options, only the mapping of roles counts.
    ///
    /// # Errors
    ///
    /// No event says which thread runs, or a file cannot be written.
    #[cfg(feature = "sql")]
    pub(crate) fn all_runs(
        &self,
        options: &AnalysisOptions,
        progress: &Progress,
    ) -> Result<(Vec<StateRun>, RunTexts, Report), AnalyseFailure> {
        let options = AnalysisOptions { roles: options.roles.clone(), ..AnalysisOptions::default() };
        let question = StatesAnalysis::question();
        let into_runs = into_runs(StatesAnalysis::into_runs);
        let wanted = RunRequest { question: &question, into_runs: &into_runs, name: b"", text: b"" };
        self.kept(&wanted, &options, progress, |kept| {
            let mut runs = Vec::new();
            runs_between(&kept.file, &kept.index.blocks, (i64::MIN, i64::MAX), |run| runs.push(run))?;
            Ok((runs, kept.index.texts.clone(), kept.index.report.clone()))
        })
    }

    fn runs_path(&self, folder: &Path, name: &[u8]) -> PathBuf {
        KIND.path(folder, self.paths_hash(name))
    }

    /// A number for where the traces are, and a name.
    pub(crate) fn paths_hash(&self, name: &[u8]) -> u64 {
        let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let paths: Vec<_> = self.traces.iter().map(|trace| absolute(trace.folder.path())).collect();
        let mut names: Vec<&[u8]> = paths.iter().map(|path| path.as_os_str().as_encoded_bytes()).collect();
        names.extend((!name.is_empty()).then_some(name));
        hash(&names.join(&0))
    }

    /// A number that is another one when anything is that the runs are made of; `None`: something cannot be looked at.
    pub(crate) fn fingerprint(&self, options: &AnalysisOptions, text: &[u8]) -> Option<u64> {
        let mut facts = Vec::new();
        for trace in &self.traces {
            facts.extend([hash(&trace.folder.metadata().ok()?), trace.clock_shift_ns.cast_unsigned()]);
            for stream in 0..trace.folder.streams().len() {
                let identity = trace.folder.identity(stream).ok()?;
                facts.extend([identity.device, identity.inode, identity.size, identity.modified_ns as u64]);
            }
        }
        let roles = options.roles.as_ref().map(fs::read).transpose().ok()?;
        facts.push(hash(&roles.unwrap_or_default()));
        // A new version may compute other states.
        facts.extend([hash(env!("CARGO_PKG_VERSION").as_bytes()), hash(text)]);
        Some(hash(facts.iter().flat_map(|fact| fact.to_le_bytes()).collect::<Vec<u8>>().as_slice()))
    }

    fn find_runs<T: RunMeanings>(
        &self,
        wanted: &RunRequest<'_, T>,
        options: &AnalysisOptions,
        (path, belongs): (Option<&Path>, Option<u64>),
        progress: &Progress,
    ) -> Result<StoredRuns<T>, AnalyseFailure> {
        let unwritable = |error: io::Error| AnalyseFailure::Written(Arc::new(error));
        let (file, named) = IndexedFile::new(path.and_then(Path::parent)).map_err(unwritable)?;
        let file = Arc::new(RunFile(file));
        let spool: Arc<dyn Spool> = Arc::<RunFile>::clone(&file);
        let room = Room { spool, budget_bytes: TABLE_BYTES };
        let ReadResults { analysis, state, report, span_ns, .. } =
            self.find(wanted.question, options, &room, progress)?;
        let (runs, texts) = (wanted.into_runs)(&*analysis, state);
        drop((analysis, room));
        progress.whole(())?;
        let blocks = runs.finish().map_err(|error| AnalyseFailure::Written(error))?;
        progress.whole(())?;
        let index = BlockIndex { blocks, texts, span_ns, report };
        let file = Arc::into_inner(file).expect("whoever wrote runs is gone");
        file.0.finish(&KIND, &index, belongs.unwrap_or(0)).map_err(unwritable)?;
        // Without a fingerprint, later changes of the traces could not be noticed.
        if let Some((named, path)) = named.zip(path).filter(|_| belongs.is_some()) {
            KIND.keep(named, path);
        }
        Ok(StoredRuns { file, index })
    }
}

impl Spool for RunFile {
    fn write(&self, bytes: &[u8]) -> Result<SpoolBlock, SpoolError> {
        let at = self.0.append(&[bytes, &hash(bytes).to_le_bytes()].concat())?;
        Ok(SpoolBlock { at, size_bytes: bytes.len() })
    }

    fn read(&self, block: SpoolBlock, bytes: &mut Vec<u8>) -> Result<(), SpoolError> {
        let SpoolBlock { at, size_bytes } = block;
        self.0.read((at, (size_bytes + HASH_BYTES) as u64), bytes)?;
        // The cache's folder is writable, so content is verified before it is used.
        let check = bytes.split_off(size_bytes);
        match hash(bytes).to_le_bytes() == *check {
            true => Ok(()),
            false => Err(SpoolError { at, kind: SpoolErrorKind::Changed { size_bytes } }),
        }
    }

    /// Written blocks stay: only needed blocks are written.
    fn release(&self, _block: SpoolBlock) {}
}

impl<T: RunMeanings> StoredRuns<T> {
    /// A file that belongs to these traces; `None`: there is none, or it is broken.
    fn open(path: &Path, belongs: u64) -> Option<Self> {
        let (file, index) = IndexedFile::open(&KIND, path, belongs)?;
        Some(Self { file: RunFile(file), index })
    }

    /// The states of CPUs and threads at an instant. The outer error: runs cannot be read.
    fn at(&self, at: i64, wishes: &Wishes) -> Result<Result<Analysed, AnalyseFailure>, SpoolError> {
        let BlockIndex { blocks, texts, span_ns, report } = &self.index;
        if let Some((begin_ns, end_ns)) = span_ns.filter(|(begin, end)| at < *begin || *end < at) {
            return Ok(Err(AnalyseFailure::Outside { begin_ns, end_ns }));
        }
        let mut runs = Vec::new();
        runs_between(&self.file, blocks, (at, at), |run| runs.push(run))?;
        let answer = texts.at(at, wishes, &runs);
        Ok(Ok(Analysed { answer, report: report.clone() }))
    }
}

mod own;
#[cfg(test)]
pub(super) mod tests;

pub use own::OwnStates;
