//! Opening traces and answering questions: threads, caches on disk, jobs.
//!
//! It must never know any face. Every face asks here, so one question has one answer.

mod again;
mod analyse;
mod analysis_options;
#[cfg(feature = "columns")]
mod answer_columns;
mod bases;
mod cache;
mod check;
mod count;
mod cut;
mod desk;
mod discover;
mod engine;
#[cfg(feature = "columns")]
mod events;
mod explain;
#[cfg(feature = "export")]
mod export;
mod follow;
mod identity;
mod index;
mod indexed;
mod info;
pub mod json;
#[cfg(test)]
mod made_traces;
pub mod messages;
mod metadata;
mod notes;
mod offsets;
mod open;
mod print;
mod priority;
mod progress;
mod recent;
mod rehearsal;
mod report;
mod roles;
mod select;
mod share;
mod spool;
#[cfg(feature = "sql")]
mod sql;
mod timed;
mod timeline;
mod when;
mod zone;

pub use analyse::{AnalyseFailure, Analysed, OwnStates, Shares};
pub use analysis_options::AnalysisOptions;
#[cfg(feature = "columns")]
pub use answer_columns::answer_columns;
pub use bases::FieldBase;
pub use cache::{PacketCache, Stale, cache_folder};
pub use check::{Finding, Gravity, check};
pub use count::{ClassCount, CountOptions, Counts, Sizes};
pub use cut::{Cut, CutFailure, CutOptions, CutProblem};
#[cfg(feature = "columns")]
pub use events::{
    Chunk, EventCount, EventPage, EventPages, EventPartition, EventStream, EventTable, EventsFailure, EventsQuestion,
    NotAPlace, PAGE_ROWS_MAX, PageOf, RowPlace, Waited,
};
pub use explain::{ClassMeaning, ExplainedClasses, Explanation, Forms, SkippedPackets};
#[cfg(feature = "export")]
pub use export::{ExportFailure, ExportOptions, Exported, ExportedTable, FileFormat};
pub use follow::{Follow, Look, Window};
pub use identity::TraceIdentity;
pub use index::{IndexState, Indexed, IndexedStream, IndexedTrace, index, remove_index};
pub use info::{ClockInfo, Estimate, Info, TraceInfo};
pub use kymo_analysis::declared::Declaration;
pub use kymo_analysis::mapping::MappingErrors;
pub use kymo_analysis::pairs::{PairsProblem, PairsQuestion};
pub use kymo_analysis::periods::{Definitions, Order, PeriodProblem, PeriodsQuestion};
pub use kymo_analysis::{
    AnalysisEntry, AnalysisKind, Answer, BINS, Bounded, Cell, Class, Column, Plot, SupportedOptions, Table,
    Unsupported, Wishes, analyses, find_analysis,
};
pub use kymo_decode::Compile;
pub use kymo_decode::text::{Paint, StampOptions, ZoneOffset};
pub use kymo_filter::{Dimension, Filter, Missing, Note, Problem as FilterProblem, Verdict, unit};
#[cfg(feature = "sql")]
pub use kymo_sql::statements as sql_statements;
#[cfg(feature = "sql")]
pub use kymo_table::FileError;
#[cfg(feature = "columns")]
pub use kymo_table::arrow;
pub use metadata::{MetadataForm, MetadataText, metadata};
pub use notes::{Notes, NotesFailure, NotesFound};
pub use offsets::{OffsetFailure, TraceOffset};
pub use open::{OpenFailure, OpenOptions, Session};
pub use print::{Continued, DetailsOptions, PrettyFields, PrettyOptions, PrintFormat, PrintOptions, Printed};
pub use progress::{Cancelled, Progress};
pub use recent::{Recent, RecentFound, RecentTraces};
pub use rehearsal::{Took, Work};
pub use report::{Problem, Report};
pub use roles::{
    AbsentRole, FieldUse, GuessedRole, Mappings, RefusedRole, RoleUse, Roles, RolesFailure, UnmatchedSection,
};
pub use select::{Meaning, Selection, UnknownName, Untyped};
pub use share::{Share, ShareFailure};
pub use spool::FileSpool;
#[cfg(feature = "sql")]
pub use sql::{
    AnswerFormat, Database, SqlAnswer, SqlFailure, SqlFault, SqlOptions, SqlQuery, WriteFailure, write_answer,
};
pub use timeline::{
    ArrowBucket, BEGIN_UNKNOWN, BUCKETS_MAX, Catalogue, CounterBucket, END_UNKNOWN, ExactArrow, ExactInstant, ExactRun,
    HeatBucket, IN_DOUBT, ITEMS_MAX, InstantBucket, ItemQuestion, Items, ItemsFound, OwnTracks, Quality, Span,
    StateBucket, TRACKS_MAX, TileQuestion, Tiles, Timeline, TimelineFailure, TimelineOptions, TimelineState,
    TimelineStatus, Track, TrackItem, TrackKind, TrackTile, TrackValue, Wait, WaitCall, WaitRequest, Waker,
};
pub use when::{NotATime, When};
pub use zone::Zone;
