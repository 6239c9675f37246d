// The live view. Everything that comes from the cluster is shown as text, never as markup.
"use strict";

const byId = (id) => document.getElementById(id);

// An element with a class and children; strings become text.
function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children.filter((child) => child !== null));
  return element;
}

const tag = (className, text) => make("span", `tag ${className}`, text);
const place = (object) => `${object.kind} ${object.namespace ? object.namespace + "/" : ""}${object.name}`;

function policy(policy) {
  const ready = policy.ready ? null : tag("odd", "not ready");
  const kind = policy.kind === "ClusterPolicy" ? null : make("span", "quiet", ` ${policy.kind}`);
  const rules = policy.rules.map((rule) => make("li", "", make("span", "quiet", rule.name), tag(rule.does, rule.does)));
  const findings = policy.findings.map((finding) => make("p", "quiet", finding));
  return make("li", "", make("strong", "", policy.name), kind, ready, make("ul", "rules", ...rules), ...findings);
}

function object(object) {
  const lineage = [["policy", object.policy], ["rule", object.rule], ["for", object.trigger], ["copy of", object.source]];
  const entries = lineage.filter(([, value]) => value).flatMap(([name, value]) => [make("dt", "", name), make("dd", "", value)]);
  return make("li", "", make("strong", "", place(object)), make("dl", "", ...entries));
}

function diff(text) {
  // The first two lines name files that do not exist.
  const lines = text.split("\n").filter((line) => line && !/^(---|\+\+\+) /.test(line)).map((line) => {
    const kind = { "+": "added", "-": "removed", "@": "hunk" }[line[0]] ?? "";
    return make("span", kind, line);
  });
  return make("pre", "", ...lines);
}

function rule(rule) {
  const name = make("span", "", make("strong", "", rule.policy), make("span", "quiet", ` / ${rule.rule}`));
  const steps = rule.steps.map((step) => {
    // Most steps begin with their place, as seen from the rule.
    const said = step.place !== "" && step.text.startsWith(step.place.replace(/^spec\.rules\[\d+\]\./, ""));
    const line = make("li", "", make("span", "", step.text), make("code", "", said ? "" : step.place));
    line.title = step.place;
    return line;
  });
  return make("div", "rule", make("p", "", tag(rule.verdict, rule.verdict), name), make("ul", "steps", ...steps));
}

function decision(decision) {
  const subresource = decision.subresource ? "/" + decision.subresource : "";
  const summary = make(
    "summary", "",
    tag(decision.ended, decision.ended),
    make("span", "what", make("em", "", decision.verb + " "), place(decision) + subresource),
    make("span", "when", decision.user ? `${decision.user} · ${decision.time}` : decision.time),
  );
  const details = make("details", "", summary);
  details.open = decision.ended !== "allowed" || decision.changed !== "";
  if (decision.message) details.append(make("pre", "denied", decision.message));
  if (decision.changed) details.append(diff(decision.changed));
  details.append(...decision.rules.map(rule));
  return make("li", "", details);
}

const KEPT = 200;

function counted(list) {
  list.parentElement.querySelector(".count").textContent = list.childElementCount || "";
}

function state(text, className) {
  byId("state").textContent = text;
  byId("state").className = className;
}

function listen() {
  const events = new EventSource("events?token=" + encodeURIComponent(location.hash.slice(1)));
  const replace = (id, item) => (event) => {
    byId(id).replaceChildren(...JSON.parse(event.data).map(item));
    counted(byId(id));
  };
  events.addEventListener("open", () => {
    // Everything is said again after a break.
    byId("decisions").replaceChildren();
    state("connected", "connected");
  });
  events.addEventListener("error", () => {
    const over = events.readyState === EventSource.CLOSED;
    state(over ? "not allowed: open the address that the sandbox printed" : "connecting", over ? "over" : "");
  });
  events.addEventListener("policies", replace("policies", policy));
  events.addEventListener("objects", replace("objects", object));
  events.addEventListener("decision", (event) => {
    const list = byId("decisions");
    list.prepend(decision(JSON.parse(event.data)));
    while (list.childElementCount > KEPT) list.lastElementChild.remove();
    counted(list);
  });
}

listen();
