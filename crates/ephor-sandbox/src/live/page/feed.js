// Which decisions are listed, which wait while somebody reads, and how many there were. It knows nothing of the page.
"use strict";

// As many as the server keeps of each topic: decisions, and requests that no policy matched.
const KEPT = { decision: 500, request: 100 };

class Feed {
  constructor() {
    this.clear();
  }

  clear() {
    // What is listed, newest first.
    this.entries = [];
    // What came while somebody read, oldest first.
    this.waiting = [];
    // How many that the filter shows came meanwhile and do not wait any more, as newer ones took their place.
    this.dropped = 0;
    // How many there were of each topic, also those that are not kept.
    this.totals = { decision: 0, request: 0 };
  }

  // Lists an entry; gives those that leave the list for it.
  add(entry) {
    this.entries.unshift(entry);
    const old = this.entries.filter((other) => other.topic === entry.topic).slice(KEPT[entry.topic]);
    this.entries = this.entries.filter((other) => !old.includes(other));
    return old;
  }

  // Keeps an entry for later. Each topic has its own bound, so that requests push no decision out.
  wait(entry, wanted) {
    this.waiting.push(entry);
    const same = this.waiting.filter((other) => other.topic === entry.topic);
    if (same.length <= KEPT[entry.topic]) return;
    this.waiting.splice(this.waiting.indexOf(same[0]), 1);
    if (matches(same[0], wanted)) this.dropped += 1;
  }

  // Gives what waited, oldest first.
  release() {
    const list = this.waiting;
    this.waiting = [];
    this.dropped = 0;
    return list;
  }

  // What the page says of its lists under a filter.
  counts(wanted) {
    const counted = (topic) => topic === "decision" || wanted.unmatched;
    const total = this.totals.decision + (wanted.unmatched ? this.totals.request : 0);
    const kept = this.entries.filter((entry) => counted(entry.topic)).length;
    const shown = this.entries.filter((entry) => matches(entry, wanted)).length;
    const news = this.waiting.filter((entry) => matches(entry, wanted)).length + this.dropped;
    let text = `${total || ""}`;
    if (kept < total) text = `${this.waiting.length > 0 ? "" : "latest "}${kept} of ${total}`;
    if (shown < kept) text = `${shown} shown, ${text}`;
    return { total, shown, news, text };
  }
}

// Whether the filter shows an entry.
function matches(entry, wanted) {
  if (wanted.verdict !== "" && entry.outcome !== wanted.verdict) return false;
  if (wanted.namespace !== "" && entry.namespace !== wanted.namespace) return false;
  if (wanted.text !== "" && !entry.searched.includes(wanted.text)) return false;
  if (entry.topic === "request") return wanted.unmatched && wanted.policy === "";
  return wanted.policy === "" || entry.policies.includes(wanted.policy);
}
