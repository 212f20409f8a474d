//! Answers made by hand, in every face.

mod programs;
mod random;
#[path = "../../../tests/suite/schema/mod.rs"]
mod schema;
mod terminal;

use expect_test::{Expect, expect};
use kymo_session::{Bounded, CellClass, Column, Headline, HeadlinePart, Plot};

use super::*;
use crate::arguments::Color;

const TERMINAL: Screen = Screen { width: Some(80), colours: false, unicode: true };
const NARROW: Screen = Screen { width: Some(40), ..TERMINAL };
const PLAIN: Screen = Screen { unicode: false, ..TERMINAL };
const PIPE: Screen = Screen { width: None, ..TERMINAL };

/// 2016-03-04 17:46:22 UTC
const BEGIN: i64 = 1_457_113_582_000_000_000;

fn face() -> FaceArguments {
    FaceArguments {
        json: false,
        csv: false,
        lami: false,
        table: Vec::new(),
        wide: false,
        exact: false,
        no_plot: false,
        color: Color::Auto,
        no_color: false,
        no_progress: false,
        rehearse: None,
    }
}

/// A headline of these words.
fn view(headline: &str) -> AnswerView<'static> {
    let parts = vec![HeadlinePart::Text(headline.to_owned())];
    AnswerView { headline: Headline { parts }, nothing: "Nothing.".to_owned(), ..AnswerView::default() }
}

/// The text for people.
fn text(tables: &[Table], screen: Screen) -> String {
    shown(tables, &view("It stands out."), screen, &face())
}

fn shown(tables: &[Table], view: &AnswerView<'_>, screen: Screen, face: &FaceArguments) -> String {
    let tables: Vec<&Table> = tables.iter().collect();
    let mut out = Vec::new();
    for_people(&tables, view, &InstantFormat::new(true, Zone::Utc, false), (screen, face), &mut out)
        .expect("memory can be written");
    String::from_utf8(out).expect("words are text")
}

fn check(tables: &[Table], screen: Screen, expected: &Expect) {
    expected.assert_eq(&text(tables, screen));
}

fn written(write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>) -> String {
    let mut out = Vec::new();
    write(&mut out).expect("memory can be written");
    String::from_utf8(out).expect("faces write text")
}

fn thread(name: &str, tid: i64) -> Cell {
    Cell::Process { name: Some(name.to_owned()), pid: Some(tid), tid: Some(tid) }
}

fn between(low: u64, value: u64, high: u64) -> Bounded<u64> {
    Bounded { value, low, high }
}

/// Threads: certain, not certain, not known at all.
fn threads() -> Table {
    let columns = vec![
        Column::new("thread", "Thread", CellClass::Process),
        Column::new("run_time", "Run time", CellClass::Duration),
        Column::new("share", "Share", CellClass::Ratio),
        Column::of("runs", "Runs", "runs"),
        Column::new("read", "Read", CellClass::Size),
    ];
    let row = |thread, time, share, runs, read| {
        vec![thread, Cell::Duration(time), Cell::Ratio(share), Cell::Count(runs), read]
    };
    let exact = Bounded::<u64>::exact;
    let share = Bounded::<f64>::exact;
    Table {
        span_ns: Some((BEGIN, BEGIN + 1_580_000_000)),
        rows: vec![
            row(
                thread("bash", 123),
                between(11_900_000, 12_345_678, 14_000_000),
                Bounded { value: 0.0078, low: 0.0075, high: 0.0089 },
                between(17, 17, u64::MAX),
                Cell::Size(exact(4096)),
            ),
            row(
                thread("kworker/u16:3-events_unbound", 4297),
                Bounded::exact(9_876_543),
                share(0.00625),
                exact(12_345),
                Cell::Size(between(0, 0, 1 << 20)),
            ),
            row(
                Cell::Process { name: None, pid: None, tid: Some(7) },
                exact(2_000_000),
                share(0.0013),
                exact(3),
                Cell::Unknown,
            ),
            row(Cell::Unknown, exact(999), share(0.000_000_6), exact(1), Cell::Empty),
        ],
        omitted: 1234,
        plot: Some(Plot::Bars { value: 1 }),
        ..Table::new("per-thread", "Threads by run time", columns)
    }
}

/// Numbers are aligned right, bounds beside them, bars behind.
#[test]
fn a_table_on_a_terminal() {
    check(
        &[threads()],
        Screen { width: Some(120), ..TERMINAL },
        &expect![[r#"
            It stands out.
            2016-03-04 17:46:22.000000000 to 17:46:23.580000000 (1.580 s)

            Threads by run time
            Thread                               Run time                Share               Runs     Read
            bash (123)                           12.3 ms [11.9, 14.0]     0.8% [0.8, 0.9]     ≥17  4.0 KiB               █████████▍░
            kworker/u16:3-events_unbound (4297)  9.88 ms                  0.6%             12,345      0 B [0, 1.0 MiB]  ███████▊
            unknown (7)                          2.00 ms                  0.1%                  3  unknown               █▋
            unknown                               999 ns               0.0001%                  1        -
            ... and 1,234 more rows (--top all)
        "#]],
    );
}

/// Long names are cut in the middle before numbers are; then bars have no room.
#[test]
fn a_table_on_a_narrow_terminal() {
    check(
        &[threads()],
        TERMINAL,
        &expect![[r#"
            It stands out.
            2016-03-04 17:46:22.000000000 to 17:46:23.580000000 (1.580 s)

            Threads by run time
            Thread                          Run time                Share               Runs
            bash (123)                      12.3 ms [11.9, 14.0]     0.8% [0.8, 0.9]     ≥17
            kworker/u16…nts_unbound (4297)  9.88 ms                  0.6%             12,345
            unknown (7)                     2.00 ms                  0.1%                  3
            unknown                          999 ns               0.0001%                  1
            ... and 1,234 more rows (--top all)
            left out: Read (--wide)
        "#]],
    );
}

#[test]
fn a_table_without_unicode() {
    check(
        &[threads()],
        Screen { width: Some(120), ..PLAIN },
        &expect![[r#"
            It stands out.
            2016-03-04 17:46:22.000000000 to 17:46:23.580000000 (1.580 s)

            Threads by run time
            Thread                               Run time                Share               Runs     Read
            bash (123)                           12.3 ms [11.9, 14.0]     0.8% [0.8, 0.9]    >=17  4.0 KiB               #########--
            kworker/u16:3-events_unbound (4297)  9.88 ms                  0.6%             12,345      0 B [0, 1.0 MiB]  ########
            unknown (7)                          2.00 ms                  0.1%                  3  unknown               ##
            unknown                               999 ns               0.0001%                  1        -
            ... and 1,234 more rows (--top all)
        "#]],
    );
}

/// Titles lose their ends where space is short.
#[test]
fn titles_that_are_wider_than_numbers() {
    let count = |name, title| Column::of(name, title, "things that are counted");
    let columns = vec![
        Column::new("thread", "Thread", CellClass::Process),
        count("a", "Migrations"),
        count("b", "Preemptions"),
        count("c", "Interruptions"),
    ];
    let cell = |number| Cell::Count(Bounded::exact(number));
    let mut table = Table::new("titles", "Titles", columns);
    table.rows.push(vec![thread("kworker/u16:3-events", 4297), cell(1), cell(22), cell(333)]);
    for width in [140, 80, 60, 40] {
        let text = text(std::slice::from_ref(&table), Screen { width: Some(width), ..TERMINAL });
        assert!(text.lines().all(|line| screen::columns(line) <= width), "{text}");
    }
    check(
        &[table],
        Screen { width: Some(56), ..TERMINAL },
        &expect![[r#"
            It stands out.

            Titles
            Thread                       Migrati…  Preempt…  Interr…
            kworker/u16:3-events (4297)         1        22      333
        "#]],
    );
}

/// Nothing is cut, nothing is drawn.
#[test]
fn a_table_in_a_pipe() {
    check(
        &[threads()],
        PIPE,
        &expect![[r#"
            Threads by run time  2016-03-04 17:46:22.000000000 to 17:46:23.580000000 (1.580 s)
            Thread                               Run time                Share               Runs             Read
            bash (123)                           12.3 ms [11.9, 14.0]     0.8% [0.8, 0.9]      17 [17, ∞]  4.0 KiB
            kworker/u16:3-events_unbound (4297)  9.88 ms                  0.6%             12,345              0 B [0, 1.0 MiB]
            unknown (7)                          2.00 ms                  0.1%                  3          unknown
            unknown                               999 ns               0.0001%                  1                -
            ... and 1,234 more rows (--top all)
        "#]],
    );
}

#[test]
fn colours() {
    let one = Table { rows: threads().rows.drain(..1).collect(), omitted: 0, ..threads() };
    let text = text(&[one], Screen { width: Some(120), colours: true, unicode: true });
    expect![[r#"
        ^[1mIt stands out.^[0m
        ^[2m2016-03-04 17:46:22.000000000 to 17:46:23.580000000 (1.580 s)^[0m

        ^[1mThreads by run time^[0m
        ^[4mThread^[0m      ^[4mRun time^[0m              ^[4mShare^[0m            ^[4mRuns^[0m     ^[4mRead^[0m
        bash (123)  12.3 ms ^[2m[11.9, 14.0]^[0m  0.8% ^[2m[0.8, 0.9]^[0m   ≥17  4.0 KiB  ^[36m█████████████████████████▌░░░░^[0m
    "#]].assert_eq(&text.replace('\x1b', "^"));
}

/// Empty tables say so; two tables are apart; an empty table states its omissions.
#[test]
fn nothing() {
    let columns = || vec![Column::new("name", "Name", CellClass::Text)];
    let empty = || Table::new("empty", "Waits of nobody", columns());
    let all_omitted = Table { omitted: 1, ..empty() };
    check(
        &[empty(), all_omitted, Table::new("none", "No columns", Vec::new())],
        TERMINAL,
        &expect![[r#"
            It stands out.

            Waits of nobody
            Name
            ... and 1 more row (--top all)
        "#]],
    );
}

/// A name may be anything: controls, escapes, text from right to left, nothing, wide characters.
#[test]
fn names_that_would_move_the_cursor() {
    let names = ["", "a\nb", "\x1b[31mred", "abc\u{202e}fed", "音楽再生", "zero\u{200b}width", "tab\there", "e\u{301}"];
    let mut table = Table::new(
        "names",
        "Names\nof \x07 all",
        vec![Column::new("name", "Name\t", CellClass::Text), Column::new("path", "Path", CellClass::Path)],
    );
    table.rows =
        names.iter().map(|name| vec![Cell::Text((*name).to_owned()), Cell::Path(format!("/{name}"))]).collect();
    check(
        &[table],
        PIPE,
        &expect![[r#"
        Names\nof \u{7} all
        Name\t             Path
        ""                 /
        a\nb               /a\nb
        \u{1b}[31mred      /\u{1b}[31mred
        abc\u{202e}fed     /abc\u{202e}fed
        音楽再生           /音楽再生
        zero\u{200b}width  /zero\u{200b}width
        tab\there          /tab\there
        é                  /é
    "#]],
    );
}

/// A name of a million characters.
#[test]
fn a_very_long_name() {
    let mut table = Table::new(
        "names",
        "Names",
        vec![Column::new("name", "Name", CellClass::Text), Column::of("count", "Count", "events")],
    );
    table.rows = vec![vec![Cell::Text("abcdefghij".repeat(100_000)), Cell::Count(Bounded::exact(1))]];
    check(
        &[table],
        NARROW,
        &expect![[r#"
            It stands out.

            Names
            Name                              Events
            abcdefghijabcdef…fghijabcdefghij       1
        "#]],
    );
}

/// Negative times, times without end, infinite numbers and no numbers.
#[test]
fn all_kinds_of_cells() {
    check(
        &[kinds()],
        PIPE,
        &expect![[r#"
        Kinds of cells
        Class       Cell
        ""          -
        ""          unknown
        bool        yes
        number      18,446,744,073,709,551,615
        number      -9,223,372,036,854,775,808
        number      0.100
        number      1.000e300
        number      ∞
        number      -∞
        number      unknown
        string      two words
        ratio       50.0%                                                          [0.0, ∞]
        timestamp   1969-12-31 23:59:59.999999999
        timestamp   2016-03-04 17:46:22.000000000
        duration    0 ns
        duration    1.00 ms
        duration    12.345679 ms                                                   [12.345678, 12.345680]
        duration    1.50 us                                                        [0, ∞]
        duration    1.50 us                                                        [900 ns, 3.00 ms]
        duration    213504 days
        size        1.0 MiB
        bitrate     1.50 Gbit/s
        time-range  2016-03-04 17:46:22.000000000 to 2016-03-04 17:46:22.000000001
        time-range  earlier to 2016-03-04 17:46:22.000000000
        time-range  2016-03-04 17:46:22.000000000 to never ended
        syscall     openat
        process     java (107 of 100)
        process     unknown
        path        /tmp/a b
        fd          -1
        irq         irq 42 ahci
        irq         softirq 42
        cpu         3
        disk        sda
        netif       eth0
    "#]],
    );
}

/// Where the clock does not count from 1970, times are seconds.
#[test]
fn times_that_are_no_dates() {
    let mut table = Table { span_ns: Some((BEGIN, BEGIN + 1)), ..kinds() };
    table.rows.retain(|row| matches!(row[1].class(), Some(CellClass::Timestamp | CellClass::TimeRange)));
    let seconds = InstantFormat::new(false, Zone::Utc, false);
    let out = written(|out| for_people(&[&table], &view(""), &seconds, (PIPE, &face()), out));
    expect![[r#"
        Kinds of cells  1457113582.000000000 s to 1457113582.000000001 s (1 ns)
        Class       Cell
        timestamp   -0.000000001 s
        timestamp   1457113582.000000000 s
        time-range  1457113582.000000000 s to 1457113582.000000001 s
        time-range  earlier to 1457113582.000000000 s
        time-range  1457113582.000000000 s to never ended
    "#]]
    .assert_eq(&out);
}

/// Every kind of cell, in a column of several classes.
fn kinds() -> Table {
    let irq = |is_hard, name: Option<&str>| Cell::Irq { is_hard, number: 42, name: name.map(str::to_owned) };
    let cells = vec![
        Cell::Empty,
        Cell::Unknown,
        Cell::Flag(true),
        Cell::Count(Bounded::exact(u64::MAX)),
        Cell::Integer(i64::MIN),
        Cell::Number(0.1),
        Cell::Number(1e300),
        Cell::Number(f64::INFINITY),
        Cell::Number(f64::NEG_INFINITY),
        Cell::Number(f64::NAN),
        Cell::Text("two words".to_owned()),
        Cell::Ratio(Bounded { value: 0.5, low: 0.0, high: f64::INFINITY }),
        Cell::Timestamp(-1),
        Cell::Timestamp(BEGIN),
        Cell::Duration(Bounded::exact(0)),
        Cell::Duration(Bounded::exact(999_600)),
        Cell::Duration(between(12_345_678, 12_345_679, 12_345_680)),
        Cell::Duration(between(0, 1500, u64::MAX)),
        Cell::Duration(between(900, 1500, 3_000_000)),
        Cell::Duration(Bounded::exact(u64::MAX)),
        Cell::Size(Bounded::exact(1_048_575)),
        Cell::Bitrate(Bounded::exact(1.5e9)),
        Cell::TimeRange(Some(BEGIN), Some(BEGIN + 1)),
        Cell::TimeRange(None, Some(BEGIN)),
        Cell::TimeRange(Some(BEGIN), None),
        Cell::Syscall("openat".to_owned()),
        Cell::Process { name: Some("java".to_owned()), pid: Some(100), tid: Some(107) },
        Cell::Process { name: None, pid: None, tid: None },
        Cell::Path("/tmp/a b".to_owned()),
        Cell::Fd(-1),
        irq(true, Some("ahci")),
        irq(false, None),
        Cell::Cpu(3),
        Cell::Disk("sda".to_owned()),
        Cell::NetworkInterface("eth0".to_owned()),
    ];
    let rows = cells.into_iter().map(|cell| {
        let class = cell.class().map_or("", CellClass::name);
        vec![Cell::Text(class.to_owned()), cell]
    });
    let columns = vec![Column::new("class", "Class", CellClass::Text), Column::new("cell", "Cell", CellClass::Mixed)];
    Table { rows: rows.collect(), ..Table::new("kinds", "Kinds of cells", columns) }
}

/// A distribution: bins are rows, counts are bars.
#[test]
fn a_histogram() {
    let columns = vec![
        Column::new("low", "From", CellClass::Duration),
        Column::new("high", "To", CellClass::Duration),
        Column::of("count", "Count", "waits"),
    ];
    let bins = [
        (1_000, 2_000, 12),
        (2_000, 4_000, 340),
        (4_000, 8_000, 1_204),
        (8_000, 16_000, 77),
        (16_000, 32_000, 0),
        (32_000, 64_000, 1),
    ];
    let cell = |nanos| Cell::Duration(Bounded::exact(nanos));
    let rows = bins.map(|(low, high, count)| vec![cell(low), cell(high), Cell::Count(Bounded::exact(count))]);
    let table = Table {
        rows: rows.to_vec(),
        plot: Some(Plot::Histogram { low: 0, high: 1, count: 2 }),
        ..Table::new("waits", "Wakeup to run, p50 4.70 us, p99 14.0 us", columns)
    };
    check(
        std::slice::from_ref(&table),
        TERMINAL,
        &expect![[r#"
            It stands out.

            Wakeup to run, p50 4.70 us, p99 14.0 us
               From       To  Waits
            1.00 us  2.00 us     12  ▎
            2.00 us  4.00 us    340  ████████▌
            4.00 us  8.00 us  1,204  ██████████████████████████████
            8.00 us  16.0 us     77  █▉
            16.0 us  32.0 us      0
            32.0 us  64.0 us      1
        "#]],
    );
    check(
        &[table],
        PLAIN,
        &expect![[r#"
            It stands out.

            Wakeup to run, p50 4.70 us, p99 14.0 us
               From       To  Waits
            1.00 us  2.00 us     12
            2.00 us  4.00 us    340  #########
            4.00 us  8.00 us  1,204  ##############################
            8.00 us  16.0 us     77  ##
            16.0 us  32.0 us      0
            32.0 us  64.0 us      1
        "#]],
    );
}

/// A course of some CPUs: `shares` of each period of 10 ms.
fn course(shares: &[&[Option<f64>]]) -> Table {
    let columns = vec![
        Column::new("time", "Time", CellClass::TimeRange),
        Column::new("cpu", "CPU", CellClass::Cpu),
        Column::new("busy", "Busy", CellClass::Ratio),
    ];
    let mut table = Table {
        plot: Some(Plot::Course { time: 0, series: Some(1), value: 2 }),
        ..Table::new("course", "CPUs over time", columns)
    };
    for (cpu, shares) in shares.iter().enumerate() {
        for (period, share) in shares.iter().enumerate() {
            let begin = BEGIN + 10_000_000 * period as i64;
            let share = share.map_or(Cell::Unknown, |share| Cell::Ratio(Bounded::exact(share)));
            table.rows.push(vec![Cell::TimeRange(Some(begin), Some(begin + 10_000_000)), Cell::Cpu(cpu as u32), share]);
        }
    }
    table
}

#[test]
fn a_course_of_several() {
    let rising: Vec<Option<f64>> = (0..40).map(|period| Some(f64::from(period) / 40.0)).collect();
    let with_holes: Vec<Option<f64>> = (0..40).map(|period| (period % 10 != 3).then_some(0.25)).collect();
    let table = course(&[&rising, &with_holes, &[]]);
    check(
        std::slice::from_ref(&table),
        TERMINAL,
        &expect![[r#"
            It stands out.

            CPUs over time
            cpu 0   ▁▁▁▁▁▁▁▁▁▂▂▂▂▂▂▂▃▃▃▃▃▃▄▄▄▄▄▄▄▅▅▅▅▅▅▆▆▆▆▆▆▆▇▇▇▇▇▇████  at most 97.5%
            cpu 1  ▂▂▂▂?▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂▂?▂▂▂▂▂▂▂▂  at most 25.0%
                   0                      200 ms                  400 ms
        "#]],
    );
    check(
        &[table],
        PLAIN,
        &expect![[r#"
            It stands out.

            CPUs over time
            cpu 0   ................::::::-------======+++++++******####  at most 97.5%
            cpu 1  ....?.......................................?........  at most 25.0%
                   0                      200 ms                  400 ms
        "#]],
    );
}

#[test]
fn a_course_alone() {
    let wave: Vec<Option<f64>> = (0..120).map(|period| Some((f64::from(period) / 12.0).sin().abs())).collect();
    let table = course(&[&wave]);
    check(
        std::slice::from_ref(&table),
        TERMINAL,
        &expect![[r#"
            It stands out.

            CPUs over time
            99.8% │      ▄▇█▇▅▁          ▂▆██▇▃           ▃▆██▆▂
                  │    ▃███████▃        ▅██████▇▁       ▁▇██████▅
                  │   ▄█████████▅      ▆█████████▂     ▂█████████▇
                  │  ▄███████████▅    ▇███████████▂   ▂███████████▇    ▄
                  │ ▄█████████████▄  ▆█████████████▁ ▁█████████████▇  ▄█
                0 │▃███████████████▄▆███████████████▂███████████████▆▃██
                   0                      600 ms                  1.20 s
        "#]],
    );
    check(
        &[table],
        PLAIN,
        &expect![[r#"
            It stands out.

            CPUs over time
            99.8% |      -*#*=.          .+##*:           :+##+.
                  |    :#######:        =######*.       .*######=
                  |   -#########=      +#########.     .#########*
                  |  -###########=    *###########.   .###########*    -
                  | -#############-  +#############. .#############*  -#
                0 |:###############-+###############.###############+:##
                   0                      600 ms                  1.20 s
        "#]],
    );
}

/// In a pipe a course is rows; so is one that has nothing to draw.
#[test]
fn a_course_that_is_not_drawn() {
    check(
        &[course(&[&[Some(0.5), None]])],
        PIPE,
        &expect![[r#"
        CPUs over time
        Time                                                            CPU     Busy
        2016-03-04 17:46:22.000000000 to 2016-03-04 17:46:22.010000000    0    50.0%
        2016-03-04 17:46:22.010000000 to 2016-03-04 17:46:22.020000000    0  unknown
    "#]],
    );
    check(
        &[course(&[&[None]]), course(&[])],
        TERMINAL,
        &expect![[r#"
            It stands out.

            CPUs over time
            Time                                                            CPU     Busy
            2016-03-04 17:46:22.000000000 to 2016-03-04 17:46:22.010000000    0  unknown
        "#]],
    );
}

/// More series than lines, rows beyond the span, ranges that are turned around or open.
#[test]
fn odd_courses() {
    let series: Vec<Vec<Option<f64>>> = (0..40).map(|cpu| vec![Some(f64::from(cpu) / 40.0)]).collect();
    let all: Vec<&[Option<f64>]> = series.iter().map(Vec::as_slice).collect();
    let mut table = course(&all);
    table.span_ns = Some((BEGIN, BEGIN + 5_000_000));
    let odd = [(Some(BEGIN + 10), Some(BEGIN)), (None, None), (Some(i64::MIN), Some(i64::MAX)), (Some(i64::MAX), None)];
    for (begin, end) in odd {
        let cells = vec![Cell::TimeRange(begin, end), Cell::Cpu(0), Cell::Ratio(Bounded::exact(1.0))];
        table.rows.push(cells);
    }
    let text = text(std::slice::from_ref(&table), NARROW);
    assert!(text.contains("... and 8 more series"), "{text}");
    table.span_ns = Some((i64::MIN, i64::MAX));
    assert!(self::text(&[table], NARROW).contains("cpu 31"));
}

/// A million rows are put into words one by one: this takes seconds, not gigabytes.
#[test]
fn a_million_rows() {
    let columns = vec![Column::new("time", "Time", CellClass::Timestamp), Column::of("count", "Count", "events")];
    let row = |number: u64| vec![Cell::Timestamp(number as i64), Cell::Count(Bounded::exact(number))];
    let table = Table { rows: (0..1_000_000).map(row).collect(), ..Table::new("rows", "Rows", columns) };
    /// Counts lines and keeps nothing.
    struct Lines(usize);
    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.iter().filter(|byte| **byte == b'\n').count();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let seconds = InstantFormat::new(false, Zone::Utc, false);
    let mut lines = Lines(0);
    for_people(&[&table], &view(""), &seconds, (PIPE, &face()), &mut lines).expect("lines can be counted");
    assert_eq!(lines.0, 1_000_002);
    let mut lines = Lines(0);
    csv::write(&[&table], &mut lines).expect("lines can be counted");
    json::write_answer(&[&table], &Report::default(), &mut lines).expect("lines can be counted");
    assert_eq!(lines.0, 1_000_001 + 1_000_001);
}

/// `--table` names tables by their class.
#[test]
fn tables_by_class() {
    let answer = Answer { tables: vec![threads(), kinds()] };
    let classes = |names: &[&str], one| {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        chosen(&answer, &names, one).map(|tables| tables.iter().map(|table| table.class).collect::<Vec<_>>())
    };
    assert_eq!(classes(&[], false), Ok(vec!["per-thread", "kinds"]));
    assert_eq!(classes(&[], true), Ok(vec!["per-thread"]));
    assert_eq!(classes(&["kinds"], true), Ok(vec!["kinds"]));
    assert_eq!(classes(&["all"], true), Ok(vec!["per-thread", "kinds"]));
    assert_eq!(classes(&["kind"], true), Err("there is no table `kind`; there are: per-thread, kinds".to_owned()));
}

/// Series of CPUs and names are not one of names.
#[test]
fn series_have_all_their_names() {
    let columns = vec![
        Column::new("period", "Period", CellClass::TimeRange),
        Column::new("stream", "Stream", CellClass::Text),
        Column::new("cpu", "CPU", CellClass::Cpu),
        Column::new("name", "Event", CellClass::Text),
        Column::of("count", "Count", "events"),
    ];
    let mut table = Table {
        plot: Some(Plot::Course { time: 0, series: Some(3), value: 4 }),
        ..Table::new("course", "Events over time", columns)
    };
    let text_cell = |text: &str| Cell::Text(text.to_owned());
    let rows = [
        [text_cell("s0"), Cell::Cpu(0), text_cell("open")],
        [text_cell("s1"), Cell::Cpu(1), text_cell("open")],
        [text_cell("s2"), Cell::Empty, text_cell("open")],
        [text_cell("s2"), Cell::Cpu(2), Cell::Empty],
    ];
    for (number, series) in rows.into_iter().enumerate() {
        let count = Cell::Count(Bounded::exact(number as u64 + 1));
        table.rows.push([&[Cell::TimeRange(Some(BEGIN), Some(BEGIN + 1000))], &series[..], &[count]].concat());
    }
    let drawn = text(&[table], TERMINAL);
    let names: Vec<&str> = drawn.lines().filter_map(|line| Some(line.split_once("  ")?.0)).collect();
    assert!(names.starts_with(&["cpu 0 open", "cpu 1 open", "s2 open", "cpu 2"]), "{drawn}");
}
