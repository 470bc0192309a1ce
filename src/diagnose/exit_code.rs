//! What exit codes and signals mean by convention.

/// Meaning of an exit code, where there is a convention (POSIX shells, bash(1) "EXIT STATUS").
pub fn meaning(code: i32) -> Option<&'static str> {
    Some(match code {
        126 => "Exit code 126: the command was found and could not be executed.",
        127 => "Exit code 127: the shell did not find a command.",
        255 => "Exit code 255: -1 in many programs; or the runtime lost the code.",
        _ => return None,
    })
}

/// Name of a signal on Linux.
pub fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        other => return other.to_string(),
    };
    format!("{signal} ({name})")
}
