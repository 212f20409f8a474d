//! The tables of `flows`: how long messages took, on which routes, and those without a sender or a receiver.

use super::{Endpoint, LongMessage, MessagePost, MessageState, MessagesAnalysis, RouteSums};
use crate::answer::{Answer, Bounded, Cell, CellClass, Column, Plot, Table};
use crate::headline::{Headline, HeadlineTables};
use crate::hosts::HostNames;
use crate::key::KeyValue;
use crate::ranking::Ranking;
use crate::statistics::{cells, columns, distribution, percentile_cells, percentile_columns, shorten};
use crate::{Histogram, Merge};

/// Sends that nothing has received, and what is known of them.
struct Unreceived<'s> {
    posts: Vec<&'s MessagePost>,
    never: u64,
    lost_inside: u64,
}

impl MessagesAnalysis {
    /// The answer so far.
    pub(super) fn report(&self, state: &MessageState) -> Answer {
        let mut latencies = Histogram::default();
        let sums = &state.sums;
        sums.routes.values().chain([&sums.others]).for_each(|route| latencies.merge_from(&route.latencies));
        let unreceived = self.unreceived(state);
        let mut tables = vec![
            self.total(state, &latencies, &unreceived),
            self.per_route(state),
            self.longest(state),
            self.early(state),
            self.open(state, &unreceived),
            distribution("How long messages take", &latencies, &self.wishes),
        ];
        let span_ns = crate::setup::span_ns(&self.lanes);
        tables.iter_mut().for_each(|table| table.span_ns = span_ns);
        Answer { tables }
    }

    /// How long most messages took, the slowest, and whether clocks disagree.
    pub(crate) fn headline(tables: &HeadlineTables<'_>) -> Headline {
        let mut headline = Headline::default();
        let Some(total) = tables.first("total") else { return headline };
        if !total.is_zero("count") {
            headline.say(
                &total,
                match tables.is_lossy() {
                    true => "Of {count:message} seen, 99 % took at most {p99-}",
                    false => "Of {count:message}, 99 % took at most {p99-}",
                },
            );
        } else if ["never_received", "sent_before", "lost_inside", "early"].iter().any(|class| !total.is_zero(class)) {
            headline.say(
                &total,
                "No message has a latency: {never_received} never received, {sent_before} sent before the trace began, {lost_inside} beside lost events",
            );
        }
        if let Some(longest) = tables.most("longest", "latency") {
            headline.say(&longest, "The longest took {latency+}, from {sent} on");
        }
        if let Some(early) = tables.most("early", "early_by") {
            headline.say(&total, "{early:message} received before sent: clocks disagree");
            headline.say(&early, "They disagree by at least {early_by}, at {received}");
        }
        headline
    }

    fn unreceived<'s>(&self, state: &'s MessageState) -> Unreceived<'s> {
        let is_wanted = |post: &&MessagePost| post.is_wanted && self.wants_name(&state.names, post.name);
        let mut posts: Vec<&MessagePost> =
            state.queues.values().flat_map(|queue| &queue.sent).filter(is_wanted).collect();
        // Those of one key have an order already.
        posts.sort_by_key(|post| (post.time, post.key, post.at));
        let is_lost = |post: &&&MessagePost| self.is_lossy(post.at.host, (post.time, i64::MAX));
        let lost_inside = posts.iter().filter(is_lost).count() as u64;
        Unreceived { never: posts.len() as u64 - lost_inside, posts, lost_inside }
    }

    fn total(&self, state: &MessageState, latencies: &Histogram, unreceived: &Unreceived<'_>) -> Table {
        let mut columns = columns();
        columns[0].unit = Some("messages");
        columns.extend(percentile_columns());
        columns.push(Column::of("early", "Received first", "messages").rest());
        columns.push(Column::of("never_received", "Never received", "messages").rest());
        columns.push(Column::of("sent_before", "Sent before", "messages").rest());
        columns.push(Column::of("lost_inside", "Lost inside", "messages").rest());
        columns.push(Column::of("without_key", "Without key", "events").rest());
        columns.push(Column::of("given_up", "Given up", "messages").rest());
        let sums = &state.sums;
        let routes = || sums.routes.values().chain([&sums.others]);
        let (mut sent_before, mut unsent_in_holes) = (sums.sent_before, sums.unsent_in_holes);
        // Receives that still wait for their sends are too many for none of them.
        let waiting = state.queues.values().flat_map(|queue| &queue.early).map(|early| &early.receive);
        for receive in waiting.filter(|receive| receive.is_wanted && self.wishes.names.is_empty()) {
            let is_lost = self.is_lossy(receive.at.host, (i64::MIN, receive.time));
            *if is_lost { &mut unsent_in_holes } else { &mut sent_before } += 1;
        }
        let counts = [
            routes().map(|route| route.early).sum(),
            unreceived.never,
            sent_before,
            routes().map(|route| route.lost_inside).sum::<u64>() + unreceived.lost_inside + unsent_in_holes,
            sums.without_key,
            sums.given_up,
        ];
        let mut row = cells(latencies);
        row.extend(percentile_cells(latencies));
        row.extend(counts.map(|count| Cell::Count(Bounded::exact(count))));
        let mut table = Table::new("total", "All messages", columns);
        table.rows.push(row);
        table
    }

    fn per_route(&self, state: &MessageState) -> Table {
        let mut all = self.route_columns();
        let place = all.len();
        all.extend(columns());
        all[place].unit = Some("messages");
        all.extend(percentile_columns());
        all.push(Column::of("early", "Received first", "messages").rest());
        all.push(Column::of("lost_inside", "Lost inside", "messages").rest());
        let mut table = Table::new("per-route", "Routes", all);
        table.plot = Some(Plot::Bars { value: place });
        let mut routes: Vec<_> = state.sums.routes.iter().collect();
        routes.sort_unstable_by(|one, other| {
            other.1.latencies.count().cmp(&one.1.latencies.count()).then_with(|| one.0.cmp(other.0))
        });
        let figures = |route: &RouteSums| {
            let mut figures = cells(&route.latencies);
            figures.extend(percentile_cells(&route.latencies));
            figures.extend([route.early, route.lost_inside].map(|count| Cell::Count(Bounded::exact(count))));
            figures
        };
        let hosts: Vec<u16> = routes.iter().map(|(route, _)| route.from.host).collect();
        for (route, sums) in routes {
            let mut row = self.route_cells(state, (Some(route.from), Some(route.to), route.name));
            row.extend(figures(sums));
            table.rows.push(row);
        }
        let others = &state.sums.others;
        if !others.latencies.is_empty() || others.early + others.lost_inside > 0 {
            let mut row = vec![Cell::Unknown; place];
            row.extend(figures(others));
            table.rows.push(row);
        }
        shorten(&mut table, self.wishes.top);
        // Messages do not leave their machine.
        HostNames::new(&self.lanes).put_behind(&mut table, 0, hosts);
        table
    }

    fn longest(&self, state: &MessageState) -> Table {
        let times = [("latency", "Latency"), ("sent", "Sent"), ("received", "Received")];
        self.ranked(state, ("longest", "The longest"), times, &state.sums.longest)
    }

    fn early(&self, state: &MessageState) -> Table {
        let times = [("early_by", "Early by"), ("received", "Received"), ("sent", "Sent")];
        let mut table = self.ranked(state, ("early", "Received before they were sent"), times, &state.sums.earliest);
        table.omitted = state.sums.earliest.count() - table.rows.len() as u64;
        table
    }

    /// A table of messages by the time between their ends: that time, the earlier end, and the later one.
    fn ranked(
        &self,
        state: &MessageState,
        (class, title): (&'static str, &str),
        [between, first, second]: [(&'static str, &str); 3],
        ranking: &Ranking<LongMessage>,
    ) -> Table {
        let mut columns = vec![
            Column::new(between.0, between.1, CellClass::Duration),
            Column::new(first.0, first.1, CellClass::Timestamp),
            Column::new(second.0, second.1, CellClass::Timestamp).detail(),
        ];
        let place = columns.len();
        columns.extend(self.route_columns());
        let mut table = Table::new(class, title, columns);
        table.plot = Some(Plot::Bars { value: 0 });
        let rows = ranking.sorted();
        let hosts: Vec<u16> = rows.iter().map(|(_, long)| long.route.from.host).collect();
        for (length, LongMessage { sent, received, route }) in rows {
            let times = [*sent.min(received), *sent.max(received)].map(Cell::Timestamp);
            let mut row = vec![Cell::Duration(Bounded::exact(length))];
            row.extend(times);
            row.extend(self.route_cells(state, (Some(route.from), Some(route.to), route.name)));
            table.rows.push(row);
        }
        HostNames::new(&self.lanes).put_behind(&mut table, place, hosts);
        table
    }

    fn open(&self, state: &MessageState, unreceived: &Unreceived<'_>) -> Table {
        let mut columns = vec![Column::new("sent", "Sent", CellClass::Timestamp)];
        columns.extend(self.route_columns().into_iter().filter(|column| !column.name.starts_with("to")));
        let mut table = Table::new("open", "Not received", columns);
        let kept = self.wishes.top.unwrap_or(unreceived.posts.len()).min(unreceived.posts.len());
        table.omitted = (unreceived.posts.len() - kept) as u64;
        for post in &unreceived.posts[..kept] {
            let mut row = vec![Cell::Timestamp(post.time)];
            row.extend(self.route_cells(state, (Some(post.at), None, post.name)));
            table.rows.push(row);
        }
        HostNames::new(&self.lanes).put_behind(&mut table, 1, unreceived.posts[..kept].iter().map(|post| post.at.host));
        table
    }

    /// The columns of a route: both ends, and the name.
    fn route_columns(&self) -> Vec<Column> {
        let parts = self.parts;
        let mut columns = Vec::new();
        let ends = [("from", "From", "from_cpu", "From CPU"), ("to", "To", "to_cpu", "To CPU")];
        for (thread, title, cpu, cpu_title) in ends {
            columns.extend(parts.by_thread.then(|| Column::new(thread, title, CellClass::Mixed)));
            columns.extend(parts.by_cpu.then(|| Column::new(cpu, cpu_title, CellClass::Mixed)));
        }
        columns.extend(parts.by_name.then(|| Column::new("name", "Name", CellClass::Mixed)));
        columns
    }

    fn route_cells(
        &self,
        state: &MessageState,
        (from, to, name): (Option<Endpoint>, Option<Endpoint>, u64),
    ) -> Vec<Cell> {
        let mut cells = Vec::new();
        for at in [from, to].into_iter().flatten() {
            cells.extend(self.parts.by_thread.then(|| self.thread_cell(state, at)));
            cells.extend(self.parts.by_cpu.then(|| at.cpu.map_or_else(|| self.lane_cell(at), Cell::Cpu)));
        }
        cells.extend(self.parts.by_name.then(|| state.names.get(&name).map_or(Cell::Unknown, KeyValue::cell)));
        cells
    }

    fn thread_cell(&self, state: &MessageState, at: Endpoint) -> Cell {
        let Some(tid) = at.tid else { return self.lane_cell(at) };
        let facts = state.threads.get(&(at.host, tid));
        let name = facts.and_then(|facts| facts.name.as_ref()).map(|(_, name)| &**name);
        Cell::Process {
            name: name.map(|name| String::from_utf8_lossy(name).into_owned()),
            pid: facts.and_then(|facts| facts.pid).map(|(_, pid)| pid),
            tid: Some(tid.into()),
        }
    }

    /// Where events tell neither thread nor CPU, the stream that they are in.
    fn lane_cell(&self, at: Endpoint) -> Cell {
        let Some(facts) = at.lane.and_then(|lane| self.lanes.get(lane as usize)) else { return Cell::Unknown };
        Cell::Text(facts.name.clone().unwrap_or_else(|| format!("stream {}", facts.stream_names())))
    }
}
