//! The numbers by which Kubernetes' types travel as protocol buffers, read from the tags of its Go types.
//!
//! Only facts are taken: of each field its number, its name in JSON, and whether it is a text, a number, a list, a map
//! or another type.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use ephor_expr::{Map, Value};

/// Modules, and how their packages are called in definitions.
const MODULES: [(&str, &str, &str); 3] = [
    ("api@", "", "io.k8s.api"),
    ("apimachinery@", "pkg/apis/meta/v1", "io.k8s.apimachinery.pkg.apis.meta.v1"),
    (
        "apiextensions-apiserver@",
        "pkg/apis/apiextensions/v1",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1",
    ),
];

/// Types of other packages, by the name that Go files have for them.
const FOREIGN: [(&str, &str); 9] = [
    ("runtime.", "io.k8s.apimachinery.pkg.runtime."),
    ("metav1.", "io.k8s.apimachinery.pkg.apis.meta.v1."),
    ("meta.", "io.k8s.apimachinery.pkg.apis.meta.v1."),
    ("v1.", "io.k8s.api.core.v1."),
    ("corev1.", "io.k8s.api.core.v1."),
    ("core.", "io.k8s.api.core.v1."),
    ("authenticationv1.", "io.k8s.api.authentication.v1."),
    ("intstr.", "io.k8s.apimachinery.pkg.util.intstr."),
    ("resource.", "io.k8s.apimachinery.pkg.api.resource."),
];

/// The table of all types of a release; `modules` is the directory of the Go modules `api@…` and so on.
pub(crate) fn table(modules: &Path, release: &str) -> Result<Value> {
    let mut table = Map::new();
    for (module, below, name) in MODULES {
        let root = modules.join(format!("{module}{release}"));
        if below.is_empty() {
            for group in directories(&root)? {
                for version in directories(&group)? {
                    let part = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                    package(&version, &format!("{name}.{}.{}", part(&group), part(&version)), &mut table)?;
                }
            }
        } else {
            package(&root.join(below), name, &mut table)?;
        }
    }
    Ok(Value::object(table))
}

fn directories(path: &Path) -> Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = fs::read_dir(path)
        .with_context(|| format!("cannot read {}", path.display()))?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.is_dir())
        .collect();
    found.sort();
    Ok(found)
}

/// Reads the types of one package.
fn package(directory: &Path, name: &str, table: &mut Map) -> Result<()> {
    let mut text = String::new();
    for file in fs::read_dir(directory)? {
        let path = file?.path();
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let is_go = path.extension().is_some_and(|extension| extension == "go");
        if is_go && !file.starts_with("generated") && !file.starts_with("zz_") && !file.ends_with("_test.go") {
            text.push_str(&fs::read_to_string(&path)?);
        }
    }
    // `type Name other`: names of texts, lists and maps.
    let aliases: BTreeMap<&str, &str> = text
        .lines()
        .filter_map(|line| line.trim().strip_prefix("type ")?.split_once(' '))
        .filter(|(_, other)| !other.starts_with("struct") && !other.starts_with("interface"))
        .filter_map(|(found, other)| Some((found, other.split_whitespace().next()?)))
        .collect();
    let mut current: Option<(&str, Vec<Value>)> = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("type ")
            && let Some(found) = rest.strip_suffix(" struct {")
        {
            current = Some((found, Vec::new()));
        } else if line == "}" {
            if let Some((found, fields)) = current.take().filter(|(_, fields)| !fields.is_empty()) {
                table.insert(format!("{name}.{found}"), Value::array(fields));
            }
        } else if let Some((_, fields)) = &mut current {
            fields.extend(field(line, name, &aliases));
        }
    }
    // Lists with a name are messages with one field.
    for (found, _) in aliases.iter().filter(|(_, other)| **other == "[]string") {
        let items = Value::array(vec![Value::Int(1), Value::from(""), Value::from("s"), Value::from("l")]);
        table.insert(format!("{name}.{found}"), Value::array(vec![items]));
    }
    Ok(())
}

/// One field: number, name in JSON, what it is, and flags: `l` list, `p` map, `*` kept when zero.
fn field(line: &str, package: &str, aliases: &BTreeMap<&str, &str>) -> Option<Value> {
    // Fields that never came to be stand in comments, with numbers that others have now.
    let (before, tag) = line.trim().split_once('`').filter(|(before, _)| !before.starts_with("//"))?;
    let tag_of = |key: &str| Some(tag.split_once(&format!("{key}:\""))?.1.split('"').next().unwrap_or_default());
    let wire = tag_of("protobuf")?;
    let json = tag_of("json")?;
    let mut wire = wire.split(',');
    // How the number is coded follows from the type.
    wire.next()?;
    let number = wire.next()?.parse::<i64>().ok()?;
    let name = json.split(',').next().unwrap_or_default();
    let mut words = before.split_whitespace();
    let first = words.next()?;
    let mut go = words.next().unwrap_or(first);
    let mut flags = String::new();
    if !json.contains("omitempty") && !name.is_empty() {
        flags.push('*');
    }
    loop {
        if let Some(rest) = go.strip_prefix('*') {
            flags.push('*');
            go = rest;
        } else if go == "[]byte" {
            break;
        } else if let Some(rest) = go.strip_prefix("[]") {
            flags.push('l');
            go = rest;
        } else if let Some(rest) = go.strip_prefix("map[") {
            flags.push('p');
            go = rest.split_once(']')?.1;
        } else if let Some(other) = aliases.get(go).filter(|other| **other != "[]string" || flags.contains('p')) {
            if *other == "[]string" {
                break;
            }
            go = other;
        } else {
            break;
        }
    }
    let foreign =
        |other: &str| FOREIGN.iter().find_map(|(short, long)| Some(format!("{long}{}", other.strip_prefix(short)?)));
    let kind = match go {
        "bool" => "b".to_owned(),
        "string" => "s".to_owned(),
        "[]byte" => "y".to_owned(),
        "int32" | "int64" | "int" | "uint32" | "uint64" => "v".to_owned(),
        "float64" => "d".to_owned(),
        other => foreign(other).unwrap_or_else(|| {
            // What is left of other packages are texts.
            if other.contains('.') { "s".to_owned() } else { format!("{package}.{other}") }
        }),
    };
    Some(Value::array(vec![Value::Int(number), Value::from(name), Value::from(kind), Value::from(flags)]))
}
