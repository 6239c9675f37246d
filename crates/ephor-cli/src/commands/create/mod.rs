//! `ephor create`: skeletons of the files that go with policies.

mod cluster_role;
mod exception;
mod metrics_config;
mod pairs;
mod test;
mod user_info;
mod values;

use std::path::PathBuf;

use anyhow::Context;
use clap::Subcommand;
use ephor_expr::{Map, Str, Value, yaml};

use super::CommandResult;
use crate::exit::Exit;
use crate::fresh;
use crate::ui::Ui;

/// Arguments of `ephor create`.
#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(super) struct Args {
    #[command(subcommand)]
    command: Command,
    /// Write to this file instead of standard output.
    #[arg(long, short, value_name = "FILE", global = true)]
    output: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// A ClusterRole that gives controllers a permission they need for a policy.
    ClusterRole(cluster_role::Args),
    /// A PolicyException.
    Exception(exception::Args),
    /// The ConfigMap that says which namespaces metrics are about.
    MetricsConfig(metrics_config::Args),
    /// A test for `ephor test`.
    Test(test::Args),
    /// The user on whose behalf `ephor apply` and `ephor test` evaluate.
    UserInfo(user_info::Args),
    /// Values for the variables of policies, for `ephor apply` and `ephor test`.
    Values(values::Args),
}

/// The version of the files that the command line itself reads.
const CLI_VERSION: &str = "cli.kyverno.io/v1alpha1";

/// Prints or writes the document.
pub(super) fn run(args: &Args, ui: &Ui) -> CommandResult {
    let document = match &args.command {
        Command::ClusterRole(args) => args.document(),
        Command::Exception(args) => args.document(),
        Command::MetricsConfig(args) => args.document(),
        Command::Test(args) => args.document(),
        Command::UserInfo(args) => args.document(),
        Command::Values(args) => args.document(),
    };
    let text = yaml::to_yaml(&document);
    match &args.output {
        None => ui.result(&text)?,
        Some(path) => fresh::replace(path, &text).with_context(|| format!("cannot write `{}`", path.display()))?,
    }
    Ok(Exit::Clean)
}

/// An object with a header: version, kind and metadata.
fn document(api_version: &'static str, kind: &'static str, metadata: Map) -> Map {
    let mut document = Map::new();
    document.insert("apiVersion", Str::new_static(api_version));
    document.insert("kind", Str::new_static(kind));
    document.insert("metadata", Value::object(metadata));
    document
}

/// Metadata with a name and perhaps a namespace.
fn metadata(name: &str, namespace: Option<&str>) -> Map {
    let mut metadata = Map::new();
    metadata.insert("name", name);
    if let Some(namespace) = namespace {
        metadata.insert("namespace", namespace);
    }
    metadata
}

/// A list of strings.
fn strings<S: AsRef<str>>(items: impl IntoIterator<Item = S>) -> Value {
    Value::array(items.into_iter().map(|item| Value::from(item.as_ref())).collect())
}

/// Adds a list of strings unless it is empty.
fn insert_strings<S: AsRef<str>>(map: &mut Map, key: &'static str, items: &[S]) {
    if !items.is_empty() {
        map.insert(key, strings(items));
    }
}

#[cfg(test)]
mod tests;
