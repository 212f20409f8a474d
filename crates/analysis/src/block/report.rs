//! The tables of `block`: a row for each device, and the requests that took longest.

use std::collections::BTreeMap;

use super::{BlockAnalysis, BlockState, Device, DeviceKey, SECTOR_BYTES};
use crate::answer::{Answer, Bounded, Cell, CellClass, Column, Plot, Table};
use crate::headline::{Headline, HeadlineTables};
use crate::hosts::HostNames;
use crate::statistics::{cells, columns, distribution, percentile_cells, percentile_columns, shorten};
use crate::{Histogram, Merge};

/// Bits of a device's number for its minor number.
const MINOR_BITS: u32 = 20;

impl BlockAnalysis {
    /// States of devices, with open requests.
    fn devices(&self, state: &BlockState) -> BTreeMap<DeviceKey, Device> {
        let mut devices: BTreeMap<DeviceKey, Device> = state.sums.devices.clone();
        for ((device, _), request) in state.issued.open() {
            self.left_open(devices.entry(*device).or_default(), request);
        }
        for ((device, _), end) in state.issued.alone() {
            self.ended_alone(devices.entry(*device).or_default(), *end);
        }
        devices
    }

    /// Its devices, for another analysis.
    pub(crate) fn per_disk(&self, state: &BlockState) -> Table {
        Table { class: "per-disk", title: "Disks".to_owned(), ..self.per_device(state, &self.devices(state)) }
    }

    /// The answer so far.
    pub(super) fn report(&self, state: &BlockState) -> Answer {
        let devices = self.devices(state);
        let mut latencies = Histogram::default();
        devices.values().for_each(|device| latencies.merge_from(&device.latencies));
        let mut tables = vec![
            self.per_device(state, &devices),
            self.longest(state),
            distribution("From issue to completion", &latencies, &self.wishes),
        ];
        let span_ns = crate::setup::span_ns(&self.lanes);
        tables.iter_mut().for_each(|table| table.span_ns = span_ns);
        Answer { tables }
    }

    /// The busiest device, and the slowest request.
    pub(super) fn headline(tables: &HeadlineTables<'_>) -> Headline {
        let mut headline = Headline::default();
        if let Some(device) = tables.most("per-device", "bytes") {
            let sentence = "Disk {device} moved most: {bytes+} in {reads+:read} and {writes+:write}";
            headline.say(&device, sentence);
        }
        if let Some(longest) = tables.most("longest", "latency") {
            headline.say(&longest, "The slowest request took {latency+}: a {kind} of {device}");
        }
        headline
    }

    /// Name of a device for people.
    pub(super) fn disk(state: &BlockState, key: DeviceKey) -> Cell {
        let (_, device) = key;
        let name = match state.sums.names.get(&key) {
            Some(name) => String::from_utf8_lossy(name).into_owned(),
            None => format!("{},{}", device >> MINOR_BITS, device & ((1 << MINOR_BITS) - 1)),
        };
        Cell::Disk(name)
    }

    fn per_device(&self, state: &BlockState, devices: &BTreeMap<DeviceKey, Device>) -> Table {
        let mut columns_of = vec![
            Column::new("device", "Device", CellClass::Disk),
            Column::of("reads", "Reads", "requests"),
            Column::of("writes", "Writes", "requests"),
            Column::of("sectors", "Sectors", "sectors").detail(),
            Column::new("bytes", "Bytes", CellClass::Size),
            Column::of("errors", "Errors", "requests"),
        ];
        columns_of.extend(columns());
        columns_of.extend(percentile_columns());
        columns_of.push(Column::of("queue_count", "Queued", "requests").detail());
        let queue = [("queue_total", "Queue total"), ("queue_min", "Queue min"), ("queue_avg", "Queue avg")];
        let queue = queue.into_iter().chain([("queue_max", "Queue max")]);
        columns_of.extend(queue.map(|(name, title)| Column::new(name, title, CellClass::Duration).detail()));
        columns_of.push(Column::of("began_before", "Began before", "requests").rest());
        columns_of.push(Column::of("never_ended", "Never ended", "requests").rest());
        columns_of.push(Column::of("lost_inside", "Lost inside", "requests").rest());
        let mut table = Table::new("per-device", "Devices", columns_of);
        table.plot = Some(Plot::Bars { value: 4 });
        let mut rows: Vec<(&DeviceKey, &Device)> = devices.iter().collect();
        rows.sort_by(|one, other| other.1.sectors.cmp(&one.1.sectors).then(one.0.cmp(other.0)));
        let count = |count: u64| Cell::Count(Bounded::exact(count));
        let hosts: Vec<u16> = rows.iter().map(|(key, _)| key.0).collect();
        for (key, device) in rows {
            let mut row = vec![Self::disk(state, *key)];
            row.extend([device.reads, device.writes, device.sectors].map(count));
            row.push(Cell::Size(Bounded::exact(device.sectors.saturating_mul(SECTOR_BYTES))));
            row.push(count(device.errors));
            row.extend(cells(&device.latencies));
            row.extend(percentile_cells(&device.latencies));
            // All but the deviation.
            row.extend(cells(&device.queues).into_iter().take(5));
            row.extend([device.began_before, device.never_ended, device.lost_inside].map(count));
            table.rows.push(row);
        }
        HostNames::new(&self.lanes).put(&mut table, hosts);
        shorten(&mut table, self.wishes.top);
        table
    }

    fn longest(&self, state: &BlockState) -> Table {
        let columns = vec![
            Column::new("latency", "Latency", CellClass::Duration),
            Column::new("begin", "Issued", CellClass::Timestamp).detail(),
            Column::new("end", "Done", CellClass::Timestamp).detail(),
            Column::new("device", "Device", CellClass::Disk),
            Column::new("sector", "Sector", CellClass::Number).detail(),
            Column::of("sectors", "Sectors", "sectors").detail(),
            Column::new("kind", "Kind", CellClass::Text),
        ];
        let mut table = Table::new("longest", "Requests that took longest", columns);
        table.plot = Some(Plot::Bars { value: 0 });
        let rows = state.sums.longest.sorted();
        let hosts: Vec<u16> = rows.iter().map(|(_, long)| long.device.0).collect();
        for (latency, long) in rows {
            let kind = if long.request.is_write { "write" } else { "read" };
            table.rows.push(vec![
                Cell::Duration(Bounded::exact(latency)),
                Cell::Timestamp(long.request.time),
                Cell::Timestamp(long.end),
                Self::disk(state, long.device),
                Cell::Integer(long.request.sector),
                Cell::Count(Bounded::exact(long.request.sectors)),
                Cell::Text(kind.to_owned()),
            ]);
        }
        HostNames::new(&self.lanes).put(&mut table, hosts);
        table
    }
}
