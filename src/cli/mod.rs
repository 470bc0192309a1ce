//! The command line.

mod arguments;
mod bounds;
mod masking;

use std::io::Write;
use std::process::ExitCode;

use clap::Parser;

use crate::controller::{self, Settings};
use crate::diagnose::catalogue;
use crate::{api, telemetry};
use arguments::{Arguments, Command, ControllerArguments};

/// Runs the program with the arguments of the process.
pub fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let result = match arguments.command {
        Command::Controller(arguments) => run_controller(*arguments),
        Command::Crd => print(|out| {
            for definition in api::definitions() {
                let yaml = api::render::render(&definition).map_err(std::io::Error::other)?;
                write!(out, "---\n{yaml}")?;
            }
            Ok(())
        }),
        Command::Causes => print(|out| {
            for entry in catalogue::entries() {
                let detected = if entry.detected { "detected" } else { "not yet" };
                writeln!(out, "{:<28} {:<14} {detected:<9} {}", entry.code, entry.category, entry.remedy)?;
            }
            Ok(())
        }),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            // One line, on stderr, whatever the log's form is: a person reads this.
            let _ = writeln!(std::io::stderr(), "error: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run_controller(arguments: ControllerArguments) -> Result<(), String> {
    telemetry::logging::set_up(arguments.log_format.into(), &arguments.log)
        .map_err(|error| error.to_string())?;
    let settings = Settings::try_from(arguments).map_err(|error| error.to_string())?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start the runtime: {error}"))?;
    let result = runtime.block_on(controller::run(settings)).map_err(|error| error.to_string());
    // Reads of logs that are under way must not hold the process up.
    runtime.shutdown_background();
    result
}

/// Prints to stdout. A reader that has had enough (`| head`) is no failure.
fn print(write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            Err(format!("cannot write to stdout: {error}"))
        }
        _ => Ok(()),
    }
}
