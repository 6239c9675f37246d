//! Nodes and values into text.

use std::collections::BTreeMap;

use ephor_expr::{Map, Str, Value};

use super::functions;
use super::parse::{Node, Operand, Pipeline};

/// How deep templates may include each other.
const DEPTH: usize = 32;

type Named = BTreeMap<String, Vec<Node>>;

pub(super) fn render(named: &Named, nodes: &[Node], root: &Value) -> Result<String, String> {
    let mut scope = Scope { named, root, variables: Vec::new(), depth: 0 };
    let mut out = String::new();
    scope.nodes(nodes, root, &mut out)?;
    Ok(out)
}

struct Scope<'t> {
    named: &'t Named,
    root: &'t Value,
    variables: Vec<(Str, Value)>,
    depth: usize,
}

impl Scope<'_> {
    fn nodes(&mut self, nodes: &[Node], dot: &Value, out: &mut String) -> Result<(), String> {
        let outer = self.variables.len();
        for node in nodes {
            match node {
                Node::Text(text) => out.push_str(text),
                Node::Print(pipeline) => out.push_str(&functions::text(&self.pipeline(pipeline, dot)?)),
                Node::Assign { name, declare, value } => {
                    let value = self.pipeline(value, dot)?;
                    if *declare {
                        self.variables.push((name.clone(), value));
                    } else {
                        let variable = self.variables.iter_mut().rev().find(|(known, _)| known == name);
                        variable.ok_or_else(|| format!("there is no variable `${name}`"))?.1 = value;
                    }
                }
                Node::If(branches) => {
                    for (condition, body) in branches {
                        let holds = match condition {
                            Some(condition) => functions::is_true(&self.pipeline(condition, dot)?),
                            None => true,
                        };
                        if holds {
                            self.nodes(body, dot, out)?;
                            break;
                        }
                    }
                }
                Node::With(value, body, otherwise) => {
                    let value = self.pipeline(value, dot)?;
                    if functions::is_true(&value) {
                        self.nodes(body, &value, out)?;
                    } else {
                        self.nodes(otherwise, dot, out)?;
                    }
                }
                Node::Range { key, value, over, body, otherwise } => {
                    let items: Vec<(Value, Value)> = match self.pipeline(over, dot)? {
                        Value::Array(items) => {
                            items.iter().enumerate().map(|(i, item)| (Value::from(i), item.clone())).collect()
                        }
                        Value::Object(map) => map.iter().map(|(k, v)| (Value::from(k.clone()), v.clone())).collect(),
                        Value::Null => Vec::new(),
                        other => return Err(format!("cannot range over {}", other.type_name())),
                    };
                    if items.is_empty() {
                        self.nodes(otherwise, dot, out)?;
                    }
                    for (k, v) in items {
                        let outer = self.variables.len();
                        self.variables.extend(key.iter().map(|name| (name.clone(), k.clone())));
                        self.variables.extend(value.iter().map(|name| (name.clone(), v.clone())));
                        self.nodes(body, &v, out)?;
                        self.variables.truncate(outer);
                    }
                }
            }
        }
        self.variables.truncate(outer);
        Ok(())
    }

    fn pipeline(&mut self, pipeline: &Pipeline, dot: &Value) -> Result<Value, String> {
        let mut piped: Option<Value> = None;
        for command in &pipeline.0 {
            piped = Some(self.command(command, piped, dot)?);
        }
        piped.ok_or_else(|| "an empty pipeline".to_owned())
    }

    fn command(&mut self, command: &[Operand], piped: Option<Value>, dot: &Value) -> Result<Value, String> {
        let Some((first, rest)) = command.split_first() else { return Err("an empty command".into()) };
        let mut arguments = Vec::with_capacity(rest.len() + 1);
        for operand in rest {
            arguments.push(self.operand(operand, dot)?);
        }
        arguments.extend(piped);
        match first {
            Operand::Function(name) if name == "include" => self.include(&arguments),
            Operand::Function(name) => functions::call(name, &arguments),
            _ if arguments.is_empty() => self.operand(first, dot),
            Operand::Field(path) => file_method(dot, path, &arguments),
            Operand::Variable(name, path) if name.is_empty() => file_method(self.root, path, &arguments),
            _ => Err("only functions take arguments".into()),
        }
    }

    fn include(&mut self, arguments: &[Value]) -> Result<Value, String> {
        let [name, dot] = arguments else { return Err("`include` takes a name and a dot".into()) };
        let name = name.as_str().unwrap_or_default();
        let Some(nodes) = self.named.get(name) else { return Err(format!("there is no template `{name}`")) };
        if self.depth >= DEPTH {
            return Err("templates include each other without end".into());
        }
        // As in Go, an included template sees no variables, and its dot is its root.
        let mut inner = Scope { named: self.named, root: dot, variables: Vec::new(), depth: self.depth + 1 };
        let mut out = String::new();
        inner.nodes(nodes, dot, &mut out)?;
        Ok(out.into())
    }

    fn operand(&mut self, operand: &Operand, dot: &Value) -> Result<Value, String> {
        match operand {
            Operand::Literal(value) => Ok(value.clone()),
            Operand::Field(path) => follow(dot, path),
            Operand::Variable(name, path) if name.is_empty() => follow(self.root, path),
            Operand::Variable(name, path) => {
                let variable = self.variables.iter().rev().find(|(known, _)| known == name);
                follow(&variable.ok_or_else(|| format!("there is no variable `${name}`"))?.1, path)
            }
            Operand::Group(pipeline, path) => {
                let value = self.pipeline(pipeline, dot)?;
                follow(&value, path)
            }
            Operand::Function(_) => self.command(std::slice::from_ref(operand), None, dot),
        }
    }
}

/// The member at a path; a missing one is null, a member of null an error, as in Go.
fn follow(value: &Value, path: &[Str]) -> Result<Value, String> {
    let mut value = value.clone();
    for name in path {
        value = match &value {
            Value::Object(map) => map.get(name).cloned().unwrap_or_default(),
            Value::Null => return Err(format!("there is no `{name}` in nothing")),
            other => return Err(format!("there is no `{name}` in {}", other.type_name())),
        };
    }
    Ok(value)
}

/// `.Files.Get path` and `.Files.Glob pattern`.
fn file_method(dot: &Value, path: &[Str], arguments: &[Value]) -> Result<Value, String> {
    let ([.., object, method], [argument]) = (path, arguments) else {
        return Err("only functions take arguments".into());
    };
    let files = follow(dot, &path[..path.len() - 1])?;
    let (Some(files), Some(argument), "Files") = (files.as_object(), argument.as_str(), object.as_str()) else {
        return Err("only functions take arguments".into());
    };
    match method.as_str() {
        "Get" => Ok(files.get(argument).cloned().unwrap_or_else(|| "".into())),
        "Glob" => {
            let (before, after) = argument.split_once('*').unwrap_or((argument, ""));
            let matches = |name: &str| {
                name.strip_prefix(before)
                    .and_then(|rest| rest.strip_suffix(after))
                    .is_some_and(|rest| !rest.contains('/'))
            };
            Ok(Value::from(
                files.iter().filter(|(name, _)| matches(name)).map(|(n, t)| (n.clone(), t.clone())).collect::<Map>(),
            ))
        }
        other => Err(format!("unknown method `{other}` of files")),
    }
}
