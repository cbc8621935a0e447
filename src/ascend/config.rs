//! Settings of a communicator, in a form that every HCCL since 8.0.RC2 reads.

use crate::error::{Error, Result};
use crate::sys::Backend;
use crate::sys::hccl::{
    HCCL_COMM_BUFFSIZE_CONFIG_NOT_SET, HCCL_COMM_CONFIG_MAGIC_WORD, HCCL_COMM_DEFAULT_BUFFSIZE,
    HCCL_COMM_DETERMINISTIC_CONFIG_NOT_SET, HCCL_COMM_SERVICE_LEVEL_CONFIG_NOT_SET,
    HCCL_COMM_TRAFFIC_CLASS_CONFIG_NOT_SET, HcclCommConfig,
};

/// Settings of a communicator; what is `None` follows the environment or HCCL's default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommConfig {
    /// The communicator's name, 1 to 127 bytes, the same on all ranks; HCCL makes one up otherwise.
    pub name: Option<String>,
    /// Size in MB of each of the two buffers it takes at its first operation (200 by default).
    pub buffer_mb: Option<u32>,
    /// Whether HCCL's own reductions sum in a fixed order.
    pub deterministic: Option<bool>,
}

/// The layout of version 5 (CANN 8.1.RC1). Those of versions 1 and 2 are its first 32 and 160 bytes.
///
/// Later versions are not used: their size changed under one version number, and a library reads the fields of the
/// version it is told, wherever the structure ends.
#[repr(C)]
pub(super) struct RawConfig {
    size: u64,
    magic: u32,
    version: u32,
    reserved: u64,
    buffer_size: u32,
    deterministic: u32,
    name: [u8; 128],
    udi: [u8; 128],
    op_expansion_mode: u32,
    rdma_traffic_class: u32,
    rdma_service_level: u32,
    /// What libraries for Ascend 950 look at behind the end, whatever the size says: zeros are "not set" there.
    behind: [u8; BEHIND],
}

/// More than the fields of any version so far.
const BEHIND: usize = 8192;

/// (version, size) by what the library can do.
const VERSION_1: (u32, u64) = (1, 32);
const VERSION_2: (u32, u64) = (2, 160);
const VERSION_5: (u32, u64) = (5, 300);

impl RawConfig {
    pub(super) fn new(backend: &Backend, config: &CommConfig) -> Result<RawConfig> {
        // SAFETY: takes nothing.
        let capability = unsafe { backend.hccl.HcclGetCommConfigCapability() };
        RawConfig::for_capability(capability, config)
    }

    fn for_capability(capability: u32, config: &CommConfig) -> Result<RawConfig> {
        let (version, size) = match capability {
            0..=2 => VERSION_1,
            3 => VERSION_2,
            _ => VERSION_5,
        };
        // Before version 5 there is no value for "not set".
        let (buffer_default, deterministic_default) = if version < VERSION_5.0 {
            (HCCL_COMM_DEFAULT_BUFFSIZE, 0)
        } else {
            (
                HCCL_COMM_BUFFSIZE_CONFIG_NOT_SET,
                HCCL_COMM_DETERMINISTIC_CONFIG_NOT_SET,
            )
        };
        if config.buffer_mb == Some(0) {
            return Err(Error::invalid(
                "a communicator needs a buffer of at least 1 MB",
            ));
        }
        Ok(RawConfig {
            size,
            magic: HCCL_COMM_CONFIG_MAGIC_WORD,
            version,
            reserved: 0,
            buffer_size: config.buffer_mb.unwrap_or(buffer_default),
            deterministic: config
                .deterministic
                .map_or(deterministic_default, u32::from),
            name: name(config.name.as_deref())?,
            udi: [0; 128],
            op_expansion_mode: 0,
            rdma_traffic_class: HCCL_COMM_TRAFFIC_CLASS_CONFIG_NOT_SET,
            rdma_service_level: HCCL_COMM_SERVICE_LEVEL_CONFIG_NOT_SET,
            behind: [0; BEHIND],
        })
    }

    /// As the vendor's functions take it. Those for Ascend 950 write settings into it and read the algorithm (offset 320)
    /// without a look at the size (hcomm, coll_comm_config.cc:123 and op_base_v2.cc:954).
    pub(super) fn as_mut_ptr(&mut self) -> *mut HcclCommConfig {
        (&raw mut *self).cast()
    }
}

/// The name as a C string in a field of fixed size; empty is "not set".
fn name(name: Option<&str>) -> Result<[u8; 128]> {
    let mut field = [0; 128];
    let Some(name) = name else {
        return Ok(field);
    };
    let bytes = name.as_bytes();
    match field.get_mut(..bytes.len()) {
        Some(start) if bytes.len() < 128 && !bytes.is_empty() && !bytes.contains(&0) => {
            start.copy_from_slice(bytes);
            Ok(field)
        }
        _ => Err(Error::invalid(format!(
            "the communicator name {name:?} must have 1 to 127 bytes, none of them zero"
        ))),
    }
}

const _: () = {
    assert!(std::mem::offset_of!(RawConfig, behind) == 300);
    assert!(std::mem::offset_of!(RawConfig, buffer_size) == 24);
    assert!(std::mem::offset_of!(RawConfig, name) == 32);
    assert!(std::mem::offset_of!(RawConfig, udi) == 160);
    assert!(std::mem::offset_of!(RawConfig, op_expansion_mode) == 288);
    assert!(std::mem::offset_of!(RawConfig, rdma_service_level) == 296);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_follows_what_the_library_can_do() {
        for (capability, version, size) in [
            (0, 1, 32),
            (2, 1, 32),
            (3, 2, 160),
            (5, 5, 300),
            (12, 5, 300),
        ] {
            let raw = RawConfig::for_capability(capability, &CommConfig::default()).unwrap();
            assert_eq!(
                (raw.version, raw.size),
                (version, size),
                "capability {capability}"
            );
            assert_eq!(raw.magic, 0xf0f0_f0f0);
        }
    }

    #[test]
    fn old_libraries_get_plain_defaults() {
        let old = RawConfig::for_capability(3, &CommConfig::default()).unwrap();
        assert_eq!((old.buffer_size, old.deterministic), (200, 0));
        let new = RawConfig::for_capability(5, &CommConfig::default()).unwrap();
        assert_eq!((new.buffer_size, new.deterministic), (u32::MAX, u32::MAX));
        let set = CommConfig {
            buffer_mb: Some(1),
            deterministic: Some(true),
            ..CommConfig::default()
        };
        let new = RawConfig::for_capability(5, &set).unwrap();
        assert_eq!((new.buffer_size, new.deterministic), (1, 1));
    }

    #[test]
    fn names_are_c_strings_that_fit() {
        assert_eq!(name(None).unwrap(), [0; 128]);
        assert!(name(Some("adasum")).unwrap().starts_with(b"adasum\0"));
        assert!(name(Some(&"x".repeat(127))).is_ok());
        for bad in ["", "a\0b", &"x".repeat(128), &"x".repeat(300)] {
            assert!(name(Some(bad)).is_err(), "{bad:?}");
        }
        let config = CommConfig {
            buffer_mb: Some(0),
            ..CommConfig::default()
        };
        assert!(RawConfig::for_capability(5, &config).is_err());
    }
}
