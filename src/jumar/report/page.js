"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const { frame } = data;
  const NAMESPACE = "http://www.w3.org/2000/svg";
  const MAX_HISTORY = 50;
  const hidden = new Set();   // groups that the legend switched off
  const filtered = new Set(); // groups whose rows the filter excludes
  const history = [];         // earlier ranges, restored by double clicks
  let range = null;           // [low, high] of every horizontal axis; null shows all
  let smoothing = 0;

  const draw = (tag, attributes, text) => {
    const element = document.createElementNS(NAMESPACE, tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    return element;
  };

  // Numbers and axes as in numbers.py.
  function tickText(value) {
    const size = Math.abs(value);
    if (value === 0) return "0";
    if (size >= 1e7 || size < 1e-4) {
      const [mantissa, exponent] = value.toExponential(3).split("e");
      return `${Number(mantissa)}e${Number(exponent)}`;
    }
    if (size >= 1000) return Math.round(value).toLocaleString("en-US");
    return String(Number(value.toPrecision(4)));
  }
  function tickTexts(values) {
    let texts = values.map(tickText);
    for (let digits = 5; digits < 18 && new Set(texts).size < texts.length; digits += 1) {
      texts = values.map((value) => String(Number(value.toPrecision(digits))));
    }
    return texts;
  }
  function linear(low, high, exact) {
    if (high - low < 1e-300) {
      const pad = Math.abs(low) > 1e-300 ? Math.abs(low) * 0.1 : 1;
      [low, high] = [low - pad, high + pad];
    }
    const wanted = (high - low) / 5;
    const power = 10 ** Math.floor(Math.log10(wanted));
    const step = [1, 2, 5, 10].map((multiple) => multiple * power).find((candidate) => candidate >= wanted * 0.999);
    const [first, last] = exact ? [Math.ceil(low / step - 1e-9), Math.floor(high / step + 1e-9)]
      : [Math.floor(low / step), Math.ceil(high / step)];
    const ticks = [];
    for (let index = first; index <= last; index += 1) ticks.push(Number((index * step).toPrecision(12)));
    if (!exact) [low, high] = [ticks[0], ticks[ticks.length - 1]];
    return { ticks, share: (value) => (value - low) / (high - low), low, high };
  }
  function vertical(low, high) {
    if (!(low > 0 && high / low >= data.logarithmicFrom)) return linear(low, high, false);
    const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
    const stride = Math.max(1, Math.round((last - first) / 5));
    const [start, end] = [low / 1.15, high * 1.15];
    const ticks = [];
    for (let power = first; power <= last; power += stride) {
      for (const multiple of last - first <= 3 ? [1, 2, 5] : [1]) {
        const tick = Number((multiple * 10 ** power).toPrecision(12));
        if (tick >= start && tick <= end) ticks.push(tick);
      }
    }
    const [bottom, top] = [Math.log10(start), Math.log10(end)];
    return { ticks, share: (value) => (Math.log10(value) - bottom) / (top - bottom), low: start, high: end };
  }

  const isShown = (line) => line.groups.some((group) => !hidden.has(group) && !filtered.has(group));

  // An exponential mean that starts with the first value; measured points are not smoothed.
  function smoothed(line) {
    if (!smoothing || line.dotted) return line.y;
    let mean = 0, weight = 0;
    return line.y.map((value) => {
      if (value === null) return null;
      mean = smoothing * mean + (1 - smoothing) * value;
      weight = smoothing * weight + (1 - smoothing);
      return mean / weight;
    });
  }

  // The part of a curve within a range, clipped at the bounds; null where it is interrupted.
  function within(xs, ys, low, high) {
    const points = [];
    for (let index = 0; index < xs.length; index += 1) {
      const [x, y] = [xs[index], ys[index]];
      const previous = index ? [xs[index - 1], ys[index - 1]] : null;
      if (previous && y !== null && previous[1] !== null && x > previous[0]) {
        const at = (edge) => previous[1] + (y - previous[1]) * (edge - previous[0]) / (x - previous[0]);
        if (previous[0] < low && x > low) points.push([low, at(low)]);
        if (previous[0] < high && x > high) points.push([high, at(high)]);
      }
      if (x >= low && x <= high) points.push(y === null ? null : [x, y]);
    }
    return points;
  }

  class Chart {
    constructor(svg, lines) {
      this.svg = svg;
      this.lines = lines;
      this.drawn = svg.querySelector(".drawn");
      this.readout = svg.parentElement.querySelector(".readout");
      this.whole = linear(0, Math.max(...lines.flatMap((line) => line.x)), false);
      svg.classList.add("live");
      svg.setAttribute("tabindex", "0");
      svg.addEventListener("pointerdown", (event) => this.press(event));
      svg.addEventListener("pointermove", (event) => this.move(event));
      svg.addEventListener("pointerup", (event) => this.release(event));
      svg.addEventListener("pointercancel", () => this.forget());
      svg.addEventListener("dblclick", back);
      svg.addEventListener("keydown", (event) => this.key(event));
    }

    get shown() {
      return range ?? [this.whole.low, this.whole.high];
    }

    redraw() {
      const [low, high] = this.shown;
      const across = range ? linear(low, high, true) : this.whole;
      const visible = this.lines.filter(isShown).map((line) => {
        const ys = smoothed(line);
        return { line, ys, points: within(line.x, ys, low, high) };
      });
      const values = visible.flatMap(({ points }) => points.filter(Boolean).map((point) => point[1]));
      const parts = [];
      this.axes = null;
      if (values.length) {
        const down = vertical(values.reduce((a, b) => Math.min(a, b)), values.reduce((a, b) => Math.max(a, b)));
        const x = (value) => frame.left + across.share(value) * (frame.right - frame.left);
        const y = (value) => frame.bottom - down.share(value) * (frame.bottom - frame.top);
        this.axes = { x, y, visible };
        tickTexts(down.ticks).forEach((text, index) => {
          const at = y(down.ticks[index]).toFixed(1);
          parts.push(draw("line", { class: "grid", x1: frame.left, x2: frame.right, y1: at, y2: at }));
          parts.push(draw("text", { x: frame.left - 6, y: Number(at) + 4, "text-anchor": "end" }, text));
        });
        tickTexts(across.ticks).forEach((text, index) => {
          const at = x(across.ticks[index]).toFixed(1);
          parts.push(draw("line", { class: "frame", x1: at, x2: at, y1: frame.bottom, y2: frame.bottom + 4 }));
          parts.push(draw("text", { x: at, y: frame.bottom + 18, "text-anchor": "middle" }, text));
        });
        visible.forEach((curve) => parts.push(this.curve(curve, x, y)));
        parts.push(...this.keys(visible, x, y));
      } else {
        parts.push(draw("text", { x: frame.width / 2, y: frame.height / 2, "text-anchor": "middle" }, "nothing to show here"));
      }
      this.drawn.replaceChildren(...parts);
    }

    curve({ line, points }, x, y) {
      const group = draw("g", { class: line.look });
      let path = "", pen = "M";
      for (const point of points) {
        if (point) path += `${pen}${x(point[0]).toFixed(1)} ${y(point[1]).toFixed(1)}`;
        pen = point ? "L" : "M";
      }
      group.append(draw("path", { class: "line", d: path }));
      const [low, high] = this.shown;
      line.x.forEach((value, index) => {
        if (value < low || value > high) return;
        if (line.y[index] === null) group.append(cross(x(value), frame.top));
        else if (line.dotted) group.append(draw("circle", { class: "dot", cx: x(value).toFixed(1), cy: y(line.y[index]).toFixed(1), r: 3.2 }));
      });
      const last = line.x.length - 1;
      if (line.ended && points.length && line.x[last] <= high && points[points.length - 1]) {
        const end = points[points.length - 1];
        group.append(cross(x(end[0]), y(end[1])));
      }
      return group;
    }

    // Key letters at the ends of curves, moved down where they would overlap.
    keys(visible, x, y) {
      const ends = visible.filter(({ line, points }) => line.key && points.some(Boolean)).map(({ line, points }) => {
        const end = points.filter(Boolean).pop();
        return { line, x: x(end[0]) + 5, y: y(end[1]) + 4 };
      }).sort((a, b) => a.y - b.y);
      let free = -Infinity;
      return ends.filter((end) => {
        end.y = Math.max(end.y, free);
        free = end.y + 14;
        return end.y <= frame.bottom;
      }).map((end) => draw("text", { class: `key ${end.line.look.split(" ")[0]}`, x: end.x.toFixed(1), y: end.y.toFixed(1) }, end.line.key));
    }

    // The pointer's position in units of the drawing and as a value of the horizontal axis.
    position(event) {
      const box = this.svg.getBoundingClientRect();
      const across = (event.clientX - box.left) * frame.width / box.width;
      const down = (event.clientY - box.top) * frame.height / box.height;
      const share = Math.min(1, Math.max(0, (across - frame.left) / (frame.right - frame.left)));
      const [low, high] = this.shown;
      return { across, down, share, value: low + share * (high - low) };
    }

    press(event) {
      if (event.button || event.pointerType === "touch" && !event.isPrimary) return;
      this.from = this.position(event);
      this.svg.setPointerCapture(event.pointerId);
    }

    move(event) {
      const at = this.position(event);
      if (!this.from) {
        this.showNearest(at);
        return;
      }
      this.band?.remove();
      const [left, right] = [this.from.share, at.share].sort((a, b) => a - b).map((share) => frame.left + share * (frame.right - frame.left));
      this.band = draw("rect", { class: "chosen", x: left, y: frame.top, width: right - left, height: frame.bottom - frame.top });
      this.svg.append(this.band);
    }

    release(event) {
      const { from } = this;
      this.forget();
      if (!from) return;
      const at = this.position(event);
      if (Math.abs(at.share - from.share) > 0.02) show([from.value, at.value].sort((a, b) => a - b));
    }

    forget() {
      this.from = null;
      this.band?.remove();
    }

    // Shows the nearest point of all curves as text.
    showNearest({ across, down }) {
      let best = null;
      for (const { line, ys } of this.axes?.visible ?? []) {
        for (let index = 0; index < ys.length; index += 1) {
          const [low, high] = this.shown;
          if (ys[index] === null || line.x[index] < low || line.x[index] > high) continue;
          const distance = (this.axes.x(line.x[index]) - across) ** 2 + (this.axes.y(ys[index]) - down) ** 2;
          if (!best || distance < best.distance) best = { distance, line, x: line.x[index], y: ys[index] };
        }
      }
      this.readout.textContent = best && best.distance < 900 ? `${best.line.key} ${best.line.label}: ${tickText(best.y)} at ${tickText(best.x)}` : "";
    }

    key(event) {
      const [low, high] = this.shown;
      const [middle, half] = [(low + high) / 2, (high - low) / 2];
      const quarter = half / 2;
      const whole = [this.whole.low, this.whole.high];
      const keys = {
        "+": () => show([middle - quarter, middle + quarter]),
        "=": () => show([middle - quarter, middle + quarter]),
        "-": () => show([middle - 2 * half, middle + 2 * half], whole),
        ArrowLeft: () => show([low - quarter, high - quarter], whole),
        ArrowRight: () => show([low + quarter, high + quarter], whole),
        0: () => show(null),
        Escape: () => show(null),
      };
      if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
      keys[event.key]();
      event.preventDefault();
    }
  }

  const cross = (x, y) => draw("path", { class: "cross", d: `M${(x - 5).toFixed(1)} ${(y - 5).toFixed(1)}l10 10m0 -10l-10 10` });

  const charts = Array.from(document.querySelectorAll("svg[data-chart]"), (svg) => new Chart(svg, data.charts[svg.dataset.chart].lines));
  const redraw = () => charts.forEach((chart) => chart.redraw());

  // Zooms all charts to a range, which is moved to stay within `whole`.
  function show(wanted, whole) {
    if (wanted && whole) {
      const width = wanted[1] - wanted[0];
      if (width >= whole[1] - whole[0]) wanted = null;
      else if (wanted[0] < whole[0]) wanted = [whole[0], whole[0] + width];
      else if (wanted[1] > whole[1]) wanted = [whole[1] - width, whole[1]];
    }
    if (wanted && !(wanted[1] - wanted[0] > 1e-9 * Math.max(1, Math.abs(wanted[1])))) return;
    history.push(range);
    if (history.length > MAX_HISTORY) history.shift();
    range = wanted;
    redraw();
  }
  function back() {
    if (!history.length) return;
    range = history.pop();
    redraw();
  }

  // A click on a legend entry hides or shows its curves in all charts.
  const switches = [];
  document.querySelectorAll(".legend li[data-groups]").forEach((item) => {
    const groups = item.dataset.groups.split(",").map(Number);
    const button = document.createElement("button");
    button.type = "button";
    button.append(...item.childNodes);
    item.append(button);
    switches.push(() => button.setAttribute("aria-pressed", String(groups.some((group) => !hidden.has(group)))));
    button.addEventListener("click", () => {
      const off = groups.every((group) => hidden.has(group));
      groups.forEach((group) => off ? hidden.delete(group) : hidden.add(group));
      switched();
    });
  });
  function switched() {
    switches.forEach((update) => update());
    redraw();
  }

  if (charts.length) {
    document.getElementById("controls").hidden = false;
    document.getElementById("smoothing").addEventListener("input", (event) => {
      smoothing = Number(event.target.value);
      redraw();
    });
    document.getElementById("whole").addEventListener("click", () => show(null));
    document.getElementById("all").addEventListener("click", () => {
      hidden.clear();
      switched();
    });
    switched();
  }

  // Tables: the value of a formatted number, possibly with a unit of memory; NaN for other text.
  const UNITS = { KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };
  function valueOf(text) {
    const found = text.trim().match(/^(-?[\d,]*\.?\d+(?:e[+-]?\d+)?)\s*(\w*)/i);
    return found ? Number(found[1].replaceAll(",", "")) * (UNITS[found[2]] ?? 1) : NaN;
  }
  const COMPARES = { "<": (a, b) => a < b, ">": (a, b) => a > b, "<=": (a, b) => a <= b, ">=": (a, b) => a >= b };
  function matches(row, heads, term) {
    const cells = Array.from(row.cells, (cell) => cell.textContent.toLowerCase());
    const found = term.match(/^(.+?)(<=|>=|<|>|=)(.+)$/);
    const column = found ? heads.findIndex((head) => head.includes(found[1])) : -1;
    if (column < 0) return cells.some((cell) => cell.includes(term));
    return found[2] === "=" ? cells[column].trim() === found[3] : COMPARES[found[2]](valueOf(cells[column]), Number(found[3]));
  }
  document.querySelectorAll("table[data-searchable]").forEach((table) => {
    const controls = table.parentElement.previousElementSibling;
    const rows = Array.from(table.tBodies[0].rows);
    const cells = Array.from(table.tHead.rows[0].cells);
    const heads = cells.map((head) => head.textContent.toLowerCase());
    const status = controls.querySelector("[role=status]");
    controls.hidden = false;
    controls.querySelector("input").addEventListener("input", (event) => {
      const terms = event.target.value.toLowerCase().split(/\s+/).filter(Boolean);
      filtered.clear();
      const shown = new Set();
      rows.forEach((row) => {
        row.hidden = !terms.every((term) => matches(row, heads, term));
        if ("group" in row.dataset) (row.hidden ? filtered : shown).add(Number(row.dataset.group));
      });
      shown.forEach((group) => filtered.delete(group));
      status.textContent = terms.length ? `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows` : "";
      redraw();
    });
    cells.forEach((head, column) => {
      if (head.tagName !== "TH") return;
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") !== "descending";
        cells.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const numeric = head.classList.contains("number");
        const key = (row) => numeric ? valueOf(row.cells[column].textContent) : row.cells[column].textContent;
        const ordered = rows.map((row) => [key(row), row]).sort(([a], [b]) => {
          // Missing values come last in either direction.
          if (numeric && (Number.isNaN(a) || Number.isNaN(b))) return Number.isNaN(a) - Number.isNaN(b);
          return (a < b ? -1 : a > b ? 1 : 0) * (down ? -1 : 1);
        });
        table.tBodies[0].replaceChildren(...ordered.map(([, row]) => row));
      });
    });
  });
})();
