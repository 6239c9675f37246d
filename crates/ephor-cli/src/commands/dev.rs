//! `ephor dev`: Ephor on a cluster to try it on, with all roles in this process.
//!
//! It applies what an installation has beside its Pods (the namespace, the kinds, the settings, the accounts that
//! policies are checked against) and serves the webhooks from this machine. At the end the webhooks go, so that nothing
//! in the cluster waits for a process that is gone.

use std::net::IpAddr;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use ephor_cluster::{Cluster, ErrorKind, Patch, WriteOptions};
use ephor_expr::{Str, Value};
use ephor_install::manifests::{Release, Rendered, render};
use ephor_install::uninstall::Uninstall;
use ephor_runtime::settings::{AllSettings, environment};
use ephor_server::serve;

use super::access::AccessArgs;
use super::serve::{Writes, connect, log, stop_on_signals};
use super::{CommandError, CommandResult};
use crate::exit::Exit;
use crate::ui::Ui;

/// Arguments of `ephor dev`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ephor dev --kubeconfig FILE
  ephor dev --server-ip 192.168.1.5 --port 9444

All roles run until Ctrl-C, which removes the webhooks. Policies, their kinds and what was generated stay in the cluster;
`ephor uninstall` removes the rest. For a cluster that people depend on, install Ephor: `ephor install --print`.")]
pub(super) struct Args {
    /// The address by which the API server reaches this machine.
    #[arg(long, alias = "serverIP", value_name = "ADDRESS", default_value = "127.0.0.1")]
    server_ip: IpAddr,
    /// The port that the API server calls.
    #[arg(long, default_value_t = 9443)]
    port: u16,
    #[command(flatten)]
    access: AccessArgs,
}

/// What runs in Pods, or stands before them.
const OF_PODS: [&str; 4] = ["Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy"];

/// How long the API server may take to serve a new kind.
const START_TIMEOUT: Duration = Duration::from_secs(30);

/// Installs what is needed and runs all roles until it is told to stop.
pub(super) fn run(args: &Args, ui: &Ui) -> CommandResult {
    let mut flags = args.access.flags();
    flags.push("--disableMetrics=true".to_owned());
    let namespace = AllSettings::parse(&flags, &environment()).map_err(|error| CommandError::Other(error.into()))?;
    let namespace = namespace.admission.common.namespace;
    let release = Release { namespace, ..Release::default() };
    let rendered = render(&release).context("cannot install what Ephor needs")?;
    flags.extend([format!("--serverIP={}", args.server_ip), format!("--webhookServerPort={}", args.port)]);
    flags.extend(account_flags(&rendered).map(str::to_owned));
    let settings = AllSettings::parse(&flags, &environment()).map_err(|error| CommandError::Other(error.into()))?;
    let common = &settings.admission.common;
    log(&common.log);
    let stop = stop_on_signals()?;
    let cluster = connect(common, "ephor", Writes::Repeated)?;
    let writes_once = connect(common, "ephor", Writes::Once)?;
    // A process that cannot serve must change nothing, and in particular not remove the webhooks of one that can.
    serve::can_listen(args.server_ip, args.port).map_err(|error| CommandError::Other(error.into()))?;
    install(&*cluster, rendered).context("cannot install what Ephor needs")?;
    let served = serve::all(&cluster, &writes_once, &settings, &stop);
    if another_leads(&*cluster, &release.namespace) {
        ui.say("the webhooks stay: another process serves them");
    } else {
        let gone = remove_webhooks(&*cluster, &release)?;
        ui.say(&format!("removed {gone} webhook configurations"));
    }
    served.map_err(|error| CommandError::Other(error.into()))?;
    Ok(Exit::Clean)
}

/// The flags of the installed admission role that name the accounts whose permissions a policy needs. Policies are
/// checked as they are in an installation, although this process itself may do all that its kubeconfig allows.
fn account_flags(rendered: &Rendered) -> impl Iterator<Item = &str> {
    let containers = |object| Value::at(object, &["spec", "template", "spec", "containers"]).and_then(Value::as_array);
    let args = |container| Value::at(container, &["args"]).and_then(Value::as_array);
    let all = rendered.objects.iter().filter_map(containers).flatten().filter_map(args).flatten();
    all.filter_map(Value::as_str)
        .filter(|flag| flag.split_once('=').is_some_and(|(name, _)| name.ends_with("ServiceAccountName")))
}

/// Applies the objects of an installation that are not about its Pods, kinds before what is of them.
fn install(cluster: &dyn Cluster, rendered: Rendered) -> anyhow::Result<()> {
    for object in rendered.objects.iter().filter(|object| object.str_at(&["kind"]) == Some("Deployment")) {
        let name = text(object, &["metadata", "name"]);
        let resource = cluster.resolve("apps/v1", "Deployment")?;
        match cluster.get(&resource, Some(&rendered.namespace), name) {
            Ok(_) => bail!("Ephor or Kyverno is installed here: there is a Deployment `{}/{name}`", rendered.namespace),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    let options = WriteOptions { field_manager: Str::new_static("ephor-dev"), ..WriteOptions::default() };
    let namespace = rendered.namespace_object();
    let wanted = rendered.objects.into_iter().filter(|object| !OF_PODS.contains(&text(object, &["kind"])));
    for object in std::iter::once(namespace).chain(wanted) {
        let (kind, name) = (text(&object, &["kind"]).to_owned(), text(&object, &["metadata", "name"]).to_owned());
        let resource = cluster.resolve(text(&object, &["apiVersion"]), &kind)?;
        let namespace = object.str_at(&["metadata", "namespace"]).map(str::to_owned);
        let namespace = namespace.as_deref().filter(|_| resource.namespaced);
        cluster
            .patch(&resource, namespace, &name, &Patch::apply(object), &options)
            .with_context(|| format!("{kind} `{name}`"))?;
        if kind == "CustomResourceDefinition" {
            served(cluster, &name)?;
        }
    }
    Ok(())
}

/// Waits until the API server serves the kind of a definition.
fn served(cluster: &dyn Cluster, definition: &str) -> anyhow::Result<()> {
    let resource = cluster.resolve("apiextensions.k8s.io/v1", "CustomResourceDefinition")?;
    let until = Instant::now() + START_TIMEOUT;
    loop {
        let object = cluster.get(&resource, None, definition)?;
        let conditions = object.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
        let established = |condition: &Value| {
            condition.str_at(&["type"]) == Some("Established") && condition.str_at(&["status"]) == Some("True")
        };
        if conditions.iter().any(established) {
            return Ok(());
        }
        if Instant::now() >= until {
            bail!("the API server does not serve `{definition}`");
        }
        thread::sleep(Duration::from_millis(100));
    }
}

/// Whether the admission role is led by a process that goes on. A leader gives its lease back when it ends.
fn another_leads(cluster: &dyn Cluster, namespace: &str) -> bool {
    let lease = cluster
        .resolve("coordination.k8s.io/v1", "Lease")
        .and_then(|resource| cluster.get(&resource, Some(namespace), serve::ADMISSION_LEASE));
    lease.is_ok_and(|lease| !text(&lease, &["spec", "holderIdentity"]).is_empty())
}

/// Removes the webhook configurations; gives their number.
fn remove_webhooks(cluster: &dyn Cluster, release: &Release) -> anyhow::Result<usize> {
    let uninstall = Uninstall {
        namespace: release.namespace.clone(),
        name: release.name.clone(),
        definitions: false,
        deletion_timeout: Duration::ZERO,
    };
    let mut removals = uninstall.plan(cluster).context("cannot see which webhooks there are")?;
    removals.retain(|removal| removal.kind.ends_with("WebhookConfiguration"));
    uninstall.carry_out(cluster, &removals, |_| {}).context("not every webhook was removed")?;
    Ok(removals.len())
}

fn text<'o>(object: &'o Value, keys: &[&str]) -> &'o str {
    object.str_at(keys).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use ephor_cluster::MemoryCluster;

    use super::*;

    #[test]
    fn everything_but_pods_is_installed_and_twice_is_once() {
        let cluster = MemoryCluster::default();
        let release = Release::default();
        for _ in 0..2 {
            install(&cluster, render(&release).unwrap()).unwrap();
        }
        let has = |api_version: &str, kind: &str, namespace: Option<&str>, name: &str| {
            let resource = cluster.resolve(api_version, kind).unwrap();
            cluster.get(&resource, namespace, name).is_ok()
        };
        assert!(has("v1", "Namespace", None, "kyverno"));
        assert!(has("v1", "ServiceAccount", Some("kyverno"), "kyverno-background-controller"));
        assert!(has("v1", "ConfigMap", Some("kyverno"), "kyverno"));
        assert!(cluster.resolve("kyverno.io/v1", "ClusterPolicy").is_ok());
        assert!(!has("apps/v1", "Deployment", Some("kyverno"), "kyverno-admission-controller"));
        assert!(!has("v1", "Service", Some("kyverno"), "kyverno-svc"));
    }

    #[test]
    fn policies_are_checked_against_the_installed_accounts() {
        let rendered = render(&Release { namespace: "try".into(), ..Release::default() }).unwrap();
        let flags: Vec<String> = account_flags(&rendered).map(str::to_owned).collect();
        let settings = AllSettings::parse(&flags, &environment()).unwrap().admission;
        assert_eq!(settings.background_account, "system:serviceaccount:try:kyverno-background-controller");
        assert_eq!(settings.cleanup_account, "system:serviceaccount:try:kyverno-cleanup-controller");
    }

    #[test]
    fn webhooks_are_those_of_the_process_that_leads() {
        let cluster = MemoryCluster::default();
        install(&cluster, render(&Release::default()).unwrap()).unwrap();
        assert!(!another_leads(&cluster, "kyverno"));
        let leases = cluster.resolve("coordination.k8s.io/v1", "Lease").unwrap();
        for (holder, leads) in [("someone", true), ("", false)] {
            let lease = format!(
                r#"{{"metadata":{{"name":"kyverno","namespace":"kyverno"}},"spec":{{"holderIdentity":"{holder}"}}}}"#
            );
            let lease = Value::from_json(&lease).unwrap();
            let _ = cluster.delete(&leases, Some("kyverno"), "kyverno", &ephor_cluster::DeleteOptions::default());
            cluster.create(&leases, lease, &WriteOptions::default()).unwrap();
            assert_eq!(another_leads(&cluster, "kyverno"), leads);
        }
    }

    #[test]
    fn an_installation_is_left_alone() {
        let cluster = MemoryCluster::default();
        let release = Release::default();
        let deployment = r#"{"metadata":{"name":"kyverno-admission-controller","namespace":"kyverno"},"spec":{"selector":
            {"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}"#;
        for (api_version, kind, object) in
            [("v1", "Namespace", r#"{"metadata":{"name":"kyverno"}}"#), ("apps/v1", "Deployment", deployment)]
        {
            let resource = cluster.resolve(api_version, kind).unwrap();
            cluster.create(&resource, Value::from_json(object).unwrap(), &WriteOptions::default()).unwrap();
        }
        let error = install(&cluster, render(&release).unwrap()).unwrap_err().to_string();
        assert!(error.ends_with("there is a Deployment `kyverno/kyverno-admission-controller`"), "{error}");
    }
}
