//! LTTng's compact header: the small form is taken only while a reader can extend its clock.

use std::fs;

use kymo_decode::tree::stream::read_file;
use kymo_writer::{EventParts, MetadataSource, TraceWriter, WriterOptions};

const METADATA: &str = r#"/* CTF 1.8 */
typealias integer { size = 64; align = 8; } := u64;
clock { name = c; };
trace { major = 1; minor = 8; byte_order = le; };
stream {
  packet.context := struct { u64 packet_size; u64 content_size; u64 events_discarded;
    integer { size = 64; align = 8; map = clock.c.value; } timestamp_begin;
    integer { size = 64; align = 8; map = clock.c.value; } timestamp_end; };
  event.header := struct {
    enum : integer { size = 5; align = 1; } { compact = 0 ... 30, extended = 31 } id;
    variant <id> {
      struct { integer { size = 27; align = 1; map = clock.c.value; } t; } compact;
      struct { integer { size = 32; align = 8; } id; integer { size = 64; align = 8; map = clock.c.value; } t; } extended;
    } v; };
};
event { name = small; id = 3; }; event { name = large; id = 500; };
"#;

#[test]
fn the_form_is_the_first_that_a_reader_understands() {
    let class = kymo_format::parse(METADATA.as_bytes()).trace_class.unwrap();
    let folder = std::env::temp_dir().join(format!("kymo-header-{}", std::process::id()));
    let metadata = MetadataSource::Text(METADATA.to_owned());
    let options = WriterOptions { metadata, packet_bytes: 4096, index: true };
    let trace = TraceWriter::create(&folder, &class, options).unwrap();
    let mut stream = trace.stream(0, None, "s").unwrap();
    let events = [(5, 0), (5 + (1 << 27) - 1, 0), (5 + (3 << 27), 0), (1 << 40, 1), (7 + (1 << 40), 0)];
    for (cycles, class) in events {
        stream.event(cycles, class, &EventParts::default()).unwrap();
    }
    stream.discarded(9);
    stream.flush().unwrap();
    let (packets, fault) = read_file(&class, &fs::read(folder.join("s")).unwrap());
    let index = fs::read(folder.join("index/s.idx")).unwrap();
    fs::remove_dir_all(&folder).ok();
    assert_eq!(fault, None);
    let found: Vec<_> = packets[0].events.iter().map(|event| (event.cycles, event.class)).collect();
    assert_eq!(found, events);
    // Small forms take 32 bits, large ones 104: the two clock laps and the large id need those.
    let at: Vec<_> = packets[0].events.windows(2).map(|pair| pair[1].at - pair[0].at).collect();
    assert_eq!(at, [32, 32, 104, 104]);
    assert_eq!((packets[0].discarded, packets[0].end_cycles), (Some(9), Some(7 + (1 << 40))));
    assert_eq!(index.len(), 16 + 72);
}
