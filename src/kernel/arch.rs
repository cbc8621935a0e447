//! Which kernels a chip runs, by its name.

use super::toolkit::ARCHS;
use crate::ascend::DataType;
use crate::error::{Error, Result};
use crate::soc::Generation;

/// A chip: its name, and the architecture that the kernels are compiled for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chip {
    name: String,
    arch: u32,
}

impl Chip {
    /// The chip that `aclrtGetSocName` calls `name`.
    ///
    /// # Errors
    /// [`ErrorKind::Unsupported`](crate::error::ErrorKind::Unsupported) if there are no kernels for it.
    pub fn named(name: &str) -> Result<Self> {
        let arch = arch_of(name).ok_or_else(|| {
            Error::unsupported(format!(
                "there are no kernels for {name}: they are written for Ascend 910A (fp32, fp16), Atlas A2 and A3 \
                 (910B, 910C) and Ascend 950"
            ))
        })?;
        Ok(Chip {
            name: name.to_owned(),
            arch,
        })
    }

    /// A chip of the architecture with the number `arch`.
    ///
    /// # Errors
    /// If there are no kernels for it.
    pub fn of_arch(arch: u32) -> Result<Self> {
        let known = ARCHS.iter().find(|(known, _)| *known == arch);
        let (_, name) = known.ok_or_else(|| {
            Error::invalid(format!(
                "there are no kernels for architecture {arch}; there are for 1001, 2201 and 3510"
            ))
        })?;
        Chip::named(name)
    }

    /// The number of the architecture, as in `dav-2201`.
    pub fn arch(&self) -> u32 {
        self.arch
    }

    /// The name of the chip.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether copies on the chip move whole blocks of 32 bytes only. Then tensors and segments start at multiples of 64
    /// bytes, and the memory behind their end up to the next multiple is theirs.
    pub fn copies_whole_blocks(&self) -> bool {
        self.arch == 1001
    }

    /// Bytes that tensors and segments start at multiples of.
    pub fn start_alignment(&self) -> u64 {
        if self.copies_whole_blocks() { 64 } else { 1 }
    }

    /// Whether the kernels compute with elements of `dtype` on the chip.
    pub fn computes_with(&self, dtype: DataType) -> bool {
        match dtype {
            DataType::F32 | DataType::F16 => true,
            DataType::Bf16 => self.arch != 1001,
            _ => false,
        }
    }

    /// Whether work on a stream can be dropped (`aclrtStreamAbort`).
    pub fn aborts_streams(&self) -> bool {
        self.arch != 1001
    }

    /// Whether cube cores and vector cores are apart. Then a binary says which cores a kernel runs on.
    pub(super) fn has_cube_cores_apart(&self) -> bool {
        self.arch != 1001
    }

    /// Refuses arithmetic that `saturates` where the chip can do without: a NaN, as failures and a rank's overflow leave it, would
    /// come out of a conversion to 16 bits as 0 on all ranks. Those of the first generation have no other arithmetic (CANN runtime,
    /// docs/zh/api_ref/25-02_Enumerations.md, "aclrtFloatOverflowMode").
    pub(super) fn check_arithmetic(&self, saturates: bool) -> Result<()> {
        if saturates && self.arch != 1001 {
            return Err(Error::unsupported(format!(
                "{}: aclrtGetDeviceSatMode says saturation, where NaN becomes 0 and goes unseen: unset \
                 INF_NAN_MODE_FORCE_DISABLE and start again. aclrtSetDeviceSatMode with ACL_RT_OVERFLOW_MODE_INFNAN changes only \
                 streams that are made behind it",
                self.name
            )));
        }
        Ok(())
    }

    /// Checks that the chip knows elements of `dtype`, one of the types of the kernels.
    pub(super) fn check(&self, dtype: DataType, kernel: &str) -> Result<()> {
        if dtype == DataType::Bf16 && !self.computes_with(dtype) {
            return Err(Error::unsupported(format!(
                "{kernel}: {} has no bf16; its kernels take F32 and F16",
                self.name
            )));
        }
        Ok(())
    }
}

/// The architecture of a chip, if there are kernels for it.
fn arch_of(name: &str) -> Option<u32> {
    match Generation::of_soc(name) {
        Generation::A910 => Some(1001),
        Generation::A2 | Generation::A3 => Some(2201),
        Generation::A950 => Some(3510),
        Generation::P310 | Generation::Unknown => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn names_lead_to_architectures() {
        for (name, arch) in [
            ("Ascend910A", 1001),
            ("Ascend910B1", 2201),
            ("Ascend910_9391", 2201),
            ("Ascend950PR_9599", 3510),
        ] {
            assert_eq!(Chip::named(name).unwrap().arch(), arch, "{name}");
        }
        for (arch, name) in ARCHS {
            assert_eq!(Chip::of_arch(arch).unwrap().name(), name);
        }
    }

    #[test]
    fn saturation_is_refused_where_a_chip_can_do_without() {
        let check = |name: &str, saturates| {
            let chip = Chip::named(name).unwrap();
            chip.check_arithmetic(saturates)
                .map_err(|error| error.to_string())
        };
        let refused = check("Ascend910B3", true).unwrap_err();
        assert!(refused.contains("INF_NAN_MODE_FORCE_DISABLE"), "{refused}");
        for (name, saturates) in [
            ("Ascend910B3", false),
            ("Ascend910A", true),
            ("Ascend910A", false),
        ] {
            assert_eq!(check(name, saturates), Ok(()), "{name}");
        }
    }

    #[test]
    fn chips_without_kernels_are_named() {
        let error = Chip::of_arch(2002).unwrap_err();
        assert!(error.to_string().contains("2002"), "{error}");
        let error = Chip::named("Ascend310P3").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported);
        assert!(error.to_string().contains("Ascend310P3"), "{error}");
    }

    #[test]
    fn bf16_is_refused_where_the_chip_has_none() {
        let chip = Chip::named("Ascend910ProA").unwrap();
        assert!(chip.copies_whole_blocks());
        chip.check(DataType::F16, "gram").unwrap();
        let error = chip.check(DataType::Bf16, "gram").unwrap_err().to_string();
        assert!(
            error.contains("gram") && error.contains("Ascend910ProA"),
            "{error}"
        );
        assert!(error.contains("bf16"), "{error}");
        let chip = Chip::named("Ascend910B1").unwrap();
        chip.check(DataType::Bf16, "gram").unwrap();
    }
}
