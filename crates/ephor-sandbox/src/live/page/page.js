// The live view: keeps the lists, filters decisions and follows the events of the sandbox.
"use strict";

const FILTERS = ["verdict", "policy", "namespace", "text", "unmatched"];

const feed = new Feed();
// The decisions that were opened because they are the newest, or the newest of those allowed with violations.
let opened = [];

const filter = () => ({
  verdict: byId("verdict").value,
  policy: byId("policy").value,
  namespace: byId("namespace").value,
  text: byId("text").value.trim().toLowerCase(),
  unmatched: byId("unmatched").checked,
});

function counts() {
  const { total, shown, news, text } = feed.counts(filter());
  byId("decisions-count").textContent = text;
  byId("no-decisions").hidden = total > 0;
  byId("none-shown").hidden = total === 0 || shown > 0;
  byId("news").textContent = `${news} new`;
  byId("news").hidden = news === 0;
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
  for (const entry of feed.entries) entry.item.hidden = !matches(entry, wanted);
  counts();
  releaseAtTop();
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
  details.addEventListener("toggle", releaseAtTop);
  for (const old of feed.add(entry)) old.item.remove();
}

// Whether new entries would move what the reader looks at: the page is scrolled, or a decision that the reader opened is
// in the window.
function isReading() {
  if (scrollY > 0) return true;
  const inWindow = (element) => element.getBoundingClientRect().top < innerHeight;
  return [...byId("decisions").querySelectorAll("li:not([hidden]) > details[open]:not([data-auto])")].some(inWindow);
}

function release() {
  feed.release().forEach(add);
  counts();
}

function releaseAtTop() {
  if (feed.waiting.length > 0 && !isReading()) release();
}

function received(topic, event) {
  const decision = JSON.parse(event.data);
  feed.totals[topic] = Number(event.lastEventId);
  const entry = {
    topic,
    decision,
    outcome: outcome(decision).name,
    namespace: decision.namespace,
    policies: decision.rules.map((rule) => rule.policy),
    searched: plainText(decision).toLowerCase() + " " + place(decision).toLowerCase(),
  };
  if (topic === "decision") offer("policy", entry.policies);
  offer("namespace", [decision.namespace]);
  if (isReading()) {
    feed.wait(entry, filter());
    counts();
  } else {
    if (feed.waiting.length > 0) release();
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
    feed.clear();
    opened = [];
    byId("decisions").replaceChildren();
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
  scrollTo(0, 0);
});
addEventListener("scroll", releaseAtTop, { passive: true });
listen();
