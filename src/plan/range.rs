//! Half-open ranges of elements.

use std::fmt;

/// Elements `start..end` of the fused buffer. Unlike `std::ops::Range` it is `Copy` and never runs backwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Range {
    start: u64,
    end: u64,
}

impl Range {
    /// `start..end`, empty if `end` is not above `start`.
    pub fn new(start: u64, end: u64) -> Self {
        Range {
            start,
            end: end.max(start),
        }
    }

    /// First element.
    pub fn start(self) -> u64 {
        self.start
    }

    /// One past the last element.
    pub fn end(self) -> u64 {
        self.end
    }

    /// Number of elements.
    pub fn len(self) -> u64 {
        self.end - self.start
    }

    /// Whether there is no element.
    pub fn is_empty(self) -> bool {
        self.start == self.end
    }

    /// Whether every element of `other` is in this range; an empty one always is.
    pub fn contains(self, other: Range) -> bool {
        other.is_empty() || (self.start <= other.start && other.end <= self.end)
    }

    /// The elements in both ranges.
    #[must_use]
    pub fn intersection(self, other: Range) -> Range {
        Range::new(self.start.max(other.start), self.end.min(other.end))
    }
}

impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..{}", self.start, self.end)
    }
}
