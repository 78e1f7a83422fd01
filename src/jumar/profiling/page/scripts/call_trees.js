// Flame graphs: op time by layer of the network, and host calls by caller.
const FLAME_ROW = 22;
const MAX_DEPTH = 40;
const flame = byId("flame");
let path = [];

// The tree of layers from the groups of ops, with op types as leaves.
function layerTree() {
  const root = { name: textOf("all_ops"), total: 0, count: 0, inner: new Map() };
  for (let at = 0; at < size; at++) {
    const module = labels.module[at];
    const names = module ? module.split(module.includes("/") ? "/" : ".") : [textOf("no_layer")];
    let node = root;
    for (const name of [...names, labels.type[at]]) {
      node.total += labels.total[at];
      node.count += labels.count[at];
      if (!node.inner.has(name)) node.inner.set(name, { name, total: 0, count: 0, inner: new Map(), kind: "compute" });
      node = node.inner.get(name);
    }
    node.total += labels.total[at];
    node.count += labels.count[at];
    node.kind = labels.kind[at];
  }
  const listed = (node) => ({ ...node, inner: Array.from(node.inner.values(), listed).sort((a, b) => b.total - a.total) });
  return listed(root);
}

function hostTree() {
  const listed = ([name, total, count, inner]) => ({
    name: typeof name === "string" ? name : host.names[name], total, count,
    kind: typeof name === "string" ? "grid" : `host-${host.layers[name]}`, inner: inner.map(listed),
  });
  const threads = host.tree.map(listed);
  const total = threads.reduce((sum, thread) => sum + thread.total, 0);
  const count = threads.reduce((sum, thread) => sum + thread.inner.reduce((all, node) => all + node.count, 0), 0);
  return { name: textOf("all_threads"), total, count, inner: threads, kind: "grid" };
}

const trees = { layers: layerTree(), host: host ? hostTree() : null };
byId("tree").querySelector("option[value=host]").disabled = !host;

function describe(node, root) {
  const inner = node.inner.reduce((sum, child) => sum + child.total, 0);
  byId("flame-text").textContent = [node.name, `${milliseconds(node.total)} ms`, `${(100 * node.total / Math.max(root.total, 1)).toFixed(1)} %`,
    textOf("itself", { own: milliseconds(Math.max(node.total - inner, 0)) }), textOf("times", { count: node.count })].join(" · ");
}

function drawTree() {
  const root = trees[byId("tree").value];
  const top = path.length ? path[path.length - 1] : root;
  const fullWidth = flame.clientWidth;
  const boxes = [];
  let deepest = 0;
  const placeNode = (node, left, width, depth, nextPath) => {
    if (width < 2 || depth >= MAX_DEPTH) return;
    const element = make("button", width > 34 ? node.name : "");
    element.type = "button";
    element.title = `${node.name} · ${milliseconds(node.total)} ms`;
    element.setAttribute("aria-label", element.title);
    element.className = `f-${node.kind || "grid"}`;
    Object.assign(element.style, { left: `${left}px`, top: `${depth * FLAME_ROW}px`, width: `${Math.max(width - 1, 1)}px` });
    element.addEventListener("click", () => { path = nextPath; drawTree(); describe(node, root); flame.querySelector("button")?.focus(); });
    element.addEventListener("focus", () => describe(node, root));
    element.addEventListener("mouseenter", () => describe(node, root));
    boxes.push(element);
    deepest = Math.max(deepest, depth);
    let at = left;
    for (const inner of node.inner) {
      const part = width * inner.total / Math.max(node.total, 1);
      placeNode(inner, at, part, depth + 1, [...nextPath, inner]);
      at += part;
    }
  };
  const above = path.length ? [root, ...path.slice(0, -1)] : [];
  above.forEach((node, depth) => placeNode({ ...node, inner: [] }, 0, fullWidth, depth, path.slice(0, depth)));
  placeNode(top, 0, fullWidth, path.length, path);
  flame.style.height = `${(deepest + 1) * FLAME_ROW}px`;
  flame.replaceChildren(...boxes);
}

byId("tree").addEventListener("change", () => { path = []; byId("flame-text").textContent = ""; drawTree(); });
byId("trees").hidden = false;
new ResizeObserver(drawTree).observe(flame.parentElement);
drawTree();
