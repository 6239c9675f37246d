//! Tables: the output of `kubectl get` for each kind.

use ephor_cluster::Resource;
use ephor_expr::{Map, Value};
use jiff::Timestamp;

use crate::column::{self, Column};
use crate::json_path;

/// Which columns the tables of a kind have.
pub trait TableColumns: Send + Sync {
    /// The columns of that kind.
    fn columns(&self, resource: &Resource) -> Vec<Column>;
}

/// The table of an answer: of a list or of one object.
pub fn table(columns: &[Column], resource: &Resource, query: &str, answer: &Value) -> Value {
    let includes = query.split('&').find_map(|pair| pair.strip_prefix("includeObject=")).unwrap_or("Metadata");
    let now = Timestamp::now();
    let one = [answer.clone()];
    let objects = answer.get("items").and_then(Value::as_array).unwrap_or(&one);
    let rows = objects.iter().map(|object| row(resource, columns, object, includes, now));
    let mut members = Map::from_iter([
        ("apiVersion".into(), Value::from("meta.k8s.io/v1")),
        ("columnDefinitions".into(), Value::array(columns.iter().map(Column::definition).collect())),
        ("kind".into(), Value::from("Table")),
        ("metadata".into(), list_metadata(answer)),
        ("rows".into(), Value::array(rows.collect())),
    ]);
    if answer.get("items").is_none() {
        members.insert("metadata", list_metadata(answer));
    }
    Value::object(members)
}

fn list_metadata(answer: &Value) -> Value {
    let kept = ["resourceVersion", "continue", "remainingItemCount"].into_iter();
    Value::object(kept.filter_map(|key| Some((key.into(), answer.at(&["metadata", key])?.clone()))).collect())
}

fn row(resource: &Resource, columns: &[Column], object: &Value, includes: &str, now: Timestamp) -> Value {
    let cells = columns.iter().map(|column| column.cell(object, now)).collect();
    let mut members = Map::from_iter([("cells".into(), Value::array(cells))]);
    match includes {
        "None" => {}
        "Object" => {
            let mut whole = object.clone();
            if let Some(members) = whole.as_object_mut() {
                members.insert("apiVersion", resource.api_version());
                members.insert("kind", resource.kind.clone());
            }
            members.insert("object", whole);
        }
        _ => {
            let partial = Value::from([
                ("apiVersion", Value::from("meta.k8s.io/v1")),
                ("kind", Value::from("PartialObjectMetadata")),
                ("metadata", object.get("metadata").cloned().unwrap_or_default()),
            ]);
            members.insert("object", partial);
        }
    }
    Value::object(members)
}

/// The columns of a custom kind: the name, and what its definition declares (`additionalPrinterColumns`).
pub fn custom(declared: Option<&[Value]>) -> Vec<Column> {
    let own: Vec<Column> = declared
        .unwrap_or_default()
        .iter()
        .filter_map(|column| {
            let text = |key: &str| column.str_at(&[key]);
            let priority = column.get("priority").and_then(Value::as_i64).unwrap_or(0);
            let path = json_path::parse(text("jsonPath")?)?;
            Some(Column::custom(text("name")?, text("type").unwrap_or("string"), priority, path))
        })
        .collect();
    let age = own.is_empty().then(column::age);
    std::iter::once(column::name()).chain(own).chain(age).collect()
}
