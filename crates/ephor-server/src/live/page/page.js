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

const place = (object) => `${object.kind} ${object.namespace ? object.namespace + "/" : ""}${object.name}`;

function policy(policy) {
  const ready = policy.ready ? null : make("span", "not-ready", " not ready");
  const head = make("strong", "", policy.name);
  const rules = make("p", "quiet", policy.rules.join(", "));
  const message = policy.message ? make("p", "not-ready", policy.message) : null;
  return make("li", "", head, make("span", "quiet", ` ${policy.kind}`), ready, rules, message);
}

function object(object) {
  const from = [["policy", object.policy], ["rule", object.rule], ["trigger", object.trigger], ["source", object.source]];
  const lines = from.filter(([, value]) => value).map(([name, value]) => make("p", "quiet", `${name} ${value}`));
  return make("li", "", make("strong", "", place(object)), ...lines);
}

function diff(text) {
  const lines = text.split("\n").map((line) => {
    const kind = line.startsWith("+") ? "added" : line.startsWith("-") ? "removed" : "";
    return make("span", kind, line + "\n");
  });
  return make("pre", "", ...lines);
}

function rule(rule) {
  const head = make("p", "", make("span", `verdict ${rule.verdict}`, rule.verdict), ` ${rule.policy} / ${rule.rule}`);
  const steps = rule.steps.map((step) => {
    const line = make("li", "", step.text);
    line.title = step.place;
    return line;
  });
  return make("div", "rule", head, make("ul", "steps", ...steps));
}

function decision(decision) {
  const word = decision.allowed ? "allowed" : "denied";
  const subresource = decision.subresource ? "/" + decision.subresource : "";
  const summary = make(
    "summary", "",
    make("span", `verdict ${word}`, word),
    make("span", "", `${decision.operation.toLowerCase()} ${place(decision)}${subresource}`),
    make("time", "", decision.time),
    make("span", "user", decision.user),
  );
  const details = make("details", "", summary);
  details.open = !decision.allowed;
  if (decision.message) details.append(make("pre", "denied", decision.message));
  if (decision.changed) details.append(diff(decision.changed));
  details.append(...decision.rules.map(rule));
  if (!decision.rules.length) details.append(make("p", "quiet", "no rule applies"));
  return make("li", "", details);
}

const KEPT = 200;

function listen() {
  const events = new EventSource("events?token=" + encodeURIComponent(location.hash.slice(1)));
  const replace = (id, item) => (event) => byId(id).replaceChildren(...JSON.parse(event.data).map(item));
  events.addEventListener("open", () => {
    // Everything is said again after a break.
    byId("decisions").replaceChildren();
    byId("state").textContent = "connected";
  });
  events.addEventListener("error", () => {
    const over = events.readyState === EventSource.CLOSED;
    byId("state").textContent = over ? "not allowed: open the address that the sandbox printed" : "connecting";
  });
  events.addEventListener("policies", replace("policies", policy));
  events.addEventListener("objects", replace("objects", object));
  events.addEventListener("decision", (event) => {
    const list = byId("decisions");
    list.prepend(decision(JSON.parse(event.data)));
    while (list.childElementCount > KEPT) list.lastElementChild.remove();
  });
}

listen();
