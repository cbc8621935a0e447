//! Rules that only some products have.

use super::Server;
use super::field::Field;
use crate::soc::Generation;

/// Which devices a rank table is for, as far as that changes its rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Product {
    /// Any device: only the rules that hold everywhere.
    #[default]
    Any,
    /// The 910A, whose devices 0-3 and 4-7 are two rings: 1, 2, 4, 8 or 16 devices per server, equal on all of them, 2 and 4
    /// not across the rings, device numbers up to 7, and always with addresses.
    Ascend910A,
}

impl Product {
    /// The product of a chip, by its name as ACL gives it (`Ascend910A`, `Ascend910ProB`, `Ascend910B1`). 910B without a number is a
    /// 910A.
    pub fn of_soc(name: &str) -> Product {
        match Generation::of_soc(name) {
            Generation::A910 => Product::Ascend910A,
            _ => Product::Any,
        }
    }

    /// The largest device number.
    pub(super) fn last_device(self) -> i32 {
        match self {
            Product::Any => i32::MAX,
            Product::Ascend910A => 7,
        }
    }

    /// Holds the servers to the rules of their number of devices; `fields` has the place of each.
    pub(super) fn check(self, servers: &[Server], fields: &[Field<'_>]) {
        if self != Product::Ascend910A {
            return;
        }
        let first = servers.first().map_or(0, |server| server.devices.len());
        for (server, field) in servers.iter().zip(fields) {
            let count = server.devices.len();
            if !matches!(count, 1 | 2 | 4 | 8 | 16) {
                field.wrong(format!(
                    "has {count} devices, but a 910A server has 1, 2, 4, 8 or 16"
                ));
            } else if count != first {
                field.wrong(format!(
                    "has {count} devices, but the first server has {first}: on the 910A all have the same number"
                ));
            }
            let low = |device: &super::ServerDevice| device.device_id < 4;
            let on_both_sides = server.devices.iter().any(low) && !server.devices.iter().all(low);
            if matches!(count, 2 | 4) && on_both_sides {
                field.wrong(format!(
                    "its {count} devices lie on both sides of 0-3 and 4-7, which the 910A does not allow"
                ));
            }
        }
    }
}
