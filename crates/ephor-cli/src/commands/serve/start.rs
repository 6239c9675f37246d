//! What all roles do first: the log, the connection, the signals.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Context;
use ephor_cluster::Cluster;
use ephor_kube::{Access, ConnectOptions, Definitions, KubeCluster, Limits};
use ephor_runtime::settings::{CommonSettings, LogFormat, LogSettings};
use ephor_runtime::{CancellationToken, threads};
use tracing::level_filters::LevelFilter;

/// Begins to write the log, to stderr.
pub(in crate::commands) fn log(settings: &LogSettings) {
    let level = match settings.verbosity {
        0 => LevelFilter::ERROR,
        1 => LevelFilter::WARN,
        2 | 3 => LevelFilter::INFO,
        4 | 5 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    let lines = tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(level).with_target(false);
    match settings.format {
        LogFormat::Text => lines.with_ansi(settings.color && std::io::stderr().is_terminal()).init(),
        LogFormat::Json => lines.json().flatten_event(true).init(),
    }
}

/// How often a role sends a write before a passing failure is passed on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::commands) enum Writes {
    /// As often as a read.
    Repeated,
    /// Once: its writer looks whether it may still write, and would have to look again.
    Once,
}

/// Connects to the cluster that the settings name.
pub(in crate::commands) fn connect(
    settings: &CommonSettings,
    client_name: &str,
    writes: Writes,
) -> anyhow::Result<Arc<dyn Cluster>> {
    let access = match &settings.kubeconfig {
        Some(path) => Access::Kubeconfig { path: PathBuf::from(path), context: settings.context.clone() },
        None => Access::Inferred { context: settings.context.clone() },
    };
    let defaults = ConnectOptions::default();
    let options = ConnectOptions {
        access,
        attempts_to_write: if writes == Writes::Once { 1 } else { defaults.attempts_to_write },
        definitions: Definitions::Followed,
        limits_of_paths: Limits {
            timeout: settings.api_call_timeout,
            answer: usize::try_from(settings.max_api_response).unwrap_or(usize::MAX),
        },
        client_name: client_name.to_owned(),
        ..defaults
    };
    let cluster = KubeCluster::connect(&options).context("cannot connect to the cluster")?;
    Ok(Arc::new(cluster))
}

/// A signal that is given when the process is asked to end.
pub(in crate::commands) fn stop_on_signals() -> anyhow::Result<CancellationToken> {
    let stop = CancellationToken::new();
    let given = stop.clone();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    threads::spawn("signals", threads::SMALL, &stop, move || {
        let heard = runtime.block_on(async {
            use tokio::signal::unix::{SignalKind, signal};
            let mut terminate = signal(SignalKind::terminate())?;
            let mut interrupt = signal(SignalKind::interrupt())?;
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            Ok::<_, std::io::Error>(())
        });
        match heard {
            Ok(()) => given.cancel(),
            Err(error) => given.fail(format!("cannot listen for signals: {error}")),
        }
    });
    Ok(stop)
}
