//! Programs that fill columns: one loop over positions.
//!
//! Columns of table 0 are written through their addresses; programs with lists are left to the evaluator,
//! whose child tables grow while it reads.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, types};
use cranelift_frontend::FunctionBuilder;
use kymo_ir::{Cells, Program, RowFault, State, Window, eval};

use crate::engine::Engine;
use crate::translate::{Frame, Table, Translator, trusted};

/// A compiled program that fills columns. May be used by several threads at once.
#[derive(Debug)]
pub struct Rows {
    /// Keeps the code alive.
    _engine: Engine,
    address: usize,
}

/// What the machine code reads and writes.
#[repr(C)]
struct Arguments {
    base: usize,
    end: u64,
    slots: *mut u64,
    origin: u64,
    positions: *const u64,
    count: u64,
    columns: *const Column,
    /// The row that was read last.
    row: u64,
}

/// Where a column's cells are.
#[repr(C)]
pub(crate) struct Column {
    cells: *mut u8,
    validity: *mut u8,
}

macro_rules! offset {
    ($field:ident) => {
        std::mem::offset_of!(Arguments, $field) as i32
    };
}

const DONE: i64 = 0;

impl Rows {
    /// Compiles a program; `None` if it is left to the evaluator.
    #[must_use]
    pub fn new(engine: &Engine, program: &Program) -> Option<Self> {
        if program.tables.len() > 1 {
            return None;
        }
        let address = engine.compile(1, |builder| write(builder, engine, program))?;
        Some(Self { _engine: engine.clone(), address })
    }

    /// The same as [`eval::rows`].
    ///
    /// # Errors
    ///
    /// The first row that could not be read.
    pub fn run(
        &self,
        program: &Program,
        window: Window<'_>,
        positions: &[u64],
        state: &mut State,
        cells: &mut Cells,
    ) -> Result<(), RowFault> {
        cells.reset(program, positions.len());
        let column = |column: usize| {
            let (cells, validity) = cells.column_mut(column as u16);
            let validity = validity.map_or(std::ptr::null_mut(), |validity| validity.as_mut_ptr());
            Column { cells: cells.as_mut_ptr(), validity }
        };
        let columns: Vec<Column> = (0..program.columns.len()).map(column).collect();
        let mut arguments = Arguments {
            base: (window.bytes().as_ptr() as usize).wrapping_sub(window.origin() as usize),
            end: window.end(),
            slots: state.slots.as_mut_ptr(),
            origin: window.origin(),
            positions: positions.as_ptr(),
            count: positions.len() as u64,
            columns: columns.as_ptr(),
            row: 0,
        };
        // SAFETY: `address` is a function of this type that the engine, which this holds, compiled from this program. It
        // reads the window's bytes up to `end` and `SLACK` more, which `Window` promises, `count` positions, and slots that
        // the caller made long enough; it writes cells of rows below `count`, for which `reset` made room in each column.
        #[allow(unsafe_code)]
        let stop = unsafe {
            let function: extern "C" fn(*mut Arguments) -> i64 = std::mem::transmute(self.address);
            function(&raw mut arguments)
        };
        if stop == DONE {
            cells.set_rows(0, positions.len());
            return Ok(());
        }
        eval::rows(program, window, positions, state, cells)
    }
}

fn write(builder: &mut FunctionBuilder<'_>, engine: &Engine, program: &Program) -> Option<()> {
    let entry = builder.create_block();
    let (head, inside, done, stuck) =
        (builder.create_block(), builder.create_block(), builder.create_block(), builder.create_block());
    builder.append_block_params_for_function_params(entry);
    builder.set_cold_block(stuck);
    builder.switch_to_block(entry);
    let arguments = builder.block_params(entry)[0];
    let mut load = |offset: i32| builder.ins().load(types::I64, trusted(), arguments, offset);
    let (base, end, slots) = (load(offset!(base)), load(offset!(end)), load(offset!(slots)));
    let (positions, count) = (load(offset!(positions)), load(offset!(count)));
    let (columns, origin) = (load(offset!(columns)), load(offset!(origin)));
    let row = builder.declare_var(types::I64);
    let position = builder.declare_var(types::I64);
    let zero = builder.ins().iconst(types::I64, 0);
    builder.def_var(row, zero);
    builder.def_var(position, zero);
    builder.ins().jump(head, &[]);
    builder.switch_to_block(head);
    let now = builder.use_var(row);
    let more = builder.ins().icmp(IntCC::UnsignedLessThan, now, count);
    builder.ins().brif(more, inside, &[], done, &[]);
    builder.switch_to_block(inside);
    let at = builder.ins().ishl_imm_u(now, 3);
    let address = builder.ins().iadd(positions, at);
    let start = builder.ins().load(types::I64, trusted(), address, 0);
    builder.def_var(position, start);
    let mut translator = Translator::new(builder, program, &Frame { base, end, slots, stuck, position });
    translator.table = Some(Table { columns, origin, row: now, program, engine });
    translator.block(&program.body)?;
    let next = builder.ins().iadd_imm_s(now, 1);
    builder.def_var(row, next);
    builder.ins().jump(head, &[]);
    for (block, code) in [(done, DONE), (stuck, DONE + 1)] {
        builder.switch_to_block(block);
        let code = builder.ins().iconst(types::I64, code);
        builder.ins().return_(&[code]);
    }
    Some(())
}
