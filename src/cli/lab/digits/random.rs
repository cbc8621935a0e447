//! A small generator of pseudo-random numbers, the same on every machine.

/// SplitMix64 (Steele, Lea, Flood 2014).
pub(crate) struct Random {
    state: u64,
}

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Random { state: seed }
    }

    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// A number in -1..1.
    pub(crate) fn signed_unit(&mut self) -> f32 {
        // 24 bits fit an f32 exactly.
        (self.next() >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    /// Puts `items` in a random order.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            // The bias of the remainder is far below anything a demo could show.
            let other = self.next() % (last as u64 + 1);
            items.swap(last, usize::try_from(other).unwrap_or(last));
        }
    }
}
