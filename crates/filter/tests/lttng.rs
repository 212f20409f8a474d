//! LTTng's language is ours: every expression that LTTng takes is taken, every one that it refuses is refused, but for
//! the table of deviations. What the expressions keep of a trace is the duty of whoever reads traces.
//!
//! The table of LTTng's answers is `filter_conformance.tsv` in the corpus: `KYMO_CORPUS`, else `../shared/corpus` beside
//! the repository.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use kymo_filter::Filter;

/// Expression, `taken` or `refused`, and the reason.
const DEVIATIONS: &str = include_str!("../../../tests/filter/lttng_syntax.tsv");

fn corpus() -> PathBuf {
    let beside = || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    std::env::var_os("KYMO_CORPUS").map_or_else(beside, PathBuf::from)
}

/// As it stands in the table of deviations.
fn shortened(expression: &str) -> String {
    let bytes = expression.len();
    if bytes > 200 { format!("{expression:.40}... {bytes} bytes") } else { expression.to_owned() }
}

#[test]
fn lttng_and_we_take_the_same_expressions() {
    let path = corpus().join("filter_conformance.tsv");
    let Ok(table) = fs::read_to_string(&path) else {
        println!("CORPUS ABSENT: {} not run", path.display());
        return;
    };
    let rows = |text: &'static str| text.lines().filter(|line| !line.starts_with('#'));
    let mut deviations: BTreeMap<&str, &str> =
        rows(DEVIATIONS).map(|line| line.split_once('\t').expect("a row has columns")).collect();
    let (mut count, mut wrong) = (0, Vec::new());
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let mut columns = line.split('\t');
        let (Some(expression), Some(accepted)) = (columns.next(), columns.next()) else { continue };
        let filter = Filter::parse(&expression.replace("<TAB>", "\t"));
        count += 1;
        let expected = match deviations.remove(&*shortened(expression)) {
            Some(deviation) => deviation.starts_with("taken\t"),
            None => accepted == "ok",
        };
        if filter.is_ok() != expected {
            let problem = filter.err().map(|problems| problems[0].render(expression)).unwrap_or_default();
            wrong.push(format!("{accepted}: {expression:.200}\n{problem}"));
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(deviations.is_empty(), "deviations of expressions that are not there: {deviations:?}");
    println!("{count} expressions");
    assert!(count > 300, "{count} expressions");
}
