//! The values of a state: they merge, and say how much memory they hold.
//!
//! A trace is cut into chunks, every chunk makes a state, and states are merged from left to right,
//! in any groups in which they become ready:
//!
//! ```text
//! chunks   a     b     c     d
//!          └──┬──┘     └──┬──┘
//!             └─────┬─────┘         ((a b)(c d)) = (((a b) c) d): associative
//! ```
//!
//! The order of the operands is kept everywhere in this crate (`self` is the earlier one), so a
//! value may depend on it ("the last name seen"). Grouping must not matter.

/// A value that absorbs another one of its kind that comes later in the trace.
///
/// `a.merge(b)` and then `merge(c)` must equal `a` merged with (`b` merged with `c`). A value's [`Default`] must be
/// neutral where the value is kept in a table by key.
pub trait Merge {
    /// Absorbs `later`.
    fn merge(&mut self, later: Self);

    /// Absorbs a value that stays where it is. Worth writing where it saves a copy of something large.
    fn merge_from(&mut self, later: &Self)
    where
        Self: Clone,
    {
        self.merge(later.clone());
    }
}

/// A value that knows how many bytes it holds outside of itself.
///
/// Budgets count `size_of::<T>()` and this. The default suits values that own nothing.
pub trait Weight {
    /// Bytes on the heap that go when this value goes; an estimate from capacities.
    fn weight(&self) -> usize {
        0
    }
}

macro_rules! weightless {
    ($($kind:ty)*) => { $(impl Weight for $kind {})* };
}

weightless!(() bool char u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64);

impl Weight for String {
    fn weight(&self) -> usize {
        self.capacity()
    }
}

impl<T: Weight> Weight for Vec<T> {
    fn weight(&self) -> usize {
        self.capacity() * size_of::<T>() + self.iter().map(Weight::weight).sum::<usize>()
    }
}

impl<T: Weight> Weight for Box<[T]> {
    fn weight(&self) -> usize {
        size_of_val::<[T]>(self) + self.iter().map(Weight::weight).sum::<usize>()
    }
}

impl<T: Weight> Weight for Option<T> {
    fn weight(&self) -> usize {
        self.as_ref().map_or(0, Weight::weight)
    }
}

impl<T: Weight, const COUNT: usize> Weight for [T; COUNT] {
    fn weight(&self) -> usize {
        self.iter().map(Weight::weight).sum()
    }
}

macro_rules! weight_of_parts {
    ($($part:ident)*) => {
        impl<$($part: Weight),*> Weight for ($($part,)*) {
            #[allow(non_snake_case, reason = "a part is called as its type")]
            fn weight(&self) -> usize {
                let ($($part,)*) = self;
                0 $(+ $part.weight())*
            }
        }
    };
}

weight_of_parts!(A);
weight_of_parts!(A B);
weight_of_parts!(A B C);
weight_of_parts!(A B C D);
weight_of_parts!(A B C D E);
