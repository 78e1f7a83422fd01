// A range marked by the user or by an entry of the to-do list, and its figures.
const MAX_TYPES = 12;

// Visits a row's boxes within a range. Boxes of several ops count by their share inside the range.
function within(row, from, to, visit) {
  const level = levelFor(row.group, from, to, 1e9);
  const boxes = level.lanes[row.lane];
  for (let at = firstAt(boxes.reach, from); at < boxes.start.length && boxes.start[at] < to; at++) {
    const end = boxes.start[at] + boxes.length[at];
    const inside = Math.min(end, to) - Math.max(boxes.start[at], from);
    if (inside <= 0) continue;
    const part = inside / Math.max(boxes.length[at], 1);
    visit(boxes.label[at], boxes.busy.length ? boxes.busy[at] * part : inside, boxes.count.length ? boxes.count[at] * part : 1,
      Math.max(boxes.start[at], from), Math.min(end, to));
  }
  return level.width;
}

// The total time covered by the intervals.
function covered(intervals) {
  intervals.sort((a, b) => a[0] - b[0]);
  let total = 0;
  let until = -Infinity;
  for (const [from, to] of intervals) {
    total += Math.max(to - Math.max(from, until), 0);
    until = Math.max(until, to);
  }
  return total;
}

function figures() {
  const [from, to] = marked;
  const length = to - from;
  const groups = new Map();
  const intervals = [];
  const lines = [];
  let coarsest = 0;
  for (const row of rows) {
    if (row.group !== opGroup) continue;
    let [count, busy] = [0, 0];
    const merged = within(row, from, to, (label, time, ops, start, end) => {
      count += ops;
      busy += time;
      intervals.push([start, end]);
      const key = labels.type[label];
      const sum = groups.get(key) || [0, 0];
      groups.set(key, [sum[0] + ops, sum[1] + time]);
    });
    coarsest = Math.max(coarsest, merged);
    if (count) lines.push([row.name, count, busy]);
  }
  lines.push([textOf("nothing_runs"), "", Math.max(length - covered(intervals), 0)]);
  const types = Array.from(groups, ([name, [count, busy]]) => [name, count, busy]).sort((a, b) => b[2] - a[2]);
  const others = types.slice(MAX_TYPES);
  const rest = others.reduce((sum, [, count, busy]) => [sum[0] + count, sum[1] + busy], [0, 0]);
  if (others.length) types.splice(MAX_TYPES, others.length, [textOf("other_types", { count: others.length }), ...rest]);
  return { length, lines, types, coarsest };
}

function tableOf(table, title, lines, length) {
  const head = make("tr");
  for (const [name, number] of [[title, ""], [textOf("count"), "number"], [textOf("total_ms"), "number"], [textOf("of_range"), "number"]]) {
    const cell = make("th", name, number);
    cell.scope = "col";
    head.append(cell);
  }
  const body = make("tbody");
  for (const [name, count, busy] of lines) {
    const line = make("tr");
    line.append(make("td", name));
    for (const text of [count === "" ? "" : String(Math.round(count)), milliseconds(busy), (100 * busy / length).toFixed(1)]) line.append(make("td", text, "number"));
    body.append(line);
  }
  const top = make("thead");
  top.append(head);
  table.replaceChildren(top, body);
}

function mark(first, second, showFigures = true) {
  const low = Math.max(Math.min(first, second), 0);
  const high = Math.min(Math.max(first, second), time.span);
  if (high <= low) return;
  marked = [low, high];
  if (showFigures) {
    const { length, lines, types, coarsest } = figures();
    const [from, to] = timeTexts(length / 1000, ...marked);
    byId("marked-text").textContent = [textOf("marked", { length: duration(length), from, to }),
      coarsest && textOf("shorter_share", { width: duration(coarsest) })].filter(Boolean).join("; ");
    tableOf(byId("marked-lanes"), textOf("lane"), lines, length);
    tableOf(byId("marked-types"), textOf("by_type"), types, length);
    byId("marked").hidden = false;
  }
  redraw();
}

actions.mark = () => picked && picked.start >= view[0] && picked.end <= view[1] ? mark(picked.start, picked.end) : mark(...view);
actions.unmark = () => {
  marked = null;
  byId("marked").hidden = true;
  redraw();
};

// The button of a to-do entry steps through its intervals.
document.querySelectorAll("button[data-todo]").forEach((button) => {
  const { intervals, count } = data.todo[Number(button.dataset.todo)] || { intervals: [] };
  if (!intervals.length) return;
  let next = 0;
  button.hidden = false;
  button.addEventListener("click", () => {
    const [from, to] = intervals[next];
    button.textContent = textOf("interval_of", { number: next + 1, shown: intervals.length, all: count });
    next = (next + 1) % intervals.length;
    const around = Math.max(2 * (to - from), 1000);
    show(from - around, to + around);
    mark(from, to);
    byId("time").scrollIntoView({ block: "center" });
  });
});
