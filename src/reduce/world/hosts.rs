//! Servers and ranks of each, from a key of every rank's host.

use sha1::{Digest, Sha1};

use crate::error::{Error, Result};
use crate::plan::Shape;

/// Bytes in which a rank tells its host: the start of the key for messages, and a hash of all of it.
pub(super) const HOST_BYTES: usize = NAME + HASH;
const NAME: usize = 44;
const HASH: usize = 20;

/// What a rank tells the others of its host's key.
pub(super) fn encode(key: &str) -> [u8; HOST_BYTES] {
    let mut bytes = [0; HOST_BYTES];
    let name = key.len().min(NAME);
    bytes[..name].copy_from_slice(&key.as_bytes()[..name]);
    bytes[NAME..].copy_from_slice(&Sha1::digest(key.as_bytes()));
    bytes
}

/// The shape of a world in which rank `i` told `hosts[i]`.
///
/// # Errors
/// If the ranks of a host are not consecutive, or hosts have different numbers of ranks; the message shows who is where.
pub(in crate::reduce) fn shape(hosts: &[[u8; HOST_BYTES]]) -> Result<Shape> {
    let mut blocks: Vec<(usize, usize)> = Vec::new();
    for (rank, host) in hosts.iter().enumerate() {
        match blocks.last_mut() {
            Some((first, count)) if hosts[*first] == *host => *count += 1,
            _ => blocks.push((rank, 1)),
        }
    }
    let map = || {
        let blocks = blocks.iter().map(|&(first, count)| {
            let name = hosts[first][..NAME].split(|&byte| byte == 0).next();
            let name = String::from_utf8_lossy(name.unwrap_or_default());
            match count {
                1 => format!("rank {first} on {name:?}"),
                _ => format!("ranks {first}-{} on {name:?}", first + count - 1),
            }
        });
        blocks.collect::<Vec<_>>().join(", ")
    };
    let repeated = |index: usize| {
        let host = hosts[blocks[index].0];
        blocks[..index]
            .iter()
            .any(|&(first, _)| hosts[first] == host)
    };
    if (0..blocks.len()).any(repeated) {
        return Err(Error::unsupported(format!(
            "the ranks of a server are not consecutive: {}",
            map()
        )));
    }
    let locals = blocks.first().map_or(0, |&(_, count)| count);
    if blocks.iter().any(|&(_, count)| count != locals) {
        return Err(Error::unsupported(format!(
            "servers have different numbers of ranks: {}",
            map()
        )));
    }
    let number = |count| u32::try_from(count).map_err(|_| Error::invalid("too many ranks"));
    Shape::new(number(blocks.len())?, number(locals)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape_of(keys: &[&str]) -> Result<Shape> {
        let hosts: Vec<_> = keys.iter().map(|key| encode(key)).collect();
        shape(&hosts)
    }

    #[test]
    fn equal_blocks_are_servers() {
        assert_eq!(
            shape_of(&["a", "a", "b", "b"]).unwrap(),
            Shape::new(2, 2).unwrap()
        );
        assert_eq!(shape_of(&["a"]).unwrap(), Shape::new(1, 1).unwrap());
        // Keys that differ only behind what messages show.
        let (a, b) = ("x".repeat(60) + "a", "x".repeat(60) + "b");
        assert_eq!(shape_of(&[&a, &b]).unwrap(), Shape::new(2, 1).unwrap());
    }

    #[test]
    fn other_maps_are_shown() {
        let error = shape_of(&["a", "b", "a"]).unwrap_err().to_string();
        assert!(
            error.contains("not consecutive: rank 0 on \"a\", rank 1 on \"b\", rank 2 on \"a\""),
            "{error}"
        );
        let error = shape_of(&["a", "a", "b"]).unwrap_err().to_string();
        assert!(
            error.contains("different numbers of ranks: ranks 0-1 on \"a\", rank 2 on \"b\""),
            "{error}"
        );
        assert!(shape_of(&[]).is_err());
    }
}
