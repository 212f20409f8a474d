//! Reads metadata files and tells how long it took: `metadata FILE...`.

use std::time::Instant;

fn main() {
    for path in std::env::args().skip(1) {
        let bytes = std::fs::read(&path).expect("the file can be read");
        let start = Instant::now();
        let metadata = kymo_format::parse(&bytes);
        let elapsed = start.elapsed();
        for diagnostic in &metadata.diagnostics {
            print!("{}", diagnostic.render_plain(&metadata.text, &path));
        }
        let classes = metadata
            .trace_class
            .map(|trace| trace.stream_classes.iter().map(|stream| stream.event_classes.len()).sum::<usize>());
        println!("{path}: {classes:?} event record classes in {elapsed:?}");
    }
}
