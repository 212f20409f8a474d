//! The machines that rows of a table are about, where a trace has several of them.

use crate::LaneFacts;
use crate::answer::{Cell, CellClass, Column, Plot, Table};

/// The names of machines by their numbers; none, if there is only one machine.
pub(crate) struct HostNames(Vec<String>);

impl HostNames {
    /// Of these lanes.
    pub(crate) fn new(lanes: &[LaneFacts]) -> Self {
        if lanes.iter().all(|lane| lane.host == lanes[0].host) {
            return Self(Vec::new());
        }
        let count = lanes.iter().map(|lane| usize::from(lane.host) + 1).max().unwrap_or(0);
        // Without a name, a machine has the number that it has among all.
        let mut names: Vec<String> = (1..=count).map(|number| format!("machine {number}")).collect();
        for lane in lanes {
            if let Some(name) = &lane.host_name {
                names[usize::from(lane.host)].clone_from(name);
            }
        }
        Self(names)
    }

    /// Puts the machine of each row behind its first cell, if there are several; `hosts`: of the first rows, the others are
    /// of none.
    pub(crate) fn put(&self, table: &mut Table, hosts: &[u16]) {
        if self.0.is_empty() {
            return;
        }
        let mut names = hosts.iter().map(|host| self.0.get(usize::from(*host)).cloned());
        for row in &mut table.rows {
            row.insert(1, names.next().flatten().map_or(Cell::Empty, Cell::Text));
        }
        table.columns.insert(1, Column::new("host", "Host", CellClass::Text));
        match &mut table.plot {
            Some(Plot::Bars { value }) => *value += usize::from(*value > 0),
            Some(Plot::Sums { values }) => values.iter_mut().for_each(|value| *value += usize::from(*value > 0)),
            Some(Plot::Histogram { .. } | Plot::Course { .. }) | None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::cpu::Cpu;
    use crate::testing::{Script, text};
    use crate::{Analysis, Wishes};

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
}
