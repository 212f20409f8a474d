//! When and in which data stream events are: the first columns of every table.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, TimestampNanosecondArray, UInt32Array, UInt64Array};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, Field, TimeUnit};

/// The columns `time`, `cycles` and `stream` being filled.
#[derive(Debug)]
pub struct TimeColumns {
    /// Times are counted from the Unix epoch.
    is_unix: bool,
    /// Which of the columns are filled.
    wanted: [bool; 3],
    rows: usize,
    times: Vec<i64>,
    cycles: Vec<u64>,
    streams: Vec<u32>,
    /// Rows without a time, and without cycles, in ascending order: there are none but in odd traces.
    timeless: Vec<usize>,
    clockless: Vec<usize>,
}

impl TimeColumns {
    /// Empty columns, of which the wanted ones will be filled: time, cycles, stream.
    #[must_use]
    pub fn new(is_unix: bool, wanted: [bool; 3]) -> Self {
        Self {
            is_unix,
            wanted,
            rows: 0,
            times: Vec::new(),
            cycles: Vec::new(),
            streams: Vec::new(),
            timeless: Vec::new(),
            clockless: Vec::new(),
        }
    }

    /// Makes room for that many events.
    pub fn reserve(&mut self, rows: usize) {
        let [times, cycles, streams] = self.wanted.map(|wanted| if wanted { rows } else { 0 });
        self.times.reserve(times);
        self.cycles.reserve(cycles);
        self.streams.reserve(streams);
    }

    /// Names and types: time, cycles, stream.
    #[must_use]
    pub fn fields(&self) -> [Field; 3] {
        let time = match self.is_unix {
            true => DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into())),
            false => DataType::Int64,
        };
        [
            Field::new("time", time, true),
            Field::new("cycles", DataType::UInt64, true),
            Field::new("stream", DataType::UInt32, false),
        ]
    }

    /// Appends an event.
    #[inline]
    pub fn push(&mut self, stream: usize, time: Option<i64>, cycles: Option<u64>) {
        let [has_times, has_cycles, has_streams] = self.wanted;
        if has_times {
            if time.is_none() {
                self.timeless.push(self.rows);
            }
            self.times.push(time.unwrap_or(0));
        }
        if has_cycles {
            if cycles.is_none() {
                self.clockless.push(self.rows);
            }
            self.cycles.push(cycles.unwrap_or(0));
        }
        if has_streams {
            self.streams.push(stream as u32);
        }
        self.rows += 1;
    }

    /// The appended values, in the order of the fields, as far as it is wanted; the columns are
    /// empty again.
    #[must_use]
    pub fn finish(&mut self) -> [Option<ArrayRef>; 3] {
        let rows = std::mem::take(&mut self.rows);
        let times = || -> ArrayRef {
            let times = ScalarBuffer::from(std::mem::take(&mut self.times));
            let nulls = nulls(rows, &mut self.timeless);
            match self.is_unix {
                true => Arc::new(TimestampNanosecondArray::new(times, nulls).with_timezone("UTC")),
                false => Arc::new(Int64Array::new(times, nulls)),
            }
        };
        let cycles = || -> ArrayRef {
            let cycles = ScalarBuffer::from(std::mem::take(&mut self.cycles));
            Arc::new(UInt64Array::new(cycles, nulls(rows, &mut self.clockless)))
        };
        let streams = || -> ArrayRef { Arc::new(UInt32Array::from(std::mem::take(&mut self.streams))) };
        let [has_times, has_cycles, has_streams] = self.wanted;
        [has_times.then(times), has_cycles.then(cycles), has_streams.then(streams)]
    }
}

fn nulls(rows: usize, absent: &mut Vec<usize>) -> Option<NullBuffer> {
    if absent.is_empty() {
        return None;
    }
    let mut valid = vec![true; rows];
    absent.drain(..).for_each(|row| valid[row] = false);
    Some(NullBuffer::from(valid))
}
