//! UIDs and generated names: random to look at, reproducible in fact.

use std::fmt::Write as _;

use ephor_expr::Str;

/// Names and UIDs, the `n`th of a seed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Identities {
    seed: u64,
    used: u64,
}

impl Identities {
    pub(super) fn new(seed: u64) -> Self {
        Self { seed, used: 0 }
    }

    /// Gives the next UID; the ones before are never given again.
    pub(super) fn advance(&mut self) {
        self.used += 1;
    }

    /// The UID of the object that is created next, in the form of a random UUID (version 4).
    pub(super) fn uid(&self) -> Str {
        let high = self.bits(0);
        let low = self.bits(1);
        let mut text = String::with_capacity(36);
        // The version stands in the 13th digit, the variant in the two highest bits of the 17th.
        let _ = write!(
            text,
            "{:08x}-{:04x}-4{:03x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xfff,
            (low >> 48) & 0x3fff | 0x8000,
            low & 0xffff_ffff_ffff
        );
        text.into()
    }

    /// The five characters that a generated name ends with, on the `attempt`th attempt.
    pub(super) fn suffix(&self, attempt: u64) -> String {
        // Kubernetes leaves out vowels and what looks like one, so that no words come out.
        const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
        let mut bits = self.bits(2 + attempt);
        (0..5)
            .map(|_| {
                let letter = LETTERS[(bits % 27) as usize];
                bits /= 27;
                char::from(letter)
            })
            .collect()
    }

    fn bits(&self, stream: u64) -> u64 {
        mix(mix(mix(self.seed).wrapping_add(self.used)).wrapping_add(stream))
    }
}

/// The output function of `SplitMix64`: spreads every input bit over all output bits.
fn mix(n: u64) -> u64 {
    let n = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uids_look_like_random_uuids_and_do_not_repeat() {
        let mut identities = Identities::new(7);
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..1000 {
            let uid = identities.uid();
            let lengths: Vec<_> = uid.split('-').map(str::len).collect();
            assert_eq!(lengths, [8, 4, 4, 4, 12], "{uid}");
            assert_eq!(uid.as_bytes()[14], b'4', "{uid}");
            assert!(matches!(uid.as_bytes()[19], b'8' | b'9' | b'a' | b'b'), "{uid}");
            assert!(seen.insert(uid));
            identities.advance();
        }
    }

    #[test]
    fn the_same_seed_gives_the_same_identities() {
        assert_eq!(Identities::new(1).uid(), Identities::new(1).uid());
        assert_ne!(Identities::new(1).uid(), Identities::new(2).uid());
        assert_eq!(Identities::new(1).suffix(0), Identities::new(1).suffix(0));
        assert_ne!(Identities::new(1).suffix(0), Identities::new(1).suffix(1));
    }
}
