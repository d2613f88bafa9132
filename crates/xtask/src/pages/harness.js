// Plays a reader of one page at one width: looks at what is shown, presses what can be pressed, and says what is wrong.
function play(frame, width, say) {
  const view = frame.contentWindow, page = frame.contentDocument;
  const all = (query, root) => [...(root || page).querySelectorAll(query)];
  const box = node => node.getBoundingClientRect();
  const shown = node => { const b = box(node); return b.width > 0 && b.height > 0 && view.getComputedStyle(node).visibility !== "hidden"; };
  const words = node => (node.textContent || "").trim().slice(0, 60);
  const fire = (node, kind, x, y, more) => node.dispatchEvent(new view.PointerEvent(kind, { bubbles: true, clientX: x, clientY: y, pointerType: "mouse", button: 0, ...more }));

  if (page.documentElement.scrollWidth > width + 1) say("the page is " + page.documentElement.scrollWidth + " px wide");
  if (view.performance.getEntriesByType("resource").some(entry => !entry.name.startsWith("file:"))) say("it asked the network for something");

  for (const verdict of all(".verdict")) {
    const b = box(verdict);
    if (!shown(verdict) || 0 > b.left || b.right > width) say("a verdict is hidden: " + words(verdict));
  }
  let verdicts = 0;
  for (const table of all("table")) {
    const heads = all("thead tr:last-child th", table), at = heads.findIndex(head => words(head) === "verdict");
    if (at >= 0) {
      verdicts += 1;
      const cell = all("tbody tr:not(.heading)", table).map(row => row.children[at]).find(Boolean), frame = box(table.closest(".scroll"));
      if (cell && (box(cell).right > frame.right + 1 || frame.left - 1 > box(cell).left)) say("a verdict column is out of sight");
    }
    const scroll = table.closest(".scroll"), first = table.querySelector("tbody tr:not(.heading) > :first-child");
    if (scroll && first && scroll.scrollWidth > scroll.clientWidth + 1) {
      scroll.scrollLeft = scroll.scrollWidth;
      if (box(scroll).left - 1 > box(first).left) say("the first column scrolls away: " + words(first));
      scroll.scrollLeft = 0;
    }
  }

  let drawings = 0, toggles = 0, values = 0, zooms = 0;
  for (const svg of all("svg.chart, svg.gantt").filter(shown)) {
    drawings += 1;
    const frame = box(svg.closest(".drawing"));
    for (const text of all("text", svg).filter(shown)) {
      const b = box(text);
      if (text.closest("svg.plot")) continue;
      if (b.right > Math.min(frame.right, width) + 3 || Math.max(frame.left, 0) - 3 > b.left) say("cut: " + words(text));
      if (6 > b.height) say("too small to read: " + words(text) + " (" + b.height.toFixed(1) + " px)");
    }
    for (const band of all("path.band", svg)) {
      const b = box(band), room = band.closest("g.panel").querySelector(".sense");
      if (!room || box(room).top - 1 > b.top || b.bottom > box(room).bottom + 1) say("a band leaves its plot");
    }
    const keys = all("g.key[role=button]", svg);
    if (svg.matches(".chart") && keys.length) {
      toggles += 1;
      keys[0].dispatchEvent(new view.MouseEvent("click", { bubbles: true }));
      if (!all("svg.plot .off", svg).length) say("a toggle does nothing: " + words(keys[0]));
      keys[0].dispatchEvent(new view.MouseEvent("click", { bubbles: true }));
      if (all("svg.plot .off", svg).length) say("a toggle does not come back: " + words(keys[0]));
    }
    for (const panel of all("g.panel[data-x]", svg)) {
      const plot = panel.querySelector("svg.plot"), sense = panel.querySelector(".sense");
      if (!plot || !sense) { say("a plot cannot be touched"); continue; }
      svg.scrollIntoView();
      const b = box(sense), line = panel.querySelector("path.line:not(.thin)"), bar = panel.querySelector("rect.bar");
      const bubble = page.querySelector(".bubble");
      if (line) {
        const length = line.getTotalLength(), ctm = line.getScreenCTM(), p = line.getPointAtLength(length / 2).matrixTransform(ctm);
        fire(svg, "pointermove", p.x, p.y);
        if (bubble.hidden || !bubble.textContent) say("no value under the pointer: " + (line.dataset.s || "?"));
        else { values += 1; const c = box(bubble); if (c.right > width + 1 || 0 > c.left) say("the bubble is cut"); }
        fire(svg, "pointerleave", -5, -5);
        if (!bubble.hidden) say("the bubble stays");
      } else if (svg.matches(".gantt.gantt") && bar && bar.dataset.t) {
        const c = box(bar);
        fire(bar, "pointermove", c.left + c.width / 2, c.top + c.height / 2);
        if (bubble.hidden) say("no words under the pointer"); else values += 1;
        fire(svg, "pointerleave", -5, -5);
      }
      const y = b.top + b.height / 2;
      fire(sense, "pointerdown", b.left + 0.3 * b.width, y);
      fire(view, "pointermove", b.left + 0.6 * b.width, y);
      fire(view, "pointerup", b.left + 0.6 * b.width, y);
      if (!panel.classList.contains("zoomed")) say("dragging does not zoom");
      else zooms += 1;
      fire(sense, "dblclick", b.left + 0.5 * b.width, y);
      if (panel.classList.contains("zoomed")) say("a double click does not zoom out");
    }
    if (svg.matches(".gantt")) {
      const end = all("text", svg).find(text => words(text).startsWith("makespan")) || all(".ticks text.right", svg)[0];
      if (!end || box(end).right > width) say("the makespan is out of view");
      const tools = svg.parentElement.querySelectorAll(".tools button");
      if (5 > tools.length) say("the chart has no tools");
      else {
        tools[0].click();
        if (!svg.querySelector(".panel.zoomed")) say("the zoom button does nothing");
        tools[4].click();
        if (svg.querySelector(".panel.zoomed")) say("the button for everything does nothing");
      }
      if (keys.length) {
        keys[0].dispatchEvent(new view.MouseEvent("click", { bubbles: true }));
        if (!svg.matches(".lit") || !svg.querySelector("rect.bar.on")) say("a job cannot be lit up");
        keys[0].dispatchEvent(new view.MouseEvent("click", { bubbles: true }));
      }
    }
  }
  if (page.getElementById("board-data")) toggles += board(frame, width, say);
  return [drawings, toggles, values, zooms, verdicts];
}

// The same page as it is printed: rules for print hold, those for screens do not.
function print(frame, width, say) {
  const page = frame.contentDocument, box = node => node.getBoundingClientRect();
  for (const sheet of page.styleSheets) for (const rule of sheet.cssRules) {
    if (!rule.media) continue;
    if (rule.media.mediaText === "print") rule.media.mediaText = "all";
    else if (rule.media.mediaText.includes("width")) rule.media.mediaText = "not all";
  }
  for (const node of page.querySelectorAll("table, .verdict, .tiles, pre, svg.chart, svg.gantt")) {
    const b = box(node);
    if (b.width > 0 && (b.right > width + 1 || 0 > b.left)) say("cut: " + node.tagName.toLowerCase() + " " + (node.textContent || "").trim().slice(0, 40));
  }
  if (![...page.querySelectorAll(".drawing.wide")].every(drawing => box(drawing).height > 0)) say("a drawing is missing");
}

// What stops readers with a keyboard or a screen reader.
async function judge(frame, axe, say) {
  const script = frame.contentDocument.createElement("script");
  script.textContent = axe;
  frame.contentDocument.head.append(script);
  const found = await frame.contentWindow.axe.run(frame.contentDocument, { resultTypes: ["violations"] });
  for (const { id, nodes } of found.violations) say("axe " + id + " (" + nodes.length + "): " + nodes[0].target.join(" ") + " " + nodes[0].html.slice(0, 90));
}

async function run(pages, widths, paper, axe) {
  const out = document.createElement("pre");
  out.id = "said";
  const dark = matchMedia("(prefers-color-scheme:dark)").matches, texts = [];
  for (const html of pages) {
    const said = [], counts = [];
    for (const width of dark ? widths.slice(0, 1) : [...widths, paper]) {
      const frame = document.createElement("iframe");
      frame.style.cssText = "border:0;height:1600px;width:" + width + "px";
      const say = what => said.push((width === paper ? "printed: " : width + " px: ") + what);
      const loaded = new Promise(done => frame.addEventListener("load", done));
      window.troubles = what => say("error: " + what);
      frame.srcdoc = html;
      document.body.append(frame);
      await loaded;
      try {
        if (axe && width !== paper) await judge(frame, axe, say);
        if (width === paper) print(frame, width, say);
        else if (!dark) counts.push(play(frame, width, say).join(","));
      } catch (error) { say("error: " + error.stack); }
      frame.remove();
    }
    texts.push(["counts " + counts.join(" ")].concat([...new Set(said)]).join("\n"));
  }
  out.textContent = texts.join("\f");
  document.body.replaceChildren(out);
}
