"use strict";
(() => {
  const all = (selector, within = document) => Array.from(within.querySelectorAll(selector));
  const bar = document.getElementById("filters");
  const fields = {
    path: document.getElementById("by-path"),
    rule: document.getElementById("by-rule"),
    severity: document.getElementById("by-severity"),
    confidence: document.getElementById("by-confidence"),
  };
  const reasons = document.getElementById("reasons");
  const shown = document.getElementById("shown");
  const items = all("[data-rule]");
  const groups = all("[data-path]");

  const pathOf = (item) => item.closest("[data-path]").dataset.path.toLowerCase();

  function matches(item) {
    return pathOf(item).includes(fields.path.value.trim().toLowerCase())
      && ["rule", "severity", "confidence"].every(
        (name) => !fields[name].value || fields[name].value === item.dataset[name]);
  }

  function count(kind) {
    const total = items.filter((item) => item.dataset.kind === kind);
    const seen = total.filter((item) => !item.hidden).length;
    return `${seen} / ${total.length}`;
  }

  function filter() {
    const path = fields.path.value.trim().toLowerCase();
    const narrowed = ["rule", "severity", "confidence"].some((name) => fields[name].value);
    for (const item of items) item.hidden = !matches(item);
    for (const group of groups) {
      const members = group.matches("[data-rule]") ? [group] : all("[data-rule]", group);
      group.hidden = members.length > 0
        ? members.every((item) => item.hidden) && (narrowed || path !== "")
        : narrowed || !group.dataset.path.toLowerCase().includes(path);
    }
    // The findings of a group share one text, which is hidden if all of them are.
    for (const group of all("[data-group]")) group.hidden = all("[data-rule]", group).every((item) => item.hidden);
    const { findings, edits, colon } = shown.dataset;
    shown.textContent = `${findings}${colon}${count("finding")} · ${edits}${colon}${count("edit")}`;
  }

  // The page contains unchanged lines only once; both sides are built when a fold is opened.
  function unfold(fold) {
    const text = fold.querySelector("pre");
    if (!text) return;
    const table = document.createElement("table");
    table.className = "diff";
    table.append(document.getElementById("columns").content.cloneNode(true));
    const body = table.createTBody();
    text.textContent.split("\n").forEach((line, index) => {
      const row = body.insertRow();
      for (const side of ["left", "right"]) {
        const number = row.insertCell();
        number.className = "at";
        number.textContent = Number(fold.dataset[side]) + index;
        const code = row.insertCell();
        code.className = "side";
        code.textContent = line;
      }
    });
    text.replaceWith(table);
  }

  function open(element) {
    for (let at = element; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  }

  function follow() {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    open(target);
    target.scrollIntoView({ block: "center" });
  }

  function go(step) {
    const stops = items.filter((item) => !item.hidden && item.closest("[hidden]") === null
      && !(document.body.classList.contains("quiet") && item.matches("tr.edit")));
    if (!stops.length) return;
    const here = stops.indexOf(document.activeElement.closest("[data-rule]"));
    const next = here < 0 ? (step > 0 ? 0 : stops.length - 1) : here + step;
    const stop = stops[Math.min(Math.max(next, 0), stops.length - 1)];
    open(stop);
    stop.focus({ preventScroll: true });
    stop.scrollIntoView({ block: "center" });
  }

  document.addEventListener("toggle", (event) => {
    if (event.target.open && event.target.matches("details.fold")) unfold(event.target);
  }, true);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches("input, select, textarea")) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (event.key === "n") go(1);
    else if (event.key === "p") go(-1);
    else if (event.key === "/") {
      event.preventDefault();
      fields.path.focus();
    }
  });
  for (const field of Object.values(fields)) field.addEventListener("input", filter);
  reasons.addEventListener("change", () => document.body.classList.toggle("quiet", !reasons.checked));
  document.getElementById("reset").addEventListener("click", () => {
    for (const field of Object.values(fields)) field.value = "";
    filter();
  });
  for (const button of all("button[data-choose]")) {
    button.addEventListener("click", () => {
      fields.rule.value = button.dataset.choose;
      filter();
      bar.scrollIntoView();
    });
  }
  for (const button of all("button[data-open]")) {
    button.addEventListener("click", () => {
      for (const file of all("details.file")) file.open = button.dataset.open === "yes";
    });
  }
  for (const part of all("[data-needs-script]")) part.hidden = false;
  window.addEventListener("hashchange", follow);
  filter();
  follow();
})();
