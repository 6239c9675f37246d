//! A few commands of kubectl, for machines without it: each is the command line and does what that would do.

use std::fmt;
use std::time::{Duration, Instant};

use ephor_cluster::{Cluster, ClusterError, DeleteOptions, ErrorKind, Resource, WriteOptions, object};
use ephor_expr::Value;

/// How long objects are waited for, as `--timeout` says.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The pause between two looks.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// A kind, as command lines and answers name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Kind {
    api_version: &'static str,
    called: &'static str,
    typed: &'static str,
}

impl Kind {
    pub(super) const DEPLOYMENT: Self = Self { api_version: "apps/v1", called: "Deployment", typed: "deployment" };
    pub(super) const NAMESPACE: Self = Self { api_version: "v1", called: "Namespace", typed: "namespace" };
    pub(super) const NETWORK_POLICY: Self =
        Self { api_version: "networking.k8s.io/v1", called: "NetworkPolicy", typed: "networkpolicy" };
    pub(super) const POD: Self = Self { api_version: "v1", called: "Pod", typed: "pod" };
    pub(super) const QUOTA: Self = Self { api_version: "v1", called: "ResourceQuota", typed: "resourcequota" };
}

/// An object as command lines name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) kind: Kind,
    pub(super) namespace: &'static str,
    pub(super) name: &'static str,
}

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}{}", self.kind.typed, self.name, InNamespace(self.namespace))
    }
}

struct InNamespace(&'static str);

impl fmt::Display for InNamespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            "default" => Ok(()),
            namespace => write!(f, " -n {namespace}"),
        }
    }
}

/// A command. It is shown as one would type it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Command {
    /// Creates a Pod of one container.
    Run { name: &'static str, image: &'static str },
    /// Creates a Deployment of one container.
    CreateDeployment { name: &'static str, image: &'static str },
    /// Creates a Namespace.
    CreateNamespace { name: &'static str },
    /// Prints a member of an object.
    Show { object: Named, path: &'static [&'static str] },
    /// Names the objects of some kinds.
    List { kinds: &'static [Kind], namespace: &'static str },
    /// Deletes an object and waits until it is gone.
    Delete(Named),
    /// Waits until there is an object.
    WaitFor(Named),
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Run { name, image } => write!(f, "kubectl run {name} --image {image}"),
            Self::CreateDeployment { name, image } => write!(f, "kubectl create deployment {name} --image {image}"),
            Self::CreateNamespace { name } => write!(f, "kubectl create namespace {name}"),
            Self::Show { object, path } => {
                write!(f, "kubectl get {object} -o jsonpath='{{")?;
                for member in path {
                    // Steps of lists are written in brackets.
                    let dot = if member.starts_with('[') { "" } else { "." };
                    write!(f, "{dot}{member}")?;
                }
                f.write_str("}'")
            }
            Self::List { kinds, namespace } => {
                let kinds: Vec<_> = kinds.iter().map(|kind| kind.typed).collect();
                write!(f, "kubectl get {}{} -o name", kinds.join(","), InNamespace(namespace))
            }
            Self::Delete(named) => write!(f, "kubectl delete {named}"),
            Self::WaitFor(Named { kind, namespace, name }) => {
                let timeout = TIMEOUT.as_secs();
                write!(f, "kubectl wait --for=create --timeout={timeout}s {}/{name}", kind.typed)?;
                write!(f, "{}", InNamespace(namespace))
            }
        }
    }
}

/// What came back: what kubectl would print, and whether it would have failed.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Answer {
    /// It was done.
    Done(String),
    /// The server refused.
    Refused(ClusterError),
    /// The condition was not met in time.
    TimedOut(String),
}

impl fmt::Display for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done(text) | Self::TimedOut(text) => f.write_str(text),
            Self::Refused(error) if error.reason().is_empty() => write!(f, "Error from server: {error}"),
            Self::Refused(error) => write!(f, "Error from server ({}): {error}", error.reason()),
        }
    }
}

impl Command {
    /// Does it.
    pub(super) fn run(&self, cluster: &dyn Cluster) -> Answer {
        self.attempt(cluster).unwrap_or_else(Answer::Refused)
    }

    fn attempt(&self, cluster: &dyn Cluster) -> Result<Answer, ClusterError> {
        match *self {
            Self::Run { name, image } => create(cluster, Kind::POD, pod(name, image)),
            Self::CreateDeployment { name, image } => create(cluster, Kind::DEPLOYMENT, deployment(name, image)),
            Self::CreateNamespace { name } => {
                let metadata = Value::from([("name", Value::from(name))]);
                create(cluster, Kind::NAMESPACE, Value::from([("metadata", metadata)]))
            }
            Self::Show { object, path } => {
                let found = object.get(cluster)?;
                Ok(Answer::Done(member(&found, path).map_or_else(String::new, shown)))
            }
            Self::List { kinds, namespace } => list(cluster, kinds, namespace),
            Self::Delete(named) => delete(cluster, named),
            Self::WaitFor(named) => wait_for(cluster, named),
        }
    }
}

impl Named {
    fn get(&self, cluster: &dyn Cluster) -> Result<Value, ClusterError> {
        let resource = self.kind.resolve(cluster)?;
        cluster.get(&resource, resource.namespaced.then_some(self.namespace), self.name)
    }
}

impl Kind {
    fn resolve(self, cluster: &dyn Cluster) -> Result<Resource, ClusterError> {
        cluster.resolve(self.api_version, self.called)
    }
}

/// An object as answers name it: `deployment.apps/web`.
fn answered(resource: &Resource, name: &str) -> String {
    format!("{}/{name}", kind_answered(resource))
}

fn kind_answered(resource: &Resource) -> String {
    let dot = if resource.group.is_empty() { "" } else { "." };
    format!("{}{dot}{}", resource.singular, resource.group)
}

fn create(cluster: &dyn Cluster, kind: Kind, mut wanted: Value) -> Result<Answer, ClusterError> {
    let resource = kind.resolve(cluster)?;
    if resource.namespaced {
        object::set(&mut wanted, "namespace", "default");
    }
    let made = cluster.create(&resource, wanted, &WriteOptions::default())?;
    Ok(Answer::Done(format!("{} created", answered(&resource, object::name(&made)))))
}

fn list(cluster: &dyn Cluster, kinds: &[Kind], namespace: &str) -> Result<Answer, ClusterError> {
    let mut lines = Vec::new();
    for kind in kinds {
        let resource = kind.resolve(cluster)?;
        let found = cluster.list(&resource, &ephor_cluster::ListQuery::in_namespace(namespace))?;
        lines.extend(found.items.iter().map(|item| answered(&resource, object::name(item))));
    }
    Ok(Answer::Done(lines.join("\n")))
}

fn delete(cluster: &dyn Cluster, named: Named) -> Result<Answer, ClusterError> {
    let resource = named.kind.resolve(cluster)?;
    let namespace = resource.namespaced.then_some(named.namespace);
    let uid = object::text(&named.get(cluster)?, "uid").to_owned();
    cluster.delete(&resource, namespace, named.name, &DeleteOptions::default())?;
    // Another object of that name is not the one that was deleted.
    let gone = eventually(|| match named.get(cluster) {
        Ok(found) => Ok((object::text(&found, "uid") != uid).then_some(())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Some(())),
        Err(error) => Err(error),
    })?;
    let from = namespace.map(|namespace| format!(" from {namespace} namespace")).unwrap_or_default();
    Ok(match gone {
        Some(()) => Answer::Done(format!("{} \"{}\" deleted{from}", kind_answered(&resource), named.name)),
        None => Answer::TimedOut(format!("error: timed out waiting for {}", answered(&resource, named.name))),
    })
}

fn wait_for(cluster: &dyn Cluster, named: Named) -> Result<Answer, ClusterError> {
    let resource = named.kind.resolve(cluster)?;
    let found = eventually(|| match named.get(cluster) {
        Ok(_) => Ok(Some(())),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    })?;
    let name = answered(&resource, named.name);
    Ok(match found {
        Some(()) => Answer::Done(format!("{name} condition met")),
        None => Answer::TimedOut(format!("error: timed out waiting for the condition on {name}")),
    })
}

fn eventually<T>(mut look: impl FnMut() -> Result<Option<T>, ClusterError>) -> Result<Option<T>, ClusterError> {
    let begun = Instant::now();
    loop {
        if let Some(seen) = look()? {
            return Ok(Some(seen));
        }
        if begun.elapsed() > TIMEOUT {
            return Ok(None);
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// The member at a path; `[0]` is the first item of a list.
fn member<'v>(value: &'v Value, path: &[&str]) -> Option<&'v Value> {
    path.iter().try_fold(value, |value, step| match step.strip_prefix('[').and_then(|step| step.strip_suffix(']')) {
        Some(index) => value.as_array()?.get(index.parse::<usize>().ok()?),
        None => value.get(step),
    })
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_json(), str::to_owned)
}

fn container(name: &str, image: &str) -> Value {
    let container = Value::from([("name", Value::from(name)), ("image", Value::from(image))]);
    Value::from([("containers", Value::array(vec![container]))])
}

fn pod(name: &str, image: &str) -> Value {
    let labels = Value::from([("run", Value::from(name))]);
    Value::from([
        ("metadata", Value::from([("name", Value::from(name)), ("labels", labels)])),
        ("spec", container(name, image)),
    ])
}

fn deployment(name: &str, image: &str) -> Value {
    let labels = Value::from([("app", Value::from(name))]);
    let template =
        Value::from([("metadata", Value::from([("labels", labels.clone())])), ("spec", container(name, image))]);
    Value::from([
        ("metadata", Value::from([("name", Value::from(name)), ("labels", labels.clone())])),
        (
            "spec",
            Value::from([
                ("replicas", Value::Int(1)),
                ("selector", Value::from([("matchLabels", labels)])),
                ("template", template),
            ]),
        ),
    ])
}

#[cfg(test)]
mod tests {
    use ephor_cluster::MemoryCluster;
    use ephor_cluster::memory::Options;

    use super::*;

    const WEB: Named = Named { kind: Kind::DEPLOYMENT, namespace: "default", name: "web" };

    #[test]
    fn commands_are_shown_as_one_types_them() {
        let path = &["spec", "containers", "[0]", "image"];
        let quota = Named { kind: Kind::QUOTA, namespace: "orders", name: "default" };
        for (command, line) in [
            (Command::Run { name: "web", image: "nginx" }, "kubectl run web --image nginx"),
            (
                Command::Show { object: WEB, path },
                "kubectl get deployment web -o jsonpath='{.spec.containers[0].image}'",
            ),
            (Command::Delete(quota), "kubectl delete resourcequota default -n orders"),
            (Command::WaitFor(quota), "kubectl wait --for=create --timeout=10s resourcequota/default -n orders"),
        ] {
            assert_eq!(command.to_string(), line);
        }
    }

    #[test]
    fn answers_are_those_of_kubectl() {
        let cluster = MemoryCluster::new(Options::server());
        let image = &["spec", "template", "spec", "containers", "[0]", "image"];
        for (command, answer) in [
            (Command::CreateDeployment { name: "web", image: "nginx" }, "deployment.apps/web created"),
            (
                Command::CreateDeployment { name: "web", image: "nginx" },
                "Error from server (AlreadyExists): deployments.apps \"web\" already exists",
            ),
            (Command::Show { object: WEB, path: image }, "nginx"),
            (Command::List { kinds: &[Kind::POD, Kind::DEPLOYMENT], namespace: "default" }, "deployment.apps/web"),
            (Command::WaitFor(WEB), "deployment.apps/web condition met"),
            (Command::Delete(WEB), "deployment.apps \"web\" deleted from default namespace"),
            (Command::CreateNamespace { name: "orders" }, "namespace/orders created"),
        ] {
            assert_eq!(command.run(&cluster).to_string(), answer, "{command}");
        }
    }
}
