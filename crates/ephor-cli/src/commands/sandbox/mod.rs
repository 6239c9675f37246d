//! `ephor sandbox`: an API server in this process, with policies, for kubectl.

mod files;
mod kubectl;
mod state;
mod tour;
mod watch;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use ephor_cluster::Cluster as _;
use ephor_kube::{Access, ConnectOptions, KubeCluster};
use ephor_runtime::CancellationToken;
use ephor_sandbox::Sandbox;
use ephor_sandbox::kubeconfig::write_private;

use self::files::FileObject;
use self::state::StateFile;
use self::watch::Watched;
use super::{CommandError, CommandResult, serve};
use crate::exit::Exit;
use crate::ui::Ui;

/// Arguments of `ephor sandbox`.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub(super) struct Args {
    /// Policies and the objects that they need: files, directories or globs; `-` reads standard input.
    policies: Vec<String>,
    /// Objects to create before the policies.
    #[arg(long, short, value_name = "FILES", num_args = 1..)]
    resources: Vec<String>,
    /// The port on the loopback interface; 0 takes a free one, or that of the state.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Where to write the kubeconfig. The default is a temporary file, or with `--state` a file beside the state.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// Start with the objects of this file and save all changes to it, at most two seconds later. The kubeconfig of
    /// one run stays valid in the next.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Make workloads ready as if they ran: Deployments get Pods, Jobs complete, Services get addresses.
    #[arg(long)]
    ready: bool,
    /// Apply files again when they change, and delete what leaves them.
    #[arg(long, conflicts_with = "tour")]
    watch: bool,
    /// Open the live view in a browser.
    #[arg(long, conflicts_with = "tour")]
    open: bool,
    /// Show on `examples/policies` what policies do, with the commands to type, and stop. Exits 1 if a step behaved
    /// otherwise than expected.
    #[arg(long, conflicts_with = "state")]
    tour: bool,
}

/// Runs the sandbox until it is told to stop.
pub(super) fn run(args: &Args, ui: &Ui) -> CommandResult {
    let begun = Instant::now();
    let (resources, policies) = match (files::read(&args.resources), files::read(&args.policies)) {
        (Ok(resources), Ok(policies)) => (resources, policies),
        (Err(finding), _) | (_, Err(finding)) => {
            ui.findings(&[*finding]);
            return Ok(Exit::CouldNot);
        }
    };
    let (mut state, kept) = args.state.as_deref().map(StateFile::open).transpose()?.unzip();
    let stop = serve::stop_on_signals()?;
    let sandbox = Sandbox::new(args.port, kept.flatten(), &stop).context("cannot start the sandbox")?;
    let objects = |files: &[FileObject]| files.iter().map(|file| file.object.clone()).collect::<Vec<_>>();
    let before = sandbox.add(objects(&resources));
    sandbox.enforce();
    if args.ready {
        sandbox.run_workloads();
    }
    let after = sandbox.add(objects(&policies));
    sandbox.settle();
    let served = sandbox.cluster().discovery().context("the sandbox does not say what it serves")?;
    ui.findings(&files::findings(&resources, &before, &served));
    ui.findings(&files::findings(&policies, &after, &served));
    let all_taken = before.refused.is_empty() && after.refused.is_empty();
    let config = kubeconfig_path(args);
    write_private(&config, &sandbox.kubeconfig()).with_context(|| format!("cannot write `{}`", config.display()))?;
    if let Some(state) = &mut state {
        state.save(sandbox.identity(), sandbox.cluster().objects()).context("cannot write the state")?;
    }
    let served = if args.tour {
        ui.result(&format!("The sandbox is ready: {}\n", sandbox.url()))?;
        serve_tour(&sandbox, &config, begun, &stop, ui)
    } else {
        ui.result(&welcome(&sandbox, &config))?;
        let arguments = [args.resources.as_slice(), &args.policies].concat();
        let watched = args.watch.then(|| Watched::new(arguments, [resources, policies].concat()));
        let page = config.with_extension("html");
        if args.open
            && let Err(error) = open_page(&page, &sandbox.live_url())
        {
            ui.say(&format!("warning: cannot open a browser: {error}"));
        }
        let served = serve_until_stopped(&sandbox, state.as_mut(), watched, &stop, ui);
        if args.open {
            let _ = fs::remove_file(&page);
        }
        served.map(|()| true)
    };
    if args.kubeconfig.is_none() && args.state.is_none() {
        // The token in it is of no use any more.
        let _ = fs::remove_file(&config);
    }
    let as_promised = served?;
    settle(&stop);
    Ok(if all_taken && as_promised { Exit::Clean } else { Exit::Findings })
}

/// Opens the live view in the user's browser. A private file leads there: other users can read the arguments of a
/// process, and the address holds the token.
fn open_page(page: &Path, url: &str) -> std::io::Result<()> {
    write_private(page, &format!("<!doctype html><meta http-equiv=\"refresh\" content=\"0;url={url}\">\n"))?;
    open::that_detached(page)
}

/// Serves until the stop signal; meanwhile saves what changes and applies files that change.
fn serve_until_stopped(
    sandbox: &Sandbox,
    mut state: Option<&mut StateFile>,
    watched: Option<Watched>,
    stop: &CancellationToken,
    ui: &Ui,
) -> Result<(), CommandError> {
    let served = std::thread::scope(|scope| {
        if let Some(state) = state.as_deref_mut() {
            scope.spawn(|| state.follow(sandbox.identity(), sandbox.cluster(), stop, ui));
        }
        if let Some(mut watched) = watched {
            scope.spawn(move || watched.follow(sandbox, stop, ui));
        }
        let served = sandbox.serve();
        stop.cancel();
        served
    });
    if let Some(state) = state {
        state.save(sandbox.identity(), sandbox.cluster().objects()).context("cannot save the state")?;
    }
    Ok(served.context("the sandbox cannot serve")?)
}

/// Serves as long as the tour takes. Returns whether every step behaved as expected.
fn serve_tour(
    sandbox: &Sandbox,
    config: &Path,
    begun: Instant,
    stop: &CancellationToken,
    ui: &Ui,
) -> Result<bool, CommandError> {
    std::thread::scope(|scope| {
        let serving = scope.spawn(|| sandbox.serve());
        let access = Access::Kubeconfig { path: config.to_owned(), context: None };
        let options = ConnectOptions { access, client_name: "kubectl".to_owned(), ..ConnectOptions::default() };
        let taken = KubeCluster::connect(&options)
            .context("cannot connect to the sandbox")
            .map_err(CommandError::from)
            .and_then(|cluster| Ok(tour::take(&cluster, ui.colour(), &mut |text| ui.result(text))?));
        stop.cancel();
        let served = serving.join().map_err(|_| anyhow::anyhow!("the sandbox panicked"))?;
        served.context("the sandbox cannot serve")?;
        let as_promised = taken?;
        let verdict = if as_promised { "Every step" } else { "Not every step" };
        ui.result(&format!(
            "\n{verdict} behaved as expected, {:.1} s after the start.\n",
            begun.elapsed().as_secs_f64()
        ))?;
        Ok(as_promised)
    })
}

/// Gives threads that write a moment to see that it is over.
fn settle(stop: &CancellationToken) {
    stop.cancel();
    std::thread::sleep(Duration::from_millis(20));
}

fn kubeconfig_path(args: &Args) -> PathBuf {
    let chosen = args.kubeconfig.clone();
    let beside_state = || args.state.as_deref().map(|state| state.with_extension("kubeconfig"));
    chosen.or_else(beside_state).unwrap_or_else(|| {
        let process = std::process::id();
        std::env::temp_dir().join(format!("ephor-sandbox-{process}.kubeconfig"))
    })
}

fn welcome(sandbox: &Sandbox, config: &Path) -> String {
    format!(
        "The sandbox is ready: {} (stop it with Ctrl-C).\n\n  export KUBECONFIG={}\n  kubectl get clusterpolicies\n\n\
         Live view: {}\n",
        sandbox.url(),
        config.display(),
        sandbox.live_url()
    )
}
