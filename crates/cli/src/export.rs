//! `kymo export`

use std::io::{self, Write};

use kymo_session::{ExportOptions, FileFormat, Progress, Session, Zone};

use crate::Outcome;
use crate::arguments::{ExportArguments, TableFormat};
use crate::progress::watched;
use crate::select::selection;
use crate::show;

/// Writes tables and says which.
pub(crate) fn run(session: &Session, arguments: &ExportArguments) -> io::Result<Outcome> {
    let (begin_ns, end_ns) = arguments.between.nanos(session, Zone::Local);
    let options = ExportOptions {
        output: arguments.output.clone(),
        format: match arguments.format {
            TableFormat::Arrow => FileFormat::Arrow,
            TableFormat::Parquet => FileFormat::Parquet,
        },
        selection: selection(session, &arguments.event, arguments.filter.as_deref(), Zone::Local),
        begin_ns,
        end_ns,
        keep_bytes: arguments.keep_bytes,
    };
    let progress = Progress::default();
    let exported = watched(&progress, || session.export(&options, &progress)).map_err(io::Error::other)?;
    let mut out = io::stdout().lock();
    for table in &exported.tables {
        writeln!(out, "{:>15}  {}", show::grouped(table.rows), table.path.display())?;
        if table.replaced_texts > 0 && !arguments.keep_bytes {
            let count = show::grouped(table.replaced_texts);
            let file = table.path.display();
            eprintln!("warning: {file}: {count} texts are not valid and have U+FFFD there; --keep-bytes keeps them");
        }
    }
    Ok(show::report(&exported.report, arguments.common.strict))
}
