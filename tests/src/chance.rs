//! Chance that can be repeated: a generator that is its seed.

/// Splitmix64: a counter whose steps are scattered over all 64 bits.
#[derive(Clone, Debug)]
pub struct Chance(u64);

impl Chance {
    /// A generator of this seed.
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub const fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below the bound; 0 for the bound 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX).max(1);
        usize::try_from(self.bits() % bound).unwrap_or(0)
    }

    /// True once in so many times.
    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// One of these.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[expect(clippy::indexing_slicing, reason = "the index is below the length")]
    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())].clone()
    }

    /// Up to so many bytes of any kind.
    pub fn bytes(&mut self, most: usize) -> Vec<u8> {
        let length = self.below(most + 1);
        (0..length)
            .map(|_| self.bits().to_be_bytes().first().copied().unwrap_or(0))
            .collect()
    }
}
