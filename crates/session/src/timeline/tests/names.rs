//! Names of threads.

use super::*;

/// Without a kernel trace, threads have the names of their own events.
#[test]
fn threads_are_called_what_their_events_say() {
    let timeline = built(&demo(), None, None);
    let named: Vec<(String, Option<i64>)> = timeline
        .catalogue(0, 0)
        .tracks
        .into_iter()
        .filter(|track| track.tid == Some(29836))
        .map(|track| (track.name, track.process))
        .collect();
    assert_eq!(named[0], ("demo (29836): events".to_owned(), Some(29832)), "{named:?}");
}

const COMPONENTS: &str = "/* CTF 1.8 */
trace { major = 1; minor = 8; byte_order = le; };
clock { name = c; freq = 1000000000; };
typealias integer { size = 64; align = 8; map = clock.c.value; } := time;
stream {
    packet.context := struct {
        time timestamp_begin; time timestamp_end; integer { size = 32; align = 8; } packet_size;
        string session_label; string thread_name;
    };
    event.header := struct { integer { size = 8; align = 8; } id; time timestamp; };
};
event { name = \"Rpc_call\"; id = 1; fields := struct { string _name; }; };
event { name = \"Rpc_returned\"; id = 2; fields := struct { string _name; }; };
";

/// A file with a packet of a component's thread, which calls once.
fn component(path: &Path, label: &str, thread: &str, begin: u64) {
    let names = [label.as_bytes(), &[0], thread.as_bytes(), &[0]].concat();
    let event = |id: u8, time: u64| [&[id][..], &time.to_le_bytes(), b"ask\0"].concat();
    let events = [event(1, begin), event(2, begin + 5)].concat();
    let bits = 8 * (20 + names.len() + events.len()) as u32;
    let times = [begin, begin + 5].map(u64::to_le_bytes).concat();
    std::fs::write(path, [&times[..], &bits.to_le_bytes(), &names, &events].concat()).unwrap();
}

/// Where packets say of which component and thread they are, rows are called by that, not by numbers.
#[test]
fn streams_of_components_are_called_by_the_component_and_its_thread() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("metadata"), COMPONENTS).unwrap();
    component(&folder.path().join("a"), "init -> timer", "ep", 100);
    component(&folder.path().join("b"), "init -> ping", "signal proxy", 200);
    component(&folder.path().join("c"), "", "", 300);
    let names = |timeline: &Timeline| -> Vec<String> {
        let tracks = timeline.catalogue(0, 0).tracks.into_iter();
        tracks
            .filter(|track| track.id.starts_with("events/") && track.parent.is_none())
            .map(|track| track.name)
            .collect()
    };
    let timeline = built(folder.path(), None, None);
    assert_eq!(names(&timeline), ["init -> timer: ep", "init -> ping: signal proxy", "stream 2"]);
    // A name of the stream's own, or of an interface.
    for (field, expected) in
        [("thread", ["ep", "signal proxy", "stream 2"]), ("interface", ["init -> timer", "init -> ping", "stream 2"])]
    {
        std::fs::write(folder.path().join("metadata"), COMPONENTS.replace("thread_name", field)).unwrap();
        assert_eq!(names(&built(folder.path(), None, None)), expected, "{field}");
    }
    let interfaces = COMPONENTS.replace("string session_label; string thread_name", "string interface; string other");
    std::fs::write(folder.path().join("metadata"), interfaces).unwrap();
    assert_eq!(names(&built(folder.path(), None, None)), ["init -> timer", "init -> ping", "stream 2"]);
    std::fs::write(folder.path().join("metadata"), COMPONENTS).unwrap();
    let session = Arc::new(Session::open(&[folder.path().to_owned()], &OpenOptions::default()).unwrap());
    let growing = session.growing_timeline(&TimelineOptions::default(), 300).unwrap();
    assert_eq!(
        names(&growing.grown(&session, None).unwrap())[..2],
        ["init -> timer: ep", "init -> ping: signal proxy"]
    );
}

/// A thread that takes another name in its last moments has that name everywhere: rows and tables agree.
#[test]
fn threads_have_the_last_name_that_they_had() {
    use crate::answers::analyse::tests::tiny_trace::{Event, Packet, write};
    let event = |time: u64, name: &str, values: &[(&str, &str)]| {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Event { time, name: name.to_owned(), values }
    };
    let switch = |time, prev: (&str, &str), state, next: (&str, &str)| {
        let values = [
            ("prev_comm", prev.1),
            ("prev_tid", prev.0),
            ("prev_state", state),
            ("next_comm", next.1),
            ("next_tid", next.0),
        ];
        event(time, "sched_switch", &values)
    };
    let idle = ("0", "swapper");
    let fork = [("parent_comm", "shell"), ("child_comm", "shell"), ("child_tid", "7"), ("child_pid", "7")];
    let events = [
        event(100, "sched_process_fork", &fork),
        switch(110, idle, "0", ("7", "shell")),
        switch(200, ("7", "worker"), "64", idle),
        switch(250, idle, "0", ("8", "other")),
        switch(300, ("8", "last"), "1", idle),
    ];
    // Where packets begin, after the first one.
    for borders in [&[][..], &[1], &[2], &[3, 4]] {
        let folder = tempfile::tempdir().unwrap();
        let begins = [0].iter().chain(borders);
        let ends = borders.iter().chain(&[5]);
        let packets = begins.zip(ends).map(|(&begin, &end): (&usize, &usize)| {
            let events = events[begin..end].to_vec();
            let (begin, end) = (events[0].time, events.last().unwrap().time);
            Packet { begin, end, events, ..Packet::default() }
        });
        write(folder.path(), &packets.collect::<Vec<Packet>>());
        for slice_bytes in [None, Some(1)] {
            let tracks = built(folder.path(), slice_bytes, None).catalogue(0, 0).tracks;
            let name = |tid: i64| tracks.iter().find(|track| track.id == format!("thread/0/{tid}/state")).unwrap();
            assert_eq!([7, 8].map(|tid| name(tid).name.clone()), ["worker (7)", "last (8)"], "{borders:?}");
        }
    }
}
