//! Traces that are made: schedules of a machine that could have been, of which packets then lose events, or are lost; and
//! nonsense, in which all that analyses look at happens, mostly in a wrong order.

use std::collections::BTreeMap;

use super::Random;
use super::tiny_trace::{Event, EventClass, Packet, classes};

/// When such traces end, in nanoseconds: many events have the same time.
const END: u64 = 600;

/// Events on one to three CPUs.
fn happened(random: &mut Random) -> Vec<Vec<Event>> {
    let mut machine = Machine::new(1 + random.below(3));
    let mut now = 0;
    while now < END {
        machine.step(now, random);
        now += random.below(4) as u64;
    }
    machine.events
}

/// Work on some CPUs, recorded without losses, in short packets.
pub(crate) fn recorded(random: &mut Random) -> Vec<Packet> {
    let mut packets = Vec::new();
    for (cpu, mut events) in happened(random).into_iter().enumerate() {
        let mut begin = 0;
        while begin < END {
            let end = (begin + 1 + random.below(90) as u64).min(END);
            let count = events.iter().take_while(|event| event.time < end || end == END).count();
            let events: Vec<Event> = events.drain(..count).collect();
            packets.push(Packet { cpu: cpu as u32, begin, end, events, ..Packet::default() });
            begin = end;
        }
    }
    packets
}

/// Work on some CPUs, recorded with losses.
pub(super) fn schedule(random: &mut Random) -> Vec<Packet> {
    let mut packets = Vec::new();
    for (cpu, events) in happened(random).into_iter().enumerate() {
        let is_lossy = random.below(3) > 0;
        packets.extend(packets_of(cpu as u32, random, |begin, end, random| {
            // Each event is in one packet: those of one time may be in two.
            let is_inside = |event: &&Event| (begin..end).contains(&event.time) || event.time == END && end == END;
            let mut inside: Vec<Event> = events.iter().filter(is_inside).cloned().collect();
            let all = inside.len();
            if is_lossy && begin > 0 && random.below(3) == 0 {
                inside.retain(|_| random.below(5) > 1);
            }
            let lost = all - inside.len();
            (inside, lost as u64)
        }));
    }
    packets
}

/// Events of every class, and losses that are not told rightly.
pub(super) fn nonsense(random: &mut Random) -> Vec<Packet> {
    let classes = classes();
    let mut packets = Vec::new();
    for cpu in 0..=random.below(3) as u32 {
        packets.extend(packets_of(cpu, random, |begin, end, random| {
            let mut times: Vec<u64> =
                (0..random.below(60)).map(|_| begin + random.below((end - begin) as usize + 1) as u64).collect();
            times.sort_unstable();
            let lost = if random.below(4) == 0 { random.below(4) as u64 } else { 0 };
            (times.into_iter().map(|time| any_event(time, &classes, random)).collect(), lost)
        }));
    }
    packets
}

/// Packets of random length, some of which are missing; `fill` determines the content of one, and
/// its number of lost events.
fn packets_of(
    cpu: u32,
    random: &mut Random,
    mut fill: impl FnMut(u64, u64, &mut Random) -> (Vec<Event>, u64),
) -> Vec<Packet> {
    let mut bounds: Vec<u64> = (0..random.below(8)).map(|_| random.below(END as usize) as u64).collect();
    bounds.extend([0, END]);
    bounds.sort_unstable();
    let (mut discarded, mut packets) = (0, Vec::new());
    for (number, bounds) in bounds.windows(2).enumerate() {
        let (begin, end) = (bounds[0], bounds[1]);
        let (events, lost) = fill(begin, end, random);
        discarded += lost;
        // The first and the last one say how long the trace is.
        if begin == 0 || end == END || random.below(10) > 0 {
            packets.push(Packet { cpu, begin, end, discarded, sequence: Some(number as u64), in_pages: false, events });
        }
    }
    packets
}

/// An event of any class with any values.
fn any_event(time: u64, classes: &[EventClass], random: &mut Random) -> Event {
    let class = &classes[random.below(classes.len())];
    let value = |random: &mut Random, name: &str, is_text: bool| match name {
        _ if is_text => ["a", "b", "/x", "/y"][random.below(4)].to_owned(),
        "ret" => (random.below(12) as i64 - 4).to_string(),
        "target_cpu" | "irq" | "vec" | "key" | "prev_state" | "dev" => random.below(3).to_string(),
        _ => random.below(6).to_string(),
    };
    let field = |(name, is_text): &(&'static str, bool)| ((*name).to_owned(), value(random, name, *is_text));
    Event { time, name: class.name.to_owned(), values: class.fields.iter().map(field).collect() }
}

/// How a thread is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mood {
    Ready,
    Asleep,
    Running,
}

#[derive(Debug)]
struct Thread {
    mood: Mood,
    pid: i32,
    name: String,
    /// The call that it is in.
    call: Option<&'static str>,
}

/// CPUs and threads, and their events.
#[derive(Debug)]
struct Machine {
    threads: BTreeMap<i32, Thread>,
    running: Vec<i32>,
    /// For each CPU the interrupt that it serves.
    serving: Vec<Option<usize>>,
    events: Vec<Vec<Event>>,
    now: u64,
}

const CALLS: &[&str] = &["read", "write", "openat", "close", "dup2", "socket", "fsync"];

impl Machine {
    fn new(cpus: usize) -> Self {
        let thread =
            |tid: i32| (tid, Thread { mood: Mood::Ready, pid: 1 + tid / 2, name: format!("t{tid}"), call: None });
        Self {
            threads: (1..6).map(thread).collect(),
            running: vec![0; cpus],
            serving: vec![None; cpus],
            events: vec![Vec::new(); cpus],
            now: 0,
        }
    }

    fn tell(&mut self, cpu: usize, name: &str, values: &[(&str, &dyn ToString)]) {
        let values = values.iter().map(|(name, value)| ((*name).to_owned(), value.to_string())).collect();
        self.events[cpu].push(Event { time: self.now, name: name.to_owned(), values });
    }

    /// Something happens on some CPU.
    fn step(&mut self, now: u64, random: &mut Random) {
        self.now = now;
        let cpu = random.below(self.running.len());
        let tid = self.running[cpu];
        let is_free = tid != 0 && self.serving[cpu].is_none();
        match random.below(16) {
            0 | 1 => self.interrupt(cpu, random),
            2 => self.device(cpu, random),
            3 | 4 => self.wake(cpu, random),
            5 => self.dump(cpu, random),
            6 if is_free => self.fork(cpu, tid, random),
            7 if is_free => self.exit(cpu, tid, random),
            8 if is_free => self.execute(cpu, tid),
            9..12 if is_free => self.call(cpu, tid, random),
            _ if self.serving[cpu].is_none() => self.switch(cpu, random.below(3) as i64, random),
            _ => {}
        }
    }

    fn any_tid(&self, mood: Option<Mood>, random: &mut Random) -> Option<i32> {
        let fits = |(tid, thread): (&i32, &Thread)| mood.is_none_or(|mood| mood == thread.mood).then_some(*tid);
        let tids: Vec<i32> = self.threads.iter().filter_map(fits).collect();
        tids.get(random.below(tids.len())).copied()
    }

    fn interrupt(&mut self, cpu: usize, random: &mut Random) {
        match self.serving[cpu].take() {
            Some(irq) => {
                self.tell(cpu, "irq_handler_exit", &[("irq", &irq)]);
                self.tell(cpu, "irq_softirq_raise", &[("vec", &irq)]);
            }
            None => {
                let irq = random.below(3);
                self.serving[cpu] = Some(irq);
                self.tell(cpu, "irq_handler_entry", &[("irq", &irq), ("name", &"nic")]);
            }
        }
    }

    fn device(&mut self, cpu: usize, random: &mut Random) {
        let (number, sector) = (random.below(3), 8 * random.below(4));
        let request: [(&str, &dyn ToString); 4] =
            [("dev", &8), ("sector", &sector), ("nr_sector", &8), ("rwbs", &(1 + 3 * (sector % 2)))];
        match random.below(9) {
            0 => self.tell(cpu, "block_rq_insert", &request),
            1 => self.tell(cpu, "block_rq_issue", &request),
            2 => self.tell(cpu, "block_rq_complete", &request),
            3 => self.tell(cpu, "irq_softirq_entry", &[("vec", &number)]),
            4 => self.tell(cpu, "irq_softirq_exit", &[("vec", &number)]),
            5 => self.tell(cpu, "mm_page_alloc", &[("order", &number)]),
            6 => self.tell(cpu, "mm_page_free", &[("order", &number)]),
            7 => self.tell(cpu, "work_begin", &[("key", &number), ("name", &"job")]),
            _ => self.tell(cpu, "work_end", &[("key", &number)]),
        }
    }

    fn wake(&mut self, cpu: usize, random: &mut Random) {
        let Some(tid) = self.any_tid(Some(Mood::Asleep), random) else { return };
        let name = self.threads[&tid].name.clone();
        self.stack(cpu, self.running[cpu], ("sched_waking", tid));
        for event in ["sched_waking", "sched_wakeup"] {
            self.tell(cpu, event, &[("comm", &name), ("tid", &tid), ("prio", &20), ("target_cpu", &cpu)]);
        }
        self.threads.entry(tid).and_modify(|thread| thread.mood = Mood::Ready);
    }

    /// A thread has a call stack.
    fn stack(&mut self, cpu: usize, tid: i32, (event, woken): (&str, i32)) {
        let (pid, stack) = (self.threads.get(&tid).map_or(0, |thread| thread.pid), 1 + self.now % 5);
        let values: [(&str, &dyn ToString); 5] =
            [("tid", &tid), ("pid", &pid), ("event", &event), ("stack", &stack), ("woken_tid", &woken)];
        self.tell(cpu, "kymo_callstack", &values);
    }

    fn dump(&mut self, cpu: usize, random: &mut Random) {
        let Some(tid) = self.any_tid(None, random) else { return };
        self.stack(cpu, self.running[cpu], ("sample", 0));
        let Thread { pid, name, .. } = &self.threads[&tid];
        let (pid, name) = (*pid, name.clone());
        self.tell(cpu, "lttng_statedump_process_state", &[("tid", &tid), ("pid", &pid), ("name", &name)]);
        let fd = random.below(5);
        self.tell(cpu, "lttng_statedump_file_descriptor", &[("pid", &pid), ("fd", &fd), ("filename", &"/etc/x")]);
    }

    /// A new thread, maybe with the number of a dead one.
    fn fork(&mut self, cpu: usize, parent: i32, random: &mut Random) {
        let Some(tid) = (1..9).find(|tid| !self.threads.contains_key(tid)) else { return };
        let Thread { pid: parent_pid, name, .. } = &self.threads[&parent];
        let (parent_pid, name) = (*parent_pid, name.clone());
        let pid = if random.below(2) == 0 { tid } else { parent_pid };
        let of_parent: [(&str, &dyn ToString); 3] =
            [("parent_comm", &name), ("parent_tid", &parent), ("parent_pid", &parent_pid)];
        let of_child: [(&str, &dyn ToString); 3] = [("child_comm", &name), ("child_tid", &tid), ("child_pid", &pid)];
        self.tell(cpu, "sched_process_fork", &[of_parent, of_child].concat());
        self.threads.insert(tid, Thread { mood: Mood::Ready, pid, name, call: None });
    }

    fn exit(&mut self, cpu: usize, tid: i32, random: &mut Random) {
        if self.threads.len() > 3 {
            let name = self.threads[&tid].name.clone();
            self.tell(cpu, "sched_process_exit", &[("tid", &tid), ("comm", &name)]);
            self.switch(cpu, 64, random);
        }
    }

    fn execute(&mut self, cpu: usize, tid: i32) {
        self.tell(cpu, "sched_process_exec", &[("filename", &"/bin/q"), ("tid", &tid), ("old_tid", &tid)]);
        self.threads.entry(tid).and_modify(|thread| thread.name = format!("q{}", self.now));
    }

    fn call(&mut self, cpu: usize, tid: i32, random: &mut Random) {
        let open = self.threads.get_mut(&tid).and_then(|thread| thread.call.take());
        if let Some(call) = open {
            let ret = [3, 4, 100, -11][random.below(4)];
            return self.tell(cpu, &format!("syscall_exit_{call}"), &[("ret", &ret)]);
        }
        let call = CALLS[random.below(CALLS.len())];
        let (fd, count) = (random.below(5), random.below(200));
        let name = format!("syscall_entry_{call}");
        match call {
            "read" | "write" => self.tell(cpu, &name, &[("fd", &fd), ("count", &count)]),
            "openat" => self.tell(cpu, &name, &[("filename", &format!("/f{fd}"))]),
            "dup2" => self.tell(cpu, &name, &[("oldfd", &fd), ("newfd", &random.below(5))]),
            "socket" => self.tell(cpu, &name, &[("family", &2)]),
            _ => self.tell(cpu, &name, &[("fd", &fd)]),
        }
        self.threads.entry(tid).and_modify(|thread| thread.call = Some(call));
    }

    /// A CPU changes threads; the old one sleeps, or is dead.
    fn switch(&mut self, cpu: usize, state: i64, random: &mut Random) {
        let prev = self.running[cpu];
        let next = if random.below(4) == 0 { None } else { self.any_tid(Some(Mood::Ready), random) }.unwrap_or(0);
        if prev == next {
            return;
        }
        let state = if prev == 0 { 0 } else { state };
        let name = |tid: i32| self.threads.get(&tid).map_or("idle".to_owned(), |thread| thread.name.clone());
        let (prev_comm, next_comm) = (name(prev), name(next));
        let leaving: [(&str, &dyn ToString); 3] =
            [("prev_comm", &prev_comm), ("prev_tid", &prev), ("prev_state", &state)];
        let coming: [(&str, &dyn ToString); 3] = [("next_comm", &next_comm), ("next_tid", &next), ("next_prio", &20)];
        self.tell(cpu, "sched_switch", &[leaving, coming].concat());
        self.stack(cpu, prev, ("sched_switch", 0));
        let mood = if state == 0 { Mood::Ready } else { Mood::Asleep };
        self.threads.entry(prev).and_modify(|thread| thread.mood = mood);
        self.threads.entry(next).and_modify(|thread| thread.mood = Mood::Running);
        if state == 64 {
            self.threads.remove(&prev);
        }
        self.running[cpu] = next;
    }
}
