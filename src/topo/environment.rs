//! The environment that a launcher gives a rank, read back.

use std::ffi::OsString;
use std::path::PathBuf;
use std::str::FromStr;

use super::{Cluster, RankTable};
use crate::error::{Context, Error, Result, quote};

pub(super) const TABLE: &str = "RANK_TABLE_FILE";
pub(super) const TABLE_ALIAS: &str = "MINDSPORE_HCCL_CONFIG_PATH";
const RANK: &str = "RANK_ID";
const SIZE: &str = "RANK_SIZE";
const DEVICE: &str = "DEVICE_ID";

/// [`Cluster::from_env`] over any source of variables.
pub(super) fn cluster(lookup: impl Fn(&str) -> Option<OsString>) -> Result<Cluster> {
    let lookup = |name: &str| lookup(name).filter(|value| !value.is_empty());
    let (name, path) = table_path(&lookup)?;
    let table = RankTable::read(path).context(|| name)?;
    let Some(rank) = number::<u32>(&lookup, RANK)? else {
        return Err(Error::invalid(format!("{RANK} is not set")));
    };
    let size = table.size();
    if rank >= size {
        let path = table.path().display();
        return Err(Error::invalid(format!(
            "{RANK} is {rank}, but {path} has {size} ranks"
        )));
    }
    if let Some(said) = number::<u32>(&lookup, SIZE)?
        && said != size
    {
        let path = table.path().display();
        return Err(Error::invalid(format!(
            "{SIZE} is {said}, but {path} has {size} ranks"
        )));
    }
    let mut cluster = Cluster::new(table, rank)?;
    cluster.local_device = number(&lookup, DEVICE)?;
    Ok(cluster)
}

/// The variable that names the table, and its value.
fn table_path(lookup: &impl Fn(&str) -> Option<OsString>) -> Result<(&'static str, PathBuf)> {
    match (lookup(TABLE), lookup(TABLE_ALIAS)) {
        (Some(path), Some(alias)) if path != alias => Err(Error::invalid(format!(
            "{TABLE} is {path:?}, but {TABLE_ALIAS} is {alias:?}: set one of them"
        ))),
        (Some(path), _) => Ok((TABLE, path.into())),
        (None, Some(path)) => Ok((TABLE_ALIAS, path.into())),
        (None, None) => Err(Error::invalid(format!(
            "{TABLE} is not set (nor is {TABLE_ALIAS}): it names the rank table"
        ))),
    }
}

/// The number in a variable, if it is set.
pub(super) fn number<T: FromStr>(
    lookup: &impl Fn(&str) -> Option<OsString>,
    name: &str,
) -> Result<Option<T>> {
    let Some(value) = lookup(name) else {
        return Ok(None);
    };
    let number = value.to_str().and_then(|text| text.parse().ok());
    match number {
        Some(number) => Ok(Some(number)),
        None => Err(Error::invalid(format!(
            "{name} is {}, not a number",
            quote(value)
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/examples/rank_tables/rank_table_16pcs.json"
    );

    fn with(variables: &[(&str, &str)]) -> Result<Cluster> {
        cluster(|name| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| value.into())
        })
    }

    fn fault(variables: &[(&str, &str)]) -> String {
        let text = with(variables).unwrap_err().to_string();
        assert!(!text.contains('\n'), "{text}");
        text
    }

    #[test]
    fn the_tutorials_variables_place_a_rank() {
        let cluster = with(&[(TABLE, PATH), (RANK, "9"), (DEVICE, "1"), (SIZE, "16")]).unwrap();
        assert_eq!((cluster.rank(), cluster.size()), (9, 16));
        assert_eq!(cluster.locals().unwrap(), 8);
        assert_eq!(cluster.device_id(9).unwrap(), 1);
        assert_eq!(cluster.local_device(), Some(1));
        assert_eq!(cluster.table_path(), std::path::Path::new(PATH));
        let alias = with(&[(TABLE_ALIAS, PATH), (RANK, "9"), (DEVICE, "1")]);
        assert_eq!(alias.unwrap(), cluster);
        let untold = with(&[(TABLE, PATH), (RANK, "9"), (DEVICE, ""), (SIZE, "")]).unwrap();
        assert_eq!((untold.rank(), untold.local_device()), (9, None));
    }

    #[test]
    fn every_bad_variable_is_named() {
        assert!(fault(&[]).starts_with("RANK_TABLE_FILE is not set"));
        assert!(fault(&[(TABLE, ""), (RANK, "0")]).starts_with("RANK_TABLE_FILE is not set"));
        assert!(fault(&[(TABLE, PATH)]).starts_with("RANK_ID is not set"));
        assert!(fault(&[(TABLE, PATH), (RANK, "x")]).starts_with("RANK_ID is \"x\""));
        assert!(fault(&[(TABLE, PATH), (RANK, "-1")]).starts_with("RANK_ID is \"-1\""));
        assert!(fault(&[(TABLE, PATH), (RANK, "16")]).starts_with("RANK_ID is 16, but"));
        assert!(
            fault(&[(TABLE, PATH), (RANK, "9"), (DEVICE, "b")]).starts_with("DEVICE_ID is \"b\"")
        );
        assert!(fault(&[(TABLE, PATH), (RANK, "9"), (SIZE, "8")]).starts_with("RANK_SIZE is 8"));
        assert!(
            fault(&[(TABLE, "/nowhere.json"), (RANK, "0")])
                .starts_with("RANK_TABLE_FILE: /nowhere.json: ")
        );
        let two = fault(&[(TABLE, PATH), (TABLE_ALIAS, "/other.json"), (RANK, "0")]);
        assert!(two.contains("MINDSPORE_HCCL_CONFIG_PATH"), "{two}");
    }
}
