//! The rank of this process where another launcher (mpirun, srun) has started one for each rank.

use std::ffi::OsString;

use crate::error::{Error, Result, quote};

/// Variables of rank and size of mpirun (Open MPI, MPICH and Hydra, MVAPICH) and of srun. Those of MPI come first: in an
/// allocation of Slurm, mpirun's processes have both.
const VARIABLES: [(&str, Option<&str>); 5] = [
    ("OMPI_COMM_WORLD_RANK", Some("OMPI_COMM_WORLD_SIZE")),
    ("PMIX_RANK", None),
    ("PMI_RANK", Some("PMI_SIZE")),
    ("MV2_COMM_WORLD_RANK", Some("MV2_COMM_WORLD_SIZE")),
    ("SLURM_PROCID", Some("SLURM_NTASKS")),
];

/// `--rank`: a number, or `env` for that of the environment, of a table with `size` ranks.
///
/// # Errors
/// If there is no such rank, or the environment has none or a size that is not the table's.
pub(crate) fn rank(
    text: &str,
    size: u32,
    lookup: impl Fn(&str) -> Option<OsString>,
) -> Result<u32> {
    if text != "env" {
        let rank = text.parse().ok().filter(|rank| *rank < size);
        return rank.ok_or_else(|| {
            Error::invalid(format!(
                "--rank {}: must be env or a rank below {size}",
                quote(text)
            ))
        });
    }
    let number = |name: &str| -> Result<Option<u32>> {
        let Some(value) = lookup(name) else {
            return Ok(None);
        };
        match value.to_str().and_then(|text| text.parse().ok()) {
            Some(number) => Ok(Some(number)),
            None => Err(Error::invalid(format!(
                "{name} is {}, not a number",
                quote(value)
            ))),
        }
    };
    for (name, size_name) in VARIABLES {
        let Some(rank) = number(name)? else { continue };
        if let Some(size_name) = size_name
            && let Some(processes) = number(size_name)?
            && processes != size
        {
            return Err(Error::invalid(format!(
                "{size_name} is {processes}, but the rank table has {size} ranks: start one process for each"
            )));
        }
        if rank >= size {
            return Err(Error::invalid(format!(
                "{name} is {rank}, but the rank table has {size} ranks"
            )));
        }
        return Ok(rank);
    }
    let names: Vec<&str> = VARIABLES.iter().map(|variable| variable.0).collect();
    Err(Error::invalid(format!(
        "--rank env: none of {} is set",
        names.join(", ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(variables: &[(&str, &str)]) -> std::result::Result<u32, String> {
        let lookup = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.into())
        };
        rank("env", 16, lookup).map_err(|error| error.to_string())
    }

    #[test]
    fn launchers_are_known_by_their_variables() {
        assert_eq!(
            from(&[("SLURM_PROCID", "3"), ("SLURM_NTASKS", "16")]),
            Ok(3)
        );
        assert_eq!(from(&[("PMI_RANK", "15"), ("PMI_SIZE", "16")]), Ok(15));
        assert_eq!(from(&[("PMIX_RANK", "0")]), Ok(0));
        // mpirun inside of an allocation.
        assert_eq!(
            from(&[("SLURM_PROCID", "0"), ("OMPI_COMM_WORLD_RANK", "7")]),
            Ok(7)
        );
    }

    #[test]
    fn what_does_not_fit_the_table_is_named() {
        let size = from(&[("PMI_RANK", "1"), ("PMI_SIZE", "8")]).unwrap_err();
        assert!(
            size.starts_with("PMI_SIZE is 8, but the rank table has 16"),
            "{size}"
        );
        let large = from(&[("SLURM_PROCID", "16")]).unwrap_err();
        assert!(large.starts_with("SLURM_PROCID is 16"), "{large}");
        assert!(
            from(&[("PMI_RANK", "x")])
                .unwrap_err()
                .contains("not a number")
        );
        assert!(
            from(&[])
                .unwrap_err()
                .contains("none of OMPI_COMM_WORLD_RANK")
        );
        assert!(rank("16", 16, |_| None).is_err());
        assert_eq!(rank("2", 16, |_| None), Ok(2));
    }
}
