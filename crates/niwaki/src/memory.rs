//! How much memory a command may take.

use niwaki_exact::Process;

/// What the policy pairs of a command may take together: the oracle's own limit, or what the system has left, if that is
/// less and the system says.
pub(crate) fn limit() -> u64 {
    let told = std::fs::read_to_string("/proc/meminfo").ok();
    let available = told.as_deref().and_then(available_in);
    available.map_or(Process::MEMORY, |bytes| bytes.min(Process::MEMORY))
}

/// `MemAvailable` of Linux's `/proc/meminfo`, in bytes.
fn available_in(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_linux_writes() {
        let told = "MemTotal:       24000000 kB\nMemFree:          100 kB\nMemAvailable:       2048 kB\n";
        assert_eq!(available_in(told), Some(2 << 20));
        assert_eq!(available_in("MemTotal: 3 kB\n"), None);
        assert!(limit() > 0 && limit() <= Process::MEMORY);
    }
}
