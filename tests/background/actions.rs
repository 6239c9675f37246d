// The action tables, played on any cluster: in memory, in the sandbox, on a real API server. Included where needed.

use ephor_expr::{Map, Value, yaml};

/// A cluster in which background work goes on.
pub(crate) trait TestEnv {
    /// Creates an object or replaces it.
    fn apply(&mut self, object: &Value);
    /// Deletes an object.
    fn delete(&mut self, object: &Value);
    /// The object of that kind, namespace and name.
    fn read(&self, object: &Value) -> Option<Value>;
    /// Waits until nothing more will happen on account of what was done so far.
    fn rest(&mut self);
    /// Waits until `done` holds and nothing more will happen; gives up after a while.
    fn settle(&mut self, done: &dyn Fn(&Self) -> bool);
}

/// One cell. Its objects have names of their own, so that cells can be played side by side.
#[derive(Debug, Clone)]
pub(crate) struct Cell {
    pub(crate) event: String,
    pub(crate) form: &'static str,
    /// Whether it is in a `foreach`, which makes no difference.
    pub(crate) looped: bool,
    pub(crate) synchronize: bool,
    pub(crate) namespaced: bool,
    pub(crate) want: String,
    /// Makes names unique.
    pub(crate) number: usize,
}

/// All cells.
pub(crate) fn cells(table: &str) -> Vec<Cell> {
    let rows = yaml::parse_value(table).expect("the table is YAML");
    let mut cells = Vec::new();
    for row in rows.as_array().expect("a list") {
        for (form, looped) in [("data", false), ("clone", false), ("cloneList", false), ("data", true), ("clone", true)]
        {
            let Some(wants) = row.get(form).and_then(Value::as_array) else { continue };
            for (synchronize, want) in [true, false].into_iter().zip(wants) {
                // A Policy lists sources in its own namespace, which is also the target: there is nothing to copy.
                for namespaced in if form == "cloneList" { &[false][..] } else { &[false, true] } {
                    cells.push(Cell {
                        event: row.str_at(&["event"]).expect("an event").to_owned(),
                        form,
                        looped,
                        synchronize,
                        namespaced: *namespaced,
                        want: want.as_str().expect("an outcome").to_owned(),
                        number: cells.len(),
                    });
                }
            }
        }
    }
    cells
}

impl std::fmt::Display for Cell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = if self.namespaced { "Policy" } else { "ClusterPolicy" };
        let Self { form, synchronize, event, number, .. } = self;
        let each = if self.looped { "foreach " } else { "" };
        write!(f, "{number}: {kind} {each}{form} synchronize={synchronize} {event}")
    }
}

fn parse(text: &str) -> Value {
    yaml::parse_value(text).expect("a document")
}

const MADE: &str = "bWFkZQ==";
const NEW: &str = "bmV3";
const EDITED: &str = "ZWRpdGVk";

impl Cell {
    fn space(&self) -> String {
        format!("cell-{}", self.number)
    }

    fn sources(&self) -> String {
        if self.namespaced { self.space() } else { format!("sources-{}", self.number) }
    }

    fn downstream_name(&self, target: &str) -> String {
        if self.form == "cloneList" { "source".to_owned() } else { target.to_owned() }
    }

    fn secret(namespace: &str, name: &str, value: &str) -> Value {
        parse(&format!(
            "{{apiVersion: v1, kind: Secret, metadata: {{name: {name}, namespace: {namespace}, labels: {{copy: 'yes'}}}},
              type: Opaque, data: {{k: {value}}}}}"
        ))
    }

    fn source(&self, value: &str) -> Value {
        Self::secret(&self.sources(), "source", value)
    }

    fn downstream(&self) -> Value {
        Self::secret(&self.space(), &self.downstream_name("made"), MADE)
    }

    fn trigger(&self, label: &str, go: &str) -> Value {
        parse(&format!(
            "{{apiVersion: v1, kind: ConfigMap, metadata: {{name: trigger, namespace: {}, labels: {{cell-{}: '{label}'}}}},
              data: {{go: '{go}'}}}}",
            self.space(),
            self.number
        ))
    }

    fn policy(&self, change: &Change) -> Value {
        let (space, sources, number) = (self.space(), self.sources(), self.number);
        let target = change.target.unwrap_or("made");
        let common = format!(
            "synchronize: {}, orphanDownstreamOnPolicyDelete: {}, generateExisting: {}",
            self.synchronize && !change.desynchronize,
            change.orphan,
            change.existing
        );
        let value = change.value;
        let made = match self.form {
            "data" => format!(
                "apiVersion: v1, kind: Secret, name: {target}, namespace: {space},
                   data: {{metadata: {{labels: {{copy: 'yes'}}}}, type: Opaque, data: {{k: {value}}}}}"
            ),
            "clone" => format!(
                "apiVersion: v1, kind: Secret, name: {target}, namespace: {space},
                   clone: {{namespace: {sources}, name: source}}"
            ),
            _ => {
                let to = if change.target.is_some() { format!("{space}-moved") } else { space.clone() };
                format!(
                    "namespace: {to}, cloneList: {{namespace: {sources}, kinds: [v1/Secret],
                       selector: {{matchLabels: {{copy: 'yes'}}}}}}"
                )
            }
        };
        let generate = if self.looped {
            format!("{{{common}, foreach: [{{list: \"to_array('only')\", {made}}}]}}")
        } else {
            format!("{{{common}, {made}}}")
        };
        let rule = format!(
            "{{name: make, match: {{any: [{{resources: {{kinds: [ConfigMap], selector: {{matchLabels: {{cell-{number}: 'on'}}}}}}}}]}},
               preconditions: {{all: [{{key: '{{{{ request.object.data.go }}}}', operator: Equals, value: 'yes'}}]}},
               generate: {generate}}}"
        );
        // What a rule that copies may say anew without becoming another is nothing of its own.
        let other = format!(
            "{{name: other, match: {{any: [{{resources: {{kinds: [ConfigMap]}}}}]}},
               validate: {{message: {value}, pattern: {{kind: ConfigMap}}}}}}"
        );
        let rules = if change.without_rule { other } else { format!("{rule}, {other}") };
        let (kind, metadata) = if self.namespaced {
            ("Policy", format!("{{name: policy-{number}, namespace: {space}}}"))
        } else {
            ("ClusterPolicy", format!("{{name: policy-{number}}}"))
        };
        parse(&format!("{{apiVersion: kyverno.io/v1, kind: {kind}, metadata: {metadata}, spec: {{rules: [{rules}]}}}}"))
    }

    /// Plays the cell; what was found instead of what is wanted.
    pub(crate) fn play<G: TestEnv>(&self, env: &mut G) -> Result<(), String> {
        let base = Change { value: MADE, ..Change::default() };
        let mut namespaces = vec![self.space()];
        if self.form != "data" && !self.namespaced {
            namespaces.push(self.sources());
        }
        if self.form == "cloneList" && self.event == "move-target" {
            namespaces.push(format!("{}-moved", self.space()));
        }
        for namespace in namespaces {
            env.apply(&parse(&format!("{{apiVersion: v1, kind: Namespace, metadata: {{name: {namespace}}}}}")));
        }
        if self.form != "data" {
            env.apply(&self.source(MADE));
        }
        let orphan = self.event.starts_with("orphan");
        let base = Change { orphan, ..base };
        env.apply(&self.policy(&base));
        env.rest();
        env.apply(&self.trigger("on", "yes"));
        env.settle(&|env| self.state(env, "made") == "made");
        let begun = self.state(env, "made");
        if begun != "made" {
            return Err(format!("to begin with it is {begun}"));
        }
        match self.event.as_str() {
            "nothing" => {}
            "delete-downstream" => env.delete(&self.downstream()),
            "modify-downstream" => {
                let mut live = env.read(&self.downstream()).ok_or("it is not there")?;
                if let Some(live) = live.as_object_mut() {
                    live.insert("data", Map::from_iter([("k".into(), Value::from(EDITED))]));
                }
                env.apply(&live);
            }
            // All that ties it to its policy is taken away: under synchronize it comes back.
            "relabel-downstream" => {
                let live = self.downstream();
                env.apply(&live);
            }
            "delete-rule" | "orphan-delete-rule" => env.apply(&self.policy(&Change { without_rule: true, ..base })),
            "delete-policy" | "orphan-delete-policy" => env.delete(&self.policy(&base)),
            "desynchronize-delete-rule" => {
                env.apply(&self.policy(&Change { desynchronize: true, ..base }));
                env.rest();
                env.apply(&self.policy(&Change { without_rule: true, ..base }));
            }
            "modify-rule" => env.apply(&self.policy(&Change { value: NEW, ..base })),
            "move-target" => env.apply(&self.policy(&Change { target: Some("moved"), ..base })),
            "modify-source" => env.apply(&self.source(NEW)),
            "delete-source" => env.delete(&self.source(MADE)),
            "delete-trigger" => env.delete(&self.trigger("on", "yes")),
            "unmatch-trigger" => env.apply(&self.trigger("off", "yes")),
            "precondition-false" => env.apply(&self.trigger("on", "no")),
            "reinstall" | "reinstall-missing" => {
                env.delete(&self.policy(&base));
                env.rest();
                if self.event == "reinstall-missing" && env.read(&self.downstream()).is_some() {
                    env.delete(&self.downstream());
                    env.rest();
                }
                if self.form != "data" {
                    env.apply(&self.source(NEW));
                }
                env.apply(&self.policy(&Change { existing: true, value: NEW, ..base }));
            }
            event => return Err(format!("unknown event `{event}`")),
        }
        env.settle(&|env| self.state(env, "made") == self.want);
        if self.event == "move-target" && self.synchronize && self.form != "cloneList" {
            env.settle(&|env| self.state(env, "moved") == "made");
            let moved = self.state(env, "moved");
            if moved != "made" {
                return Err(format!("the object at the new target is {moved}"));
            }
        }
        self.holds(env)
    }

    /// Whether the object is what is wanted; what it is instead.
    pub(crate) fn holds<G: TestEnv>(&self, env: &G) -> Result<(), String> {
        let state = self.state(env, "made");
        if state == self.want { Ok(()) } else { Err(format!("it is {state}, not {}", self.want)) }
    }

    fn state<G: TestEnv>(&self, env: &G, target: &str) -> &'static str {
        let Some(live) = env.read(&Self::secret(&self.space(), &self.downstream_name(target), MADE)) else {
            return "gone";
        };
        match live.str_at(&["data", "k"]) {
            Some(MADE) => "made",
            Some(NEW) => "new",
            Some(EDITED) => "edited",
            _ => "something else",
        }
    }
}

/// How a policy differs from the first one.
#[derive(Debug, Clone, Copy, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is one thing that an author can change")]
struct Change {
    value: &'static str,
    target: Option<&'static str>,
    orphan: bool,
    existing: bool,
    desynchronize: bool,
    without_rule: bool,
}
