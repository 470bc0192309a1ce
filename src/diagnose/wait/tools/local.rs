//! Programs that connect to nothing.

/// A program that is not here and not a known client may connect to anything. Package managers are here: what they
/// fetch from is not a dependency inside the cluster.
#[rustfmt::skip]
const LOCAL: [&str; 152] = [
    ".", ":", "[", "add-shell", "addgroup", "adduser", "alias", "apk", "apt", "apt-get", "awk", "base64",
    "basename", "bc", "break", "cat", "cd", "chgrp", "chmod", "chown", "chroot", "cksum", "cmp",
    "continue", "cp", "cut", "date", "dd", "declare", "df", "diff", "dirname", "dmesg", "du", "echo",
    "egrep", "env", "envsubst", "exit", "export", "expr", "false", "fgrep", "file", "find", "free",
    "fsck", "getfacl", "git-lfs", "grep", "groupadd", "groups", "gunzip", "gzip", "head", "hexdump",
    "hostname", "id", "info", "install", "ip", "ip6tables", "ip6tables-restore", "iptables",
    "iptables-restore", "iptables-save", "istio-iptables", "jobs", "jq", "kill", "let", "ln", "local",
    "log", "ls", "lsblk", "lsof", "md5sum", "mkdir", "mkfifo", "mkfs", "mknod", "mktemp", "modprobe",
    "more", "mount", "mv", "netstat", "nproc", "nsenter", "openssl", "paste", "pgrep", "pkill", "popd",
    "printenv", "printf", "ps", "pushd", "pwd", "read", "readlink", "readonly", "realpath", "rename",
    "return", "rev", "rm", "rmdir", "sed", "seq", "set", "setcap", "setfacl", "sha256sum", "shift",
    "shopt", "sleep", "sort", "source", "split", "stat", "swapoff", "sync", "sysctl", "tail", "tar",
    "tee", "test", "touch", "tr", "trap", "true", "type", "ulimit", "umask", "umount", "uname", "uniq",
    "unset", "unzip", "uuidgen", "wait", "wc", "which", "whoami", "xargs", "xz", "yes", "yq", "zcat",
    "zip",
];

/// Whether a program of this name connects to nothing.
pub(super) fn is_local(name: &str) -> bool {
    LOCAL.contains(&name)
}
