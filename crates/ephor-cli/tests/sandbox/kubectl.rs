//! The ordinary kubectl, the one built for the tests (`cargo xtask cluster build`).

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use ephor_testbed::Assets;

use crate::process::{Sandbox, eventually};

/// kubectl at a sandbox.
struct Kubectl<'s>(&'s Sandbox);

/// What came of a command.
struct Said {
    line: String,
    done: bool,
    out: String,
    err: String,
}

impl Kubectl<'_> {
    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(Assets::locate().tool("kubectl"));
        // No argument here has spaces in it.
        command.args(line.split(' ')).current_dir(self.0.directory());
        command.env("KUBECONFIG", self.0.kubeconfig()).env("HOME", self.0.directory());
        command.env("EDITOR", self.0.directory().join("editor"));
        command
    }

    fn run(&self, line: &str) -> Said {
        self.feed(line, "")
    }

    /// Runs a command that reads `input`.
    fn feed(&self, line: &str, input: &str) -> Said {
        let mut command = self.command(line);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("kubectl is built");
        child.stdin.take().expect("it is piped").write_all(input.as_bytes()).expect("it reads");
        let output = child.wait_with_output().expect("it ends");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        Said { line: line.to_owned(), done: output.status.success(), out, err }
    }
}

impl Said {
    /// It was done, and this was said.
    #[track_caller]
    fn says(self, parts: &[&str]) -> Self {
        assert!(self.done, "{}: {}{}", self.line, self.out, self.err);
        for part in parts {
            assert!(self.out.contains(part), "{}: no {part:?} in {}", self.line, self.out);
        }
        self
    }

    /// It was refused with these words.
    #[track_caller]
    fn fails(self, parts: &[&str]) {
        assert!(!self.done, "{}: {}", self.line, self.out);
        for part in parts {
            assert!(self.err.contains(part), "{}: no {part:?} in {}", self.line, self.err);
        }
    }

    /// The lines, with one space between words.
    fn rows(&self) -> Vec<String> {
        self.out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
    }
}

const WEB: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web, team: a}}
    spec: {containers: [{name: web, image: 'registry.example.com/web:1'}]}
";

const DEFINITION: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wd], categories: [all]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}, scale: {specReplicasPath: .spec.size, statusReplicasPath: .status.size}}
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [size]
            properties:
              size: {type: integer, maximum: 5, description: How large it is.}
              colour: {type: string, enum: [red, green], default: red}
          status: {type: object, x-kubernetes-preserve-unknown-fields: true}
";

fn widget(spec: &str) -> String {
    format!("{{apiVersion: example.com/v1, kind: Widget, metadata: {{name: a}}, spec: {spec}}}")
}

#[test]
#[ignore = "needs the kubectl of the control plane"]
fn objects_are_written_and_read() {
    let sandbox = Sandbox::start(&["examples/policies"]);
    let kubectl = Kubectl(&sandbox);
    kubectl.feed("apply -f -", WEB).says(&["deployment.apps/web created"]);
    kubectl.feed("apply -f -", WEB).says(&["deployment.apps/web unchanged"]);
    assert_eq!(kubectl.run("get deploy").rows()[0], "NAME READY UP-TO-DATE AVAILABLE AGE");
    let wide = kubectl.run("get deploy -o wide").rows();
    assert!(wide[0].ends_with("CONTAINERS IMAGES SELECTOR"), "{wide:?}");
    assert!(wide[1].ends_with("web registry.example.com/web:1 app=web"), "{wide:?}");
    // The policies of the examples were at work.
    kubectl.run("get deploy web -o yaml").says(&["readOnlyRootFilesystem: true", "resourceVersion:"]);
    kubectl.run("get deploy web -o json").says(&["\"kind\": \"Deployment\""]);
    assert_eq!(kubectl.run("get deploy -l app=web -o name").out, "deployment.apps/web\n");
    assert_eq!(kubectl.run("get deploy -l app!=web -o name").out, "");
    assert_eq!(kubectl.run("get ns --field-selector metadata.name=default -o name").out, "namespace/default\n");
    kubectl.run("describe deploy web").says(&["Image:         registry.example.com/web:1"]);
    kubectl.run("delete deploy web").says(&["\"web\" deleted"]);
    kubectl.run("get deploy web").fails(&["Error from server (NotFound): deployments.apps \"web\" not found"]);
}

#[test]
#[ignore = "needs the kubectl of the control plane"]
fn objects_are_changed_in_every_way() {
    let sandbox = Sandbox::start(&["examples/policies"]);
    let kubectl = Kubectl(&sandbox);
    let editor = sandbox.directory().join("editor");
    fs::write(&editor, "#!/bin/sh\nsed -i 's/replicas: 4/replicas: 7/' \"$1\"\n").expect("a script");
    fs::set_permissions(&editor, fs::Permissions::from_mode(0o755)).expect("a script");
    kubectl.feed("apply -f -", WEB).says(&["created"]);

    let more = WEB.replace("replicas: 2", "replicas: 3");
    let difference = kubectl.feed("diff -f -", &more);
    assert!(!difference.done && difference.out.contains("-  replicas: 2\n+  replicas: 3\n"), "{}", difference.out);
    kubectl.run("label deploy web tier=front").says(&["labeled"]);
    kubectl.run("annotate deploy web note=x").says(&["annotated"]);
    kubectl.run("patch deploy web -p {\"spec\":{\"replicas\":5}}").says(&["patched"]);
    kubectl.run("patch deploy web --type=merge -p {\"spec\":{\"paused\":true}}").says(&["patched"]);
    let remove = "[{\"op\":\"remove\",\"path\":\"/spec/paused\"}]";
    kubectl.run(&format!("patch deploy web --type=json -p {remove}")).says(&["patched"]);
    kubectl.run("scale deploy web --replicas=4").says(&["scaled"]);
    kubectl.run("edit deploy web").says(&["edited"]);
    let shown = "get deploy web -o jsonpath={.metadata.labels.tier},{.metadata.annotations.note},{.spec.paused},{.spec.replicas}";
    assert_eq!(kubectl.run(shown).out, "front,x,,7");

    kubectl
        .feed("apply --server-side -f -", &more)
        .fails(&["Apply failed with 1 conflict: conflict with \"kubectl-edit\" using apps/v1: .spec.replicas"]);
    kubectl.feed("apply --server-side --force-conflicts -f -", &more).says(&["serverside-applied"]);
    assert_eq!(kubectl.run("get deploy web -o jsonpath={.spec.replicas}").out, "3");
    kubectl.feed("replace -f -", &WEB.replace("name: web,", "name: other,")).fails(&["NotFound"]);
}

#[test]
#[ignore = "needs the kubectl of the control plane"]
fn policies_are_at_work() {
    let sandbox = Sandbox::start(&["examples/policies"]);
    let kubectl = Kubectl(&sandbox);
    kubectl.run("run web --image=nginx").fails(&[
        "Error from server: admission webhook \"validate.kyverno.svc-fail\" denied the request:",
        "allowed-registries:\n  images: 'validation failure: Images come from",
    ]);
    kubectl.run("create namespace orders").says(&["created"]);
    kubectl.run("wait --for=create networkpolicy/deny-all -n orders --timeout=30s").says(&["condition met"]);
    kubectl.run("delete networkpolicy deny-all -n orders").says(&["deleted"]);
    kubectl.run("wait --for=create networkpolicy/deny-all -n orders --timeout=30s").says(&["condition met"]);
    eventually("an Event about the refusal", || {
        let events = kubectl.run("get events");
        (events.out.contains("PolicyViolation") && !events.out.contains("<unknown>")).then_some(())
    });
    eventually("the Event of the policy", || {
        let described = kubectl.run("describe clusterpolicy allowed-registries");
        described.out.contains("Pod default/web: [images] fail (blocked)").then_some(())
    });
    kubectl.run("delete namespace orders").says(&["deleted"]);
    kubectl.run("get networkpolicy -A").says(&[]);
}

#[test]
#[ignore = "needs the kubectl of the control plane"]
fn definitions_make_kinds() {
    let sandbox = Sandbox::start(&[]);
    let kubectl = Kubectl(&sandbox);
    kubectl.feed("apply -f -", DEFINITION).says(&["created"]);
    kubectl.run("wait --for=condition=Established crd/widgets.example.com").says(&["condition met"]);
    kubectl.feed("apply -f -", &widget("{size: 9, colour: blue}")).fails(&[
        "* spec.colour: Unsupported value: \"blue\": supported values: \"red\", \"green\"",
        "* spec.size: Invalid value: 9: spec.size in body should be less than or equal to 5",
    ]);
    kubectl.feed("apply -f -", &widget("{size: 2, extra: 1}")).fails(&["unknown field \"spec.extra\""]);
    kubectl.feed("apply -f -", &widget("{size: 3}")).says(&["widget.example.com/a created"]);
    assert_eq!(kubectl.run("get wd").rows()[0], "NAME SIZE");
    assert_eq!(kubectl.run("get all -o name").out, "widget.example.com/a\n");
    kubectl.run("explain widget.spec").says(&["size\t<integer> -required-", "How large it is."]);
    kubectl.run("scale wd a --replicas=4").says(&["scaled"]);
    kubectl
        .run("patch wd a --subresource=status --type=merge -p {\"status\":{\"phase\":\"Ready\"}}")
        .says(&["patched"]);
    kubectl.run("wait --for=jsonpath={.status.phase}=Ready wd/a").says(&["condition met"]);
    assert_eq!(kubectl.run("get wd a -o jsonpath={.spec.colour},{.spec.size}").out, "red,4");
    kubectl.run("delete crd widgets.example.com").says(&["deleted"]);
    kubectl.run("get wd").fails(&[]);
}

#[test]
#[ignore = "needs the kubectl of the control plane"]
fn mistakes_are_told_as_an_api_server_tells_them() {
    let sandbox = Sandbox::start(&[]);
    let kubectl = Kubectl(&sandbox);
    let odd = "apiVersion: apps/v1\nkind: Deploymint\nmetadata: {name: d}\n";
    kubectl.feed("apply -f -", odd).fails(&["no matches for kind \"Deploymint\" in version \"apps/v1\""]);
    kubectl.run("get pods --field-selector spec.foo=bar").fails(&["field label not supported: spec.foo"]);
    kubectl.run("create configmap c --from-literal=a=1").says(&["created"]);
    kubectl.run("create cronjob c --image=x --schedule=@daily -- date").says(&["created"]);
    kubectl.run("create job j --from=cronjob/c").says(&["created"]);
    let map = |value: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: m}}\ndata: {{a: '{value}'}}\n");
    kubectl.feed("apply -f -", &map("1")).says(&["created"]);
    kubectl.feed("apply --server-side -f -", &map("2")).says(&["serverside-applied"]);
    let other = kubectl.feed("apply --server-side --field-manager=other -f -", &map("3"));
    other.fails(&["conflict with \"kubectl\": .data.a"]);
    let forced = "apply --server-side --field-manager=other --force-conflicts -f -";
    kubectl.feed(forced, &map("3")).says(&["serverside-applied"]);
    let rules = DEFINITION.replace("description: How large it is.", "x-kubernetes-validations: [{rule: nope}]");
    kubectl.feed("apply -f -", &rules).fails(&["undeclared reference to 'nope'"]);
}

#[test]
#[ignore = "needs the kubectl of the control plane"]
fn the_server_says_what_it_serves() {
    let sandbox = Sandbox::start(&[]);
    let kubectl = Kubectl(&sandbox);
    kubectl.run("api-resources").says(&["clusterpolicies", "deployments", "deploy"]);
    kubectl.run("api-versions").says(&["apps/v1", "kyverno.io/v1"]);
    kubectl.run("explain deployment.spec.replicas").says(&["FIELD: replicas <integer>"]);
    kubectl.run("auth can-i create pods").says(&["yes"]);
    kubectl.run("auth whoami").says(&["kubernetes-admin"]);
    kubectl.run("version").says(&["Server Version: v1.34"]);
    eventually("what every namespace has", || {
        let found = kubectl.run("get serviceaccount,configmap -n kube-public -o name").out;
        (found == "serviceaccount/default\nconfigmap/kube-root-ca.crt\n").then_some(())
    });
}

#[test]
#[ignore = "needs the kubectl of the control plane"]
fn watches_tell_what_happens() {
    let sandbox = Sandbox::start(&[]);
    let kubectl = Kubectl(&sandbox);
    let seen = sandbox.directory().join("seen");
    let file = fs::File::create(&seen).expect("a file");
    let mut watching =
        kubectl.command("get secret -w -o name --watch-only").stdout(file).spawn().expect("kubectl runs");
    // It tells nothing about itself, so that one Secret after the other is made until it has seen one.
    let mut number = 0;
    let told = eventually("the watch", || {
        number += 1;
        kubectl.run(&format!("create secret generic s{number}")).says(&["created"]);
        Some(fs::read_to_string(&seen).expect("a file")).filter(|text| text.contains("secret/s"))
    });
    let _ = watching.kill();
    let _ = watching.wait();
    assert!(told.lines().all(|line| line.starts_with("secret/s")), "{told}");
}
