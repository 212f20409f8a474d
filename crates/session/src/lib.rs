//! Opening traces and answering questions: threads, caches on disk, jobs.
//!
//! It must never know any face. Every face asks here, so one question has one answer.
//!
//! ```text
//! open       traces and selections: discovery, identity, offsets, indexes, times as people write them, progress
//! cache      files with results, for the next time
//! parallel   threads that read
//! print      events as text                      answers    analyses, counts, checks, information
//! events     events as columns of Arrow          timeline   tiles and items for the viewer
//! sql        tables for queries                  messages   batches for Python
//! cut        parts of traces as traces           export     tables as files     captures   packets as files
//! follow     traces that grow                    notes      people's notes beside traces
//! bpf        users' eBPF programs over events
//!
//! open needs cache; print, events, answers need open and parallel; sql and timeline need answers
//! ```

mod answers;
pub mod bpf;
mod cache;
mod captures;
mod cut;
#[cfg(feature = "columns")]
mod events;
#[cfg(feature = "export")]
mod export;
mod follow;
#[cfg(test)]
mod made_traces;
pub mod messages;
mod notes;
mod open;
mod parallel;
mod print;
#[cfg(feature = "sql")]
mod sql;
mod stacks;
mod timeline;

pub use answers::analyse::{AnalyseFailure, Analysed, OwnStates, ShareFailure, Shares};
pub use answers::analysis_options::AnalysisOptions;
#[cfg(feature = "columns")]
pub use answers::answer_columns::answer_columns;
pub use answers::bases::FieldBase;
pub use answers::check::{CheckFinding, Gravity, check};
pub use answers::count::{ClassCount, CountOptions, Counts, Sizes};
pub use answers::explain::{ClassMeaning, ExplainedClasses, Explanation, Forms, SkippedPackets};
pub use answers::info::{ClockInfo, Estimate, Info, TraceInfo};
pub use answers::json;
pub use answers::roles::{
    AbsentRole, FieldUse, GuessedRole, Mappings, RefusedRole, RoleUse, Roles, RolesFailure, UnmatchedSection,
};
pub use cache::spool::FileSpool;
pub use cache::{PacketCache, Stale, cache_folder};
pub use captures::{CaptureFailure, CaptureOptions, PacketFilter, WrittenCapture};
pub use cut::{Cut, CutFailure, CutOptions, CutProblem};
#[cfg(feature = "columns")]
pub use events::{
    EventChunk, EventCount, EventPage, EventPages, EventPartition, EventStream, EventTable, EventsFailure,
    EventsQuestion, NextBatch, NotAPlace, PAGE_ROWS_MAX, PageOf, RowPlace,
};
#[cfg(feature = "export")]
pub use export::{ExportFailure, ExportOptions, Exported, ExportedTable, FileFormat};
pub use follow::{Follow, Look, Window};
pub use kymo_analysis::declared::AnalysisDeclaration;
pub use kymo_analysis::key::in_base;
pub use kymo_analysis::mapping::MappingErrors;
pub use kymo_analysis::pairs::{PairsProblem, PairsQuestion};
pub use kymo_analysis::periods::{Definitions, Order, PeriodProblem, PeriodsQuestion};
pub use kymo_analysis::{
    AnalysisEntry, AnalysisKind, Answer, BINS, Bounded, Cell, CellClass, Column, ColumnRank, ERRNO, Headline,
    HeadlinePart, Plot, RESULT, SupportedOptions, Table, Unsupported, Wishes, analyses, find_analysis,
};
pub use kymo_decode::Compile;
pub use kymo_decode::text::{Paint, StampOptions, ZoneOffset};
pub use kymo_filter::{Dimension, Filter, FilterNote, FilterProblem, MissingName, Verdict, nearest, quantity};
pub use kymo_source::ImportOptions;
#[cfg(feature = "sql")]
pub use kymo_sql::statements as sql_statements;
#[cfg(feature = "sql")]
pub use kymo_table::FileError;
#[cfg(feature = "columns")]
pub use kymo_table::arrow;
pub use notes::{NotesFailure, NotesFound, TraceNotes};
pub use open::counters::TraceCounters;
pub use open::identity::TraceIdentity;
pub use open::index::{IndexResults, IndexState, IndexedStream, IndexedTrace, index, remove_index};
pub use open::metadata::{MetadataForm, MetadataText, metadata};
pub use open::offsets::{OffsetFailure, TraceOffset};
pub use open::progress::{Cancelled, Progress};
pub use open::recent::{Recent, RecentFound, RecentTraces};
pub use open::rehearsal::{Took, WorkKind};
pub use open::report::{Report, ReportProblem};
pub use open::select::{FilterMeaning, Selection, UnknownName, Untyped};
pub use open::share::{Share, ShareProblem};
pub use open::thinned::{ThinnedCounts, ThinnedEvents};
pub use open::when::{NotATime, When};
pub use open::zone::Zone;
pub use open::{OpenFailure, OpenOptions, Session};
pub use print::{
    Continued, DetailsOptions, PrettyFields, PrettyOptions, PrintFormat, PrintOptions, Printed, PrintedLoss,
};
#[cfg(feature = "sql")]
pub use sql::{
    AnswerFormat, SqlAnswer, SqlDatabase, SqlFailure, SqlFault, SqlOptions, SqlQuery, WriteFailure, write_answer,
};
#[cfg(feature = "columns")]
pub use timeline::EventsOfThreads;
pub use timeline::{
    ArrowBucket, BEGIN_UNKNOWN, BUCKETS_MAX, Catalogue, CounterBucket, END_UNKNOWN, ExactArrow, ExactInstant, ExactRun,
    HeatBucket, IN_DOUBT, ITEMS_MAX, InstantBucket, ItemQuestion, Items, ItemsFound, OwnTracks, Quality,
    RECEIVED_FIRST, StateBucket, TRACKS_MAX, TileQuestion, TileSpan, Tiles, Timeline, TimelineFailure, TimelineOptions,
    TimelineState, TimelineStatus, Track, TrackItem, TrackKind, TrackTile, TrackValue, WaitCall, WaitReason,
    WaitRequest, Waker,
};
