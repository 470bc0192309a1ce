//! The program `initwatch`, also `kubectl initwatch`.

fn main() -> std::process::ExitCode {
    initwatch::cli::main()
}
