//! Programs that fill columns: one loop over positions.
//!
//! Columns are written through their addresses. A record that cannot be read, or with lists that
//! need more room than there is, is left to the evaluator, which finds out why or makes room; the
//! loop goes on with the next one.

use std::sync::Arc;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, types};
use cranelift_frontend::{FunctionBuilder, Variable};
use kymo_ir::cells::TableRows;
use kymo_ir::{Cells, PacketWindow, ReadProgram, ReadState, RowFault, eval};

use crate::engine::JitEngine;
use crate::sound;
use crate::translate::{FunctionContext, TableColumns, Translator, trusted};

/// A compiled program that fills columns. May be used by several threads at once.
#[derive(Debug)]
pub struct CompiledRows {
    /// Keeps the code alive.
    _engine: JitEngine,
    address: usize,
    program: Arc<ReadProgram>,
    slots: usize,
}

/// The values that the machine code reads and writes.
#[repr(C)]
struct RowsArguments {
    base: usize,
    end: u64,
    slots: *mut u64,
    origin: u64,
    positions: *const u64,
    count: u64,
    columns: *const ColumnCells,
    /// Complete rows and room of each table.
    tables: *mut kymo_ir::cells::TableRows,
    /// The row to begin with, then the row that could not be read.
    row: u64,
}

/// Where a column's cells are.
#[repr(C)]
pub(crate) struct ColumnCells {
    cells: *mut u8,
    validity: *mut u8,
}

macro_rules! offset {
    ($field:ident) => {
        std::mem::offset_of!(RowsArguments, $field) as i32
    };
}

/// Addresses of so many columns need no memory of their own.
const COLUMNS_FEW: usize = 32;

impl CompiledRows {
    /// Compiles a program; `None` if it is left to the evaluator.
    #[must_use]
    pub fn new(engine: &JitEngine, program: &Arc<ReadProgram>) -> Option<Self> {
        let slots = sound::slots(program)?;
        let address = engine.compile(1, |builder| write(builder, engine, program))?;
        Some(Self { _engine: engine.clone(), address, program: Arc::clone(program), slots })
    }

    /// The same as [`eval::rows`] with the program.
    ///
    /// # Errors
    ///
    /// The first row that could not be read.
    ///
    /// # Panics
    ///
    /// If a position lies outside of the window, or the state has too few slots.
    pub fn run(
        &self,
        window: PacketWindow<'_>,
        positions: &[u64],
        state: &mut ReadState,
        cells: &mut Cells,
    ) -> Result<(), RowFault> {
        let program = &*self.program;
        sound::check(window, positions, &state.slots, self.slots);
        cells.reset(program, positions.len());
        let mut row = 0;
        // A row that machine code cannot fill may only need room. The evaluator makes it, and
        // machine code goes on.
        while row < positions.len() {
            row = self.run_from(row, window, positions, state, cells);
            if let Some(&position) = positions.get(row) {
                eval::row(program, window, position, row, state, cells)?;
                row += 1;
            }
        }
        if !program.tables.is_empty() {
            cells.set_rows(0, positions.len());
        }
        Ok(())
    }

    /// Fills rows from `row` on; returns the first that it could not fill, or how many there are.
    fn run_from(
        &self,
        row: usize,
        window: PacketWindow<'_>,
        positions: &[u64],
        state: &mut ReadState,
        cells: &mut Cells,
    ) -> usize {
        let mut few =
            [const { ColumnCells { cells: std::ptr::null_mut(), validity: std::ptr::null_mut() } }; COLUMNS_FEW];
        let mut many = Vec::new();
        let count = cells.columns();
        let columns = if count <= COLUMNS_FEW {
            &mut few[..count]
        } else {
            many.resize_with(count, || ColumnCells { cells: std::ptr::null_mut(), validity: std::ptr::null_mut() });
            &mut many[..]
        };
        // Anew for each run: the evaluator may have moved the columns when it made room.
        for (index, column) in columns.iter_mut().enumerate() {
            let (bytes, validity) = cells.column_mut(index as u16);
            column.cells = bytes.as_mut_ptr();
            column.validity = validity.map_or(std::ptr::null_mut(), |validity| validity.as_mut_ptr());
        }
        let mut arguments = RowsArguments {
            base: (window.bytes().as_ptr() as usize).wrapping_sub(window.origin() as usize),
            end: window.end(),
            slots: state.slots.as_mut_ptr(),
            origin: window.origin(),
            positions: positions.as_ptr(),
            count: positions.len() as u64,
            columns: columns.as_ptr(),
            tables: cells.tables_mut().as_mut_ptr(),
            row: row as u64,
        };
        // SAFETY: `address` is a function of this type that the engine, which this holds, compiled from this program. It
        // reads the window's bytes up to `end` and `SLACK` more, which `PacketWindow` promises, `count` positions,
        // which were found to lie in the window, and slots, of which there are enough; the verifier accepted the
        // program. It writes cells of rows below `count`, and of rows of child tables below their capacity, for which
        // `reset` and `grow` made room in each column, and the complete rows of child tables.
        #[allow(unsafe_code)]
        unsafe {
            let function: extern "C" fn(*mut RowsArguments) -> i64 = std::mem::transmute(self.address);
            function(&raw mut arguments);
        }
        arguments.row as usize
    }
}

fn write(builder: &mut FunctionBuilder<'_>, engine: &JitEngine, program: &ReadProgram) -> Option<()> {
    let entry = builder.create_block();
    let (head, inside, done) = (builder.create_block(), builder.create_block(), builder.create_block());
    builder.append_block_params_for_function_params(entry);
    builder.switch_to_block(entry);
    let arguments = builder.block_params(entry)[0];
    let mut load = |offset: i32| builder.ins().load(types::I64, trusted(), arguments, offset);
    let (base, end, slots) = (load(offset!(base)), load(offset!(end)), load(offset!(slots)));
    let (positions, count) = (load(offset!(positions)), load(offset!(count)));
    let (columns, origin) = (load(offset!(columns)), load(offset!(origin)));
    let (tables, first) = (load(offset!(tables)), load(offset!(row)));
    let row = builder.declare_var(types::I64);
    let position = builder.declare_var(types::I64);
    builder.def_var(row, first);
    builder.def_var(position, first);
    let complete = |table: usize| (table * size_of::<TableRows>() + std::mem::offset_of!(TableRows, complete)) as i32;
    let child_rows: Vec<Variable> = (1..program.tables.len())
        .map(|table| {
            let child = builder.declare_var(types::I64);
            let rows = builder.ins().load(types::I64, trusted(), tables, complete(table));
            builder.def_var(child, rows);
            child
        })
        .collect();
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
    let mut translator =
        Translator::new(builder, program, &FunctionContext { base, end, slots, stuck: done, position });
    translator.table = Some(TableColumns { columns, origin, row: now, tables, program, engine });
    translator.child_rows.clone_from(&child_rows);
    translator.block(&program.body)?;
    // Rows of child tables count only when their record is complete.
    for (table, child) in (1..).zip(child_rows) {
        let rows = builder.use_var(child);
        builder.ins().store(trusted(), rows, tables, complete(table));
    }
    let next = builder.ins().iadd_imm_s(now, 1);
    builder.def_var(row, next);
    builder.ins().jump(head, &[]);
    builder.switch_to_block(done);
    let last = builder.use_var(row);
    builder.ins().store(trusted(), last, arguments, offset!(row));
    let code = builder.ins().iconst(types::I64, 0);
    builder.ins().return_(&[code]);
    Some(())
}
