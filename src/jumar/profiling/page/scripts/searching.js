// Search in the timeline: non-matches are dimmed, and Enter moves to the next match.
const searchInput = byId("find");

function search() {
  const text = searchInput.value.trim().toLowerCase();
  if (!text) {
    wanted = null;
    byId("matches").textContent = "";
    redraw();
    return;
  }
  const ops = labels.type.map((_, at) => ["type", "dtypes", "shapes", "module"].some((name) => labels[name][at].toLowerCase().includes(text)));
  const calls = host ? host.names.map((name) => name.toLowerCase().includes(text)) : [];
  wanted = (group, label) => (group === opGroup ? ops : calls)[label];
  let [count, total] = [0, 0];
  ops.forEach((matches, at) => { if (matches) { count += labels.count[at]; total += labels.total[at]; } });
  const hostCount = calls.reduce((sum, matches, at) => sum + (matches ? host.counts[at] : 0), 0);
  byId("matches").textContent = [textOf("matching_ops", { count, total: milliseconds(total) }), host && textOf("matching_calls", { count: hostCount })].filter(Boolean).join(", ");
  redraw();
}

// Selects the nearest match after (or before) the selected box in any row, at the finest level that
// covers the whole timeline.
function nextMatch(forward) {
  if (!wanted) return;
  const from = picked ? picked.start : view[0] - 1;
  let best = null;
  const nearer = (start) => !best || (forward ? start < best.start : start > best.start);
  for (const row of rows) {
    const fullLevels = row.group.levels.filter((level) => level.from === -Infinity);
    const boxes = fullLevels[fullLevels.length - 1].lanes[row.lane];
    const step = forward ? 1 : -1;
    for (let at = forward ? firstAt(boxes.start, from) : firstAt(boxes.start, from - 0.5) - 1; at >= 0 && at < boxes.start.length; at += step) {
      if (!nearer(boxes.start[at])) break;
      if (wanted(row.group, boxes.label[at])) { best = { row, boxes, at, start: boxes.start[at] }; break; }
    }
  }
  if (!best) return;
  pick(best.row, best.boxes, best.at);
  const length = Math.max(best.boxes.length[best.at], 20);
  const span = Math.min(view[1] - view[0], 200 * length);
  if (picked.start < view[0] || picked.end > view[1] || span < view[1] - view[0]) show(picked.start - span / 3, picked.start + 2 * span / 3);
}

searchInput.addEventListener("input", search);
searchInput.addEventListener("keydown", (event) => {
  if (event.key === "Enter") {
    event.preventDefault();
    nextMatch(!event.shiftKey);
  } else if (event.key === "Escape") {
    searchInput.value = "";
    search();
    canvas.focus();
  }
});
actions.find = () => searchInput.focus();
actions.match = () => nextMatch(true);
byId("host").addEventListener("change", redraw);
byId("time").hidden = false;
readColours();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { readColours(); redraw(); drawTree(); });
new ResizeObserver(redraw).observe(canvas);
draw();
