//! The chart before those who judge it: Helm renders it as `ephor install --print` does, and a real API server takes
//! what comes of it.
//!
//! Needs Helm and the executables of a control plane: `cargo xtask cluster build`, `cargo xtask chart`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use ephor_cluster::{Cluster, WriteOptions};
use ephor_expr::Value;
use ephor_expr::yaml::{Limits, parse_value, parse_values};
use ephor_kube::{Access, ConnectOptions, KubeCluster};
use ephor_server::install::{Release, namespace, render};
use ephor_testbed::{ControlPlane, Controllers, Options};

fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Helm, where the environment (`EPHOR_HELM`) or `cargo xtask chart` has it.
fn helm() -> PathBuf {
    std::env::var_os("EPHOR_HELM").map_or_else(|| project().join("target/helm/helm"), PathBuf::from)
}

/// Ways to install, as arguments of Helm.
fn releases() -> Vec<(Vec<String>, Release)> {
    let with = |settings: &[&str], file: Option<&str>| {
        let mut arguments: Vec<String> =
            settings.iter().flat_map(|set| ["--set".to_owned(), (*set).to_owned()]).collect();
        let mut release =
            Release { settings: settings.iter().map(|&set| set.to_owned()).collect(), ..Release::default() };
        if let Some(file) = file {
            let path = project().join("charts/ephor").join(file);
            release.values.push(parse_value(&std::fs::read_to_string(&path).unwrap()).unwrap());
            arguments.extend(["--values".to_owned(), path.to_str().unwrap().to_owned()]);
        }
        (arguments, release)
    };
    vec![
        with(&[], None),
        with(&[], Some("examples/high-availability.yaml")),
        with(
            &[
                "crds.install=false,fullnameOverride=policies,customLabels.team=a",
                "config.resourceFilters={[Event\\,*\\,*],[A\\,b\\,c]},config.resourceFiltersExclude={[Event\\,*\\,*]}",
                "config.excludeKyvernoNamespace=false,config.webhooks.namespaceSelector=null",
                "config.webhooks.objectSelector.matchLabels.x=y,config.webhookAnnotations=null",
                "config.matchConditions[0].name=a,config.matchConditions[0].expression=1 < 2 && \"x\" != ''",
                "config.excludeUsernames={a,!b},config.updateRequestThreshold=123456789",
                "features.policyExceptions.enabled=true,features.policyExceptions.namespace=*",
                "imagePullSecrets={one,two},image.registry=,image.tag=v2",
                "metricsConfig.namespaces.exclude={a},metricsConfig.bucketBoundaries={0.5,1}",
            ],
            None,
        ),
        with(
            &[
                "admissionController.replicas=2,admissionController.shadow=true,admissionController.hostNetwork=true",
                "admissionController.container.extraArgs.webhookTimeout=15",
                "admissionController.container.extraEnvVars[0].name=A,admissionController.container.extraEnvVars[0].value=b",
                "admissionController.nodeSelector.disk=ssd,admissionController.tolerations[0].operator=Exists",
                "admissionController.podAnnotations.a=b,admissionController.podLabels.c=d",
                "admissionController.networkPolicy.ingressFrom[0].ipBlock.cidr=10.0.0.0/8",
                "admissionController.rbac.clusterRole.extraResources[0].apiGroups={apps}",
                "admissionController.rbac.clusterRole.extraResources[0].resources={deployments}",
                "admissionController.rbac.clusterRole.extraResources[0].verbs={get}",
                "backgroundController.enabled=false,rbac.users=false",
            ],
            None,
        ),
    ]
}

fn by_name(objects: &[Value]) -> BTreeMap<String, Value> {
    let part = |object: &Value, keys: &[&str]| object.str_at(keys).unwrap_or_default().to_owned();
    objects
        .iter()
        .map(|object| {
            let namespace = part(object, &["metadata", "namespace"]);
            (format!("{} {namespace}/{}", part(object, &["kind"]), part(object, &["metadata", "name"])), object.clone())
        })
        .collect()
}

#[test]
#[ignore = "needs Helm: cargo xtask chart"]
fn helm_renders_what_ephor_prints() {
    let chart = project().join("charts/ephor");
    for (arguments, release) in releases() {
        let output = Command::new(helm())
            .args(["template", "kyverno", "--namespace", "kyverno", "--kube-version", "1.34.0"])
            .arg(&chart)
            .args(&arguments)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).unwrap();
        let documents = parse_values(&text, &Limits::default()).unwrap();
        let theirs = by_name(&documents.into_iter().filter(|d| !d.is_null()).collect::<Vec<_>>());
        let ours = by_name(&render(&release).unwrap().objects);
        assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>(), "{arguments:?}");
        for (name, object) in &theirs {
            assert_eq!(ours[name].to_json_pretty(2), object.to_json_pretty(2), "{name} of {arguments:?}");
        }
    }
}

#[test]
#[ignore = "needs Helm: cargo xtask chart"]
fn helm_refuses_what_ephor_refuses() {
    let settings = "backgroundController.replicas=0";
    let chart = project().join("charts/ephor");
    let mut command = Command::new(helm());
    command.args(["template", "kyverno", "--kube-version", "1.34.0", "--set", settings]).arg(chart);
    let output = command.output().unwrap();
    assert!(!output.status.success());
    let ours = render(&Release { settings: vec![settings.into()], ..Release::default() }).unwrap_err().to_string();
    let told = ours.split(": ").nth(1).unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains(told), "{told}");
}

#[test]
#[ignore = "needs a control plane: cargo xtask cluster build"]
fn the_api_server_takes_the_manifests() {
    let plane = ControlPlane::start(&Options { controllers: Controllers::Absent, ..Options::default() }).unwrap();
    let access = Access::Kubeconfig { path: plane.kubeconfig(), context: None };
    let cluster = KubeCluster::connect(&ConnectOptions { access, ..ConnectOptions::default() }).unwrap();
    let namespaces = cluster.resolve("v1", "Namespace").unwrap();
    cluster.create(&namespaces, namespace(&Release::default()), &WriteOptions::default()).unwrap();
    for (_, release) in releases() {
        for object in render(&release).unwrap().objects {
            let kind = object.str_at(&["kind"]).unwrap().to_owned();
            let resource = cluster.resolve(object.str_at(&["apiVersion"]).unwrap(), &kind).unwrap();
            let sent = object.clone();
            let stored = match cluster.create(&resource, object, &WriteOptions::dry_run()) {
                Ok(stored) => stored,
                Err(error) => panic!("{sent}: {error}"),
            };
            // A field that the API server does not know would have been taken out without a word.
            assert_eq!(lost(&sent, &stored, ""), Vec::<String>::new(), "{kind}");
        }
    }
}

/// Paths of `sent` that `stored` does not have.
fn lost(sent: &Value, stored: &Value, path: &str) -> Vec<String> {
    match (sent, stored) {
        (Value::Object(sent), Value::Object(stored)) => sent
            .iter()
            .filter(|(_, value)| !value.is_null())
            .flat_map(|(key, value)| match stored.get(key) {
                Some(there) => lost(value, there, &format!("{path}.{key}")),
                // What says nothing may be left out.
                None if matches!(value, Value::Array(items) if items.is_empty()) => Vec::new(),
                None => vec![format!("{path}.{key}")],
            })
            .collect(),
        (Value::Array(sent), Value::Array(stored)) if sent.len() == stored.len() => {
            sent.iter().zip(stored.iter()).flat_map(|(a, b)| lost(a, b, &format!("{path}[]"))).collect()
        }
        (Value::Array(_), _) | (_, Value::Array(_)) => vec![path.to_owned()],
        _ => Vec::new(),
    }
}
