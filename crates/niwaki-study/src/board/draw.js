// Figures and tables of the board: data in, elements out. Nothing here knows what a run is.
const NS = "http://www.w3.org/2000/svg";
const el = (tag, attributes, ...inside) => {
  const node = document.createElement(tag);
  for (const name in attributes) {
    const value = attributes[name];
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...inside.filter(one => one !== null && one !== undefined));
  return node;
};
const mark = (tag, attributes, text) => {
  const node = document.createElementNS(NS, tag);
  for (const name in attributes) node.setAttribute(name, attributes[name]);
  if (text !== undefined) node.textContent = text;
  return node;
};
// Three digits, as the tables that were written without a script.
const digits = value => {
  if (value === null || value === undefined || !Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || 1e-4 > size) return value.toExponential(2);
  return size >= 100 ? value.toFixed(size >= 1000 ? 0 : 1) : value.toPrecision(3);
};
// Ticks and places on an axis need no digits that say nothing.
const plain = value => Number.isFinite(value) ? String(Number(value.toPrecision(4))) : "–";
const signed = value => (value > 0 ? "+" : "") + digits(value);
const percent = value => value === null || value === undefined ? "–" : Math.round(100 * value) + "%";
const span = seconds => seconds === null ? "–" : seconds >= 5400 ? (seconds / 3600).toFixed(1) + " h" : seconds >= 90 ? Math.round(seconds / 60) + " min" : Math.round(seconds) + " s";
const hue = place => "s" + place % 8 + (place >= 8 ? " dashed" : "");

const steps = (low, high, most) => {
  const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map(n => n * power).find(s => s >= rough) || 1, found = [];
  for (let v = Math.ceil(low / step - 1e-9) * step; high + step * 1e-9 >= v; v += step) found.push(step * 1e-6 > Math.abs(v) ? 0 : Number(v.toPrecision(12)));
  return found;
};
// From values to pixels, linear or by decades.
const scale = (values, size, log) => {
  let all = values.filter(v => Number.isFinite(v) && (!log || v > 0));
  if (!all.length) all = log ? [1, 10] : [0, 1];
  let low = all.reduce((a, b) => Math.min(a, b)), high = all.reduce((a, b) => Math.max(a, b));
  if (low === high) { const pad = log ? 2 : Math.abs(low) * 0.1 || 0.5; low = log ? low / pad : low - pad; high = log ? high * pad : high + pad; }
  const put = log ? Math.log10 : v => v, [a, b] = [put(low), put(high)];
  const at = v => (put(v) - a) / (b - a) * size;
  const ticks = log ? steps(a, b, Math.max(2, size / 90)).map(p => 10 ** p) : steps(low, high, Math.max(2, size / 80));
  return { at, ticks, value: px => { const v = a + (b - a) * px / size; return log ? 10 ** v : v; }, low, high, log };
};

// A plot with its axes; `room` is how wide the page is.
const plot = (room, height, x, y, names) => {
  const left = 56, bottom = 42, top = 8, right = 12;
  const width = Math.max(180, room - left - right), tall = height - top - bottom;
  const image = mark("svg", { viewBox: `0 0 ${left + width + right} ${height}`, width: left + width + right, height, class: "board-plot", role: "img" });
  const body = mark("g", { transform: `translate(${left} ${top})` });
  const h = scale(x.values, width, x.log), v = scale(y.values, tall, y.log);
  const up = value => tall - v.at(value);
  for (const tick of v.ticks) {
    body.append(mark("line", { x1: 0, x2: width, y1: up(tick), y2: up(tick), class: "grid" }));
    body.append(mark("text", { x: -8, y: up(tick) + 4, "text-anchor": "end" }, (y.words || plain)(tick)));
  }
  for (const tick of h.ticks) {
    body.append(mark("line", { x1: h.at(tick), x2: h.at(tick), y1: tall, y2: tall + 4, class: "axis" }));
    body.append(mark("text", { x: h.at(tick), y: tall + 18, "text-anchor": "middle" }, (x.words || plain)(tick)));
  }
  body.append(mark("line", { x1: 0, x2: width, y1: tall, y2: tall, class: "axis" }));
  body.append(mark("text", { x: width / 2, y: tall + 36, "text-anchor": "middle", class: "name" }, names.x));
  body.append(mark("text", { x: 0, y: 0, transform: `translate(-44 ${tall / 2}) rotate(-90)`, "text-anchor": "middle", class: "name" }, names.y));
  image.append(body);
  return { image, body, x: value => h.at(value), y: up, h, v, width, tall, left, top };
};
const path = points => points.map(([x, y], place) => (place ? "L" : "M") + x.toFixed(1) + " " + y.toFixed(1)).join("");

// Lines with ribbons: [{ name, tone, points: [[x, y, low, high]], thin: [{ name, points }] }].
const lines = (room, series, axes, names) => {
  const xs = [], ys = [];
  for (const one of series) {
    for (const p of one.points) { xs.push(p[0]); ys.push(p[1]); if (p.length > 2) ys.push(p[2], p[3]); }
    for (const thin of one.thin || []) for (const p of thin.points) { xs.push(p[0]); ys.push(p[1]); }
  }
  const frame = plot(room, Math.min(420, Math.max(260, room * 0.5)), { ...axes.x, values: xs }, { ...axes.y, values: ys }, names);
  const { body, x, y } = frame, shown = p => Number.isFinite(x(p[0])) && Number.isFinite(y(p[1]));
  for (const one of series) {
    const points = one.points.filter(shown), tone = one.tone;
    const ribbon = points.filter(p => p.length > 2 && Number.isFinite(y(p[2])) && Number.isFinite(y(p[3])));
    if (ribbon.length > 1) body.append(mark("path", { class: "ribbon " + tone, d: path([...ribbon.map(p => [x(p[0]), y(p[3])]), ...ribbon.reverse().map(p => [x(p[0]), y(p[2])])]) + "Z" }));
    for (const thin of one.thin || []) body.append(mark("path", { class: "line thin " + tone, d: path(thin.points.filter(shown).map(p => [x(p[0]), y(p[1])])) }));
    if (points.length === 1) body.append(mark("circle", { class: "dot " + tone, cx: x(points[0][0]), cy: y(points[0][1]), r: 4 }));
    body.append(mark("path", { class: "line " + tone, d: path(points.map(p => [x(p[0]), y(p[1])])) }));
  }
  pointing(frame, series, names);
  return frame.image;
};

// What is under the pointer: the nearest place along x, every line's value there, and the run that is nearest.
const bubble = el("div", { class: "bubble", hidden: true });
const pointing = (frame, series, names) => {
  const cross = mark("line", { class: "cross", y1: 0, y2: frame.tall, visibility: "hidden" });
  frame.body.append(cross);
  const nearest = (points, px) => points.reduce((best, p) => Math.abs(frame.x(p[0]) - px) >= Math.abs(frame.x(best[0]) - px) ? best : p);
  frame.image.addEventListener("pointermove", event => {
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(frame.body.getScreenCTM().inverse());
    const rows = [];
    let at = null, run = null;
    for (const one of series) {
      if (!one.points.length) continue;
      const p = nearest(one.points, point.x);
      if (at === null || Math.abs(frame.x(at) - point.x) > Math.abs(frame.x(p[0]) - point.x)) at = p[0];
      rows.push([one.tone, `${one.name}: ${digits(p[1])}` + (p.length > 2 ? ` (${digits(p[2])} to ${digits(p[3])})` : "")]);
      for (const thin of one.thin || []) {
        if (!thin.points.length) continue;
        const q = nearest(thin.points, point.x), far = Math.hypot(frame.x(q[0]) - point.x, frame.y(q[1]) - point.y);
        if (24 > far && (!run || run.far > far)) run = { far, tone: one.tone, text: `${one.name}, ${thin.name}: ${digits(q[1])}` };
      }
    }
    if (at === null) return;
    cross.setAttribute("x1", frame.x(at)); cross.setAttribute("x2", frame.x(at)); cross.setAttribute("visibility", "visible");
    if (run) rows.unshift([run.tone, run.text]);
    bubble.replaceChildren(el("b", {}, `${names.x}: ${plain(at)}`), ...rows.slice(0, 12).map(([tone, text]) => el("div", {}, el("i", { class: tone }), text)));
    bubble.hidden = false;
    const box = bubble.getBoundingClientRect(), wide = document.documentElement.clientWidth;
    bubble.style.left = Math.max(4, Math.min(event.clientX + 14, wide - box.width - 6)) + scrollX + "px";
    bubble.style.top = event.clientY + 14 + scrollY + "px";
  });
  frame.image.addEventListener("pointerleave", () => { bubble.hidden = true; cross.setAttribute("visibility", "hidden"); });
};

// Means with intervals, a row each: [{ name, tone, mean, low, high, says }]; `at` is the line they are held against.
const forest = (room, rows, at, name) => {
  const wide = room > 560, label = wide ? Math.min(330, room * 0.4) : 0, each = wide ? 26 : 42, left = label + 8, right = 14;
  const width = Math.max(120, room - left - right), tall = rows.length * each + 6;
  const h = scale([at, ...rows.flatMap(r => [r.mean, r.low, r.high])], width, false);
  const image = mark("svg", { viewBox: `0 0 ${room} ${tall + 44}`, width: room, height: tall + 44, class: "board-plot", role: "img" });
  const body = mark("g", { transform: `translate(${left} 2)` });
  for (const tick of h.ticks) {
    body.append(mark("line", { x1: h.at(tick), x2: h.at(tick), y1: 0, y2: tall, class: "grid" }));
    body.append(mark("text", { x: h.at(tick), y: tall + 16, "text-anchor": "middle" }, plain(tick)));
  }
  body.append(mark("line", { x1: h.at(at), x2: h.at(at), y1: 0, y2: tall, class: "axis" }));
  rows.forEach((row, place) => {
    const y = place * each + each / 2 + (wide ? 0 : 10), most = Math.floor((wide ? label : room - 20) / 7);
    const text = row.name.length > most ? row.name.slice(0, most - 1) + "…" : row.name;
    const shown = mark("text", wide ? { x: -10, y: y + 4, "text-anchor": "end", class: "ink" } : { x: -left + 4, y: y - 12, class: "ink" }, text);
    if (text !== row.name) shown.append(mark("title", {}, row.name));
    body.append(shown);
    if (row.low !== null) body.append(mark("line", { x1: h.at(row.low), x2: h.at(row.high), y1: y, y2: y, class: "bar " + row.tone }));
    body.append(mark("circle", { cx: h.at(row.mean), cy: y, r: 4.5, class: "dot " + row.tone }));
  });
  body.append(mark("text", { x: width / 2, y: tall + 36, "text-anchor": "middle", class: "name" }, name));
  image.append(body);
  return image;
};

// A grid of values: cells [[row, column, value, words]], shaded from the least to the most.
const heat = (room, rows, columns, cells, names) => {
  const left = Math.min(170, 20 + 7 * Math.max(...rows.map(r => r.length), names.y.length)), cell = Math.max(38, Math.min(110, (room - left - 10) / columns.length));
  const height = rows.length * 36 + 66, width = left + cell * columns.length + 10;
  const image = mark("svg", { viewBox: `0 0 ${width} ${height}`, width, height, class: "board-plot", role: "img" });
  const values = cells.map(c => c[2]), low = Math.min(...values), high = Math.max(...values);
  columns.forEach((word, at) => image.append(mark("text", { x: left + cell * (at + 0.5), y: 36 * rows.length + 18, "text-anchor": "middle", class: "ink" }, word)));
  rows.forEach((word, at) => image.append(mark("text", { x: left - 8, y: 36 * at + 22, "text-anchor": "end", class: "ink" }, word)));
  for (const [row, column, value, words] of cells) {
    const share = high > low ? (value - low) / (high - low) : 0.5, x = left + cell * column, y = 36 * row;
    image.append(mark("rect", { x: x + 1, y: y + 1, width: cell - 2, height: 34, rx: 3, class: "cell", style: `fill-opacity:${(0.08 + 0.34 * share).toFixed(3)}` }));
    const text = mark("text", { x: x + cell / 2, y: y + 22, "text-anchor": "middle", class: value === high ? "ink most" : "ink" }, digits(value));
    text.append(mark("title", {}, words));
    image.append(text);
  }
  image.append(mark("text", { x: left + cell * columns.length / 2, y: 36 * rows.length + 42, "text-anchor": "middle", class: "name" }, names.x));
  image.append(mark("text", { x: left - 8, y: 36 * rows.length + 42, "text-anchor": "end", class: "name" }, names.y));
  return image;
};

// One vertical axis per setting and one for the outcome: [{ name, values | words }] and [{ tone, at: [place on each axis] }].
const parallel = (room, axes, rows) => {
  const tall = 250, left = 60, right = 60, top = 30;
  const image = mark("svg", { viewBox: `0 0 ${room} ${tall + top + 20}`, width: room, height: tall + top + 20, class: "board-plot", role: "img" });
  const gap = (room - left - right) / Math.max(1, axes.length - 1), x = place => left + gap * place;
  const scales = axes.map(axis => axis.words ? { at: v => axis.words.length > 1 ? v / (axis.words.length - 1) * tall : tall / 2 } : scale(axis.values, tall, false));
  const y = (place, value) => top + tall - scales[place].at(value);
  for (const row of rows) image.append(mark("path", { class: "line thin " + row.tone, d: path(row.at.map((value, place) => [x(place), y(place, value)])) }));
  axes.forEach((axis, place) => {
    image.append(mark("line", { x1: x(place), x2: x(place), y1: top, y2: top + tall, class: "axis" }));
    image.append(mark("text", { x: x(place), y: place % 2 ? top - 4 : top - 16, "text-anchor": place === 0 ? "start" : place === axes.length - 1 ? "end" : "middle", dx: place === 0 ? -50 : place === axes.length - 1 ? 50 : 0, class: "name" }, axis.name));
    const ticks = axis.words ? axis.words.map((word, at) => [at, word]) : scales[place].ticks.map(tick => [tick, plain(tick)]);
    for (const [value, word] of ticks) image.append(mark("text", { x: x(place) + (place === axes.length - 1 ? -6 : 6), y: y(place, value) + 4, class: "ink halo", "text-anchor": place === axes.length - 1 ? "end" : "start" }, word.length > 16 ? word.slice(0, 15) + "…" : word));
  });
  return image;
};

// Files that readers take away.
const save = (name, blob) => {
  const link = el("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
};
const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-opacity", "font-size", "font-family", "font-weight", "text-anchor", "paint-order"];
// A drawing with its looks written into it, so that it stands alone.
const alone = image => {
  const copy = image.cloneNode(true), from = [image, ...image.querySelectorAll("*")], to = [copy, ...copy.querySelectorAll("*")];
  from.forEach((node, place) => { const looks = getComputedStyle(node); for (const name of STYLES) to[place].style.setProperty(name, looks.getPropertyValue(name)); });
  copy.setAttribute("xmlns", NS);
  const paper = mark("rect", { width: "100%", height: "100%" });
  paper.style.fill = getComputedStyle(document.documentElement).backgroundColor;
  copy.prepend(paper);
  return new XMLSerializer().serializeToString(copy);
};
const png = (image, name) => {
  const picture = new Image(), [width, height] = [image.width.baseVal.value, image.height.baseVal.value];
  picture.onload = () => {
    const canvas = el("canvas", { width: 2 * width, height: 2 * height });
    canvas.getContext("2d").drawImage(picture, 0, 0, 2 * width, 2 * height);
    canvas.toBlob(blob => save(name + ".png", blob));
  };
  picture.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(alone(image));
};
const figure = (title, caption, image, words) => {
  const name = title.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  image.setAttribute("aria-label", title + ". " + words);
  const tools = el("div", { class: "tools" },
    el("button", { type: "button", "aria-label": `SVG of ${title}`, onclick: () => save(name + ".svg", new Blob([alone(image)], { type: "image/svg+xml" })) }, "SVG"),
    el("button", { type: "button", "aria-label": `PNG of ${title}`, onclick: () => png(image, name) }, "PNG"));
  return el("figure", { class: "board-figure" }, el("div", { class: "board-drawing" }, image), el("figcaption", {}, el("strong", {}, title + ". "), caption), tools);
};

// A table that sorts by its headings: columns [{ name, of, words, number }], rows of anything.
const table = (caption, columns, rows, kept, most) => {
  const order = kept || { at: null, down: false, all: false };
  const host = el("div", { class: "table-block" }), name = caption.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  const words = (column, row) => column.words ? column.words(row) : String(column.of(row) ?? "–");
  const draw = () => {
    const sorted = order.at === null ? rows : [...rows].sort((a, b) => {
      const [x, y] = [a, b].map(columns[order.at].of), void0 = v => v === null || v === undefined;
      if (void0(x) || void0(y)) return void0(x) - void0(y);
      return (order.down ? -1 : 1) * (isNaN(x) || isNaN(y) ? String(x).localeCompare(String(y), undefined, { numeric: true }) : x - y);
    });
    const shown = order.all ? sorted : sorted.slice(0, most || 100);
    const head = columns.map((column, place) => {
      const press = () => { order.down = order.at === place ? !order.down : !!column.number; order.at = place; draw(); host.querySelectorAll("th button")[place].focus(); };
      const sort = order.at === place ? (order.down ? "descending" : "ascending") : null;
      return el("th", { scope: "col", class: column.number ? "num" : null, "aria-sort": sort }, el("button", { type: "button", onclick: press }, column.name, el("span", { "aria-hidden": "true" }, sort ? (order.down ? " ▼" : " ▲") : "")));
    });
    const body = shown.map(row => el("tr", {}, ...columns.map((column, place) => el(place ? "td" : "th", { scope: place ? null : "row", class: column.number ? "num" : null }, words(column, row)))));
    const csv = () => {
      const quoted = text => /[",\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
      const cell = (column, row) => { const value = column.of(row); return quoted(value === null || value === undefined ? "" : String(value)); };
      const text = [columns.map(c => quoted(c.name)), ...sorted.map(row => columns.map(c => cell(c, row)))].map(line => line.join(",")).join("\n") + "\n";
      save(name + ".csv", new Blob([text], { type: "text/csv" }));
    };
    const rest = sorted.length - shown.length;
    host.replaceChildren(el("p", { class: "caption" }, el("strong", {}, caption)),
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption }, el("table", {}, el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...body))),
      el("div", { class: "tools" }, el("button", { type: "button", "aria-label": `CSV of ${caption}`, onclick: csv }, "CSV"),
        rest > 0 ? el("button", { type: "button", onclick: () => { order.all = true; draw(); } }, `show ${rest} more rows`) : null));
  };
  draw();
  return host;
};
