//! The machine that this process runs on.

/// A text that is equal for processes of one machine and different for those of others: the host name and the kernel's
/// boot id. Containers with host names of their own count as machines of their own.
pub fn host_key() -> String {
    let read = |path: &str| {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.trim().to_owned()
    };
    let name = read("/proc/sys/kernel/hostname");
    let boot = read("/proc/sys/kernel/random/boot_id");
    format!("{name} {boot}")
}
