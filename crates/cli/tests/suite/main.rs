//! `kymo` as people and programs meet it; one binary, which is linked once.

#[cfg(target_os = "linux")]
#[path = "../../../tracer/tests/suite/alone.rs"]
mod alone;
#[cfg(target_os = "linux")]
mod beginnings;
mod bpf;
#[cfg(target_os = "linux")]
mod bpf_kernel;
#[cfg(target_os = "linux")]
mod c_programs;
#[cfg(target_os = "linux")]
mod capture;
#[cfg(target_os = "linux")]
mod chaos;
mod check;
#[cfg(target_os = "linux")]
mod console;
mod copies;
mod cut;
#[cfg(target_os = "linux")]
mod definitions;
mod demo;
mod details;
mod filter;
mod follow;
mod imported;
mod index;
mod info;
#[cfg(target_os = "linux")]
mod kernel;
#[cfg(target_os = "linux")]
mod kernel_filters;
#[cfg(target_os = "linux")]
mod kernel_perf;
#[cfg(target_os = "linux")]
mod kernel_rights;
mod kernel_rules;
#[cfg(target_os = "linux")]
mod kernel_sessions;
mod kernel_stacks;
mod kernel_state;
mod kernel_texts;
#[cfg(target_os = "linux")]
mod kernel_uring;
#[cfg(target_os = "linux")]
mod kernel_witnesses;
mod lami;
#[cfg(target_os = "linux")]
mod limits;
mod moments;
#[cfg(target_os = "linux")]
mod network;
mod offsets;
mod packets;
mod periods;
mod platform;
#[cfg(target_os = "linux")]
mod policies;
mod probes;
mod program;
#[cfg(target_os = "linux")]
mod record;
#[cfg(target_os = "linux")]
mod record_options;
#[cfg(target_os = "linux")]
mod record_usage;
#[cfg(target_os = "linux")]
mod recorded;
#[cfg(target_os = "linux")]
mod recover;
mod registry;
#[cfg(target_os = "linux")]
mod resting;
#[cfg(target_os = "linux")]
mod resumed;
mod roles;
mod rules;
#[cfg(target_os = "linux")]
mod rust_example;
mod schema;
#[cfg(feature = "sql")]
mod sql;
mod stacks;
mod status;
#[cfg(target_os = "linux")]
mod terminal;
mod thinned;
#[cfg(target_os = "linux")]
mod trigger_storm;
mod triggers;
mod usage;
#[cfg(target_os = "linux")]
mod usdt_events;
#[cfg(target_os = "linux")]
mod user_programs;
#[cfg(all(unix, feature = "view"))]
mod view;
#[cfg(all(target_os = "linux", feature = "view"))]
mod view_record;
#[cfg(target_os = "linux")]
mod watch;
#[cfg(target_os = "linux")]
mod watch_record;
#[cfg(target_os = "linux")]
mod watch_trace;

/// Not a test, but what tests record: it is started with words that choose it alone. It stands here as its thread is
/// called by its whole name, of which the system keeps 15 bytes.
#[cfg(target_os = "linux")]
#[test]
fn the_program() {
    if std::env::var_os("KYMO_TEST_PROGRAM").is_some() {
        recorded::act();
    }
}
