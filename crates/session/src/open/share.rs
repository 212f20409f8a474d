//! Parts of traces as bytes, to be read by a session that opens the same traces.

use std::ops::Range;

use kymo_scan::{DataStream, Slice};
use serde::{Deserialize, Serialize};

use crate::open::Session;
use crate::open::identity::TraceIdentity;

const MAGIC: &str = "kymo share 1";

/// A part of traces that can be read elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Share {
    magic: String,
    trace: TraceIdentity,
    number: u32,
    begin: i64,
    end: Option<i64>,
    /// Of each stream the packets that have a part in it; `None`: it is everything.
    wanted: Option<Vec<(u64, u64)>>,
    bytes: u64,
}

impl Share {
    /// A slice of traces, or all of them.
    pub(crate) fn new(trace: &TraceIdentity, number: usize, slice: Option<&Slice>) -> Self {
        let packets = |packets: &Range<usize>| (packets.start as u64, packets.end as u64);
        Self {
            magic: MAGIC.to_owned(),
            trace: trace.clone(),
            number: number as u32,
            begin: slice.map_or(i64::MIN, |slice| slice.begin),
            end: slice.and_then(|slice| slice.end),
            wanted: slice.map(|slice| slice.wanted.iter().map(packets).collect()),
            bytes: slice.map_or(0, |slice| slice.bytes),
        }
    }

    /// Whether it is of these traces.
    pub(crate) fn check(&self, here: &TraceIdentity) -> Result<(), ShareProblem> {
        if self.trace == *here {
            return Ok(());
        }
        Err(ShareProblem::OtherTrace { here: Box::new(here.clone()), wanted: Box::new(self.trace.clone()) })
    }

    /// What to read of traces that it was checked with; `None`: everything.
    pub(crate) fn slice(&self, session: &Session) -> Result<Option<Slice>, ShareProblem> {
        let Some(wanted) = &self.wanted else { return Ok(None) };
        let streams = session.streams();
        let packets = |(&(start, end), (_, stream)): (&(u64, u64), &(_, &DataStream))| {
            let is_there = start <= end && end <= stream.packets.len() as u64;
            is_there.then_some(start as usize..end as usize)
        };
        let ranges: Option<Vec<Range<usize>>> = wanted.iter().zip(&streams).map(packets).collect();
        let wanted = ranges.filter(|wanted| wanted.len() == streams.len()).ok_or(ShareProblem::NoShare)?;
        Ok(Some(Slice { begin: self.begin, end: self.end, wanted, bytes: self.bytes }))
    }

    /// Its place among all, from 0.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Bytes of the packets that begin in it.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// As bytes, to be sent.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        postcard::to_allocvec(self).expect("memory takes it")
    }

    /// From bytes that [`Self::encode`] made.
    ///
    /// # Errors
    ///
    /// They are something else.
    pub fn decode(bytes: &[u8]) -> Result<Self, ShareProblem> {
        match postcard::take_from_bytes::<Self>(bytes) {
            Ok((share, [])) if share.magic == MAGIC => Ok(share),
            _ => Err(ShareProblem::NoShare),
        }
    }
}

/// Why bytes are no share of the traces that are open here.
#[derive(Debug, thiserror::Error)]
pub enum ShareProblem {
    /// The traces are others than those that were shared out.
    #[error("these are other traces: here are {here}; shared out were {wanted}")]
    OtherTrace {
        /// The traces that are open here.
        here: Box<TraceIdentity>,
        /// The traces of the share.
        wanted: Box<TraceIdentity>,
    },
    /// The bytes are no share.
    #[error("these bytes are no share of a trace")]
    NoShare,
}
