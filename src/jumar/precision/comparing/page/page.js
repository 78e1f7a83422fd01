"use strict";
const calls = JSON.parse(document.getElementById("data").textContent);
const verdicts = ["agrees", "inherited", "offender"];
const chart = document.querySelector(".chart");
const drawing = chart.querySelector("svg");
const space = "http://www.w3.org/2000/svg";
const height = 380, left = 60, top_ = 12, bottom = 40;
const width = Math.max(chart.clientWidth - 2, left + 20 + 7 * calls.length);
const dots = [];
let chosen = -1;

function add(kind, attributes, parent, text) {
  const element = document.createElementNS(space, kind);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
  return element;
}

function draw() {
  const logs = calls.map((call) => (call[5] > 0 ? Math.min(Math.log10(call[5]), 2) : null));
  const known = logs.filter((log) => log !== null);
  const low = Math.floor(Math.min(-1, ...(known.length ? known : [-8]))) - 1;
  const high = Math.ceil(Math.max(0, ...known));
  const x = (place) => left + 10 + (place * (width - left - 20)) / Math.max(calls.length - 1, 1);
  const y = (log) => top_ + ((high - log) * (height - top_ - bottom)) / (high - low);
  drawing.setAttribute("width", width);
  drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
  for (let log = low; log <= high; log += 1) {
    add("line", { x1: left, x2: width, y1: y(log), y2: y(log) }, drawing);
    add("text", { x: 4, y: y(log) + 4 }, drawing, log === low ? "equal" : `1e${log}`);
  }
  let phase = "";
  calls.forEach((call, place) => {
    if (call[3] !== phase) {
      phase = call[3];
      add("line", { x1: x(place) - 4, x2: x(place) - 4, y1: top_, y2: height - bottom + 14 }, drawing);
      add("text", { x: x(place), y: height - 14 }, drawing, phase);
    }
    const log = logs[place] === null ? low : logs[place];
    const dot = add("circle", { cx: x(place), cy: y(log), r: call[4] === 2 ? 6 : 3.5, class: `v${call[4]}` }, drawing);
    add("title", {}, dot, title(place));
    dot.addEventListener("click", () => show(place));
    dots.push(dot);
  });
}

function title(place) {
  const [layer, op, number, phase] = calls[place];
  return `${layer ? `${layer}: ` : ""}${op}${number ? ` #${number}` : ""} ${phase}`;
}

function show(place) {
  if (chosen >= 0) dots[chosen].classList.remove("chosen");
  chosen = place;
  dots[place].classList.add("chosen");
  const call = calls[place];
  document.getElementById("name").textContent = title(place);
  const [ratio, added, inherited] = call[6];
  const parts = [verdicts[call[4]] + (call[7] ? `: ${call[7]}` : ""), `${ratio} times the explained error`];
  if (added) parts.push(`adds ${added}`, `inherits ${inherited}`);
  document.getElementById("reason").textContent = parts.join("; ");
  const table = document.getElementById("numbers");
  table.replaceChildren();
  const heads = ["value", "dtype", "shape", "relative error", "cosine", "largest error", "times explained", "verdict"];
  for (const [at, cells] of [heads, ...call[8]].entries()) {
    const row = table.insertRow();
    cells.forEach((cell, column) => {
      const element = document.createElement(at ? "td" : "th");
      const isVerdict = at && column === 7;
      element.textContent = isVerdict ? verdicts[cell] : cell;
      if (isVerdict) element.className = `v${cell}`;
      row.append(element);
    });
  }
}

draw();
for (const button of document.querySelectorAll("[data-place]")) {
  button.addEventListener("click", () => show(Number(button.dataset.place)));
}
chart.addEventListener("keydown", (event) => {
  const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (step && calls.length) {
    event.preventDefault();
    show(Math.min(Math.max(chosen + step, 0), calls.length - 1));
  }
});
const first = calls.findIndex((call) => call[4] === 2);
if (first >= 0) show(first);
