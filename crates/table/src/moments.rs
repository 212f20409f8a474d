//! When and in which data stream events are: the first columns of every table.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, TimestampNanosecondArray, UInt32Array, UInt64Array};
use arrow::buffer::{NullBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, Field, TimeUnit};

/// The columns `time`, `cycles` and `stream` being filled.
#[derive(Debug)]
pub struct Moments {
    /// Times are counted from the Unix epoch.
    is_unix: bool,
    times: Vec<i64>,
    cycles: Vec<u64>,
    streams: Vec<u32>,
    /// Rows without a time, and without cycles, in ascending order: there are none but in odd traces.
    timeless: Vec<usize>,
    clockless: Vec<usize>,
}

impl Moments {
    /// Empty columns.
    #[must_use]
    pub fn new(is_unix: bool) -> Self {
        let (timeless, clockless) = (Vec::new(), Vec::new());
        Self { is_unix, times: Vec::new(), cycles: Vec::new(), streams: Vec::new(), timeless, clockless }
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
    pub fn push(&mut self, stream: usize, time: Option<i64>, cycles: Option<u64>) {
        if time.is_none() {
            self.timeless.push(self.times.len());
        }
        if cycles.is_none() {
            self.clockless.push(self.times.len());
        }
        self.times.push(time.unwrap_or(0));
        self.cycles.push(cycles.unwrap_or(0));
        self.streams.push(stream as u32);
    }

    /// Events that were appended.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.times.len()
    }

    /// What was appended, in the order of the fields; the columns are empty again.
    #[must_use]
    pub fn finish(&mut self) -> [ArrayRef; 3] {
        let rows = self.rows();
        let times = ScalarBuffer::from(std::mem::take(&mut self.times));
        let nulls = nulls(rows, &mut self.timeless);
        let times: ArrayRef = if self.is_unix {
            Arc::new(TimestampNanosecondArray::new(times, nulls).with_timezone("UTC"))
        } else {
            Arc::new(Int64Array::new(times, nulls))
        };
        let cycles = ScalarBuffer::from(std::mem::take(&mut self.cycles));
        let cycles = UInt64Array::new(cycles, self::nulls(rows, &mut self.clockless));
        let streams = UInt32Array::from(std::mem::take(&mut self.streams));
        [times, Arc::new(cycles), Arc::new(streams)]
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
