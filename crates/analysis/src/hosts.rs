//! The machines that rows of a table are about, where a trace has several of them.

use crate::LaneFacts;
use crate::answer::{Cell, CellClass, Column, Plot, Table};

/// The name of the column.
pub(crate) const HOST: &str = "host";

/// The names of machines by their numbers; none, if there is only one machine.
pub(crate) struct HostNames(Vec<String>);

impl HostNames {
    /// Of these lanes.
    pub(crate) fn new(lanes: &[LaneFacts]) -> Self {
        Self::of(lanes.iter().map(|lane| (lane.host, lane.host_name.as_deref())))
    }

    /// Of the machines of lanes, each with its name, if it has one.
    pub(crate) fn of<'a>(lanes: impl Iterator<Item = (u16, Option<&'a str>)> + Clone) -> Self {
        let hosts = || lanes.clone().map(|lane| lane.0);
        if hosts().min() == hosts().max() {
            return Self(Vec::new());
        }
        let count = hosts().max().map_or(0, |host| usize::from(host) + 1);
        // Without a name, a machine has the number that it has among all.
        let mut names: Vec<String> = (1..=count).map(|number| format!("machine {number}")).collect();
        for (host, name) in lanes {
            if let Some(name) = name {
                name.clone_into(&mut names[usize::from(host)]);
            }
        }
        Self(names)
    }

    /// Puts the machine of each row behind the thread, CPU or device that it is about, if there are several machines.
    /// `hosts`: of the first rows; the others are of none.
    pub(crate) fn put<H: Into<Option<u16>>>(&self, table: &mut Table, hosts: impl IntoIterator<Item = H>) {
        let place = table.columns.iter().position(|column| is_of_machine(column.class)).unwrap_or(0);
        self.put_behind(table, place, hosts);
    }

    /// The same behind another column.
    pub(crate) fn put_behind<H: Into<Option<u16>>>(
        &self,
        table: &mut Table,
        column: usize,
        hosts: impl IntoIterator<Item = H>,
    ) {
        if self.0.is_empty() {
            return;
        }
        let mut names = hosts.into_iter().map(|host| self.0.get(usize::from(host.into()?)).cloned());
        for row in &mut table.rows {
            row.insert(column + 1, names.next().flatten().map_or(Cell::Empty, Cell::Text));
        }
        table.columns.insert(column + 1, Column::new(HOST, "Host", CellClass::Text));
        let shift = |value: &mut usize| *value += usize::from(*value > column);
        match &mut table.plot {
            Some(Plot::Bars { value }) => shift(value),
            Some(Plot::Sums { values }) => values.iter_mut().for_each(shift),
            Some(Plot::Histogram { low, high, count }) => [low, high, count].into_iter().for_each(shift),
            Some(Plot::Course { time, series, value }) => {
                [time, value].into_iter().chain(series).for_each(shift);
            }
            None => {}
        }
    }
}

/// Whether things of this class are those of a machine: another machine may have one of the same name.
pub(crate) fn is_of_machine(class: CellClass) -> bool {
    use CellClass::{Cpu, Disk, Irq, NetworkInterface, Process};
    matches!(class, Process | Cpu | Irq | Disk | NetworkInterface)
}

#[cfg(test)]
mod tests {
    use std::fmt::Write;

    use expect_test::expect;

    use super::{HOST, is_of_machine};
    use crate::cpu::Cpu;
    use crate::events::EventRows;
    use crate::testing::{Script, text};
    use crate::{Analysis, Answer, Cell, Question, Wishes, analyses};

    /// Threads with the same number, and CPUs, of two machines.
    #[test]
    fn rows_of_several_machines_name_them() {
        let mut script = Script::parse(
            "lane cpu=0 span=0..100
             lane cpu=0 host=1 span=0..100
             0 0 thread_switch prev_tid=0 next_tid=5 next_comm=web
             0 1 thread_switch prev_tid=0 next_tid=5 next_comm=web
             40 1 thread_switch prev_tid=5 next_tid=0
             60 0 thread_switch prev_tid=5 next_tid=0",
        );
        script.lanes[0].host_name = Some("left".to_owned());
        let wishes = Wishes { bins: 1, ..Wishes::default() };
        let cpu = Cpu::new(&script.setup(&wishes));
        expect![[r#"
            per-cpu
              cpu=0 host=`left` begin=0 end=100 busy=60 share=0.600 idle=40 unknown=0 switches=2
              cpu=0 host=`machine 2` begin=0 end=100 busy=40 share=0.400 idle=60 unknown=0 switches=2
            per-thread
              thread=`web pid ? tid 5` host=`left` incarnation=0 run_time=60 share=0.600 runs=1 migrations=0 preemptions=0
              thread=`web pid ? tid 5` host=`machine 2` incarnation=0 run_time=40 share=0.400 runs=1 migrations=0 preemptions=0
            per-process
              process=? host=`left` threads=1 run_time=60 share=0.600 runs=1
              process=? host=`machine 2` threads=1 run_time=40 share=0.400 runs=1
            per-application
              application=`web` processes=0 threads=2 run_time=100 share=1.000 runs=2
            course
              time=0..100 busy=0.500
        "#]].assert_eq(&text(&cpu.finish(&script.state(&cpu)).unwrap()));
    }

    /// Something of everything, in the same threads, files and devices of two machines; only the CPUs have two numbers.
    const TRACE: &str = "
        lane cpu=3 span=0..1000 streams=0
        lane cpu=4 host=1 span=0..1000 streams=1
        5 L disk_state disk_dev=8 disk_name=N
        10 L thread_switch prev_tid=0 next_tid=5 next_comm=N
        20 L syscall_entry syscall=read fd=3
        30 L thread_wakeup woken_tid=6 woken_comm=N target_cpu=C
        40 L irq_entry irq=7 irq_name=N
        45 L softirq_raise vec=1
        50 L irq_exit irq=7
        55 L softirq_entry vec=1
        60 L softirq_exit vec=1
        65 L block_insert dev=8 sector=64 sectors=8
        70 L block_issue dev=8 sector=64 sectors=8 rwbs=R
        75 L block_complete dev=8 sector=64 sectors=8
        80 L net_send interface=N length=100
        85 L page_alloc order=1
        90 L syscall_exit syscall=read ret=12
        92 L send key=7 name=N @tid=5 @comm=N
        94 L send key=8 name=N @tid=5 @comm=N
        100 L thread_switch prev_tid=5 prev_comm=N prev_state=1 next_tid=6 next_comm=N
        110 L receive key=7 name=N @tid=6 @comm=N
        120 L begin name=N within=6 key=1
        130 L end name=N within=6 key=1
        140 L begin name=N within=6 key=2
        150 L page_free order=1
        160 L thread_switch prev_tid=6 prev_comm=N prev_state=1 next_tid=0
        400 L thread_switch prev_tid=0 next_tid=5 next_comm=N
        500 L thread_switch prev_tid=5 prev_comm=N prev_state=1 next_tid=0";

    fn two_machines() -> Script {
        let on = |line: &str, lane: &str, cpu: &str, name: &str| {
            line.replace(" L ", &format!(" {lane} ")).replace("=C", cpu).replace("=N", name)
        };
        let lines = TRACE.lines().flat_map(|line| match line.contains(" L ") {
            true => vec![on(line, "0", "=3", "=left"), on(line, "1", "=4", "=right")],
            false => vec![line.to_owned()],
        });
        let mut script = Script::parse(&lines.collect::<Vec<_>>().join("\n"));
        for (lane, name) in script.lanes.iter_mut().zip(["left", "right"]) {
            lane.host_name = Some(name.to_owned());
        }
        script
    }

    /// The answer to a question, read as one part.
    fn answer(question: &Question<'_>, script: &Script, wishes: &Wishes) -> Answer {
        let analysis = (question.make)(&script.setup(wishes));
        let lanes = script.lanes.len();
        let state = analysis.read(lanes, true, &mut |part| {
            for lane in 0..lanes {
                let mut rows = EventRows::default();
                rows.cells.resize_with(script.classes.len(), Default::default);
                for (time, _, class) in script.events.iter().filter(|event| event.1 == lane) {
                    rows.times.push(*time);
                    rows.places.push((*class as u32, 0));
                }
                part.steps_within(lane, 0..rows.times.len(), (&rows, &script.classes, &[]));
                part.finish(lane);
            }
            while part.settle() {}
            true
        });
        analysis.finish(&state.expect("all of it was fed")).unwrap()
    }

    /// The machine of which a cell is, as far as it shows that.
    fn shown_host(cell: &Cell) -> Option<&str> {
        match cell {
            Cell::Process { name, .. } | Cell::Irq { name, .. } => name.as_deref().filter(|name| *name != "idle"),
            Cell::Disk(name) | Cell::NetworkInterface(name) => Some(name),
            Cell::Cpu(3) => Some("left"),
            Cell::Cpu(4) => Some("right"),
            _ => None,
        }
    }

    /// Every table that has threads, processes, CPUs or devices says of which machine they are, and is right.
    #[test]
    fn all_tables_of_things_of_machines_name_them() {
        let script = two_machines();
        let mut named = String::new();
        for entry in analyses() {
            for by in entry.options.by.iter().map(|by| vec![(*by).to_owned()]).chain([Vec::new()]) {
                let wishes = Wishes { by, ..Wishes::default() };
                for table in answer(&entry.kind.question(&wishes), &script, &wishes).tables {
                    let about = format!("{} of {} by {:?}", table.class, entry.name, wishes.by);
                    let of_machine = |row: &Vec<Cell>| row.iter().any(|cell| cell.class().is_some_and(is_of_machine));
                    let is_of_machines = table.columns.iter().any(|column| is_of_machine(column.class))
                        || table.rows.iter().any(of_machine);
                    let place = table.columns.iter().position(|column| column.name == HOST);
                    assert!(place.is_some() || !is_of_machines, "{about} has no column `host`");
                    let Some(place) = place else { continue };
                    for row in &table.rows {
                        assert_eq!(row.len(), table.columns.len(), "{about}");
                        for shown in row.iter().filter_map(shown_host) {
                            assert_eq!(row[place], Cell::Text(shown.to_owned()), "{about}: {row:?}");
                        }
                    }
                    let of =
                        |host: &str| table.rows.iter().filter(|row| row[place] == Cell::Text(host.to_owned())).count();
                    assert_eq!(of("left"), of("right"), "{about}: {:?}", table.rows);
                    if wishes.by.is_empty() || *entry.name == *"rates" {
                        writeln!(named, "{about}: {} of each", of("left")).unwrap();
                    }
                }
            }
        }
        expect![[r#"
            per-cpu of cpu by []: 1 of each
            per-thread of cpu by []: 2 of each
            per-process of cpu by []: 1 of each
            per-thread of syscalls by []: 1 of each
            slowest of syscalls by []: 1 of each
            uring-threads of syscalls by []: 0 of each
            uring-slowest of syscalls by []: 0 of each
            per-thread of io by []: 1 of each
            per-process of io by []: 1 of each
            per-file of io by []: 1 of each
            per-disk of io by []: 1 of each
            per-interface of io by []: 1 of each
            slowest of io by []: 1 of each
            per-thread of sched by []: 2 of each
            top of sched by []: 1 of each
            wakers of sched by []: 1 of each
            runs of sched by []: 2 of each
            states of sched by []: 2 of each
            blocked of sched by []: 2 of each
            per-thread of stacks by []: 1 of each
            hard of irq by []: 1 of each
            hard-per-cpu of irq by []: 1 of each
            soft of irq by []: 1 of each
            soft-per-cpu of irq by []: 1 of each
            top of irq by []: 2 of each
            top-raised of irq by []: 1 of each
            per-device of block by []: 1 of each
            longest of block by []: 1 of each
            per-thread of memory by []: 2 of each
            per-process of memory by []: 0 of each
            per-cpu of memory by []: 1 of each
            longest of pairs by []: 1 of each
            open of pairs by []: 1 of each
            longest-operations of breakdown by []: 0 of each
            breakdown of breakdown by []: 0 of each
            per-route of flows by []: 1 of each
            longest of flows by []: 1 of each
            early of flows by []: 0 of each
            open of flows by []: 1 of each
            rates of rates by ["cpu"]: 1 of each
            course of rates by ["cpu"]: 6 of each
            rates of rates by ["stream"]: 1 of each
            course of rates by ["stream"]: 6 of each
            gaps of gaps by []: 10 of each
            per-thread of threads by []: 2 of each
            per-process of threads by []: 0 of each
            per-cpu of threads by []: 1 of each
            per-stream of count by []: 1 of each
        "#]]
        .assert_eq(&named);
    }
}
