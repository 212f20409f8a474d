//! The `kymo` command.

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use kymo_session::{Compile, OpenOptions, PrettyOptions, PrintOptions, Session, StampOptions};

#[derive(Parser)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
    #[arg(long, default_value_t = 0, global = true)]
    threads: usize,
}

#[derive(Subcommand)]
enum Command {
    Count {
        traces: Vec<PathBuf>,
    },
    Print {
        traces: Vec<PathBuf>,
        #[arg(long)]
        clock_seconds: bool,
        #[arg(long)]
        clock_cycles: bool,
        #[arg(long)]
        no_delta: bool,
        #[arg(long, default_value = "text")]
        format: String,
        #[arg(long)]
        limit: Option<u64>,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let compile = match std::env::var("KYMO_JIT").as_deref() {
        Ok("off") => Compile::Never,
        Ok("always") => Compile::AtOnce,
        _ => Compile::WhenWorthIt,
    };
    let open = |paths: &[PathBuf]| {
        Session::open(paths, &OpenOptions { threads: arguments.threads, compile, ..OpenOptions::default() })
            .map_err(|failure| eprint!("{}", failure.render()))
    };
    let complete = match &arguments.command {
        Command::Count { traces } => {
            let Ok(session) = open(traces) else {
                return ExitCode::from(1);
            };
            let counts = session.count();
            println!("{}", counts.total);
            for problem in &counts.report.unreadable {
                eprintln!("{problem}");
            }
            counts.report.is_complete()
        }
        Command::Print { traces, clock_seconds, clock_cycles, no_delta, format, limit } => {
            let Ok(session) = open(traces) else {
                return ExitCode::from(1);
            };
            let options = PrintOptions {
                pretty: PrettyOptions::default(),
                stamp: StampOptions {
                    seconds: *clock_seconds,
                    cycles: *clock_cycles,
                    no_delta: *no_delta,
                    ..StampOptions::default()
                },
                zone: |_| 0,
                silent: format == "none",
                limit: *limit,
            };
            let mut out = BufWriter::with_capacity(1 << 16, io::stdout().lock());
            match session.print(&options, &mut out).and_then(|printed| out.flush().map(|()| printed)) {
                Ok(printed) => {
                    for problem in &printed.report.unreadable {
                        eprintln!("{problem}");
                    }
                    printed.report.is_complete()
                }
                Err(error) => error.kind() == io::ErrorKind::BrokenPipe,
            }
        }
    };
    if complete { ExitCode::SUCCESS } else { ExitCode::from(1) }
}
