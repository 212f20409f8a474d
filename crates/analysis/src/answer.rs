//! Answers as tables, for every face alike.
//!
//! ```text
//! Answer ─┬─ Table "per-thread"   thread        run time          share      runs
//!         │                       bash (123)    12.3 ms [12, 14]  1.2 %      17
//!         │                       unknown       2.0 ms
//!         └─ Table "course"       time  busy                                          Plot::Course
//! ```
//!
//! Cells have classes (a duration, a process, a path), so that a face can show them well and LAMI
//! can name their class; where a number is not certain, the cell has bounds.

/// The result of an analysis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The tables, in the order in which they should be shown.
    pub tables: Vec<Table>,
}

/// Rows of cells.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Its name for programs: `per-thread`.
    pub class: &'static str,
    /// Its name for people.
    pub title: String,
    /// From when to when it is about, in nanoseconds.
    pub span_ns: Option<(i64, i64)>,
    /// Its columns.
    pub columns: Vec<Column>,
    /// A cell for each column.
    pub rows: Vec<Vec<Cell>>,
    /// Rows that there are beyond these.
    pub omitted: u64,
    /// The best plot of it.
    pub plot: Option<Plot>,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// For programs: `run_time`.
    pub name: &'static str,
    /// For people: `Run time`.
    pub title: String,
    /// The class of its cells.
    pub class: CellClass,
    /// The unit of plain numbers: `switches`.
    pub unit: Option<&'static str>,
    /// How much it tells.
    pub rank: ColumnRank,
}

/// How much a column tells people: the lowest go first where a screen is narrow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ColumnRank {
    /// It matters only where it is not zero: losses, doubt, numbers of lives.
    Rest,
    /// It says more about what other columns tell.
    Detail,
    /// It is why the table is there.
    #[default]
    Main,
}

/// The unit of numbers of errors.
pub const ERRNO: &str = "errno";
/// The unit of results of system calls, which are numbers of errors if they are negative.
pub const RESULT: &str = "result";

/// The classes of cells; named as in LAMI 1.0, where that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellClass {
    /// Yes or no.
    Flag,
    /// A number.
    Number,
    /// Text.
    Text,
    /// A part of a whole, from 0 to 1.
    Ratio,
    /// Nanoseconds since the clock's origin.
    Timestamp,
    /// Nanoseconds.
    Duration,
    /// Bytes.
    Size,
    /// Bits in a second.
    Bitrate,
    /// From when to when.
    TimeRange,
    /// A system call.
    Syscall,
    /// A process or thread.
    Process,
    /// Where a file is.
    Path,
    /// A file descriptor.
    Fd,
    /// An interrupt.
    Irq,
    /// A CPU.
    Cpu,
    /// A disk.
    Disk,
    /// A network interface.
    NetworkInterface,
    /// Of several classes.
    Mixed,
}

impl CellClass {
    /// Its name in LAMI 1.0, and in our own JSON too.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Flag => "bool",
            Self::Number => "number",
            Self::Text => "string",
            Self::Ratio => "ratio",
            Self::Timestamp => "timestamp",
            Self::Duration => "duration",
            Self::Size => "size",
            Self::Bitrate => "bitrate",
            Self::TimeRange => "time-range",
            Self::Syscall => "syscall",
            Self::Process => "process",
            Self::Path => "path",
            Self::Fd => "fd",
            Self::Irq => "irq",
            Self::Cpu => "cpu",
            Self::Disk => "disk",
            Self::NetworkInterface => "netif",
            Self::Mixed => "mixed",
        }
    }
}

/// One cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Cell {
    /// There is nothing to say.
    Empty,
    /// There is something, but it is unknown.
    Unknown,
    /// Yes or no.
    Flag(bool),
    /// A count.
    Count(Bounded<u64>),
    /// A number with a sign.
    Integer(i64),
    /// The 64 bits of a number that people read in another base than 10: 2, 8 or 16.
    Based(i64, u8),
    /// A number that is not whole.
    Number(f64),
    /// Text.
    Text(String),
    /// A part of a whole, from 0 to 1.
    Ratio(Bounded<f64>),
    /// Nanoseconds since the clock's origin.
    Timestamp(i64),
    /// Nanoseconds.
    Duration(Bounded<u64>),
    /// Bytes.
    Size(Bounded<u64>),
    /// Bits in a second.
    Bitrate(Bounded<f64>),
    /// From when to when; `None`: before the trace began, or after it ended.
    TimeRange(Option<i64>, Option<i64>),
    /// A system call by its name.
    Syscall(String),
    /// A process or thread.
    Process {
        /// Its name, if known.
        name: Option<String>,
        /// The process, if known.
        pid: Option<i64>,
        /// The thread, if it is about one.
        tid: Option<i64>,
    },
    /// Where a file is.
    Path(String),
    /// A file descriptor.
    Fd(i64),
    /// An interrupt.
    Irq {
        /// Of a device, not a softirq.
        is_hard: bool,
        /// Its number.
        number: i64,
        /// Its name, if known.
        name: Option<String>,
    },
    /// A CPU.
    Cpu(u32),
    /// A disk by its name.
    Disk(String),
    /// A network interface by its name.
    NetworkInterface(String),
}

impl Cell {
    /// Its class, no matter which class its column has; `None` where the cell is empty or unknown.
    #[must_use]
    pub fn class(&self) -> Option<CellClass> {
        Some(match self {
            Self::Empty | Self::Unknown => return None,
            Self::Flag(_) => CellClass::Flag,
            Self::Count(_) | Self::Integer(_) | Self::Based(..) | Self::Number(_) => CellClass::Number,
            Self::Text(_) => CellClass::Text,
            Self::Ratio(_) => CellClass::Ratio,
            Self::Timestamp(_) => CellClass::Timestamp,
            Self::Duration(_) => CellClass::Duration,
            Self::Size(_) => CellClass::Size,
            Self::Bitrate(_) => CellClass::Bitrate,
            Self::TimeRange(..) => CellClass::TimeRange,
            Self::Syscall(_) => CellClass::Syscall,
            Self::Process { .. } => CellClass::Process,
            Self::Path(_) => CellClass::Path,
            Self::Fd(_) => CellClass::Fd,
            Self::Irq { .. } => CellClass::Irq,
            Self::Cpu(_) => CellClass::Cpu,
            Self::Disk(_) => CellClass::Disk,
            Self::NetworkInterface(_) => CellClass::NetworkInterface,
        })
    }
}

/// A number that may not be certain.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bounded<T> {
    /// If nothing happened where nothing is known.
    pub value: T,
    /// Not less.
    pub low: T,
    /// Not more; the greatest number that there is where nothing bounds it.
    pub high: T,
}

impl<T: Copy + PartialEq> Bounded<T> {
    /// A number that is certain.
    pub fn exact(value: T) -> Self {
        Self { value, low: value, high: value }
    }

    /// Whether it is certain.
    pub fn is_exact(&self) -> bool {
        self.low == self.high
    }
}

/// The best plot of a table; columns by their place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plot {
    /// A distribution: each row is a bin from one value to another (or of one value) with a count.
    Histogram {
        /// Where the bin begins.
        low: usize,
        /// Where it ends; not itself in it.
        high: usize,
        /// How many.
        count: usize,
    },
    /// Something over time: each row is a span of time, of one of several series.
    Course {
        /// The time range.
        time: usize,
        /// Names of series, if there are several.
        series: Option<usize>,
        /// The value.
        value: usize,
    },
    /// Bars behind rows.
    Bars {
        /// The value.
        value: usize,
    },
    /// Bars behind rows, of two values together.
    Sums {
        /// The values.
        values: [usize; 2],
    },
}

impl Table {
    /// An empty table.
    #[must_use]
    pub fn new(class: &'static str, title: impl Into<String>, columns: Vec<Column>) -> Self {
        Self { class, title: title.into(), span_ns: None, columns, rows: Vec::new(), omitted: 0, plot: None }
    }
}

impl Column {
    /// A column.
    #[must_use]
    pub fn new(name: &'static str, title: impl Into<String>, class: CellClass) -> Self {
        Self { name, title: title.into(), class, unit: None, rank: ColumnRank::Main }
    }

    /// The same, as a detail.
    #[must_use]
    pub fn detail(self) -> Self {
        Self { rank: ColumnRank::Detail, ..self }
    }

    /// The same, as one that matters only where it is not zero.
    #[must_use]
    pub fn rest(self) -> Self {
        Self { rank: ColumnRank::Rest, ..self }
    }

    /// A column of plain numbers that count something.
    #[must_use]
    pub fn of(name: &'static str, title: impl Into<String>, unit: &'static str) -> Self {
        Self { unit: Some(unit), ..Self::new(name, title, CellClass::Number) }
    }
}
