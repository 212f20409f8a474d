//! What the command line may say to `kymo view`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use kymo_session::TraceOffset;

use super::SessionArguments;
use crate::quantity::{some_size, trace_offset};

const HELP: &str = "\
Examples:
  kymo view                             asks in the browser which: recent ones, a path, dropped files, a sample
  kymo view my-trace                    opens the browser; the same as `kymo my-trace --view`
  kymo view kernel/ ust/ host2/         several traces on one time axis
  kymo view --no-browser my-trace       only prints the address, for a browser anywhere on this machine
  kymo view --port 8000 my-trace        on a port that you know, as for `ssh -L 8000:127.0.0.1:8000 HOST`
  kymo view --listen 0.0.0.0 my-trace   for other machines, too, by this machine's address
  kymo view --record -- ./app           records a program, as `kymo record` does, and shows it meanwhile
  kymo view --record --event 'net:*' --process server    programs that run already, until Ctrl-C

The address that is printed has a token: without it nobody is answered, neither another user of this
machine nor a page of another site. Nothing is sent anywhere else, and nothing is loaded from elsewhere.
What the viewer asks, scripts can ask, too: docs/http.md.

With `--record`, signals are COMMAND's as long as it runs; the view goes on behind that, until
Ctrl-C. A session that somebody else records, as `kymo record --detach`, is viewed as any trace.

Exit status: 0 it was ended by Ctrl-C, 1 the traces cannot be opened, 2 wrong usage; with
`--record`, that of `kymo record`.";

#[derive(Args)]
#[command(after_help = HELP)]
pub(crate) struct ViewArguments {
    /// Traces: folders with a `metadata` file, folders above such, single stream files, or archives (tar,
    /// tar.gz, tar.zst, zip) of them; without any, the page asks which
    #[arg(value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,
    /// Sets the clocks of one trace, or of all below a folder, ahead by a time, which may be negative; may be repeated: of
    /// several, the nearest to a trace counts
    #[arg(long, value_name = "PATH=TIME", value_parser = trace_offset)]
    pub(crate) trace_offset: Vec<TraceOffset>,
    /// Where to listen, for other machines to connect; the token is asked for all the same
    #[arg(long, value_name = "ADDRESS[:PORT]")]
    pub(crate) listen: Option<Listen>,
    /// The port; without it, any that is free
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// Opens no browser
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Memory for the questions and answers of all viewers, results of analyses, and what was looked at last: what does not
    /// fit waits for its turn
    #[arg(long, value_name = "SIZE", default_value = "192MiB", value_parser = memory)]
    pub(crate) memory: u64,
    /// Threads to use; 0 means one for each core
    #[arg(long, default_value_t = 0, env = "KYMO_THREADS", hide_env_values = true)]
    pub(crate) threads: usize,
    /// The file of notes on the traces; without it `TRACE.kymo-notes` beside the first one
    #[arg(long, value_name = "FILE")]
    pub(crate) notes: Option<PathBuf>,
    /// A mapping from events to roles that goes before those that are built in
    #[arg(long, value_name = "FILE")]
    pub(crate) roles: Option<PathBuf>,
    /// Own analyses (`kymo analyse`), whose states and counters are shown as tracks; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) own: Vec<PathBuf>,
    /// Records COMMAND, or what runs, as `kymo record` does, and shows it meanwhile
    #[arg(long)]
    pub(crate) record: bool,
    #[command(flatten, next_help_heading = "With --record")]
    pub(crate) recording: SessionArguments,
}

impl ViewArguments {
    /// What says something to `--record` alone, which is missing.
    pub(crate) fn lacks_record(&self) -> Option<&'static str> {
        self.recording.first_said().filter(|_| !self.record)
    }
}

/// Where to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Listen {
    pub(crate) address: IpAddr,
    /// `None`: it is said elsewhere, or any that is free.
    pub(crate) port: Option<u16>,
}

impl std::str::FromStr for Listen {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(Self { address: address.ip(), port: Some(address.port()) });
        }
        let inside = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
        let address = inside.parse().map_err(|_| "it is an address with or without a port: `0.0.0.0:8000`, `[::1]`")?;
        Ok(Self { address, port: None })
    }
}

/// Memory without which nobody could be answered.
const MEMORY_MIN: u64 = 16 << 20;

fn memory(text: &str) -> Result<u64, &'static str> {
    some_size(text)
        .ok()
        .filter(|bytes| *bytes >= MEMORY_MIN)
        .ok_or("a size of 16MiB or more is expected, such as `512MiB`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_with_and_without_ports() {
        let listen = |text: &str| text.parse::<Listen>().ok().map(|listen| (listen.address.to_string(), listen.port));
        assert_eq!(listen("0.0.0.0:8000"), Some(("0.0.0.0".into(), Some(8000))));
        assert_eq!(listen("192.168.1.5"), Some(("192.168.1.5".into(), None)));
        assert_eq!((listen("[::1]:80"), listen("[::1]")), (Some(("::1".into(), Some(80))), Some(("::1".into(), None))));
        for text in ["", "localhost", "8000", ":8000", "1.2.3", "::1:x", "[::1"] {
            assert_eq!(listen(text), None, "{text}");
        }
    }
}
