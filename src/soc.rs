//! Generations of chips, by the names that ACL gives them (`aclrtGetSocName`).

/// Chips, as far as kernels, rank tables and variables of HCCL differ between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Generation {
    #[default]
    Unknown,
    A910,
    A2,
    A3,
    P310,
    A950,
}

impl Generation {
    /// The generation of a chip by its name. 910B without a number is of the first one, as are 910ProA and the like.
    pub(crate) fn of_soc(name: &str) -> Generation {
        let name = name.strip_prefix("Ascend").unwrap_or(name);
        let starts = |prefix: &str| name.starts_with(prefix);
        match name {
            "910" | "910A" | "910B" | "910ProA" | "910ProB" | "910PremiumA" => Generation::A910,
            _ if starts("910_93") => Generation::A3,
            _ if starts("910B") => Generation::A2,
            _ if starts("310P") => Generation::P310,
            _ if starts("950") || starts("910_95") => Generation::A950,
            _ => Generation::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chips_are_told_by_their_names() {
        for (name, generation) in [
            ("Ascend910", Generation::A910),
            ("Ascend910A", Generation::A910),
            ("Ascend910B", Generation::A910),
            ("Ascend910ProA", Generation::A910),
            ("Ascend910PremiumA", Generation::A910),
            ("Ascend910B1", Generation::A2),
            ("Ascend910B2C", Generation::A2),
            ("Ascend910B4-1", Generation::A2),
            ("Ascend910_9392", Generation::A3),
            ("Ascend310P3", Generation::P310),
            ("Ascend950PR_9599", Generation::A950),
            ("Ascend910_9589", Generation::A950),
            ("910B3", Generation::A2),
            ("Other", Generation::Unknown),
        ] {
            assert_eq!(Generation::of_soc(name), generation, "{name}");
        }
    }
}
