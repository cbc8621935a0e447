//! Names of groups and tags of messages as MindSpore forms them, for `adasum-run plan`.
//!
//! HCCL communicators of this crate have names of their own.

use sha1::Digest;

/// Which hash makes a tag: up to version 2.4 SHA-1, later SHA-256. Versions that differ do not meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TagHash {
    /// Up to 2.4.
    #[default]
    Sha1,
    /// From 2.7 on.
    Sha256,
}

/// The tag of a message: the hash of `tag`, step, sender's rank and index in decimal, modulo 2^31.
///
/// `rank` is the sender's on both sides. The indices `0..P` are the left halves of P parameters in their order,
/// `P..2P` the right ones.
pub fn tag(step: u32, rank: u32, index: u32, hash: TagHash) -> u32 {
    let text = format!("tag{step}{rank}{index}");
    // The last bytes of a number are its remainder.
    let last = |digest: &[u8]| {
        let word = digest.last_chunk().copied().unwrap_or_default();
        u32::from_be_bytes(word) & 0x7FFF_FFFF
    };
    match hash {
        TagHash::Sha1 => last(&sha1::Sha1::digest(text)),
        TagHash::Sha256 => last(&sha2::Sha256::digest(text)),
    }
}

/// The wrap cells' name for the group of `ranks` that sums scalars, like `0-8-16-24`.
pub fn group_name(ranks: &[u32]) -> String {
    let ranks: Vec<String> = ranks.iter().map(u32::to_string).collect();
    ranks.join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_those_of_the_cells() {
        let known = [
            ((0, 0, 0), 1_577_415_134, 1_529_955_027),
            ((0, 8, 0), 1_520_506_619, 682_046_272),
            ((0, 0, 1), 989_303_663, 201_051_690),
            ((1, 0, 0), 215_320_367, 599_987_525),
            ((1, 16, 5), 284_887_095, 923_244_759),
        ];
        for ((step, rank, index), sha1, sha256) in known {
            assert_eq!(tag(step, rank, index, TagHash::Sha1), sha1);
            assert_eq!(tag(step, rank, index, TagHash::Sha256), sha256);
        }
    }
}
