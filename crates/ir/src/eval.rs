//! The evaluator: it defines what programs mean.

use crate::cells::Cells;
use crate::program::Program;
use crate::run::{Fault, Records, RowFault, ScanPlan, ScanStop, State, Window};

/// Runs `program` on the record at `position`; returns the position behind it.
///
/// # Errors
///
/// The first thing that could not be read. Slots and clock may have been written.
pub fn record(
    program: &Program,
    window: Window<'_>,
    position: u64,
    state: &mut State,
) -> Result<u64, Fault> {
    let _ = (program, window, state);
    Ok(position)
}

/// Appends the records from `position` on until `records` holds `limit`, the window ends, or one cannot be read.
pub fn scan(
    plan: &ScanPlan,
    window: Window<'_>,
    position: &mut u64,
    state: &mut State,
    records: &mut Records,
    limit: usize,
) -> ScanStop {
    let _ = (plan, window, position, state, records, limit);
    ScanStop::End
}

/// Runs `program` at each of `positions`; row `i` of table 0 is what it stored at `positions[i]`.
///
/// # Errors
///
/// The first row that could not be read; rows before it are complete.
pub fn rows(
    program: &Program,
    window: Window<'_>,
    positions: &[u64],
    state: &mut State,
    cells: &mut Cells,
) -> Result<(), RowFault> {
    let _ = (program, window, positions, state, cells);
    Ok(())
}

/// Runs `program` at `position` and appends the text it emits; returns the position behind the record.
///
/// # Errors
///
/// The first thing that could not be read; the text before it was appended.
pub fn emit(
    program: &Program,
    window: Window<'_>,
    position: u64,
    state: &mut State,
    out: &mut Vec<u8>,
) -> Result<u64, Fault> {
    let _ = (program, window, state, out);
    Ok(position)
}
