//! What the machine, the process's limits and the groups it is in leave of memory.

use std::fs;
use std::path::Path;

/// Where groups of processes have their files.
const GROUPS: &str = "/sys/fs/cgroup";

/// What this process can still take of memory, in bytes, where the system says: the least of what the machine has left, of
/// what its limits (`ulimit -v`, `ulimit -d`) leave, and of what the groups that it is in may still take.
#[must_use]
pub fn available_memory() -> Option<u64> {
    let read = |path: &Path| fs::read_to_string(path).ok();
    let own = |name: &str| read(&Path::new("/proc/self").join(name));
    let machine = read(Path::new("/proc/meminfo")).and_then(|text| machine_in(&text));
    let limited = own("limits").zip(own("status")).and_then(|(limits, status)| limited_in(&limits, &status));
    let grouped = own("cgroup").and_then(|text| grouped_in(&text, &read));
    [machine, limited, grouped].into_iter().flatten().min()
}

/// The number of kilobytes behind a word, in bytes.
fn kilobytes(text: &str, word: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(word))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

/// `MemAvailable` of Linux's `/proc/meminfo`.
fn machine_in(meminfo: &str) -> Option<u64> {
    kilobytes(meminfo, "MemAvailable:")
}

/// The tighter of the limits on addresses and on data, less what is resident: what is merely reserved may still be used.
fn limited_in(limits: &str, status: &str) -> Option<u64> {
    let taken = kilobytes(status, "VmRSS:").unwrap_or(0);
    let soft = |name: &str| {
        let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let limit = [soft("Max address space"), soft("Max data size")].into_iter().flatten().min()?;
    Some(limit.saturating_sub(taken))
}

/// What the process's groups, of the second version or of the first, and those around them may still take. Pages of files that
/// were not used lately are given up first.
fn grouped_in(cgroup: &str, read: &dyn Fn(&Path) -> Option<String>) -> Option<u64> {
    let mut left = None;
    for line in cgroup.lines() {
        let mut parts = line.splitn(3, ':');
        let (_, kinds, path) = (parts.next()?, parts.next()?, parts.next()?);
        let (home, most, taken) = match kinds {
            "" => (GROUPS.to_owned(), "memory.max", "memory.current"),
            kinds if kinds.split(',').any(|kind| kind == "memory") => {
                (format!("{GROUPS}/memory"), "memory.limit_in_bytes", "memory.usage_in_bytes")
            }
            _ => continue,
        };
        for group in Path::new(path.trim_start_matches('/')).ancestors() {
            let of = |name: &str| read(&Path::new(&home).join(group).join(name));
            let number = |name: &str| of(name)?.trim().parse::<u64>().ok();
            let Some((most, taken)) = number(most).zip(number(taken)) else { continue };
            let stat = of("memory.stat").unwrap_or_default();
            let idle = stat.lines().find_map(|line| line.strip_prefix("inactive_file ")?.parse::<u64>().ok());
            let here = most.saturating_sub(taken.saturating_sub(idle.unwrap_or(0)));
            left = Some(left.map_or(here, |left: u64| left.min(here)));
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tightest_limit_counts() {
        let told = "MemTotal:       24000000 kB\nMemFree:          100 kB\nMemAvailable:       2048 kB\n";
        assert_eq!(machine_in(told), Some(2 << 20));
        assert_eq!(machine_in("MemTotal: 3 kB\n"), None);
        let limits = "Limit                     Soft Limit           Hard Limit           Units\n\
                      Max data size             unlimited            unlimited            bytes\n\
                      Max address space         8388608              unlimited            bytes\n";
        // 8 MiB, of which 3 are taken.
        assert_eq!(limited_in(limits, "VmSize:\t 9999 kB\nVmRSS:\t    3072 kB\n"), Some(5 << 20));
        assert_eq!(limited_in(&limits.replace("8388608", "unlimited"), ""), None);
        assert_eq!(limited_in(&limits.replace("8388608", "1024"), "VmRSS: 8 kB\n"), Some(0));
    }

    #[test]
    fn groups_of_both_versions_and_those_around_them_count() {
        let of = |files: &'static [(&str, &str)]| {
            move |path: &Path| {
                let found = files.iter().find(|(name, _)| path == Path::new(GROUPS).join(name));
                found.map(|(_, text)| (*text).to_owned())
            }
        };
        let second = of(&[
            ("a/b/memory.max", "max\n"),
            ("a/b/memory.current", "700\n"),
            ("a/memory.max", "1000\n"),
            ("a/memory.current", "900\n"),
            ("a/memory.stat", "anon 600\ninactive_file 300\n"),
        ]);
        // 900 are taken of 1000, and 300 of them are pages of files.
        assert_eq!(grouped_in("0::/a/b\n", &second), Some(400));
        assert_eq!(grouped_in("0::/\n", &second), None);
        let first =
            of(&[("memory/c/memory.limit_in_bytes", "500\n"), ("memory/c/memory.usage_in_bytes", "200\n")]);
        assert_eq!(grouped_in("5:cpu,cpuacct:/c\n4:memory:/c\n", &first), Some(300));
        assert_eq!(grouped_in("nonsense", &first), None);
    }
}
