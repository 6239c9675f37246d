use std::sync::Arc;

use super::{concise, github, json, junit, sarif, text};
use crate::load::{LoadedPolicies, load_file};
use crate::locate::{Located, SourceFile};

/// An error inside an expression, an unknown field and a fault without a place.
fn findings() -> Vec<Located> {
    let policy = "apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: a,b
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate:
      message: '{{ requst.name }}'
      deny:
        conditions:
          any:
          - {key: a, operator: In, value: [a]}
";
    let mut loaded = LoadedPolicies::default();
    load_file(&Arc::new(SourceFile { name: "dir/p,1.yaml".to_owned(), text: policy.to_owned() }), &mut loaded);
    loaded.findings.push(Located::plain("unreadable", "no such file or directory: `<x>`"));
    loaded.findings
}

#[test]
fn text_shows_the_line() {
    insta::assert_snapshot!(text(&findings(), false), @r#"
warning[deprecated-operator]: operator `In` is deprecated
  --> dir/p,1.yaml:14:32
   |
14 |           - {key: a, operator: In, value: [a]}
   |                                ^^ spec.rules[0].validate.deny.conditions.any[0].operator
   |
   = help: use `AnyIn` or `AllIn`

error[undefined-variable]: policy contains invalid variables: `requst` is not defined
  --> dir/p,1.yaml:10:20
   |
10 |       message: '{{ requst.name }}'
   |                    ^ spec.rules[0].validate.message
   |
   = help: did you mean `request`?

error[unreadable]: no such file or directory: `<x>`
"#);
}

#[test]
fn concise_is_a_line_each() {
    insta::assert_snapshot!(concise(&findings()), @r#"
dir/p,1.yaml:14:32: warning[deprecated-operator]: operator `In` is deprecated (spec.rules[0].validate.deny.conditions.any[0].operator); use `AnyIn` or `AllIn`
dir/p,1.yaml:10:20: error[undefined-variable]: policy contains invalid variables: `requst` is not defined (spec.rules[0].validate.message); did you mean `request`?
error[unreadable]: no such file or directory: `<x>`
"#);
}

#[test]
fn json_has_all_that_is_known() {
    insta::assert_snapshot!(json(&findings()), @r#"
[
  {
    "code": "deprecated-operator",
    "column": 32,
    "endColumn": 34,
    "endLine": 14,
    "file": "dir/p,1.yaml",
    "help": "use `AnyIn` or `AllIn`",
    "line": 14,
    "message": "operator `In` is deprecated",
    "path": "spec.rules[0].validate.deny.conditions.any[0].operator",
    "severity": "warning"
  },
  {
    "code": "undefined-variable",
    "column": 20,
    "endColumn": 20,
    "endLine": 10,
    "file": "dir/p,1.yaml",
    "help": "did you mean `request`?",
    "line": 10,
    "message": "policy contains invalid variables: `requst` is not defined",
    "path": "spec.rules[0].validate.message",
    "severity": "error"
  },
  {
    "code": "unreadable",
    "message": "no such file or directory: `\u003cx\u003e`",
    "severity": "error"
  }
]
"#);
}

#[test]
fn sarif_has_regions() {
    insta::assert_snapshot!(sarif(&findings()), @r#"
{
  "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
  "runs": [
    {
      "columnKind": "unicodeCodePoints",
      "results": [
        {
          "level": "warning",
          "locations": [
            {
              "physicalLocation": {
                "artifactLocation": {
                  "uri": "dir/p,1.yaml"
                },
                "region": {
                  "endColumn": 34,
                  "endLine": 14,
                  "startColumn": 32,
                  "startLine": 14
                }
              }
            }
          ],
          "message": {
            "text": "operator `In` is deprecated (spec.rules[0].validate.deny.conditions.any[0].operator); use `AnyIn` or `AllIn`"
          },
          "ruleId": "deprecated-operator"
        },
        {
          "level": "error",
          "locations": [
            {
              "physicalLocation": {
                "artifactLocation": {
                  "uri": "dir/p,1.yaml"
                },
                "region": {
                  "endColumn": 20,
                  "endLine": 10,
                  "startColumn": 20,
                  "startLine": 10
                }
              }
            }
          ],
          "message": {
            "text": "policy contains invalid variables: `requst` is not defined (spec.rules[0].validate.message); did you mean `request`?"
          },
          "ruleId": "undefined-variable"
        },
        {
          "level": "error",
          "message": {
            "text": "no such file or directory: `\u003cx\u003e`"
          },
          "ruleId": "unreadable"
        }
      ],
      "tool": {
        "driver": {
          "informationUri": "https://github.com/ephor-policy/ephor",
          "name": "ephor",
          "rules": [
            {
              "id": "deprecated-operator"
            },
            {
              "id": "undefined-variable"
            },
            {
              "id": "unreadable"
            }
          ],
          "version": "0.1.0"
        }
      }
    }
  ],
  "version": "2.1.0"
}
"#);
}

#[test]
fn github_escapes_separators() {
    insta::assert_snapshot!(github(&findings()), @r#"
::warning file=dir/p%2C1.yaml,line=14,col=32,endColumn=34,title=deprecated-operator::operator `In` is deprecated (spec.rules[0].validate.deny.conditions.any[0].operator); use `AnyIn` or `AllIn`
::error file=dir/p%2C1.yaml,line=10,col=20,title=undefined-variable::policy contains invalid variables: `requst` is not defined (spec.rules[0].validate.message); did you mean `request`?
::error title=unreadable::no such file or directory: `<x>`
"#);
}

#[test]
fn junit_has_a_suite_for_each_file() {
    let files = ["dir/p,1.yaml".to_owned(), "clean.yaml".to_owned()];
    insta::assert_snapshot!(junit(&findings(), &files, false), @r#"
<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="ephor" tests="4" failures="2" errors="0" skipped="0">
  <testsuite name="dir/p,1.yaml" tests="2" failures="1" errors="0" skipped="0">
    <testcase classname="dir/p,1.yaml:14:32" name="deprecated-operator">
      <system-out>operator `In` is deprecated (spec.rules[0].validate.deny.conditions.any[0].operator); use `AnyIn` or `AllIn`</system-out>
    </testcase>
    <testcase classname="dir/p,1.yaml:10:20" name="undefined-variable">
      <failure type="error" message="policy contains invalid variables: `requst` is not defined (spec.rules[0].validate.message); did you mean `request`?"/>
    </testcase>
  </testsuite>
  <testsuite name="clean.yaml" tests="1" failures="0" errors="0" skipped="0">
    <testcase classname="clean.yaml" name="check"/>
  </testsuite>
  <testsuite name="ephor" tests="1" failures="1" errors="0" skipped="0">
    <testcase classname="ephor" name="unreadable">
      <failure type="error" message="no such file or directory: `&lt;x&gt;`"/>
    </testcase>
  </testsuite>
</testsuites>
"#);
}
