const byId = (id) => document.getElementById(id);
const data = JSON.parse(byId("data").textContent);
const make = (tag, text, className) => {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
};
const milliseconds = (ns) => (ns / 1e6).toFixed(3);
const duration = (ns) => ns >= 1e9 ? `${(ns / 1e9).toFixed(3)} s` : ns >= 1e6 ? `${(ns / 1e6).toFixed(3)} ms`
  : ns >= 1e3 ? `${(ns / 1e3).toFixed(3)} µs` : `${Math.round(ns)} ns`;
// Formats times with enough digits to distinguish times `resolution` nanoseconds apart.
const timeTexts = (resolution, ...values) => {
  const highest = Math.max(...values.map(Math.abs));
  const [unit, size] = highest >= 1e9 ? ["s", 1e9] : highest >= 1e6 ? ["ms", 1e6] : highest >= 1e3 ? ["µs", 1e3] : ["ns", 1];
  const digits = Math.max(0, Math.ceil(Math.log10(size / Math.max(resolution, 1)) - 1e-9));
  return values.map((value) => `${(value / size).toFixed(digits)} ${unit}`);
};
// Makes a table sortable by clicking its headings.
function sortable(table) {
  const heads = Array.from(table.tHead.rows[0].cells);
  heads.forEach((head, column) => {
    const button = make("button", head.textContent);
    button.type = "button";
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const numeric = head.classList.contains("number");
      const value = (row) => numeric ? Number(row.cells[column].textContent) : row.cells[column].textContent;
      const rows = Array.from(table.tBodies[0].rows);
      rows.sort((a, b) => {
        const [x, y] = [value(a), value(b)];
        return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1);
      });
      table.tBodies[0].replaceChildren(...rows);
    });
  });
}
document.querySelectorAll("table[data-sortable]").forEach(sortable);
if (!data.timeline) return;

// A text in the page's language, with the placeholders in braces filled in.
const textOf = (name, values = {}) => data.texts[name].replace(/\{(\w+)\}/g, (_, key) => values[key]);
const KINDS = Object.fromEntries(["compute", "aicpu", "cast", "format", "communication", "copy"]
  .map((name) => [name, textOf(`kind_${name}`)]));

const labels = data.labels;
const size = labels.type.length;

// The op table: the groups in the data, merged by the ticked columns.
const MAX_ROWS = 1000;
const COLUMNS = [["total", "total_ms"], ["share", "share"], ["count", "count"], ["mean", "mean_ms"], ["min", "min_ms"],
  ["max", "max_ms"]].map(([name, title]) => [name, textOf(title)]);
let order = { name: "total", down: true };
const all = labels.total.reduce((sum, value) => sum + value, 0) || 1;

function grouped(names) {
  const wanted = byId("text").value.trim().toLowerCase();
  const core = byId("core").value;
  const kind = byId("kind").value;
  const found = new Map();
  for (let at = 0; at < size; at++) {
    if (core && labels.core[at] !== core || kind && labels.kind[at] !== kind) continue;
    if (wanted && !["type", "dtypes", "shapes", "module"].some(
      (name) => labels[name][at].toLowerCase().includes(wanted))) continue;
    const values = names.map((name) => labels[name][at]);
    const key = JSON.stringify(values);
    let row = found.get(key);
    if (!row) found.set(key, row = { values, total: 0, count: 0, min: Infinity, max: 0 });
    row.total += labels.total[at];
    row.count += labels.count[at];
    row.min = Math.min(row.min, labels.min[at]);
    row.max = Math.max(row.max, labels.max[at]);
  }
  return Array.from(found.values(), (row) => ({ ...row, mean: row.total / row.count, share: row.total }));
}

function drawTable() {
  const names = Array.from(byId("by").querySelectorAll("input:checked"), (box) => box.value);
  const rows = grouped(names);
  const index = names.indexOf(order.name);
  const value = (row) => index >= 0 ? row.values[index] : row[order.name] ?? row.total;
  rows.sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    return (x < y ? -1 : x > y ? 1 : 0) * (order.down ? -1 : 1);
  });
  const table = byId("ops");
  const head = make("tr");
  for (const [name, title] of [...COLUMNS, ...names.map((name) => [name, textOf(`by_${name}`)])]) {
    const cell = make("th", undefined, names.includes(name) ? "" : "number");
    cell.scope = "col";
    const button = make("button", title);
    button.type = "button";
    button.dataset.sort = name;
    if (order.name === name) cell.setAttribute("aria-sort", order.down ? "descending" : "ascending");
    cell.append(button);
    head.append(cell);
  }
  const body = make("tbody");
  for (const row of rows.slice(0, MAX_ROWS)) {
    const line = make("tr");
    const numbers = [milliseconds(row.total), (100 * row.total / all).toFixed(2), String(row.count),
      milliseconds(row.mean), milliseconds(row.min), milliseconds(row.max)];
    for (const text of numbers) line.append(make("td", text, "number"));
    for (const text of row.values) line.append(make("td", text));
    body.append(line);
  }
  const top = make("thead");
  top.append(head);
  table.replaceChildren(top, body);
  const total = rows.reduce((sum, row) => sum + row.total, 0);
  byId("shown").textContent = `${textOf("shown_groups", { shown: Math.min(rows.length, MAX_ROWS), all: rows.length })} · ${milliseconds(total)} ms · ${(100 * total / all).toFixed(1)} %`;
}

byId("ops").addEventListener("click", (event) => {
  const name = event.target.dataset && event.target.dataset.sort;
  if (!name) return;
  order = { name, down: order.name === name ? !order.down : true };
  drawTable();
  byId("ops").querySelector(`button[data-sort="${name}"]`).focus();
});
for (const [id, values] of [["core", labels.core], ["kind", labels.kind]]) {
  for (const value of Array.from(new Set(values)).filter(Boolean).sort()) {
    const option = make("option", id === "kind" ? KINDS[value] || value : value);
    option.value = value;
    byId(id).append(option);
  }
}
byId("filters").hidden = false;
byId("filters").addEventListener("input", drawTable);
drawTable();
