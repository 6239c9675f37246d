// Elements of the page. Everything that comes from the cluster becomes text, never markup.
"use strict";

const byId = (id) => document.getElementById(id);

// An element with a class and children; strings become text.
function make(tag, className, ...children) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  element.append(...children.filter((child) => child !== null));
  return element;
}

function button(className, text, action) {
  const element = make("button", className, text);
  element.type = "button";
  element.addEventListener("click", (event) => {
    // A button in a summary must not open or close it.
    event.preventDefault();
    action(element);
  });
  return element;
}

const tag = (className, text) => make("span", `tag ${className}`, text);
const place = (object) => `${object.kind} ${object.namespace ? object.namespace + "/" : ""}${object.name}`;

async function copy(element, text) {
  try {
    await navigator.clipboard.writeText(text);
    element.textContent = "copied";
  } catch {
    element.textContent = "cannot copy";
  }
  setTimeout(() => { element.textContent = "copy"; }, 1500);
}

const copyButton = (text) => button("quiet-button", "copy", (element) => copy(element, text()));

function dialog(title, text) {
  const box = byId("yaml");
  const content = make("pre", "", text);
  const close = button("quiet-button", "close", () => box.close());
  box.replaceChildren(make("header", "", make("strong", "", title), copyButton(() => text), close), content);
  box.showModal();
}

async function showYaml(object) {
  const query = new URLSearchParams({ token: location.hash.slice(1), path: object.path });
  const response = await fetch("object?" + query).catch(() => null);
  const missing = response?.status === 404 ? "It does not exist in the sandbox (any more)." : "The sandbox does not answer.";
  dialog(place(object), response?.ok ? await response.text() : missing);
}

const yamlButton = (object) => object.path ? button("quiet-button", "YAML", () => showYaml(object)) : null;

function diff(text) {
  // The first two lines name files that do not exist.
  const lines = text.split("\n").filter((line) => line && !/^(---|\+\+\+) /.test(line)).map((line) => {
    const kind = { "+": "added", "-": "removed", "@": "hunk" }[line[0]] ?? "";
    return make("span", kind, line);
  });
  return make("pre", "", ...lines);
}

function policyItem(policy, show) {
  const ready = policy.ready ? null : tag("odd", "not ready");
  const kind = policy.kind === "ClusterPolicy" ? null : make("span", "quiet", ` ${policy.kind}`);
  const count = button("quiet-button", "decisions", () => show({ policy: policy.name }));
  const rules = policy.rules.map((rule) => make("li", "", make("span", "quiet", rule.name), tag(rule.does, rule.does)));
  const findings = policy.findings.map((finding) => make("p", "quiet", finding));
  const tools = make("div", "tools", count, yamlButton(policy));
  const item = make("li", "", make("strong", "", policy.name), kind, ready, make("ul", "rules", ...rules), ...findings, tools);
  item.dataset.key = policy.name;
  return item;
}

function objectItem(object, show) {
  const lineage = [["policy", object.policy], ["rule", object.rule], ["for", object.trigger], ["copy of", object.source]];
  const entries = lineage.filter(([, value]) => value).flatMap(([name, value]) => {
    const shown = name === "policy" ? button("link", value, () => goTo("policies", value)) : value;
    return [make("dt", "", name), make("dd", "", shown)];
  });
  const decisions = button("quiet-button", "decisions", () => show({ text: place(object) }));
  const tools = make("div", "tools", decisions, yamlButton({ ...object }));
  const item = make("li", "", make("strong", "", place(object)), make("dl", "", ...entries), tools);
  item.dataset.key = place(object);
  return item;
}

// Scrolls to an entry of a list and marks it for a moment.
function goTo(list, key) {
  const item = [...byId(list).children].find((child) => child.dataset.key === key);
  if (!item) return;
  item.scrollIntoView({ block: "center", behavior: "smooth" });
  item.classList.add("found");
  setTimeout(() => item.classList.remove("found"), 1600);
}

function ruleBlock(rule) {
  const name = make("span", "", button("link", rule.policy, () => goTo("policies", rule.policy)), make("span", "quiet", ` / ${rule.rule}`));
  const steps = rule.steps.map((step) => {
    // Most steps begin with their place, as seen from the rule.
    const said = step.place !== "" && step.text.startsWith(step.place.replace(/^spec\.rules\[\d+\]\./, ""));
    const line = make("li", "", make("span", "", step.text), make("code", "", said ? "" : step.place));
    line.title = step.place;
    return line;
  });
  return make("div", "rule", make("p", "", tag(rule.verdict, rule.verdict || "no match"), name), make("ul", "steps", ...steps));
}

const isViolation = (rule) => rule.verdict === "fail" || rule.verdict === "error";

// A service account as `namespace/name`.
const shortUser = (user) => user.replace(/^system:serviceaccount:([^:]+):/, "$1/");

// How a decision ended, for its colour, the filter and its tag.
function outcome(decision) {
  const violations = decision.rules.filter(isViolation).length;
  if (decision.ended === "allowed" && violations > 0) {
    return { name: "violation", text: `allowed · ${violations} ${violations === 1 ? "violation" : "violations"}` };
  }
  return { name: decision.ended, text: decision.ended };
}

// The reason in one line, for a decision that is not open.
function reason(decision) {
  const rule = decision.rules.find(isViolation);
  return rule ? `${rule.policy}: ${rule.steps.at(-1)?.text ?? ""}` : "";
}

function plainText(decision) {
  const rules = decision.rules.flatMap((rule) => [`${rule.policy} / ${rule.rule}: ${rule.verdict}`, ...rule.steps.map((step) => "  " + step.text)]);
  const head = `${decision.time} ${outcome(decision).text}: ${decision.verb} ${place(decision)} by ${decision.user}`;
  return [head, decision.message, decision.changed, ...rules].filter((part) => part).join("\n");
}

function decisionItem(decision, objectExists) {
  const { name, text } = outcome(decision);
  const subresource = decision.subresource ? "/" + decision.subresource : "";
  const time = make("time", "", new Date(decision.time).toLocaleTimeString());
  time.dateTime = decision.time;
  time.title = new Date(decision.time).toLocaleString();
  const when = make("span", "when", decision.user ? make("span", "by", `${shortUser(decision.user)} · `) : null, time);
  when.title = decision.user;
  const summary = make(
    "summary", "",
    tag(name, text),
    decision.dryRun ? tag("odd", "dry run") : null,
    make("span", "what", make("em", "", decision.verb + " "), place(decision) + subresource),
    make("span", "why", reason(decision)),
    when,
  );
  const details = make("details", "", summary);
  // Built when it is opened: hundreds of decisions may be listed.
  details.addEventListener("toggle", () => {
    if (!details.open || details.childElementCount > 1) return;
    if (decision.message) details.append(make("pre", "denied", decision.message));
    if (decision.changed) details.append(diff(decision.changed));
    details.append(...decision.rules.map(ruleBlock));
    const generated = objectExists(place(decision)) ? button("quiet-button", "generated object", () => goTo("objects", place(decision))) : null;
    details.append(make("div", "tools", generated, yamlButton(decision), copyButton(() => plainText(decision))));
  });
  return make("li", "", details);
}
