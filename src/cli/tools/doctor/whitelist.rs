//! The file of `HCCL_WHITELIST_FILE`: who may connect.

use std::net::IpAddr;
use std::path::Path;

use serde_json::Value;

/// The rule that the file breaks, which must be a JSON object with a list of addresses for hosts, devices or both.
pub(crate) fn check(path: &Path) -> Result<(), String> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string())?;
    let tree: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    let lists = ["host_ip", "device_ip"].map(|name| (name, tree.get(name)));
    if lists.iter().all(|(_, list)| list.is_none()) {
        return Err("it has neither host_ip nor device_ip".to_owned());
    }
    for (name, list) in lists {
        let Some(list) = list else { continue };
        let Some(items) = list.as_array() else {
            return Err(format!("{name} is not a list"));
        };
        let is_address = |item: &&Value| {
            item.as_str()
                .is_some_and(|text| text.parse::<IpAddr>().is_ok())
        };
        if let Some(wrong) = items.iter().find(|item| !is_address(item)) {
            return Err(format!("{name} holds {wrong}, which is no address"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::cli::tools::doctor::whitelist::check;

    #[test]
    fn a_list_of_addresses_is_looked_into() {
        let file = std::env::temp_dir().join(format!("adasum-whitelist-{}", std::process::id()));
        let verdict = |text: &str| {
            std::fs::write(&file, text).unwrap();
            check(&file)
        };
        assert_eq!(
            verdict(r#"{"host_ip": ["10.0.0.1"], "device_ip": []}"#),
            Ok(())
        );
        assert!(verdict("{}").is_err());
        assert!(verdict("[").is_err());
        assert!(verdict(r#"{"host_ip": "10.0.0.1"}"#).is_err());
        assert!(
            verdict(r#"{"device_ip": ["x"]}"#)
                .unwrap_err()
                .contains("\"x\"")
        );
        std::fs::remove_file(&file).unwrap();
    }
}
