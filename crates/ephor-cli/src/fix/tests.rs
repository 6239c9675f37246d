use ephor_engine::compile::compile;
use ephor_expr::yaml::parse_value;
use similar::TextDiff;

use super::fix;

/// The changes as a diff; fixing again must change nothing and the policy must compile.
fn fixed(text: &str) -> String {
    let Some(fixed) = fix(text) else { return "nothing".to_owned() };
    assert!(fix(&fixed.text).is_none(), "fixing again changes\n{}", fixed.text);
    for document in fixed.text.split("\n---\n") {
        let compiled = compile(&parse_value(document).unwrap());
        assert!(compiled.program.is_some(), "{:?}\n{}", compiled.findings, fixed.text);
    }
    TextDiff::from_lines(text, fixed.text.as_str()).unified_diff().context_radius(1).to_string()
}

/// A policy with `spec` fields before a validate rule.
fn policy(spec: &str) -> String {
    format!(
        "apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  name: p
spec:
{spec}  rules:
  - name: r
    match:
      any:
      - resources:
          kinds: [Pod]
    validate:
      # what users see
      message: not good
      deny: {{}}
"
    )
}

#[test]
fn the_failure_action_moves_into_the_rules() {
    let text = policy("  validationFailureAction: enforce # since May\n  background: true\n");
    insta::assert_snapshot!(fixed(&text), @r#"
@@ -5,3 +5,2 @@
 spec:
-  validationFailureAction: enforce # since May
   background: true
@@ -14,2 +13,3 @@
     validate:
+      failureAction: Enforce # since May
       # what users see
"#);
}

#[test]
fn every_comment_moves_with_what_it_is_about() {
    let text = policy(
        "  failurePolicy: Ignore # fails open
  validationFailureActionOverrides: # who
  - action: Audit # not yet
    namespaces: [a] # team a
",
    );
    insta::assert_snapshot!(fixed(&text), @r#"
@@ -5,6 +5,4 @@
 spec:
-  failurePolicy: Ignore # fails open
-  validationFailureActionOverrides: # who
-  - action: Audit # not yet
-    namespaces: [a] # team a
+  webhookConfiguration:
+    failurePolicy: Ignore # fails open
   rules:
@@ -16,2 +14,5 @@
     validate:
+      failureActionOverrides: # who
+        - action: Audit # not yet
+          namespaces: [a] # team a
       # what users see
"#);
}

#[test]
fn overrides_move_along_with_their_comments() {
    let text = policy(
        "  validationFailureAction: Audit
  validationFailureActionOverrides:
    # the teams that are ready
    - action: enforce
      namespaces:
        - team-a # first
        - team-b
  background: false
",
    );
    insta::assert_snapshot!(fixed(&text), @r#"
@@ -5,9 +5,2 @@
 spec:
-  validationFailureAction: Audit
-  validationFailureActionOverrides:
-    # the teams that are ready
-    - action: enforce
-      namespaces:
-        - team-a # first
-        - team-b
   background: false
@@ -20,2 +13,9 @@
     validate:
+      failureActionOverrides:
+        # the teams that are ready
+        - action: Enforce
+          namespaces:
+            - team-a # first
+            - team-b
+      failureAction: Audit
       # what users see
"#);
}

#[test]
fn rules_with_an_action_of_their_own_keep_it() {
    let text = "apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  validationFailureAction: Audit
  validationFailureActionOverrides: [{action: Enforce, namespaces: [a]}]
  rules:
  - name: own
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {failureAction: Enforce, deny: {}}
  - name: none
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {deny: {}}
";
    insta::assert_snapshot!(fixed(text), @r#"
@@ -4,4 +4,2 @@
 spec:
-  validationFailureAction: Audit
-  validationFailureActionOverrides: [{action: Enforce, namespaces: [a]}]
   rules:
@@ -12,2 +10,2 @@
     match: {any: [{resources: {kinds: [Pod]}}]}
-    validate: {deny: {}}
+    validate: {failureActionOverrides: [{action: Enforce, namespaces: [a]}], failureAction: Audit, deny: {}}
"#);
}

#[test]
fn filters_become_lists() {
    let text = "apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: block
    match:
      # what it is about
      resources:
        kinds:
        - Pod
        name: \"a-*\" # one

        namespaces:
        - x
    exclude:
      resources: {namespaces: [z]}
    validate:
      deny: {}
  - name: flow
    match: {resources: {kinds: [Pod], name: b}}
    validate:
      deny: {}
";
    insta::assert_snapshot!(fixed(text), @r#"
@@ -8,11 +8,13 @@
       # what it is about
-      resources:
-        kinds:
-        - Pod
-        name: "a-*" # one
+      any:
+      - resources:
+          kinds:
+          - Pod
+          names: ["a-*"] # one
 
-        namespaces:
-        - x
+          namespaces:
+          - x
     exclude:
-      resources: {namespaces: [z]}
+      any:
+      - resources: {namespaces: [z]}
     validate:
@@ -20,3 +22,3 @@
   - name: flow
-    match: {resources: {kinds: [Pod], name: b}}
+    match: {any: [{resources: {kinds: [Pod], names: [b]}}]}
     validate:
"#);
}

#[test]
fn old_words_get_their_current_spelling() {
    let text = "apiVersion: \"kyverno.io/v2beta1\"
kind: ClusterPolicy
metadata:
  name: p
  annotations:
    # rules for controllers
    pod-policies.kyverno.io/autogen-controllers: all
    other: x
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod]}}]}
    preconditions:
    - {key: a, operator: Equal, value: a}
    validate:
      deny:
        conditions:
          any:
          - key: b
            operator: 'NotEqual'
            value: {operator: Equal}
";
    insta::assert_snapshot!(fixed(text), @r#"
@@ -1,2 +1,2 @@
-apiVersion: "kyverno.io/v2beta1"
+apiVersion: "kyverno.io/v1"
 kind: ClusterPolicy
@@ -6,3 +6,2 @@
     # rules for controllers
-    pod-policies.kyverno.io/autogen-controllers: all
     other: x
@@ -13,3 +12,3 @@
     preconditions:
-    - {key: a, operator: Equal, value: a}
+    - {key: a, operator: Equals, value: a}
     validate:
@@ -19,3 +18,3 @@
           - key: b
-            operator: 'NotEqual'
+            operator: 'NotEquals'
             value: {operator: Equal}
"#);
}

#[test]
fn an_annotation_that_stood_alone_leaves_no_empty_block() {
    let text = "apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata:
  annotations:
    pod-policies.kyverno.io/autogen-controllers: all
  name: p
spec:
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Pod]}}]}
    validate: {deny: {}}
";
    insta::assert_snapshot!(fixed(text), @r#"
@@ -3,4 +3,2 @@
 metadata:
-  annotations:
-    pod-policies.kyverno.io/autogen-controllers: all
   name: p
"#);
}

#[test]
fn settings_move_to_where_they_belong() {
    let text = "apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  failurePolicy: Ignore
  webhookTimeoutSeconds: 5
  schemaValidation: false
  generateExistingOnPolicyUpdate: true
  rules:
  - name: r
    match: {any: [{resources: {kinds: [Namespace]}}]}
    generate:
      kind: ConfigMap
      apiVersion: v1
      name: c
      namespace: '{{ request.object.metadata.name }}'
      data: {}
";
    insta::assert_snapshot!(fixed(text), @r#"
@@ -4,6 +4,5 @@
 spec:
-  failurePolicy: Ignore
-  webhookTimeoutSeconds: 5
-  schemaValidation: false
-  generateExistingOnPolicyUpdate: true
+  webhookConfiguration:
+    timeoutSeconds: 5
+    failurePolicy: Ignore
   rules:
@@ -12,2 +11,3 @@
     generate:
+      generateExisting: true
       kind: ConfigMap
"#);
}

#[test]
fn what_others_may_read_too_is_left_alone() {
    let text = "apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: p}
spec:
  rules:
  - name: r
    match: &pods
      resources: {kinds: [Pod]}
    validate: {deny: {}}
  - name: s
    match: *pods
    validate: {deny: {}}
";
    assert_eq!(fixed(text), "nothing");
}

#[test]
fn operators_that_judge_differently_and_user_data_are_left_alone() {
    let text = policy("").replace("deny: {}", "deny: {conditions: {any: [{key: a, operator: In, value: [a]}]}}");
    assert_eq!(fixed(&text), "nothing");
    let text = policy("").replace("deny: {}", "pattern: {spec: {conditions: [{operator: Equal}]}}");
    assert_eq!(fixed(&text), "nothing");
}

#[test]
fn line_breaks_of_the_file_are_kept() {
    let text = policy("  validationFailureAction: enforce\n").replace('\n', "\r\n");
    let out = fix(&text).unwrap().text;
    assert_eq!(out.matches('\n').count(), out.matches("\r\n").count());
    assert!(out.contains("    validate:\r\n      failureAction: Enforce\r\n"), "{out}");
}

#[test]
fn each_document_of_a_file_is_fixed() {
    let text = format!(
        "{}---\n{}",
        policy("  validationFailureAction: enforce\n"),
        policy("  validationFailureAction: audit\n")
    );
    let out = fix(&text).unwrap().text;
    assert_eq!((out.matches("failureAction: Enforce").count(), out.matches("failureAction: Audit").count()), (1, 1));
}
