"use strict";
// Adds to drawings what paper cannot do: hide a series, read values under the pointer, zoom along x. Every page is complete
// without this script. Values are read off the drawing itself: `data-x`, `data-y` and `data-size` say what its pixels mean.
(() => {
const NS = (document.querySelector("svg") || {}).namespaceURI;
const all = (root, query) => [...root.querySelectorAll(query)];
const make = (tag, attributes, text) => {
  const node = document.createElementNS(NS, tag);
  for (const name in attributes) node.setAttribute(name, attributes[name]);
  if (text !== undefined) node.textContent = text;
  return node;
};
const press = (node, act) => {
  node.setAttribute("tabindex", "0");
  node.setAttribute("role", "button");
  // What holds something to press is no longer one picture.
  node.closest("svg[role=img]")?.setAttribute("role", "group");
  node.addEventListener("click", act);
  node.addEventListener("keydown", event => {
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); act(event); }
  });
};
const plain = value => {
  if (!Number.isFinite(value)) return "";
  const far = value !== 0 && (Math.abs(value) >= 1e6 || 1e-3 > Math.abs(value));
  return String(far ? Number(value.toPrecision(4)).toExponential() : Number(value.toPrecision(4)));
};

// One axis: pixels to values and back to words.
const axis = (text, size, clock) => {
  const [low, high, kind] = text.split(" ");
  const log = kind === "log", put = log ? Math.log10 : v => v, take = log ? v => 10 ** v : v => v;
  const a = put(+low), b = put(+high);
  const words = value => clock ? clock(value) : kind === "%" ? plain(100 * value) + "%" : plain(value);
  return { log, words, value: px => take(a + (b - a) * px / size), at: v => (put(v) - a) / (b - a) * size };
};

// The pointer's bubble, one for the page.
const bubble = document.createElement("div");
bubble.className = "bubble";
bubble.hidden = true;
document.body.append(bubble);
const tell = (lines, event) => {
  bubble.replaceChildren(...lines.map(line => {
    const row = document.createElement("div");
    if (line.tone) { const dot = document.createElement("i"); dot.style.background = line.tone; row.append(dot); }
    row.append(line.text);
    return row;
  }));
  bubble.hidden = false;
  const { width, height } = bubble.getBoundingClientRect();
  const room = document.documentElement.clientWidth;
  const left = event.clientX + 16 + width > room ? event.clientX - 16 - width : event.clientX + 16;
  bubble.style.left = Math.max(4, Math.min(left, room - width - 4)) + scrollX + "px";
  bubble.style.top = Math.max(4, event.clientY - height - 12) + scrollY + "px";
};
const hush = () => { bubble.hidden = true; };

// Moves what a plot holds along x; the originals are kept.
const NUMBERS = ["x", "x1", "x2", "cx"];
const stretch = (node, map) => {
  const kept = node.kept || (node.kept = Object.fromEntries([...node.attributes].map(a => [a.name, a.value])));
  const text = node.tagName === "text", mark = node.classList.contains("dot") || node.classList.contains("due");
  for (const name of NUMBERS) if (kept[name] !== undefined) node.setAttribute(name, map(+kept[name]));
  if (kept.width !== undefined && !text) {
    const left = map(+kept.x), right = map(+kept.x + +kept.width);
    node.setAttribute("width", Math.max(right - left, 0.5));
  }
  if (kept.d !== undefined) {
    const first = parseFloat(kept.d.slice(1)), shift = map(first) - first;
    node.setAttribute("d", kept.d.replace(/([MLH])(-?[\d.]+)/g, (_, verb, x) => verb + (mark ? +x + shift : map(+x)).toFixed(2)));
  }
};

const steps = (low, high, most) => {
  const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(n => n * power).find(s => s >= rough);
  const found = [];
  for (let v = Math.ceil(low / step) * step; high + step * 1e-9 >= v; v += step) found.push(Number(v.toPrecision(12)));
  return found;
};

const zoomable = (panel, scale, width, height, after) => {
  const ticks = panel.querySelector(".ticks"), kept = ticks && ticks.innerHTML;
  const plots = all(panel, "svg.plot");
  let view = [0, width];
  const show = (from, to) => {
    view = to - from >= width ? [0, width] : [Math.max(0, from), Math.min(width, to)];
    const [a, b] = view, whole = b - a >= width - 0.01;
    for (const plot of plots) for (const node of all(plot, "*")) if (!node.classList.contains("still")) stretch(node, x => (x - a) * width / (b - a));
    panel.classList.toggle("zoomed", !whole);
    if (ticks && whole) ticks.innerHTML = kept;
    else if (ticks) {
      ticks.replaceChildren();
      const [low, high] = [scale.value(a), scale.value(b)];
      for (const v of steps(low, high, Math.max(3, width / 90))) {
        const x = (scale.at(v) - a) * width / (b - a);
        ticks.append(make("line", { class: "tick", x1: x, x2: x, y1: height, y2: height + 4 }),
          make("text", { x, y: height + 17, "text-anchor": "middle", class: "soft" }, scale.words(v)));
      }
    }
    if (after) after(whole);
  };
  return { show, view: () => view };
};

// Dragging over a plot zooms into it, a double click zooms out.
const draggable = (panel, plot, width, height, zoom, move) => {
  const sense = make("rect", { class: "sense still", x: 0, y: 0, width, height });
  plot.prepend(sense);
  const svg = panel.ownerSVGElement, at = event => {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(panel.getScreenCTM().inverse());
    return Math.min(Math.max(point.x, 0), width);
  };
  let from = null, band = null;
  const inside = event => {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(panel.getScreenCTM().inverse());
    return point.x >= -4 && width + 4 >= point.x && point.y >= -4 && height + 4 >= point.y;
  };
  svg.addEventListener("pointerdown", event => {
    if (event.pointerType === "mouse" && event.button === 0 && inside(event) && !event.target.closest(".key")) {
      from = at(event);
      band = make("rect", { class: "brush still", x: from, y: 0, width: 0, height });
      panel.append(band);
    }
  });
  addEventListener("pointermove", event => {
    if (band) {
      const to = at(event);
      band.setAttribute("x", Math.min(from, to));
      band.setAttribute("width", Math.abs(to - from));
    }
  });
  addEventListener("pointerup", event => {
    if (!band) return;
    const to = at(event), [a, b] = zoom.view(), value = x => a + x * (b - a) / width;
    band.remove();
    band = null;
    if (Math.abs(to - from) > 8) zoom.show(value(Math.min(from, to)), value(Math.max(from, to)));
  });
  svg.addEventListener("dblclick", event => { if (inside(event)) zoom.show(0, width); });
  svg.addEventListener("pointermove", event => { if (inside(event)) move(event, at(event)); else if (!panel.matches(":hover")) move(null); });
  svg.addEventListener("pointerleave", () => move(null));
};

// What the script says better than the browser's own hints.
const untitle = (node, key) => {
  const title = node.querySelector("title");
  if (title) { node.dataset[key] = title.textContent; title.remove(); }
};

const points = d => [...d.matchAll(/[ML](-?[\d.]+) (-?[\d.]+)/g)].map(m => [+m[1], +m[2]]);

for (const panel of all(document, "svg.chart g.panel[data-x]")) {
  const [width, height] = panel.dataset.size.split(" ").map(Number);
  const x = axis(panel.dataset.x, width), y = axis(panel.dataset.y, height);
  const plot = panel.querySelector("svg.plot");
  if (!plot) continue;
  const lines = all(panel, "path.line:not(.thin)");
  if (lines.length) for (const hit of all(panel, "circle.hit")) hit.remove();
  for (const line of all(panel, "path.line")) untitle(line, "s");
  const zoom = zoomable(panel, x, width, height);
  const cross = make("line", { class: "cross still", y1: 0, y2: height, x1: 0, x2: 0, visibility: "hidden" });
  panel.append(cross);
  let live = false;
  draggable(panel, plot, width, height, zoom, (event, px) => {
    const near = (event ? lines.filter(line => !line.classList.contains("off")) : []).map(line => {
      const best = points(line.getAttribute("d")).reduce((best, p) => Math.abs(p[0] - px) >= Math.abs(best[0] - px) ? best : p, [1e9, 0]);
      return { line, best };
    });
    if (!near.length) {
      cross.setAttribute("visibility", "hidden");
      // Another panel of the same drawing may be speaking.
      if (live) hush();
      live = false;
      return;
    }
    live = true;
    const at = near.reduce((best, found) => Math.abs(found.best[0] - px) >= Math.abs(best - px) ? best : found.best[0], 1e9);
    cross.setAttribute("x1", at); cross.setAttribute("x2", at); cross.setAttribute("visibility", "visible");
    const [a, b] = zoom.view();
    const rows = near.filter(found => 3 > Math.abs(found.best[0] - at)).map(({ line, best }) => ({
      tone: getComputedStyle(line).stroke,
      text: (line.dataset.s ? line.dataset.s + ": " : "") + y.words(y.value(height - best[1])),
    }));
    tell([{ text: x.words(x.value(a + at * (b - a) / width)) }, ...rows.slice(0, 14)], event);
  });
}

// A legend's entries hide and show their series.
const HUES = /\b(t[0-7]|ink|soft)\b/;
for (const svg of all(document, "svg.chart")) {
  const keys = all(svg, "g.key").filter(key => key.querySelector("text") && !key.querySelector(".heat, .div"));
  const name = key => (key.querySelector("text title") || key.querySelector("text")).textContent;
  const hue = node => (HUES.exec(node.getAttribute("class") || "") || [])[1];
  const tone = key => all(key, "*").map(hue).find(Boolean);
  const settle = () => {
    const off = new Set(keys.filter(key => key.classList.contains("off")).map(name));
    const shown = new Set(keys.filter(key => !key.classList.contains("off")).map(tone)), known = new Set(keys.map(tone));
    for (const node of all(svg, "svg.plot *")) {
      if (!known.has(hue(node))) continue;
      const said = node.dataset.s;
      const named = said && keys.some(key => name(key) === said);
      node.classList.toggle("off", named ? off.has(said) : !shown.has(hue(node)));
    }
  };
  if (keys.length > 1) for (const key of keys) press(key, () => {
    key.classList.toggle("off");
    key.setAttribute("aria-pressed", key.classList.contains("off"));
    settle();
  });
}

// Gantt charts: zoom along time, one job lit, all about an operation under the pointer.
for (const svg of all(document, "svg.gantt")) {
  const panel = svg.querySelector("g.panel[data-x]");
  if (!panel) continue;
  const [width, height] = panel.dataset.size.split(" ").map(Number);
  const names = Object.fromEntries(all(svg, "g.key").map(key => [key.dataset.j, key.querySelector("text").textContent]));
  const plot = panel.querySelector("svg.plot"), bars = all(plot, "rect.bar"), letters = all(plot, "text.in");
  const relabel = whole => {
    for (const text of all(plot, "text.made")) text.remove();
    for (const text of letters) text.classList.toggle("off", !whole);
    if (whole) return;
    for (const bar of bars) {
      const [x, y, w, h] = ["x", "y", "width", "height"].map(n => +bar.getAttribute(n)), word = names[bar.dataset.j] || "";
      const from = Math.max(x, 0), to = Math.min(x + w, width);
      if (to - from > 6.6 * word.length + 3 && h > 9) plot.append(make("text", { class: "in made still", x: (from + to) / 2, y: y + h / 2 + 4 }, word));
    }
  };
  for (const node of all(plot, "*")) if (node.tagName !== "title") untitle(node, "t");
  const [start, unit] = (panel.dataset.clock || "").split(" ").map(Number);
  const dated = value => {
    const date = new Date((start + value * unit) * 1000), two = n => String(n).padStart(2, "0");
    const month = "JanFebMarAprMayJunJulAugSepOctNovDec".slice(3 * date.getUTCMonth(), 3 * date.getUTCMonth() + 3);
    return date.getUTCDate() + " " + month + " " + two(date.getUTCHours()) + ":" + two(date.getUTCMinutes());
  };
  const scale = axis(panel.dataset.x, width, panel.dataset.clock && dated);
  const zoom = zoomable(panel, scale, width, height, relabel);
  const light = job => {
    const same = svg.dataset.lit === job;
    svg.dataset.lit = same ? "" : job;
    svg.classList.toggle("lit", !same);
    for (const node of all(svg, "[data-j]")) node.classList.toggle("on", !same && node.dataset.j === job);
  };
  for (const key of all(svg, "g.key")) press(key, () => light(key.dataset.j));
  for (const bar of bars) bar.addEventListener("click", () => light(bar.dataset.j));
  draggable(panel, plot, width, height, zoom, event => {
    const bar = event && event.target.closest && event.target.closest("[data-t]");
    if (bar) tell(bar.dataset.t.split("\n").map(text => ({ text })), event); else hush();
  });
  const tools = document.createElement("div");
  tools.className = "tools";
  const tool = (word, label, act) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = word;
    button.setAttribute("aria-label", label);
    button.addEventListener("click", act);
    tools.append(button);
  };
  const by = factor => { const [a, b] = zoom.view(), mid = (a + b) / 2, half = (b - a) / 2 * factor; zoom.show(mid - half, mid + half); };
  const slide = share => {
    const [a, b] = zoom.view(), d = Math.max(-a, Math.min(width - b, (b - a) * share));
    zoom.show(a + d, b + d);
  };
  tool("+", "zoom in", () => by(0.5));
  tool("−", "zoom out", () => by(2));
  tool("◀", "earlier", () => slide(-0.5));
  tool("▶", "later", () => slide(0.5));
  tool("all", "show all of it", () => zoom.show(0, width));
  svg.before(tools);
}
})();
