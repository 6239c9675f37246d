//! Templates of the chart, rendered without Helm.
//!
//! The chart is the one description of an installation. Helm renders it for those who use Helm; this renders it for
//! those who do not, and a test compares both. It knows the part of Go's templates that the chart is written in and
//! refuses the rest by name: a chart that only Helm understands cannot be committed unnoticed.

mod eval;
mod functions;
mod parse;

use std::collections::BTreeMap;

use ephor_expr::Value;

use parse::Node;

/// Why a template cannot be rendered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The text is not a template of the known kind.
    #[error("{file}: {message}")]
    Syntax {
        /// The file.
        file: String,
        /// What is wrong.
        message: String,
    },
    /// The values do not suit the template.
    #[error("{0}")]
    Evaluation(String),
}

/// Parsed templates that may include each other.
#[derive(Debug, Default)]
pub(super) struct Templates {
    files: BTreeMap<String, Vec<Node>>,
    named: BTreeMap<String, Vec<Node>>,
}

impl Templates {
    /// Adds a file: the templates it defines, and itself if it is to be rendered.
    pub(super) fn add(&mut self, file: &str, text: &str) -> Result<(), TemplateError> {
        let parsed = parse::parse(text).map_err(|message| TemplateError::Syntax { file: file.to_owned(), message })?;
        self.named.extend(parsed.defined);
        self.files.insert(file.to_owned(), parsed.nodes);
        Ok(())
    }

    /// Renders a file with `root` as the dot.
    pub(super) fn render(&self, file: &str, root: &Value) -> Result<String, TemplateError> {
        let Some(nodes) = self.files.get(file) else {
            return Err(TemplateError::Evaluation(format!("there is no template `{file}`")));
        };
        eval::render(&self.named, nodes, root).map_err(|why| TemplateError::Evaluation(format!("{file}: {why}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered(template: &str, values: &str) -> Result<String, TemplateError> {
        let mut templates = Templates::default();
        templates.add("t", template)?;
        templates.render("t", &Value::from_json(values).unwrap())
    }

    #[test]
    fn templates_render_as_go_renders_them() {
        let table = [
            ("a {{ .b.c }} d", r#"{"b":{"c":1}}"#, "a 1 d"),
            ("a\n  {{- .b }}\n  {{ .b -}}\n  c", r#"{"b":"x"}"#, "ax\n  xc"),
            ("{{/* note */}}a{{- /* note */ -}} b", "{}", "ab"),
            ("{{ if .a }}1{{ else if .b }}2{{ else }}3{{ end }}", r#"{"a":"","b":[1]}"#, "2"),
            ("{{ if and .a (not .b) }}1{{ end }}", r#"{"a":true,"b":{}}"#, "1"),
            ("{{ range .l }}[{{ . }}]{{ else }}none{{ end }}", r#"{"l":["a","b"]}"#, "[a][b]"),
            ("{{ range .l }}[{{ . }}]{{ else }}none{{ end }}", r#"{"l":[]}"#, "none"),
            (
                "{{ range $k, $v := .m }}{{ $k }}={{ $v }}{{ $.x }};{{ end }}",
                r#"{"m":{"b":1,"a":2},"x":"!"}"#,
                "a=2!;b=1!;",
            ),
            ("{{ with .a }}{{ .b }}{{ $.c }}{{ end }}", r#"{"a":{"b":1},"c":2}"#, "12"),
            ("{{ $x := .a }}{{ if true }}{{ $x = \"new\" }}{{ end }}{{ $x }}", r#"{"a":"old"}"#, "new"),
            (r#"{{ define "n" }}<{{ .a }}>{{ end }}{{ include "n" . | quote }}"#, r#"{"a":1}"#, r#""<1>""#),
            ("x:{{ toYaml .a | nindent 2 }}", r#"{"a":{"b":[1,"2"]}}"#, "x:\n  b:\n  - 1\n  - \"2\""),
            (r#"{{ default "d" .a }}{{ .b | default "d" }}"#, r#"{"a":"","b":"x"}"#, "dx"),
            (
                r#"{{ printf "%s-%v-%d" "a" true 3 }}{{ eq .a "x" "y" }}{{ ne .a "y" }}"#,
                r#"{"a":"y"}"#,
                "a-true-3truefalse",
            ),
            (r#"{{ join "," (list "a" .b) }}{{ (index .l 1).c }}"#, r#"{"b":"x","l":[0,{"c":5}]}"#, "a,x5"),
            ("{{ .missing }}", "{}", ""),
            (
                r#"{{ range $p, $_ := .Files.Glob "a/*.txt" }}{{ $.Files.Get $p }}{{ end }}"#,
                r#"{"Files":{"a/x.txt":"1","b/y.txt":"2"}}"#,
                "1",
            ),
        ];
        for (template, values, expected) in table {
            assert_eq!(rendered(template, values).as_deref(), Ok(expected), "{template}");
        }
    }

    #[test]
    fn what_is_not_known_is_refused_by_name() {
        let table = [
            ("{{ lookup 1 }}", "t: unknown function `lookup`"),
            ("{{ if .a }}", "t: `if` without `end`"),
            ("{{ end }}", "t: `end` without a block"),
            ("{{ .a ", "t: `{{` without `}}`"),
            ("{{ .a.b }}", "t: there is no `b` in nothing"),
            (r#"{{ include "x" . }}"#, "t: there is no template `x`"),
            (
                r#"{{ define "x" }}{{ include "x" . }}{{ end }}{{ include "x" . }}"#,
                "t: templates include each other without end",
            ),
            (r#"{{ fail "no" }}"#, "t: no"),
        ];
        for (template, expected) in table {
            assert_eq!(rendered(template, "{}").unwrap_err().to_string(), expected, "{template}");
        }
    }
}
