"use strict";
(() => {
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
  // Moments with as many digits as tell apart what lies this close.
  const moments = (close, ...values) => {
    const highest = Math.max(...values.map(Math.abs));
    const [unit, size] = highest >= 1e9 ? ["s", 1e9] : highest >= 1e6 ? ["ms", 1e6] : highest >= 1e3 ? ["µs", 1e3] : ["ns", 1];
    const digits = Math.max(0, Math.ceil(Math.log10(size / Math.max(close, 1)) - 1e-9));
    return values.map((value) => `${(value / size).toFixed(digits)} ${unit}`);
  };
  // Tables that the page holds already: a click on a head sorts them.
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

  // The words of the page's language, with what stands in braces filled in.
  const say = (name, values = {}) => data.say[name].replace(/\{(\w+)\}/g, (_, key) => values[key]);
  const KINDS = Object.fromEntries(["compute", "aicpu", "cast", "format", "communication", "copy"]
    .map((name) => [name, say(`kind_${name}`)]));

  const labels = data.labels;
  const size = labels.type.length;

  // The op table is made of the groups in the data, put together by what is ticked.
  const MOST_ROWS = 1000;
  const COLUMNS = [["total", "total_ms"], ["share", "share"], ["count", "count"], ["mean", "mean_ms"], ["min", "min_ms"],
    ["max", "max_ms"]].map(([name, title]) => [name, say(title)]);
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
      const words = names.map((name) => labels[name][at]);
      const key = JSON.stringify(words);
      let row = found.get(key);
      if (!row) found.set(key, row = { words, total: 0, count: 0, min: Infinity, max: 0 });
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
    const place = names.indexOf(order.name);
    const value = (row) => place >= 0 ? row.words[place] : row[order.name] ?? row.total;
    rows.sort((a, b) => {
      const [x, y] = [value(a), value(b)];
      return (x < y ? -1 : x > y ? 1 : 0) * (order.down ? -1 : 1);
    });
    const table = byId("ops");
    const head = make("tr");
    for (const [name, title] of [...COLUMNS, ...names.map((one) => [one, say(`by_${one}`)])]) {
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
    for (const row of rows.slice(0, MOST_ROWS)) {
      const line = make("tr");
      const numbers = [milliseconds(row.total), (100 * row.total / all).toFixed(2), String(row.count),
        milliseconds(row.mean), milliseconds(row.min), milliseconds(row.max)];
      for (const text of numbers) line.append(make("td", text, "number"));
      for (const text of row.words) line.append(make("td", text));
      body.append(line);
    }
    const top = make("thead");
    top.append(head);
    table.replaceChildren(top, body);
    const total = rows.reduce((sum, row) => sum + row.total, 0);
    byId("shown").textContent = `${say("shown_groups", { shown: Math.min(rows.length, MOST_ROWS), all: rows.length })} · ${milliseconds(total)} ms · ${(100 * total / all).toFixed(1)} %`;
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

  // The timeline. Starts are kept as differences; they are summed up once.
  const time = data.timeline;
  const levels = time.levels.map((level) => ({
    width: level.width, from: level.from ?? 0, to: level.to ?? Infinity,
    lanes: level.lanes.map(([steps, lengths, label, count, busy]) => {
      const start = new Float64Array(steps.length);
      const reach = new Float64Array(steps.length);
      let at = 0;
      let far = 0;
      for (let row = 0; row < steps.length; row++) {
        start[row] = at += steps[row];
        reach[row] = far = Math.max(far, at + lengths[row]);
      }
      return { start, reach, length: lengths, label, count, busy };
    }),
  }));
  const canvas = byId("canvas");
  const context = canvas.getContext("2d");
  const LANE = 26;
  const TOP = 22;
  let LEFT = 150;
  let view = [0, time.span];
  let picked = null;
  let lane = 0;
  let colours = {};

  function readColours() {
    const style = getComputedStyle(document.documentElement);
    const read = (name) => style.getPropertyValue(`--${name}`).trim();
    colours = Object.fromEntries([...Object.keys(KINDS), "text", "faint", "grid", "back", "link"].map((name) => [name, read(name)]));
  }

  // The coarsest level whose boxes are not wider than a pixel; else the finest one for this place.
  function levelFor(from, to, pixels) {
    const wide = (to - from) / pixels;
    const fitting = levels.filter((level) => level.from <= from && level.to >= to);
    return fitting.find((level) => level.width <= wide) || fitting[fitting.length - 1] || levels[levels.length - 1];
  }

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

  // As many as have room for their text, which has no more digits than tell them apart.
  function ticks() {
    const span = view[1] - view[0];
    const most = Math.max(width() / 90, 1);
    let step = 10 ** Math.ceil(Math.log10(span / most));
    for (const part of [0.2, 0.5]) if (span / (step * part) <= most) { step *= part; break; }
    const found = [];
    for (let place = Math.ceil(view[0] / step); place * step <= view[1]; place++) found.push(place * step);
    const texts = moments(step, ...found);
    return found.map((at, place) => [at, texts[place]]);
  }

  function drawBoxes(level, row, y) {
    const own = level.lanes[row];
    const first = firstAt(own.reach, view[0]);
    let until = -1;
    for (let at = first; at < own.start.length && own.start[at] < view[1]; at++) {
      const end = own.start[at] + own.length[at];
      if (end < view[0]) continue;
      const left = Math.max(toX(own.start[at]), LEFT);
      const right = Math.min(Math.max(toX(end), left + 0.7), LEFT + width());
      if (right < until && right - left < 1) continue;
      until = right;
      const label = own.label[at];
      context.fillStyle = colours[labels.kind[label]] || colours.compute;
      const share = own.busy.length && own.count[at] > 1 ? own.busy[at] / Math.max(own.length[at], 1) : 1;
      context.globalAlpha = Math.min(1, 0.35 + 0.65 * share);
      context.fillRect(left, y + 3, right - left, LANE - 6);
      context.globalAlpha = 1;
      if (right - left > 46) {
        context.save();
        context.beginPath();
        context.rect(left, y, right - left - 3, LANE);
        context.clip();
        context.fillStyle = colours.back;
        const many = own.count.length && own.count[at] > 1;
        context.fillText(many ? say("op_count", { count: own.count[at] }) : labels.type[label], left + 4, y + LANE / 2);
        context.restore();
      }
      if (picked && picked.lane === row && own.start[at] <= picked.start && end >= picked.end) {
        context.strokeStyle = colours.text;
        context.lineWidth = 2;
        context.strokeRect(left, y + 2, Math.max(right - left, 2), LANE - 4);
      }
    }
  }

  function draw() {
    const ratio = window.devicePixelRatio || 1;
    const wide = canvas.clientWidth;
    const high = TOP + LANE * time.lanes.length + 4;
    canvas.style.height = `${high}px`;
    if (canvas.width !== Math.round(wide * ratio) || canvas.height !== Math.round(high * ratio)) {
      canvas.width = Math.round(wide * ratio);
      canvas.height = Math.round(high * ratio);
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.fillStyle = colours.back;
    context.fillRect(0, 0, wide, high);
    context.font = "12px system-ui, sans-serif";
    context.textBaseline = "middle";
    context.lineWidth = 1;
    const named = Math.max(...time.lanes.map((name) => context.measureText(name).width));
    LEFT = Math.ceil(Math.min(Math.max(named + 12, 48), 0.36 * wide));
    for (const [at, text] of ticks()) {
      const x = Math.round(toX(at)) + 0.5;
      if (x < LEFT) continue;
      context.strokeStyle = colours.grid;
      context.beginPath();
      context.moveTo(x, TOP - 4);
      context.lineTo(x, high);
      context.stroke();
      context.fillStyle = colours.faint;
      if (x + 3 + context.measureText(text).width < wide) context.fillText(text, x + 3, 10);
    }
    context.setLineDash([4, 3]);
    context.strokeStyle = colours.faint;
    for (const [, , from] of time.steps) {
      if (from < view[0] || from > view[1]) continue;
      const x = Math.round(toX(from)) + 0.5;
      context.beginPath();
      context.moveTo(x, TOP);
      context.lineTo(x, high);
      context.stroke();
    }
    context.setLineDash([]);
    const level = levelFor(view[0], view[1], width());
    time.lanes.forEach((name, row) => {
      const y = TOP + row * LANE;
      drawBoxes(level, row, y);
      context.fillStyle = row === lane ? colours.link : colours.faint;
      context.save();
      context.beginPath();
      context.rect(0, y, LEFT - 6, LANE);
      context.clip();
      context.fillText(name, 2, y + LANE / 2);
      context.restore();
    });
    const exact = level.width === 0 ? say("every_op") : say("shorter", { width: duration(level.width) });
    const [from, to] = moments((view[1] - view[0]) / 1000, ...view);
    byId("range").textContent = [say("from_to", { from, to }), exact, time.left_out && say("left_out", { count: time.left_out })].filter(Boolean).join("; ");
  }

  let waiting = false;
  function redraw() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; draw(); });
  }

  function show(from, to) {
    const least = 20;
    const span = Math.min(Math.max(to - from, least), time.span * 1.02);
    const start = Math.min(Math.max(from, -0.01 * time.span), time.span * 1.01 - span);
    view = [start, start + span];
    redraw();
  }

  // Around the picked op where it is in view: it is what the user looks at.
  function middle() {
    const own = picked && (picked.start + picked.end) / 2;
    return own !== null && own >= view[0] && own <= view[1] ? own : (view[0] + view[1]) / 2;
  }

  function zoom(factor, around = middle()) {
    show(around - (around - view[0]) * factor, around + (view[1] - around) * factor);
  }

  function tell(row, own, at) {
    lane = row;
    const label = own.label[at];
    const count = own.count.length ? own.count[at] : 1;
    const end = own.start[at] + own.length[at];
    picked = { lane: row, start: own.start[at], end };
    const parts = count > 1
      ? [say("together", { count, busy: duration(own.busy[at]), longest: labels.type[label] })]
      : [labels.type[label], labels.core[label], duration(own.length[at])];
    const [from, to] = moments(own.length[at] / 1000, own.start[at], end);
    parts.push(say("at", { from, to }), labels.dtypes[label], labels.shapes[label], labels.module[label]);
    byId("picked").textContent = parts.filter(Boolean).join(" · ");
    redraw();
  }

  function pickAt(x, y) {
    const row = Math.floor((y - TOP) / LANE);
    if (row < 0 || row >= time.lanes.length) return;
    lane = row;
    const own = levelFor(view[0], view[1], width()).lanes[row];
    const slack = 2 * (view[1] - view[0]) / width();
    const moment = toTime(x);
    for (let at = firstAt(own.start, moment + slack) - 1; at >= 0; at--) {
      if (own.start[at] + own.length[at] >= moment - slack) { tell(row, own, at); return; }
      if (own.reach[at] < moment - slack) break;
    }
    redraw();
  }

  function go(step) {
    const own = levelFor(view[0], view[1], width()).lanes[lane];
    if (!own.start.length) return;
    const from = picked && picked.lane === lane ? picked.start : view[0];
    const at = step > 0 ? firstAt(own.start, from) : firstAt(own.start, from - 0.5) - 1;
    if (at < 0 || at >= own.start.length) return;
    tell(lane, own, at);
    const span = view[1] - view[0];
    if (own.start[at] < view[0] || own.start[at] + own.length[at] > view[1]) show(own.start[at] - span / 3, own.start[at] + 2 * span / 3);
  }

  const actions = {
    in: () => zoom(0.5), out: () => zoom(2), all: () => show(0, time.span),
    left: () => show(view[0] - (view[1] - view[0]) / 4, view[1] - (view[1] - view[0]) / 4),
    right: () => show(view[0] + (view[1] - view[0]) / 4, view[1] + (view[1] - view[0]) / 4),
    next: () => go(1), before: () => go(-1),
    up: () => { lane = Math.max(lane - 1, 0); redraw(); },
    down: () => { lane = Math.min(lane + 1, time.lanes.length - 1); redraw(); },
  };
  const KEYS = { "+": "in", "=": "in", "-": "out", "0": "all", Home: "all", ArrowLeft: "left", ArrowRight: "right",
    ArrowUp: "up", ArrowDown: "down", n: "next", p: "before" };
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
    drag = { x: event.offsetX, view, moved: false };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) return;
    const far = event.offsetX - drag.x;
    if (Math.abs(far) > 3) drag.moved = true;
    const move = far / width() * (drag.view[1] - drag.view[0]);
    if (drag.moved) show(drag.view[0] - move, drag.view[1] - move);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (drag && !drag.moved) pickAt(event.offsetX, event.offsetY);
    drag = null;
  });
  canvas.addEventListener("dblclick", (event) => zoom(0.25, toTime(event.offsetX)));

  time.steps.forEach(([rank, step], at) => {
    const option = make("option", time.steps.some((other) => other[0] !== rank) ? say("rank_step", { rank, step }) : String(step));
    option.value = String(at);
    byId("step").append(option);
  });
  byId("step").addEventListener("change", (event) => {
    const chosen = time.steps[Number(event.target.value)];
    if (event.target.value === "") show(0, time.span);
    else show(chosen[2], chosen[3]);
  });
  for (const [kind, title] of Object.entries(KINDS)) {
    if (!labels.kind.includes(kind)) continue;
    const line = make("li");
    const mark = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    mark.setAttribute("viewBox", "0 0 1 1");
    const box = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    box.setAttribute("class", `f-${kind}`);
    box.setAttribute("width", "1");
    box.setAttribute("height", "1");
    mark.append(box);
    line.append(mark, title);
    byId("kinds").append(line);
  }
  byId("time").hidden = false;
  readColours();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); redraw(); });
  new ResizeObserver(redraw).observe(canvas);
  draw();
})();
