// The live view: keeps the lists, filters decisions and follows the events of the sandbox.
"use strict";

// As many as the server keeps.
const KEPT = { decision: 500, request: 100 };
const FILTERS = ["verdict", "policy", "namespace", "text", "unmatched"];

// Decisions and requests without a policy, newest first, each with its list item.
const entries = [];
// How many there were of each topic, also those that are not kept.
const totals = { decision: 0, request: 0 };
// Entries that wait until the reader is back at the top.
let waiting = [];
// The decisions that were opened because they are the newest, or the newest of those allowed with violations.
let opened = [];

const filter = () => ({
  verdict: byId("verdict").value,
  policy: byId("policy").value,
  namespace: byId("namespace").value,
  text: byId("text").value.trim().toLowerCase(),
  unmatched: byId("unmatched").checked,
});

function matches(entry, wanted) {
  const { decision } = entry;
  if (entry.topic === "request") return wanted.unmatched && wanted.policy === "" && inText(entry, wanted);
  return (wanted.verdict === "" || entry.outcome === wanted.verdict)
    && (wanted.policy === "" || decision.rules.some((rule) => rule.policy === wanted.policy))
    && inText(entry, wanted);
}

function inText(entry, wanted) {
  return (wanted.namespace === "" || entry.decision.namespace === wanted.namespace)
    && (wanted.text === "" || entry.searched.includes(wanted.text));
}

function counts() {
  const wanted = filter();
  const shown = entries.filter((entry) => matches(entry, wanted)).length;
  const total = totals.decision + (wanted.unmatched ? totals.request : 0);
  const kept = entries.filter((entry) => wanted.unmatched || entry.topic === "decision").length;
  const latest = kept < total ? `latest ${kept} of ${total}` : `${total || ""}`;
  byId("decisions-count").textContent = shown < kept ? `${shown} shown, ${latest}` : latest;
  byId("no-decisions").hidden = total > 0;
  byId("none-shown").hidden = total === 0 || shown > 0;
}

// Offers each policy and namespace that a decision names.
function offer(id, values) {
  const select = byId(id);
  const known = new Set([...select.options].map((option) => option.value));
  for (const value of values) {
    if (!value || known.has(value)) continue;
    known.add(value);
    const after = [...select.options].slice(1).find((option) => option.value > value);
    select.add(new Option(value, value), after ?? null);
  }
}

function applyFilter() {
  const wanted = filter();
  for (const entry of entries) entry.item.hidden = !matches(entry, wanted);
  counts();
}

function show(wanted) {
  for (const id of FILTERS) {
    const control = byId(id);
    if (control.type === "checkbox") control.checked = wanted[id] ?? false;
    else control.value = wanted[id] ?? "";
  }
  // A policy that decided nothing yet is not offered as a filter.
  if (wanted.policy && byId("policy").value === "") {
    offer("policy", [wanted.policy]);
    byId("policy").value = wanted.policy;
  }
  applyFilter();
  byId("h-decisions").scrollIntoView({ block: "start", behavior: "smooth" });
}

function add(entry) {
  const list = byId("decisions");
  entry.item = decisionItem(entry.decision, objectExists);
  entry.item.hidden = !matches(entry, filter());
  entries.unshift(entry);
  list.prepend(entry.item);
  const details = entry.item.firstElementChild;
  if (!entry.item.hidden) {
    const violates = entry.outcome === "violation";
    opened = opened.filter((before) => {
      const stays = before.violates && !violates;
      if (before.details.dataset.auto && !stays) before.details.open = false;
      return stays;
    });
    details.open = true;
    details.dataset.auto = "yes";
    // Once the reader closes or opens it, it stays so.
    details.firstElementChild.addEventListener("click", () => { delete details.dataset.auto; });
    opened.push({ details, violates });
  }
  const same = entries.filter((other) => other.topic === entry.topic);
  for (const old of same.slice(KEPT[entry.topic])) {
    entries.splice(entries.indexOf(old), 1);
    old.item.remove();
  }
}

// Whether new entries would move what the reader looks at.
const isReading = () => byId("decisions").getBoundingClientRect().top < 0;

function release() {
  const list = waiting;
  waiting = [];
  list.forEach(add);
  byId("news").hidden = true;
  counts();
}

function received(topic, event) {
  const decision = JSON.parse(event.data);
  totals[topic] = Number(event.lastEventId);
  const searched = plainText(decision).toLowerCase() + " " + place(decision).toLowerCase();
  const entry = { topic, decision, outcome: outcome(decision).name, searched };
  if (topic === "decision") offer("policy", decision.rules.map((rule) => rule.policy));
  offer("namespace", [decision.namespace]);
  if (isReading()) {
    waiting.push(entry);
    const wanted = filter();
    const count = waiting.filter((other) => matches(other, wanted)).length;
    byId("news").textContent = `${count} new`;
    byId("news").hidden = count === 0;
    // What waits is bounded as what is listed.
    if (waiting.length > KEPT.decision) waiting.shift();
  } else {
    if (waiting.length > 0) release();
    add(entry);
    counts();
  }
}

const objectExists = (key) => [...byId("objects").children].some((child) => child.dataset.key === key);

function state(text, className) {
  byId("state").textContent = text;
  byId("state").className = className;
}

function listen() {
  const events = new EventSource("events?token=" + encodeURIComponent(location.hash.slice(1)));
  const replace = (id, item) => (event) => {
    const list = JSON.parse(event.data);
    byId(id).replaceChildren(...list.map((value) => item(value, show)));
    byId(id + "-count").textContent = list.length || "";
    if (id === "policies") offer("policy", list.map((policy) => policy.name));
  };
  events.addEventListener("open", () => {
    // The sandbox sends everything again after a break.
    entries.length = 0;
    waiting = [];
    opened = [];
    totals.decision = totals.request = 0;
    byId("decisions").replaceChildren();
    byId("news").hidden = true;
    counts();
    state("connected", "connected");
  });
  events.addEventListener("error", () => {
    const refused = events.readyState === EventSource.CLOSED;
    state(refused ? "not allowed: open the address that the sandbox printed" : "sandbox stopped", "over");
  });
  events.addEventListener("policies", replace("policies", policyItem));
  events.addEventListener("objects", replace("objects", objectItem));
  for (const topic of Object.keys(KEPT)) events.addEventListener(topic, (event) => received(topic, event));
}

for (const id of FILTERS) byId(id).addEventListener("input", applyFilter);
byId("clear").addEventListener("click", () => show({}));
byId("news").addEventListener("click", () => {
  release();
  byId("h-decisions").scrollIntoView({ block: "start" });
});
addEventListener("scroll", () => { if (waiting.length > 0 && !isReading()) release(); }, { passive: true });
listen();
