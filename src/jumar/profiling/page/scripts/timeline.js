// The timeline: rows of boxes for ops, below them host calls and memory curves.
const time = data.timeline;
const host = time.host;
const LAYERS = ["python", "op", "cann", "runtime", "mark", "dequeue", "enqueue"];

// Starts are stored as differences and summed once.
const unpacked = (levels) => levels.map((level) => ({
  width: level.width, from: level.from ?? -Infinity, to: level.to ?? Infinity,
  lanes: level.lanes.map(([steps, lengths, label, count, busy, launch]) => {
    const start = new Float64Array(steps.length);
    const reach = new Float64Array(steps.length);
    let at = 0;
    let lastEnd = 0;
    for (let row = 0; row < steps.length; row++) {
      start[row] = at += steps[row];
      reach[row] = lastEnd = Math.max(lastEnd, at + lengths[row]);
    }
    return { start, reach, length: lengths, label, count, busy, launch };
  }),
}));
const opGroup = {
  levels: unpacked(time.levels), height: 26,
  text: (label) => labels.type[label],
  colour: (label) => colours[labels.kind[label]] || colours.compute,
  many: (count) => textOf("op_count", { count }),
  facts: (label) => [labels.type[label], labels.core[label]],
  more: (label) => [labels.dtypes[label], labels.shapes[label], labels.module[label]],
};
const hostGroup = host && {
  levels: unpacked(host.levels), height: 17,
  text: (label) => host.names[label],
  colour: (label) => colours[`host-${host.layers[label]}`] || colours["host-op"],
  many: (count) => textOf("call_count", { count }),
  facts: (label) => [host.names[label], host.layers[label]],
  more: () => [],
};
const TOP = 22;
const CURVE = 54;
const canvas = byId("canvas");
const context = canvas.getContext("2d");
let rows = [];
let LEFT = 150;
let view = [0, time.span];
let picked = null;
let lane = 0;
let marked = null;
let wanted = null;
let colours = {};

function layRows() {
  rows = time.lanes.map((name, index) => ({ group: opGroup, lane: index, name }));
  if (hostGroup && byId("host").checked) host.lanes.forEach((name, index) => rows.push({ group: hostGroup, lane: index, name }));
  let y = TOP;
  for (const row of rows) {
    row.y = y;
    y += row.height = row.group.height;
  }
  lane = Math.min(lane, rows.length - 1);
  return y;
}

function readColours() {
  const style = getComputedStyle(document.documentElement);
  const read = (name) => style.getPropertyValue(`--${name}`).trim();
  const names = [...Object.keys(KINDS), ...LAYERS.map((name) => `host-${name}`), "text", "faint", "grid", "back", "link", "warn", "warn-edge", "free", "computing"];
  colours = Object.fromEntries(names.map((name) => [name, read(name)]));
}

// The coarsest level with boxes of at most a pixel; else the finest level for this range.
function levelFor(group, from, to, pixels) {
  const pixel = (to - from) / pixels;
  const fitting = group.levels.filter((level) => level.from <= from && level.to >= to);
  return fitting.find((level) => level.width <= pixel) || fitting[fitting.length - 1] || group.levels[group.levels.length - 1];
}

const boxesOf = (row) => levelFor(row.group, view[0], view[1], width()).lanes[row.lane];

function firstAt(values, moment) {
  let low = 0;
  let high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= moment) low = middle + 1; else high = middle;
  }
  return low;
}

const width = () => Math.max(canvas.clientWidth - LEFT, 50);
const toX = (moment) => LEFT + (moment - view[0]) / (view[1] - view[0]) * width();
const toTime = (x) => view[0] + (x - LEFT) / width() * (view[1] - view[0]);
const clamped = (x) => Math.min(Math.max(x, LEFT), LEFT + width());

// Ticks spaced so that their labels fit, with just enough digits to distinguish them.
function ticks() {
  const span = view[1] - view[0];
  const maxTicks = Math.max(width() / 90, 1);
  let step = 10 ** Math.ceil(Math.log10(span / maxTicks));
  for (const part of [0.2, 0.5]) if (span / (step * part) <= maxTicks) { step *= part; break; }
  const positions = [];
  for (let index = Math.ceil(view[0] / step); index * step <= view[1]; index++) positions.push(index * step);
  const texts = timeTexts(step, ...positions);
  return positions.map((position, index) => [position, texts[index]]);
}

function drawBoxes(row) {
  const { group, y, height } = row;
  const boxes = boxesOf(row);
  const gap = height > 20 ? 3 : 1;
  let until = -1;
  for (let at = firstAt(boxes.reach, view[0]); at < boxes.start.length && boxes.start[at] < view[1]; at++) {
    const end = boxes.start[at] + boxes.length[at];
    if (end < view[0]) continue;
    const left = Math.max(toX(boxes.start[at]), LEFT);
    const right = Math.min(Math.max(toX(end), left + 0.7), LEFT + width());
    if (right < until && right - left < 1) continue;
    until = right;
    const label = boxes.label[at];
    const many = boxes.count.length && boxes.count[at] > 1;
    const share = many && boxes.busy.length ? boxes.busy[at] / Math.max(boxes.length[at], 1) : 1;
    const fades = wanted && !wanted(group, label);
    context.fillStyle = group.colour(label);
    context.globalAlpha = Math.min(1, 0.35 + 0.65 * share) * (fades ? 0.18 : 1);
    context.fillRect(left, y + gap, right - left, height - 2 * gap);
    context.globalAlpha = 1;
    if (right - left > 46 && !fades) {
      context.save();
      context.beginPath();
      context.rect(left, y, right - left - 3, height);
      context.clip();
      context.fillStyle = colours.back;
      context.fillText(many ? group.many(boxes.count[at]) : group.text(label), left + 4, y + height / 2);
      context.restore();
    }
    if (picked && picked.row === row && boxes.start[at] <= picked.start && end >= picked.end) {
      context.strokeStyle = colours.text;
      context.lineWidth = 2;
      context.strokeRect(left, y + 1, Math.max(right - left, 2), height - 2);
      context.lineWidth = 1;
    }
  }
}

// The row of the rank's host call that starts at a time, else of the shortest call around it.
function callAt(moment, rank) {
  let around = null;
  let shortest = Infinity;
  for (const row of rows) {
    if (row.group !== hostGroup || host.ranks[row.lane] !== rank) continue;
    const boxes = levelFor(hostGroup, moment, moment, 1e9).lanes[row.lane];
    const at = firstAt(boxes.start, moment) - 1;
    if (at < 0 || boxes.start[at] + boxes.length[at] < moment) continue;
    if (boxes.start[at] === moment) return row;
    if (boxes.length[at] < shortest) [around, shortest] = [row, boxes.length[at]];
  }
  return around;
}

function drawArrow() {
  if (!picked || picked.launch === null) return;
  const [from, to] = [toX(picked.launch), toX(picked.start)];
  if (Math.max(from, to) < LEFT || Math.min(from, to) > LEFT + width()) return;
  const call = callAt(picked.launch, time.ranks[picked.lane]);
  const y = call ? call.y + call.height / 2 : TOP - 6;
  const end = picked.row.y + (call ? picked.row.height - 2 : 2);
  context.save();
  context.beginPath();
  context.rect(LEFT, 0, width(), canvas.clientHeight);
  context.clip();
  context.strokeStyle = context.fillStyle = colours.text;
  context.beginPath();
  context.moveTo(from, y);
  context.lineTo(to, end);
  context.stroke();
  const angle = Math.atan2(end - y, to - from);
  context.beginPath();
  context.moveTo(to, end);
  for (const turn of [-0.4, 0.4]) context.lineTo(to - 9 * Math.cos(angle + turn), end - 9 * Math.sin(angle + turn));
  context.fill();
  context.beginPath();
  context.arc(from, y, 3, 0, 7);
  context.fill();
  context.restore();
}

const curves = time.memory.curves.map((curve) => {
  const at = new Float64Array(curve.at.length);
  let moment = 0;
  curve.at.forEach((step, index) => { at[index] = moment += step; });
  const highest = Math.max(...curve.allocated, ...curve.reserved, 1);
  return { ...curve, at, highest };
});
const mebibytes = (bytes) => `${(bytes / 2 ** 20).toFixed(1)} MiB`;

function drawCurve(curve, top) {
  const low = top + CURVE - 4;
  const toY = (bytes) => low - (CURVE - 10) * bytes / curve.highest;
  const first = Math.max(firstAt(curve.at, view[0]) - 1, 0);
  for (const [name, colour] of [["reserved", colours.free], ["allocated", colours.computing]]) {
    context.fillStyle = context.strokeStyle = colour;
    context.globalAlpha = name === "reserved" ? 0.6 : 1;
    context.beginPath();
    context.moveTo(clamped(toX(curve.at[first])), low);
    let last = low;
    for (let index = first; index < curve.at.length; index++) {
      const x = clamped(toX(curve.at[index]));
      context.lineTo(x, last);
      context.lineTo(x, last = toY(curve[name][index]));
      if (curve.at[index] > view[1]) break;
    }
    context.lineTo(clamped(toX(Math.min(view[1], time.span))), last);
    context.lineTo(clamped(toX(Math.min(view[1], time.span))), low);
    context.fill();
    context.globalAlpha = 1;
  }
  context.fillStyle = colours.faint;
  context.save();
  context.beginPath();
  context.rect(0, top, LEFT - 6, CURVE);
  context.clip();
  context.fillText(textOf("memory_of", { name: curve.name }), 2, top + 14);
  context.fillText(mebibytes(curve.highest), 2, top + 32);
  context.restore();
}

function drawGrid(fullHeight, fullWidth) {
  for (const [at, text] of ticks()) {
    const x = Math.round(toX(at)) + 0.5;
    if (x < LEFT) continue;
    context.strokeStyle = colours.grid;
    context.beginPath();
    context.moveTo(x, TOP - 4);
    context.lineTo(x, fullHeight);
    context.stroke();
    context.fillStyle = colours.faint;
    if (x + 3 + context.measureText(text).width < fullWidth) context.fillText(text, x + 3, 10);
  }
  context.setLineDash([4, 3]);
  context.strokeStyle = colours.faint;
  for (const [, , from] of time.steps) {
    if (from < view[0] || from > view[1]) continue;
    const x = Math.round(toX(from)) + 0.5;
    context.beginPath();
    context.moveTo(x, TOP);
    context.lineTo(x, fullHeight);
    context.stroke();
  }
  context.setLineDash([]);
}

function drawMarked(fullHeight) {
  if (!marked) return;
  const [left, right] = marked.map((moment) => clamped(toX(moment)));
  context.globalAlpha = 0.16;
  context.fillStyle = colours.link;
  context.fillRect(left, TOP - 4, Math.max(right - left, 1), fullHeight - TOP);
  context.globalAlpha = 1;
  context.strokeStyle = colours.link;
  for (const [moment, x] of [[marked[0], left], [marked[1], right]]) {
    if (moment < view[0] || moment > view[1]) continue;
    context.beginPath();
    context.moveTo(x, TOP - 4);
    context.lineTo(x, fullHeight);
    context.stroke();
  }
}

function draw() {
  const ratio = window.devicePixelRatio || 1;
  const fullWidth = canvas.clientWidth;
  const below = layRows();
  const fullHeight = below + 4 + CURVE * curves.length;
  canvas.style.height = `${fullHeight}px`;
  if (canvas.width !== Math.round(fullWidth * ratio) || canvas.height !== Math.round(fullHeight * ratio)) {
    canvas.width = Math.round(fullWidth * ratio);
    canvas.height = Math.round(fullHeight * ratio);
  }
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.fillStyle = colours.back;
  context.fillRect(0, 0, fullWidth, fullHeight);
  context.font = "12px system-ui, sans-serif";
  context.textBaseline = "middle";
  context.lineWidth = 1;
  const texts = [...rows.map((row) => row.name), ...curves.map((curve) => textOf("memory_of", { name: curve.name }))];
  const longest = Math.max(...texts.map((text) => context.measureText(text).width));
  LEFT = Math.ceil(Math.min(Math.max(longest + 12, 48), 0.36 * fullWidth));
  drawGrid(fullHeight, fullWidth);
  if (picked) picked.row = rows.find((row) => row.group === picked.group && row.lane === picked.lane) || picked.row;
  rows.forEach((row, index) => {
    drawBoxes(row);
    context.fillStyle = index === lane ? colours.link : colours.faint;
    context.save();
    context.beginPath();
    context.rect(0, row.y, LEFT - 6, row.height);
    context.clip();
    context.fillText(row.name || (index === lane ? "▸" : ""), 2, row.y + row.height / 2);
    context.restore();
  });
  curves.forEach((curve, index) => drawCurve(curve, below + 4 + CURVE * index));
  drawMarked(fullHeight);
  drawArrow();
  byId("range").textContent = rangeText();
}

// The visible range, with notes on merged and omitted boxes.
function rangeText() {
  const [from, to] = timeTexts((view[1] - view[0]) / 1000, ...view);
  const merged = (group) => levelFor(group, view[0], view[1], width()).width;
  const parts = [textOf("from_to", { from, to }), merged(opGroup) ? textOf("shorter", { width: duration(merged(opGroup)) }) : textOf("every_op")];
  const leftOut = (count, name) => count && parts.push(textOf(name, { count }));
  leftOut(time.left_out, "left_out");
  leftOut(time.memory.left_out, "curves_left_out");
  if (host) {
    if (merged(hostGroup)) parts.push(textOf("shorter_calls", { width: duration(merged(hostGroup)) }));
    leftOut(host.threads_left_out, "threads_left_out");
    leftOut(host.left_out, "calls_left_out");
    leftOut(host.too_deep, "too_deep");
  }
  return parts.join("; ");
}

let waiting = false;
function redraw() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; draw(); });
}

function show(from, to) {
  const minSpan = 20;
  const span = Math.min(Math.max(to - from, minSpan), time.span * 1.02);
  const start = Math.min(Math.max(from, -0.01 * time.span), time.span * 1.01 - span);
  view = [start, start + span];
  redraw();
}

// The center for zooming: the selected op if visible, else the middle of the view.
function middle() {
  const center = picked && (picked.start + picked.end) / 2;
  return center !== null && center >= view[0] && center <= view[1] ? center : (view[0] + view[1]) / 2;
}

function zoom(factor, around = middle()) {
  show(around - (around - view[0]) * factor, around + (view[1] - around) * factor);
}

function pick(row, boxes, at) {
  lane = rows.indexOf(row);
  const { group } = row;
  const label = boxes.label[at];
  const count = boxes.count.length ? boxes.count[at] : 1;
  const start = boxes.start[at];
  const end = start + boxes.length[at];
  const ahead = boxes.launch && boxes.launch.length ? boxes.launch[at] : null;
  picked = { row, group, lane: row.lane, start, end, launch: ahead === null ? null : start - ahead };
  const parts = count > 1
    ? [textOf(group === opGroup ? "together" : "calls_together", { count, busy: duration(boxes.busy[at]), longest: group.text(label) })]
    : [...group.facts(label), duration(boxes.length[at])];
  const [from, to] = timeTexts(boxes.length[at] / 1000, start, end);
  parts.push(textOf("at", { from, to }), ahead !== null && textOf("launched", { ahead: duration(ahead) }), ...group.more(label));
  byId("picked").textContent = parts.filter(Boolean).join(" · ");
  redraw();
}

function rowAt(y) {
  return rows.findIndex((row) => y >= row.y && y < row.y + row.height);
}

function pickAt(x, y) {
  const index = rowAt(y);
  if (index < 0) return;
  lane = index;
  const boxes = boxesOf(rows[index]);
  const slack = 2 * (view[1] - view[0]) / width();
  const moment = toTime(x);
  for (let at = firstAt(boxes.start, moment + slack) - 1; at >= 0; at--) {
    if (boxes.start[at] + boxes.length[at] >= moment - slack) { pick(rows[index], boxes, at); return; }
    if (boxes.reach[at] < moment - slack) break;
  }
  redraw();
}

function go(step) {
  const row = rows[lane];
  const boxes = boxesOf(row);
  if (!boxes.start.length) return;
  const from = picked && picked.group === row.group && picked.lane === row.lane ? picked.start : view[0];
  const at = step > 0 ? firstAt(boxes.start, from) : firstAt(boxes.start, from - 0.5) - 1;
  if (at < 0 || at >= boxes.start.length) return;
  pick(row, boxes, at);
  const span = view[1] - view[0];
  if (boxes.start[at] < view[0] || boxes.start[at] + boxes.length[at] > view[1]) show(boxes.start[at] - span / 3, boxes.start[at] + 2 * span / 3);
}

const actions = {
  in: () => zoom(0.5), out: () => zoom(2), all: () => show(0, time.span),
  left: () => show(view[0] - (view[1] - view[0]) / 4, view[1] - (view[1] - view[0]) / 4),
  right: () => show(view[0] + (view[1] - view[0]) / 4, view[1] + (view[1] - view[0]) / 4),
  next: () => go(1), before: () => go(-1),
  up: () => { lane = Math.max(lane - 1, 0); redraw(); },
  down: () => { lane = Math.min(lane + 1, rows.length - 1); redraw(); },
};
const KEYS = { "+": "in", "=": "in", "-": "out", "0": "all", Home: "all", ArrowLeft: "left", ArrowRight: "right",
  ArrowUp: "up", ArrowDown: "down", n: "next", p: "before", m: "mark", Escape: "unmark", "/": "find" };
canvas.addEventListener("keydown", (event) => {
  const name = event.ctrlKey || event.metaKey || event.altKey ? null : KEYS[event.key];
  if (!name) return;
  event.preventDefault();
  actions[name]();
});
byId("time").addEventListener("click", (event) => {
  const name = event.target.dataset && event.target.dataset.do;
  if (name) actions[name]();
});
canvas.addEventListener("wheel", (event) => {
  if (!event.ctrlKey && !event.shiftKey && document.activeElement !== canvas) return;
  event.preventDefault();
  zoom(Math.exp((event.deltaY || event.deltaX) * 0.002), toTime(event.offsetX));
}, { passive: false });
let drag = null;
canvas.addEventListener("pointerdown", (event) => {
  drag = { x: event.offsetX, view, moved: false, marks: event.shiftKey };
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", (event) => {
  if (!drag) return;
  const distance = event.offsetX - drag.x;
  if (Math.abs(distance) > 3) drag.moved = true;
  if (!drag.moved) return;
  if (drag.marks) {
    mark(toTime(clamped(drag.x)), toTime(clamped(event.offsetX)), false);
  } else {
    const move = distance / width() * (drag.view[1] - drag.view[0]);
    show(drag.view[0] - move, drag.view[1] - move);
  }
});
canvas.addEventListener("pointerup", (event) => {
  if (drag && !drag.moved) pickAt(event.offsetX, event.offsetY);
  if (drag && drag.moved && drag.marks) mark(...marked);
  drag = null;
});
canvas.addEventListener("dblclick", (event) => zoom(0.25, toTime(event.offsetX)));

time.steps.forEach(([rank, step], at) => {
  const option = make("option", time.steps.some((other) => other[0] !== rank) ? textOf("rank_step", { rank, step }) : String(step));
  option.value = String(at);
  byId("step").append(option);
});
byId("step").addEventListener("change", (event) => {
  const chosen = time.steps[Number(event.target.value)];
  if (event.target.value === "") show(0, time.span);
  else show(chosen[2], chosen[3]);
});

function legend(name, title) {
  const line = make("li");
  const icon = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  icon.setAttribute("viewBox", "0 0 1 1");
  const box = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  box.setAttribute("class", `f-${name}`);
  box.setAttribute("width", "1");
  box.setAttribute("height", "1");
  icon.append(box);
  line.append(icon, title);
  byId("kinds").append(line);
}
for (const [kind, title] of Object.entries(KINDS)) if (labels.kind.includes(kind)) legend(kind, title);
if (host) {
  byId("host").closest("label").hidden = false;
  for (const layer of LAYERS) if (host.layers.includes(layer)) legend(`host-${layer}`, textOf("host_layer", { layer }));
}
