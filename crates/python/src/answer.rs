//! An answer to a command, for Python: its tables as columns, and its text for people.

use kymo_cli::words;
use kymo_session::{Progress, answer_columns};

use crate::columns::{Batch, batch};

/// A table of an answer: class, title, columns, from when to when, rows beyond these.
type AnswerTable = (String, String, Batch, Option<(i64, i64)>, u64);
/// An answer: its tables, the report, text for people, and warnings.
pub(crate) type Said = (Vec<AnswerTable>, String, String, String);
/// An answer for Python; of a canceled one, not all tables.
pub(crate) fn said(session: &kymo_session::Session, answered: words::TableAnswer, progress: &Progress) -> Said {
    let is_unix = session.times_are_unix();
    let table = |table: kymo_session::Table| {
        let columns = batch(answer_columns(&table, is_unix));
        (table.class.to_owned(), table.title, columns, table.span_ns, table.omitted)
    };
    let tables = answered.tables.into_iter().take_while(|_| !progress.is_cancelled()).map(table).collect();
    (tables, words::report(&answered.report), answered.text, answered.warnings)
}
