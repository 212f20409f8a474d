//! A job that is cancelled, before it begins or while it reads, ends soon: with [`Cancelled`], never with a part of the answer, and
//! with all threads that it began.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kymo_session::messages::MessagesQuestion;
use kymo_session::{
    AnalyseFailure, AnalysisKind, AnalysisOptions, Cancelled, CountOptions, CutOptions, CutProblem, Definitions,
    EventsFailure, EventsQuestion, ExportFailure, ExportOptions, FileFormat, Filter, ImportOptions, OpenOptions,
    OwnStates, PairsQuestion, PeriodsQuestion, PrintFormat, PrintOptions, Progress, Selection, Session, ShareFailure,
    Shares, Wishes, check, find_analysis,
};

use crate::alone;

/// So many times the demo: enough that its parts go to several threads.
const COPIES: usize = 200;
/// How often a job may be done before it is canceled.
const ATTEMPTS: usize = 100;

/// Says whether there is a whole answer.
type Job<'a> = Box<dyn Fn(&Progress) -> Result<(), Cancelled> + 'a>;

/// The demo as so many machines would have recorded it: from one machine, they would be one trace.
struct Copies(tempfile::TempDir);

impl Copies {
    fn new() -> Self {
        const HOST: &[u8] = b"hostname = \"vm\"";
        let (demo, folder) =
            (Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/traces/demo"), tempfile::tempdir());
        let copies = Self(folder.expect("there is room"));
        let metadata = fs::read(demo.join("metadata")).expect("it is there");
        let at = metadata.windows(HOST.len()).position(|bytes| bytes == HOST).expect("it names its host");
        for (number, copy) in copies.paths().into_iter().enumerate() {
            fs::create_dir(&copy).expect("there is room");
            let mut metadata = metadata.clone();
            metadata[at..at + HOST.len()].copy_from_slice(format!("hostname = \"{number:02x}\"").as_bytes());
            fs::write(copy.join("metadata"), metadata).expect("there is room");
            for stream in ["jobs_0", "jobs_1"] {
                fs::copy(demo.join(stream), copy.join(stream)).expect("there is room");
            }
        }
        copies
    }

    fn paths(&self) -> Vec<PathBuf> {
        (0..COPIES).map(|number| self.0.path().join(number.to_string())).collect()
    }

    fn open(&self, threads: usize) -> Arc<Session> {
        let options = OpenOptions { threads, ..OpenOptions::default() };
        Arc::new(Session::open(&self.paths(), &options).expect("it is there"))
    }
}

/// A filter that matches no event: without results, jobs report nothing on the way.
fn never() -> Selection {
    let filter = Filter::parse("id == 4000000000").expect("it is an expression");
    Selection { filter: Some(filter), ..Selection::default() }
}

fn analysed<T>(asked: Result<T, AnalyseFailure>) -> Result<(), Cancelled> {
    match asked {
        Ok(_) => Ok(()),
        Err(AnalyseFailure::Cancelled(cancelled)) => Err(cancelled),
        Err(other) => panic!("{other}"),
    }
}

fn kind(name: &str) -> AnalysisKind {
    find_analysis(name).expect("there is this analysis").kind.clone()
}

fn analyses(session: &Session) -> Vec<(String, Job<'_>)> {
    let all = AnalysisOptions::default();
    let period_ns = Wishes { period_ns: Some(10_000_000), ..Wishes::default() };
    let jobs = Definitions::parse(&["job : jobs:begin : jobs:end if id == $begin.id".to_owned()], &[]);
    let periods = AnalysisOptions { periods: Some(jobs.expect("they are periods")), ..all.clone() };
    let texts = |text: &str| vec![text.to_owned()];
    let pairs = PairsQuestion::parse(&texts("jobs:begin"), &texts("jobs:end"), &texts("id"), None, false);
    let asked = [
        ("count", kind("count"), AnalysisOptions { selection: never(), ..all.clone() }),
        ("count", kind("count"), all.clone()),
        ("rates", kind("rates"), all.clone()),
        ("gaps", kind("gaps"), all.clone()),
        ("pairs", AnalysisKind::Pairs(pairs.expect("they are pairs")), all.clone()),
        ("count", kind("count"), AnalysisOptions { wishes: period_ns, ..all }),
        ("periods", AnalysisKind::Periods(PeriodsQuestion::default()), periods.clone()),
        ("count", kind("count"), periods),
    ];
    let job = |(name, kind, options): (&str, AnalysisKind, AnalysisOptions)| -> (String, Job<'_>) {
        let what = if options.selection.filter.is_some() { "nothing" } else { "all" };
        let name = format!("{name} of {what}, by {:?} and {:?}", options.wishes.period_ns, options.periods);
        (name, Box::new(move |progress| analysed(session.ask(&kind, &options, progress))))
    };
    asked.into_iter().map(job).collect()
}

fn printing(session: &Session) -> Vec<(String, Job<'_>)> {
    let all = PrintOptions::default;
    let asked = [
        all(),
        PrintOptions { selection: never(), ..all() },
        PrintOptions { format: PrintFormat::Silent, ..all() },
        PrintOptions { format: PrintFormat::Json, ..all() },
        PrintOptions { format: PrintFormat::Details, ..all() },
    ];
    let job = |options: PrintOptions| -> (String, Job<'_>) {
        let what = if options.selection.filter.is_some() { "nothing" } else { "all" };
        let name = format!("print of {what} as {:?}", options.format);
        let print = move |progress: &Progress| match session.print(&options, &mut io::sink(), progress) {
            Ok(_) => Ok(()),
            Err(error) => Err(*error.get_ref().and_then(|cause| cause.downcast_ref()).expect("nothing else is wrong")),
        };
        (name, Box::new(print))
    };
    asked.into_iter().map(job).collect()
}

/// Files are there if the answer is.
fn exporting(session: &Session) -> Vec<(String, Job<'_>)> {
    let export = |format| {
        move |progress: &Progress| {
            let folder = tempfile::tempdir().expect("a folder can be made");
            let options = ExportOptions {
                output: folder.path().to_owned(),
                format,
                selection: Selection { events: vec!["jobs:*".to_owned()], ..Selection::default() },
                begin_ns: None,
                end_ns: None,
                keep_bytes: false,
            };
            let exported = session.export(&options, progress);
            let folders = std::fs::read_dir(folder.path()).expect("it is there").flatten();
            let files = folders.flat_map(|folder| std::fs::read_dir(folder.path()).into_iter().flatten()).count();
            match exported {
                Ok(exported) => {
                    assert_eq!(files, exported.tables.len());
                    Ok(())
                }
                Err(ExportFailure::Cancelled(cancelled)) => {
                    assert_eq!(files, 0, "something that was begun is there");
                    Err(cancelled)
                }
                Err(other) => panic!("{other}"),
            }
        }
    };
    let cut = |progress: &Progress| {
        let folder = tempfile::tempdir().expect("a folder can be made");
        match session.cut(&CutOptions::default(), folder.path(), progress).map_err(|failure| failure.problem) {
            Ok(_) => Ok(()),
            Err(CutProblem::Cancelled(cancelled)) => Err(cancelled),
            Err(other) => panic!("{other}"),
        }
    };
    vec![
        ("export to Parquet".to_owned(), Box::new(export(FileFormat::Parquet))),
        ("export to Arrow".to_owned(), Box::new(export(FileFormat::Arrow))),
        ("cut".to_owned(), Box::new(cut)),
    ]
}

fn counting<'a>(session: &'a Session, copies: &'a Copies) -> Vec<(String, Job<'a>)> {
    let count = |selection: Selection, sizes: bool| -> Job<'a> {
        let options = CountOptions { selection, sizes };
        Box::new(move |progress| session.count(&options, progress).map(drop))
    };
    let own =
        "name = 'demo'\n[[states]]\nname = 'worker'\nkey = 'worker'\nset = [{ event = 'jobs:begin', to = 'busy' }]";
    let own = OwnStates::parse(Path::new("demo.toml"), own).expect("it is an analysis");
    let at = session.first_ns().expect("packets tell their times") + 1_000_000;
    let all = AnalysisOptions::default();
    vec![
        ("count".to_owned(), count(Selection::default(), false)),
        ("sizes".to_owned(), count(Selection::default(), true)),
        ("count of nothing".to_owned(), count(never(), false)),
        ("info".to_owned(), Box::new(|progress| session.info_exact(progress).map(drop))),
        (
            "check".to_owned(),
            Box::new(|progress| check(&copies.paths(), &ImportOptions::default(), progress).map(drop)),
        ),
        ("state".to_owned(), Box::new(move |progress| analysed(session.state_at(at, Some(&own), &all, progress)))),
    ]
}

/// How many threads this process has; where that is not told, always as many.
fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count)
}

/// All threads that were begun end. That they are over is told a moment before the system knows.
fn wait_for_threads(before: usize, name: &str) {
    let begun = Instant::now();
    while threads() > before {
        assert!(begun.elapsed() < Duration::from_secs(60), "{name}: a thread reads on");
        std::thread::yield_now();
    }
}

/// Does a job that another thread cancels as soon as it began to read, or to find something: whether there is an answer, and how
/// far it was.
fn cancelled_while_it_reads(job: &Job<'_>, finds: bool) -> (Result<(), Cancelled>, u64, u64) {
    let (progress, is_over) = (Progress::default(), AtomicBool::new(false));
    let outcome = std::thread::scope(|scope| {
        scope.spawn(|| {
            let begins = || if finds { progress.bytes().0 > 0 } else { progress.bytes().1 > 0 };
            while !begins() && !is_over.load(Ordering::Relaxed) {
                std::hint::spin_loop();
            }
            progress.cancel();
        });
        let outcome = job(&progress);
        is_over.store(true, Ordering::Relaxed);
        outcome
    });
    let (done, total) = progress.bytes();
    (outcome, done, total)
}

fn check_jobs(session: &Arc<Session>, copies: &Copies) {
    let jobs = [analyses(session), printing(session), exporting(session), counting(session, copies)];
    for (name, job) in jobs.iter().flatten() {
        let before = threads();
        let progress = Progress::default();
        progress.cancel();
        assert_eq!(job(&progress), Err(Cancelled), "{name}");
        assert_eq!(progress.bytes().0, 0, "{name}");
        // A cancel may come too late, but not always.
        let is_midway = |_| {
            let finds = !name.contains("nothing");
            let (outcome, done, total) = cancelled_while_it_reads(job, finds);
            outcome == Err(Cancelled) && (done > 0) == finds && done < total
        };
        assert!((0..ATTEMPTS).any(is_midway), "{name} always reads everything");
        wait_for_threads(before, name);
    }
}

fn check_shares(session: &Arc<Session>) {
    let is_cancelled = |outcome: Result<(), ShareFailure>| matches!(outcome, Err(ShareFailure::Cancelled(Cancelled)));
    let shares = Shares::new(Arc::clone(session), kind("count"), AnalysisOptions::default());
    let shares = shares.expect("it can be shared out");
    let parts = shares.split(2).expect("it can be read in parts");
    let read = |part| shares.read(part, &Progress::default()).expect("it can be read");
    let states: Vec<Vec<u8>> = parts.iter().map(read).collect();
    let states: Vec<&[u8]> = states.iter().map(Vec::as_slice).collect();
    let progress = Progress::default();
    progress.cancel();
    assert!(is_cancelled(shares.read(&parts[0], &progress).map(drop)));
    assert!(is_cancelled(shares.merge(&states, &progress).map(drop)));
    assert!(is_cancelled(shares.finish(states.iter(), states.len(), &progress).map(drop)));
    // The canceled jobs changed nothing.
    let finished = shares.finish(states.iter(), states.len(), &Progress::default()).expect("all is there");
    let asked = session.ask(&kind("count"), &AnalysisOptions::default(), &Progress::default());
    assert_eq!(finished, asked.expect("it has an answer"));
}

/// Streams of batches: cancelled before the first one, behind it, and while nothing comes.
fn check_events(session: &Arc<Session>) {
    let before = threads();
    let table = |selection| {
        let question = EventsQuestion { selection, batch_rows: 64, ..EventsQuestion::default() };
        session.events(&question).expect("there are events")
    };
    let is_cancelled = |next| matches!(next, Some(Err(EventsFailure::Cancelled(Cancelled))));
    for rows in [0, 1, 10] {
        let mut stream = table(Selection::default()).stream();
        assert_eq!((&mut stream).take(rows).filter_map(Result::ok).count(), rows);
        stream.progress().cancel();
        assert!(is_cancelled(stream.next()) && stream.next().is_none());
        let mut part = table(Selection::default()).partitions(1).pop().expect("there is one");
        assert_eq!((&mut part).take(rows).filter_map(Result::ok).count(), rows);
        part.progress().cancel();
        assert!(is_cancelled(part.next()) && part.next().is_none());
    }
    let mut nothing = table(never()).stream();
    let progress = Arc::clone(nothing.progress());
    let next = std::thread::scope(|scope| {
        let next = scope.spawn(|| (nothing.next(), nothing.next()));
        progress.cancel();
        next.join().expect("it does not panic")
    });
    assert!(next.0.is_none() || is_cancelled(next.0) && next.1.is_none());
    drop(nothing);
    wait_for_threads(before, "events");
}

/// Dropped messages leave no thread that reads on, even without any result.
fn check_messages(session: &Arc<Session>) {
    let before = threads();
    for selection in [Selection::default(), never()] {
        drop(
            session.messages(&MessagesQuestion { selection, ..MessagesQuestion::default() }).expect("a thread starts"),
        );
        wait_for_threads(before, "messages");
    }
}

/// Alone, and all of it one test: others would start threads meanwhile.
#[test]
fn what_is_cancelled_ends_without_an_answer() {
    alone::run("cancelling::what_is_cancelled_ends_without_an_answer", |_| {
        let copies = Copies::new();
        for threads in [1, 3] {
            let session = copies.open(threads);
            check_jobs(&session, &copies);
            check_shares(&session);
            check_events(&session);
            check_messages(&session);
        }
    });
}
