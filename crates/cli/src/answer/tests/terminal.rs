//! Answers on terminals of several widths: headlines, columns that are left out, and numbers that are never cut.

use kymo_session::{ERRNO, RESULT};

use super::*;

fn width(columns: usize) -> Screen {
    Screen { width: Some(columns), ..TERMINAL }
}

/// As `kymo sched` has them: many columns, of which some say little.
fn waits() -> Table {
    let duration = |name, title| Column::new(name, title, CellClass::Duration);
    let columns = vec![
        Column::new("thread", "Thread", CellClass::Process),
        Column::of("incarnation", "Life", "lives").rest(),
        Column::of("count", "Count", "intervals"),
        duration("total", "Total"),
        duration("min", "Min").detail(),
        duration("avg", "Average"),
        duration("max", "Max"),
        duration("stdev", "Deviation").detail(),
        duration("p50", "50 %").detail(),
        duration("p99", "99 %"),
        Column::of("never_ended", "Never ended", "times").rest(),
        Column::of("lost_inside", "In doubt", "times").rest(),
    ];
    let exact = |value: u64| Cell::Duration(Bounded::exact(value));
    let row = |name: &str, tid: i64, total: u64, lost: u64| {
        let count = |count| Cell::Count(Bounded::exact(count));
        vec![
            thread(name, tid),
            count(0),
            count(total / 1000),
            exact(total),
            exact(total / 100),
            exact(total / 50),
            exact(total / 10),
            exact(total / 70),
            // As wide as a bucket of a histogram.
            Cell::Duration(between(total / 60, total / 60, total / 60 + total / 60_000)),
            exact(total / 20),
            count(0),
            count(lost),
        ]
    };
    Table {
        span_ns: Some((BEGIN, BEGIN + 1_580_000_000)),
        rows: vec![
            row("multithread", 2673, 12_500_000, 0),
            row("kworker/u16:3-events_unbound", 4297, 4_230_000, 3),
            row("Xorg", 691, 254_000, 0),
        ],
        omitted: 408,
        plot: Some(Plot::Bars { value: 3 }),
        ..Table::new("per-thread", "Wakeup to run, by thread", columns)
    }
}

#[test]
fn a_wide_table_at_40_columns() {
    check(
        &[waits()],
        width(40),
        &expect![[r#"
        It stands out.
        2016-03-04 17:46:22.000000000 to
        17:46:23.580000000 (1.580 s)

        Wakeup to run, by thread
        Thread                   Inter…    Total
        multithread (2673)       12,500  12.5 ms
        kworker/…unbound (4297)   4,230  4.23 ms
        Xorg (691)                  254   254 us
        ... and 408 more rows (--top all)
        left out: Min, Average, Max, Deviation,
        50 %, 99 %, In doubt; 0 or empty in
        these rows: Life, Never ended (--wide)
    "#]],
    );
}

#[test]
fn a_wide_table_at_80_columns() {
    check(
        &[waits()],
        width(80),
        &expect![[r#"
        It stands out.
        2016-03-04 17:46:22.000000000 to 17:46:23.580000000 (1.580 s)

        Wakeup to run, by thread
        Thread                        Inter…    Total  Average      Max     99 %  In do…
        multithread (2673)            12,500  12.5 ms   250 us  1.25 ms   625 us       0
        kworker/u1…ts_unbound (4297)   4,230  4.23 ms  84.6 us   423 us   212 us       3
        Xorg (691)                       254   254 us  5.08 us  25.4 us  12.7 us       0
        ... and 408 more rows (--top all)
        left out: Min, Deviation, 50 %; 0 or empty in these rows: Life, Never ended
        (--wide)
    "#]],
    );
}

#[test]
fn a_wide_table_at_120_columns() {
    check(
        &[waits()],
        width(120),
        &expect![[r#"
        It stands out.
        2016-03-04 17:46:22.000000000 to 17:46:23.580000000 (1.580 s)

        Wakeup to run, by thread
        Thread                    Intervals    Total      Min  Average      Max  Deviation     50 %     99 %  In doubt
        multithread (2673)           12,500  12.5 ms   125 us   250 us  1.25 ms     179 us   208 us   625 us         0  ████████
        kworker/…_unbound (4297)      4,230  4.23 ms  42.3 us  84.6 us   423 us    60.4 us  70.5 us   212 us         3  ██▊
        Xorg (691)                      254   254 us  2.54 us  5.08 us  25.4 us    3.63 us  4.23 us  12.7 us         0  ▏
        ... and 408 more rows (--top all)
        0 or empty in these rows: Life, Never ended (--wide)
    "#]],
    );
}

#[test]
fn a_wide_table_at_200_columns() {
    check(
        &[waits()],
        width(200),
        &expect![[r#"
        It stands out.
        2016-03-04 17:46:22.000000000 to 17:46:23.580000000 (1.580 s)

        Wakeup to run, by thread
        Thread                               Intervals    Total      Min  Average      Max  Deviation     50 %     99 %  In doubt
        multithread (2673)                      12,500  12.5 ms   125 us   250 us  1.25 ms     179 us   208 us   625 us         0  ██████████████████████████████
        kworker/u16:3-events_unbound (4297)      4,230  4.23 ms  42.3 us  84.6 us   423 us    60.4 us  70.5 us   212 us         3  ██████████▏
        Xorg (691)                                 254   254 us  2.54 us  5.08 us  25.4 us    3.63 us  4.23 us  12.7 us         0  ▋
        ... and 408 more rows (--top all)
        0 or empty in these rows: Life, Never ended (--wide)
    "#]],
    );
}

/// At every width from 40 columns on, lines fit, and only names and titles are cut.
#[test]
fn numbers_are_never_cut() {
    let table = waits();
    let words = CellFormatter { times: InstantFormat::default(), unicode: true, detail: CellDetail::Telling };
    let numbers: Vec<String> = table.rows.iter().flatten().map(|cell| words.word(cell).value).collect();
    for columns in 40..=200 {
        let text = text(std::slice::from_ref(&table), width(columns));
        let rows = text.lines().skip_while(|line| !line.starts_with("Thread")).skip(1).take(3);
        for row in rows {
            assert!(screen::columns(row) <= columns, "{columns}: {row}");
            // Behind the name, which ends with its number.
            let cells = row.split_once(')').expect("threads have numbers").1.split("  ").map(str::trim);
            let is_bar = |cell: &str| cell.chars().all(|letter| ('█'..='▏').contains(&letter));
            for cell in cells.filter(|cell| !cell.is_empty() && !is_bar(cell)) {
                assert!(numbers.iter().any(|number| number == cell), "{columns}: `{cell}` in {row}");
            }
        }
    }
}

/// Ten rows, those with the longest bars, in their order; all of a distribution.
#[test]
fn rows_with_the_longest_bars_are_shown() {
    let columns = || vec![Column::new("cpu", "CPU", CellClass::Cpu), Column::of("events", "Events", "events")];
    let rows = |counts: &[u64]| -> Vec<Vec<Cell>> {
        let row = |(cpu, count): (usize, &u64)| vec![Cell::Cpu(cpu as u32), Cell::Count(Bounded::exact(*count))];
        counts.iter().enumerate().map(row).collect()
    };
    let table = Table {
        rows: rows(&[5, 9, 1, 8, 8]),
        plot: Some(Plot::Bars { value: 1 }),
        ..Table::new("cpus", "CPUs", columns())
    };
    let of = |table: &Table| {
        let view = AnswerView { rows: Some(3), ..view("Three rows.") };
        shown(std::slice::from_ref(table), &view, width(60), &face())
    };
    expect![[r#"
        Three rows.

        CPUs
        CPU  Events
          1       9  ██████████████████████████████
          3       8  ██████████████████████████▋
          4       8  ██████████████████████████▋
        ... and 2 more rows (--top all)
    "#]]
    .assert_eq(&of(&table));
    let plain = Table { plot: None, ..table.clone() };
    expect![[r#"
        Three rows.

        CPUs
        CPU  Events
          0       5
          1       9
          2       1
        ... and 2 more rows (--top all)
    "#]]
    .assert_eq(&of(&plain));
}

/// Tables without rows are left out, those that matter less are named, and `--table` shows any.
#[test]
fn tables_that_matter() {
    let one = |class, title, rows: usize| {
        let columns = vec![Column::new("name", "Name", CellClass::Text)];
        Table { rows: vec![vec![Cell::Text("row".to_owned())]; rows], ..Table::new(class, title, columns) }
    };
    let tables = [one("main", "Main", 1), one("empty", "Empty", 0), one("other", "Other", 1), one("third", "Third", 2)];
    let view = AnswerView { main_tables: &["main", "empty"], ..view("It stands out.") };
    expect![[r#"
        It stands out.

        Main
        Name
        row

        More tables: other, third (--table other, or --wide for all)
    "#]]
    .assert_eq(&shown(&tables, &view, TERMINAL, &face()));
    let asked = FaceArguments { table: vec!["other".to_owned()], ..face() };
    let other = shown(&tables[2..3], &view, TERMINAL, &asked);
    assert!(other.contains("Other") && !other.contains("More tables"), "{other}");
}

/// An empty answer names the events that were looked for.
#[test]
fn nothing_was_found() {
    let view = AnswerView {
        headline: Headline::default(),
        nothing: "Nothing was found. Looked for: events with the role `irq_entry`.".to_owned(),
        ..AnswerView::default()
    };
    let empty = Table::new("hard", "Interrupts", vec![Column::new("irq", "Interrupt", CellClass::Irq)]);
    let text = shown(&[empty], &view, width(40), &face());
    assert_eq!(text, "Nothing was found. Looked for: events\nwith the role `irq_entry`.\n");
}

/// Bounds that do not matter are left out, endless ones are short, and `--exact` shows all; errors have names.
#[test]
fn bounds_and_errors() {
    let columns = vec![
        Column::new("name", "Name", CellClass::Text),
        Column::new("time", "Time", CellClass::Duration),
        Column::of("count", "Calls", "calls"),
        Column::of("errno", "Error", ERRNO),
        Column::of("ret", "Result", RESULT),
    ];
    let row = |name: &str, time, count, errno, ret| {
        vec![
            Cell::Text(name.to_owned()),
            Cell::Duration(time),
            Cell::Count(count),
            Cell::Integer(errno),
            Cell::Integer(ret),
        ]
    };
    let table = Table {
        rows: vec![
            row("bucket", between(1_000_000, 1_000_500, 1_001_000), between(1000, 1000, 1002), 2, -11),
            row("doubt", between(1_000_000, 2_000_000, 3_000_000), between(7, 7, 9), 110, 4096),
            row("endless", between(5_000, 5_000, u64::MAX), between(17, 17, u64::MAX), 4000, -5000),
            row("unknown", Bounded::exact(0), between(0, 0, u64::MAX), 0, 0),
        ],
        ..Table::new("bounds", "Bounds", columns)
    };
    check(
        std::slice::from_ref(&table),
        TERMINAL,
        &expect![[r#"
        It stands out.

        Bounds
        Name         Time                 Calls         Error              Result
        bucket    1.00 ms                 1,000         2 ENOENT       -11 EAGAIN
        doubt     2.00 ms [1.00, 3.00]        7 [7, 9]  110 ETIMEDOUT       4,096
        endless  ≥5.00 us                   ≥17         4,000              -5,000
        unknown      0 ns               unknown         0                       0
    "#]],
    );
    let exact = shown(std::slice::from_ref(&table), &view("All."), TERMINAL, &FaceArguments { exact: true, ..face() });
    expect![[r#"
        All.

        Bounds
        Name         Time                 Calls                 Error
        bucket   1.000 ms [1.000, 1.001]  1,000 [1,000, 1,002]  2 ENOENT
        doubt     2.00 ms [1.00, 3.00]        7 [7, 9]          110 ETIMEDOUT
        endless   5.00 us [5.00, ∞]          17 [17, ∞]         4,000
        unknown      0 ns                     0 [0, ∞]          0
        left out: Result (--wide)
    "#]]
    .assert_eq(&exact);
    check(
        std::slice::from_ref(&table),
        PIPE,
        &expect![[r#"
        Bounds
        Name         Time                 Calls                 Error  Result
        bucket   1.000 ms [1.000, 1.001]  1,000 [1,000, 1,002]      2     -11
        doubt     2.00 ms [1.00, 3.00]        7 [7, 9]            110   4,096
        endless   5.00 us [5.00, ∞]          17 [17, ∞]         4,000  -5,000
        unknown      0 ns                     0 [0, ∞]              0       0
    "#]],
    );
    let plain = shown(&[table], &view("All."), PLAIN, &face());
    assert!(plain.contains(">=17") && plain.contains(">=5.00 us"), "{plain}");
}

/// Zeros are dim where there are colors, and in no pipe.
#[test]
fn zeros_are_dim() {
    let columns = vec![Column::new("name", "Name", CellClass::Text), Column::of("count", "Calls", "calls")];
    let cell = |count| Cell::Count(Bounded::exact(count));
    let rows = [("a", 0), ("b", 3)].map(|(name, count)| vec![Cell::Text(name.to_owned()), cell(count)]);
    let table = [Table { rows: rows.to_vec(), ..Table::new("zeros", "Zeros", columns) }];
    let colored = text(&table, Screen { colours: true, ..TERMINAL });
    assert!(colored.contains("a         \u{1b}[2m0\u{1b}[0m\n") && colored.contains("b         3\n"), "{colored:?}");
    let pipe = text(&table, Screen { colours: true, ..PIPE });
    assert!(pipe.contains("a         0\n"), "{pipe:?}");
}

/// With `--period`, rows are of several periods.
#[test]
fn periods() {
    let columns = vec![
        Column::new("period", "Period", CellClass::TimeRange),
        Column::new("cpu", "CPU", CellClass::Cpu),
        Column::new("busy", "Busy", CellClass::Duration),
    ];
    let row = |period: i64, cpu, busy| {
        let begin = BEGIN + period * 1_000_000;
        let range = Cell::TimeRange(Some(begin), Some(begin + 1_000_000));
        vec![range, Cell::Cpu(cpu), Cell::Duration(Bounded::exact(busy))]
    };
    let table = Table {
        span_ns: Some((BEGIN, BEGIN + 2_000_000)),
        rows: vec![row(0, 0, 500), row(0, 1, 100), row(1, 0, 300), row(1, 1, 900)],
        plot: Some(Plot::Bars { value: 2 }),
        ..Table::new("per-cpu", "CPUs", columns)
    };
    let view = AnswerView { rows: Some(2), ..view("It is about all of it.") };
    expect![[r#"
        2 periods with results. Each table shows its greatest rows of all periods.
        2016-03-04 17:46:22.000000000 to 17:46:22.002000000 (2.000 ms)

        CPUs
        Period                                    CPU    Busy
        17:46:22.000000000 to 17:46:22.001000000    0  500 ns  █████████████▉
        17:46:22.001000000 to 17:46:22.002000000    1  900 ns  █████████████████████████
        ... and 2 more rows (--top all)
    "#]]
    .assert_eq(&shown(&[table], &view, TERMINAL, &face()));
}

/// A course of fewer nanoseconds than columns has its rows: of a trace with one event, that event.
#[test]
fn a_course_without_length_is_a_table() {
    let course = |end| {
        let columns = vec![
            Column::new("period", "Period", CellClass::TimeRange),
            Column::new("name", "Event", CellClass::Text),
            Column::of("count", "Count", "events"),
        ];
        let mut table = Table::new("course", "Events over time", columns);
        table.plot = Some(Plot::Course { time: 0, series: Some(1), value: 2 });
        let range = Cell::TimeRange(Some(BEGIN), Some(BEGIN + end));
        table.rows.push(vec![range, Cell::Text("tick".to_owned()), Cell::Count(Bounded::exact(1))]);
        shown(&[table], &view("One event."), width(80), &face())
    };
    let (short, long) = (course(1), course(1000));
    assert!(short.contains("tick") && short.contains("Period") && !short.contains('│'), "{short}");
    assert!(long.contains('│') && !long.contains("Period"), "{long}");
}

/// On a narrow terminal, a row still says of which period and of which CPU it is.
#[test]
fn periods_and_names_stay_on_a_narrow_terminal() {
    let columns = vec![
        Column::new("period", "Period", CellClass::TimeRange),
        Column::new("cpu", "CPU", CellClass::Cpu),
        Column::new("busy", "Busy", CellClass::Duration),
        Column::of("switches", "Switches", "switches"),
    ];
    let row = |cpu, busy| {
        let count = Cell::Count(Bounded::exact(busy / 100));
        let range = Cell::TimeRange(Some(BEGIN), Some(BEGIN + 1_000_000));
        vec![range, Cell::Cpu(cpu), Cell::Duration(Bounded::exact(busy)), count]
    };
    let mut early = row(1, 900);
    early[0] = Cell::TimeRange(None, Some(BEGIN));
    let table = Table {
        span_ns: Some((BEGIN, BEGIN + 2_000_000)),
        rows: vec![row(0, 500), early],
        plot: Some(Plot::Bars { value: 2 }),
        ..Table::new("per-cpu", "CPUs", columns)
    };
    expect![[r#"
        2 periods with results.
        2016-03-04 17:46:22.000000000 to
        17:46:22.002000000 (2.000 ms)

        CPUs
        Period              CPU    Busy
        17:46:22.000000000    0  500 ns
        earlier               1  900 ns
        left out: end of Period, Switches
        (--wide)
    "#]]
    .assert_eq(&shown(std::slice::from_ref(&table), &view("All."), width(40), &face()));
    let narrower = shown(&[table], &view("All."), width(30), &face());
    assert!(narrower.contains("17:46:22.000000000   0 500 ns\n"), "{narrower}");
}

/// Rows that are cut say which they are: those with the longest bars, or the first.
#[test]
fn rows_of_periods_are_the_greatest_or_the_first() {
    let table = |plot: Option<Plot>| {
        let columns = vec![
            Column::new("period", "Period", CellClass::TimeRange),
            Column::new("cpu", "CPU", CellClass::Cpu),
            Column::of("events", "Events", "events"),
        ];
        let row = |cpu| vec![Cell::TimeRange(Some(BEGIN), Some(BEGIN + 1)), Cell::Cpu(cpu), Cell::Integer(cpu.into())];
        Table { rows: vec![row(0), row(1), row(2)], plot, ..Table::new("cpus", "CPUs", columns) }
    };
    let (bars, plain) = (table(Some(Plot::Bars { value: 2 })), table(None));
    let said = |tables: &[Table], rows| {
        let text = shown(tables, &AnswerView { rows, ..view("All.") }, width(200), &face());
        text.lines().next().map(str::to_owned).unwrap_or_default()
    };
    let of = |rest: &str| format!("1 period with results.{rest}");
    assert_eq!(said(std::slice::from_ref(&bars), Some(2)), of(" Each table shows its greatest rows of all periods."));
    assert_eq!(said(std::slice::from_ref(&plain), Some(2)), of(" Each table shows its first rows."));
    let both = [bars.clone(), plain.clone()];
    assert_eq!(said(&both, Some(2)), of(" Tables show their greatest rows of all periods, or their first ones."));
    assert_eq!(said(&both, None), of(""));
    // A course is drawn as it is.
    let course = Plot::Course { time: 0, series: Some(1), value: 2 };
    let drawn = [bars, Table { plot: Some(course), ..plain }];
    assert_eq!(said(&drawn, Some(2)), of(" Each table shows its greatest rows of all periods."));
}

/// Bars of two values together choose rows by both.
#[test]
fn rows_with_the_greatest_sums_are_shown() {
    let columns = vec![
        Column::new("thread", "Thread", CellClass::Text),
        Column::of("read", "Read", "B"),
        Column::of("write", "Written", "B"),
    ];
    let row = |name: &str, read, write| {
        vec![Cell::Text(name.to_owned()), Cell::Count(Bounded::exact(read)), Cell::Count(Bounded::exact(write))]
    };
    let table = Table {
        rows: vec![row("both", 40, 0), row("little", 50, 1), row("writer", 0, 100)],
        plot: Some(Plot::Sums { values: [1, 2] }),
        ..Table::new("per-thread", "Threads", columns)
    };
    expect![[r#"
        All.

        Threads
        Thread  Read  Written
        little    50        1  ███████████████▎
        writer     0      100  ██████████████████████████████
        ... and 1 more row (--top all)
    "#]]
    .assert_eq(&shown(&[table], &AnswerView { rows: Some(2), ..view("All.") }, width(60), &face()));
}

/// The row of all lanes together, which the headline is about, is among those that are shown.
#[test]
fn the_row_of_all_together_is_shown() {
    let columns = vec![
        Column::new("stream", "Stream", CellClass::Text),
        Column::new("cpu", "CPU", CellClass::Cpu),
        Column::new("length", "Length", CellClass::Duration),
    ];
    let row = |name: [Cell; 2], length| [&name[..], &[Cell::Duration(Bounded::exact(length))]].concat();
    let lane = |cpu, length| row([Cell::Text(format!("s{cpu}")), Cell::Cpu(cpu)], length);
    let table = Table {
        rows: vec![
            row([Cell::Empty, Cell::Empty], 5),
            row([Cell::Empty, Cell::Empty], 4),
            lane(0, 9),
            lane(0, 8),
            lane(1, 7),
        ],
        plot: Some(Plot::Bars { value: 2 }),
        ..Table::new("gaps", "Gaps", columns)
    };
    expect![[r#"
        All.

        Gaps
        Stream  CPU  Length
        -         -    5 ns  ██████████▌
        s0        0    9 ns  ███████████████████
        ... and 3 more rows (--top all)
    "#]]
    .assert_eq(&shown(&[table], &AnswerView { rows: Some(2), ..view("All.") }, width(40), &face()));
}

/// A column is zero if it is in all rows, not only in those that are shown.
#[test]
fn columns_are_zero_in_all_rows() {
    let columns = vec![
        Column::new("cpu", "CPU", CellClass::Cpu),
        Column::new("thread", "Thread", CellClass::Text),
        Column::new("uncertain", "Uncertain", CellClass::Flag).rest(),
        Column::of("life", "Life", "lives").rest(),
    ];
    let row = |cpu| vec![Cell::Cpu(cpu), Cell::Text("idle".to_owned()), Cell::Flag(cpu == 2), Cell::Integer(0)];
    let table = Table { rows: vec![row(0), row(1), row(2)], ..Table::new("cpus", "CPUs", columns) };
    let of = |table: &Table| {
        let view = AnswerView { rows: Some(2), ..view("All.") };
        shown(std::slice::from_ref(table), &view, width(80), &face())
    };
    expect![[r#"
        All.

        CPUs
        CPU  Thread  Uncertain
          0  idle           no
          1  idle           no
        ... and 1 more row (--top all)
        all 0 or empty: Life (--wide)
    "#]]
    .assert_eq(&of(&table));
    let part = Table { omitted: 1, ..table };
    assert!(of(&part).contains("0 or empty in these rows: Life"), "{}", of(&part));
}

/// A table that is asked for is shown, even if there is nothing in it.
#[test]
fn a_table_without_rows_that_is_asked_for() {
    let table = Table::new("errors", "Errors of system calls", vec![Column::new("errno", "Error", CellClass::Number)]);
    let asked = FaceArguments { table: vec!["errors".to_owned()], ..face() };
    expect![[r#"
        System call read took most time.

        Errors of system calls
        nothing
    "#]]
    .assert_eq(&shown(&[table], &view("System call read took most time."), TERMINAL, &asked));
}

/// Names of pictures, at all widths.
#[test]
fn pictures_in_names() {
    let columns = vec![Column::new("name", "Name", CellClass::Text), Column::of("count", "Count", "events")];
    let row = |name: &str| vec![Cell::Text(name.repeat(40)), Cell::Count(Bounded::exact(7))];
    let rows = ["❤\u{fe0f}", "1\u{fe0f}\u{20e3}", "👩\u{200d}💻"].map(row).to_vec();
    let table = [Table { rows, plot: Some(Plot::Bars { value: 1 }), ..Table::new("names", "Names", columns) }];
    for columns in 20..=200 {
        let text = text(&table, width(columns));
        assert!(text.lines().all(|line| screen::columns(line) <= columns), "{columns}: {text}");
    }
}

/// The limits of an answer are said before its headline.
#[test]
fn limits_come_before_the_headline() {
    let view = AnswerView { limits: "Within --min 30.0 us: ".to_owned(), ..view("Of 1 pair, all took 50.0 us.") };
    let text = shown(&[waits()], &view, TERMINAL, &face());
    assert!(text.starts_with("Within --min 30.0 us: Of 1 pair, all took 50.0 us.\n"), "{text}");
}
