"use strict";
// Keeps the page fresh. Texts are set as text, never as markup; what is shown where, and in which
// form, is written in the page (data-k, data-f). The forms are those of outboxd.core.figures.
(() => {
  const EVERY_MS = 3000, PATIENCE_MS = 5000, UNKNOWN = "\u2013";
  const WORDS = {healthy: "Healthy", degraded: "Degraded", unhealthy: "Unhealthy",
    starting: "Starting", stopping: "Stopping", lost: "No answer"};
  const UNITS = [[86400, "d", 3600, "h"], [3600, "h", 60, "min"], [60, "min", 1, "s"]];
  const whole = value => Math.round(value).toLocaleString("en-US");
  const long = value => {
    for (const [length, unit, part, smaller] of UNITS) {
      if (value < length) continue;
      const more = Math.floor(value % length / part);
      return Math.floor(value / length) + " " + unit + (more ? " " + more + " " + smaller : "");
    }
    return value + " s";
  };
  const forms = {
    text: String,
    count: whole,
    rate: value => value <= 0 ? "0/s" : value < 0.01 ? "<0.01/s" : value < 1 ? value.toFixed(2) + "/s"
      : value < 100 ? value.toFixed(1) + "/s" : whole(value) + "/s",
    seconds: value => value < 0.9995 ? Math.max(0, Math.round(value * 1000)) + " ms"
      : value < 9.95 ? value.toFixed(1) + " s" : long(Math.round(value)),
    ago: value => value < 1 ? "just now" : long(Math.floor(value)) + " ago",
    size: value => {
      for (const [unit, name] of [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]])
        if (value >= unit) return (value / unit < 9.95 ? (value / unit).toFixed(1) : Math.round(value / unit)) + " " + name;
      return Math.round(value) + " B";
    },
    share: value => value > 0 && value < 0.005 ? "<1 %" : Math.round(value * 100) + " %",
    up: value => value ? "reached" : "not reached",
  };
  const form = (name, value) => value === null || value === undefined ? UNKNOWN : forms[name](value);
  const at = (status, path) => path.split(".").reduce((value, step) => value[step], status);
  const byId = id => document.getElementById(id);
  const say = (element, text) => { if (element.textContent !== text) element.textContent = text; };
  const make = (tag, text, attributes) => {
    const element = document.createElement(tag);
    element.textContent = text;
    for (const [name, value] of Object.entries(attributes || {})) element.setAttribute(name, value);
    return element;
  };

  function shape(status) {
    const outbox = status.outbox;
    return [...status.children.map(each => each.name), ...status.queues.map(each => each.name),
      ...status.handlers.map(each => each.queue + " " + each.name),
      ...(outbox ? outbox.destinations.map(each => each.name) : []), outbox ? "outbox" : ""].join("|");
  }
  function cells(status) {
    for (const element of document.querySelectorAll("[data-k]")) {
      const value = at(status, element.dataset.k);
      say(element, form(element.dataset.f, value));
      if ("v" in element.dataset) element.dataset.v = value === true ? "True" : value === false ? "False" : value === null ? "None" : String(value);
      if ("hot" in element.dataset) element.classList.toggle("hot", value !== null && value >= Number(element.dataset.hot));
    }
    for (const element of document.querySelectorAll("[data-marks]")) {
      const queue = at(status, element.dataset.marks);
      say(element, [...(queue.paused ? ["paused"] : []), ...queue.blocked_by].join(", "));
    }
  }
  function sparks(status) {
    for (const element of document.querySelectorAll("[data-spark]")) {
      const values = at(status, element.dataset.spark), known = values.filter(value => value !== null);
      const most = Math.max(0, ...known), name = element.dataset.f;
      let line = "", pen = "M";
      values.forEach((value, place) => {
        if (value === null) { pen = "M"; return; }
        line += pen + (90 - values.length + place) + " " + (22.5 - value / (most || 1) * 21).toFixed(1) + "h1";
        pen = "L";
      });
      element.firstElementChild.setAttribute("d", line);
      element.setAttribute("aria-label", element.dataset.name + ", " + (known.length
        ? "last 15 minutes: at most " + form(name, most) + ", now " + form(name, values[values.length - 1])
        : "nothing known yet"));
    }
  }
  function verdict(health, summary, where) {
    document.body.dataset.health = health;
    say(byId("word"), WORDS[health]);
    say(byId("summary"), summary);
    document.title = WORDS[health] + " - outboxd on " + where;
  }
  function lists(status) {
    const look = (parent, each) => { if (each.look) parent.append(" ", make("code", each.look)); };
    byId("problems").replaceChildren(...status.problems.map(each => {
      const item = make("li", "", {class: each.level}), text = make("span", each.text);
      look(text, each);
      item.append(make("span", each.level, {class: "level"}), " ", text);
      return item;
    }));
    byId("errors").replaceChildren(...status.errors.map(each => {
      const row = make("tr", "", {role: "row"});
      const cell = (head, text) => make("td", text, {role: "cell", "data-head": head});
      const what = cell("What", "");
      what.append(make("span", each.text, {class: each.level}));
      look(what, each);
      row.append(make("th", form("ago", each.seconds_ago), {scope: "row", role: "rowheader", "data-head": "Last"}),
        cell("Where", each.source), what, cell("Times", form("count", each.count)));
      return row;
    }));
  }

  let seen = Date.now(), where = document.querySelector('[data-k="host"]').textContent;
  async function refresh() {
    try {
      const answer = await fetch("/status.json", {cache: "no-store", signal: AbortSignal.timeout(PATIENCE_MS)});
      if (!answer.ok) throw new Error(String(answer.status));
      const status = await answer.json();
      if (shape(status) !== document.body.dataset.shape) { location.reload(); return; }
      seen = Date.now();
      where = status.host;
      cells(status); sparks(status); lists(status);
      verdict(status.health, status.summary, where);
      document.body.dataset.refreshed = String(status.at);
    } catch (error) {
      verdict("lost", "What is below was true at " + new Date(seen).toLocaleTimeString() + ".", where);
    }
  }
  async function keepFresh() {
    if (!document.hidden) await refresh();
    setTimeout(keepFresh, EVERY_MS);
  }
  document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
  keepFresh();
})();
