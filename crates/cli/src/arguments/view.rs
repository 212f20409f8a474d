//! The arguments of `kymo view`.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::Args;

use super::SessionArguments;
use crate::arguments::ReadingArguments;
use crate::quantity::some_size;

const HELP: &str = "\
Examples:
  kymo view                             choose in the browser: recent traces, a path, dropped files, a sample
  kymo view my-trace                    open the browser; same as `kymo my-trace --view`
  kymo view kernel/ ust/ host2/         several traces on one time axis
  kymo view --no-browser my-trace       print the URL only, for a browser on this machine
  kymo view --port 8000 my-trace        use a fixed port, as for `ssh -L 8000:127.0.0.1:8000 HOST`
  kymo view --listen 0.0.0.0 my-trace   serve other machines too, by this machine's address
  kymo view --port 8000 --token-file FILE my-trace    the same URL each time
  kymo view --record -- ./app           record a program, as `kymo record` does, and show it live
  kymo view --record --event 'net:*' --process server    record running programs until Ctrl-C

The printed URL contains a token. The server rejects requests without it, from other users of this
machine and from pages of other sites. The viewer sends no data elsewhere and loads none from there.
Scripts can use the same HTTP API: docs/http.md.

With `--record`, COMMAND receives the signals while it runs; the view continues after that until
Ctrl-C. A session of another command, such as `kymo record --detach`, is viewed like any trace.

Exit status: 0 ended by Ctrl-C, 1 the traces cannot be opened, 2 wrong usage; with `--record`, the
status of `kymo record`.";

#[derive(Args)]
#[command(after_help = HELP)]
pub(crate) struct ViewArguments {
    /// Traces: folders with a `metadata` file, parent folders of these, single stream files, archives (tar, tar.gz,
    /// tar.zst, zip) of them, captures of packets (pcapng, pcap), dumps of
    /// Barrelfish, or trees of Genode's recorder; default: choose in the page
    #[arg(value_name = "TRACE")]
    pub(crate) traces: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) reading: ReadingArguments,
    /// Listen on this address, so that other machines can connect; the token is still required
    #[arg(long, value_name = "ADDRESS[:PORT]")]
    pub(crate) listen: Option<Listen>,
    /// The port; default: any free port
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,
    /// Use the token in this file, so that URLs stay valid for later runs with the same --port; if the file is absent,
    /// create it with a new token. Other users must not have access to it
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Do not open a browser
    #[arg(long)]
    pub(crate) no_browser: bool,
    /// Memory for requests and responses of all viewers, results of analyses, and recently shown data; requests that do
    /// not fit wait
    #[arg(long, value_name = "SIZE", default_value = "192MiB", value_parser = memory)]
    pub(crate) memory: u64,
    /// Number of threads; 0: one for each core
    #[arg(long, default_value_t = 0, env = "KYMO_THREADS", hide_env_values = true)]
    pub(crate) threads: usize,
    /// The file of notes on the traces; default: `TRACE.kymo-notes` beside the first trace
    #[arg(long, value_name = "FILE")]
    pub(crate) notes: Option<PathBuf>,
    /// A mapping from events to roles, which takes precedence over the built-in mappings
    #[arg(long, value_name = "FILE")]
    pub(crate) roles: Option<PathBuf>,
    /// Show the states and counters of this own analysis (`kymo analyse`) as tracks; repeatable
    #[arg(long, value_name = "FILE")]
    pub(crate) own: Vec<PathBuf>,
    /// Record COMMAND or running programs, as `kymo record` does, and show them live
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
