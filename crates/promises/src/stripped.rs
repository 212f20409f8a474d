//! Programs without operations of some kind: those that print, or that fill columns.

use kymo_ir::{Block, Op, ReadProgram};

/// Whether the operation prints.
pub(crate) fn prints(op: &Op) -> bool {
    matches!(op, Op::Emit(_))
}

/// Whether the operation fills columns.
pub(crate) fn stores(op: &Op) -> bool {
    matches!(op, Op::Store { .. } | Op::StoreSpan { .. } | Op::StoreList { .. } | Op::Row { .. })
}

/// The block without operations of some kind, at any depth.
pub(crate) fn without(block: &Block, drop: fn(&Op) -> bool) -> Block {
    let of = |op: &Op| match op.clone() {
        Op::Repeat { count, index, body } => Op::Repeat { count, index, body: without(&body, drop) },
        Op::Switch { on, signed, arms, default } => {
            let arms = arms.into_iter().map(|(ranges, body)| (ranges, without(&body, drop))).collect();
            Op::Switch { on, signed, arms, default: default.map(|body| without(&body, drop)) }
        }
        other => other,
    };
    block.iter().filter(|op| !drop(op)).map(of).collect()
}

/// The program without operations that print and store: it only moves the position, and reads.
pub(crate) fn bare(whole: &ReadProgram) -> ReadProgram {
    let body = without(&whole.body, |op| prints(op) || stores(op));
    ReadProgram { body, tables: Vec::new(), columns: Vec::new(), ..whole.clone() }
}
