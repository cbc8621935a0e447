//! What joins two devices of a machine.

use std::fmt;

use crate::sys::acl::{
    ACL_RT_DEVS_TOPOLOGY_HCCS, ACL_RT_DEVS_TOPOLOGY_HCCS_SW, ACL_RT_DEVS_TOPOLOGY_PHB,
    ACL_RT_DEVS_TOPOLOGY_PIB, ACL_RT_DEVS_TOPOLOGY_PIX, ACL_RT_DEVS_TOPOLOGY_SIO,
    ACL_RT_DEVS_TOPOLOGY_SYS,
};

/// UB, on 950; the vendor's header does not have it (`tests/mock/conform_acl.cpp`).
const UB: u32 = 0x80;

const PCIE: [(u32, &str); 4] = [
    (ACL_RT_DEVS_TOPOLOGY_PIX, "PCIe (PIX)"),
    (ACL_RT_DEVS_TOPOLOGY_PIB, "PCIe (PIB)"),
    (ACL_RT_DEVS_TOPOLOGY_PHB, "PCIe (PHB)"),
    (ACL_RT_DEVS_TOPOLOGY_SYS, "PCIe (SYS)"),
];
const OTHERS: [(u32, &str); 4] = [
    (ACL_RT_DEVS_TOPOLOGY_HCCS, "HCCS"),
    (ACL_RT_DEVS_TOPOLOGY_SIO, "SIO"),
    (ACL_RT_DEVS_TOPOLOGY_HCCS_SW, "HCCS_SW"),
    (UB, "UB"),
];

/// What joins two devices of a machine: the bits of `aclrtGetDevicesTopo`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LinkType(pub u64);

impl LinkType {
    /// Whether it is PCIe and nothing else, over which kernels do not read other devices (the vendor's page of `DataCopy`).
    pub fn is_pcie(self) -> bool {
        let pcie = PCIE.iter().map(|(bit, _)| u64::from(*bit)).sum::<u64>();
        self.0 & pcie != 0 && self.0 & !pcie == 0
    }
}

/// The vendor's names.
impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = OTHERS.iter().chain(&PCIE);
        let names = names.filter(|(bit, _)| self.0 & u64::from(*bit) != 0);
        let names: Vec<&str> = names.map(|(_, name)| *name).collect();
        match names.is_empty() {
            true => write!(f, "something without a name ({:#x})", self.0),
            false => f.write_str(&names.join(" and ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pcie_is_told_from_what_kernels_read_over() {
        let said = |bits| (LinkType(bits).is_pcie(), LinkType(bits).to_string());
        let pcie = |name: &str| (true, format!("PCIe ({name})"));
        assert_eq!(said(0x02), pcie("PIX"));
        assert_eq!(said(0x04), pcie("PIB"));
        assert_eq!(said(0x08), pcie("PHB"));
        assert_eq!(said(0x10), pcie("SYS"));
        let other = |name: &str| (false, name.to_owned());
        assert_eq!(said(0x01), other("HCCS"));
        assert_eq!(said(0x20), other("SIO"));
        assert_eq!(said(0x40), other("HCCS_SW"));
        assert_eq!(said(0x80), other("UB"));
        assert_eq!(said(0x03), other("HCCS and PCIe (PIX)"));
        assert!(!said(0x102).0);
        assert_eq!(said(0x100), other("something without a name (0x100)"));
    }
}
