// Asks a board ten things. Each is answered from what a screen reader would read, in at most three steps, and held against the
// data that the page was made of.
function board(frame, width, say) {
  const view = frame.contentWindow, page = frame.contentDocument, data = JSON.parse(page.getElementById("board-data").textContent);
  const all = (query, root) => [...(root || page).querySelectorAll(query)], words = node => node.textContent.trim();
  for (const svg of all("svg.board-plot")) for (const text of all("text", svg)) {
    const b = text.getBoundingClientRect(), frame = svg.getBoundingClientRect();
    if (b.right > frame.right + 3 || frame.left - 3 > b.left || b.bottom > frame.bottom + 3) say("a figure cuts its text: " + words(text));
  }
  // One arm, or one setting, leaves nothing to ask.
  if (2 > data.settings.length || 2 > data.arms.length) return 0;
  let steps = 0;
  const step = () => { steps += 1; };
  // What one can do: choose, type, press; and read a table, a figure, a note.
  const choose = (label, option) => { step(); const select = all("label").find(node => words(node) === label).parentElement.querySelector("select"); select.value = all("option", select).find(node => words(node) === option).value; select.dispatchEvent(new view.Event("change")); };
  const filter = text => { step(); const input = page.getElementById("board-filter"); input.value = text; input.dispatchEvent(new view.Event("input")); };
  const table = label => all("[role=region]").find(node => node.getAttribute("aria-label").startsWith(label));
  const read = label => { step(); const region = table(label); if (!region) return []; const heads = all("thead th", region).map(words); return all("tbody tr", region).map(row => Object.fromEntries([...row.children].map((cell, at) => [heads[at].replace(/ [▲▼]$/, ""), words(cell)]))); };
  const press = (label, head) => { step(); all("thead button", table(label)).find(node => words(node).startsWith(head)).click(); };
  const picture = title => { step(); const found = all("svg.board-plot").find(node => node.getAttribute("aria-label").startsWith(title)); return found ? found.getAttribute("aria-label") : ""; };
  const notes = () => { step(); return all("#ahead [role=note]").map(words).join(" "); };
  let asked = 0;
  const ask = (question, answer) => {
    steps = 0;
    asked += 1;
    let right = false;
    try { right = answer(); } catch (error) { say(question + " " + error.message); }
    if (!right) say("a question has no answer: " + question);
    if (steps > 3) say(`a question takes ${steps} steps: ` + question);
    const input = page.getElementById("board-filter");
    if (input.value) { input.value = ""; input.dispatchEvent(new view.Event("input")); }
  };
  const arm = place => data.arms[place].n, best = data.best[0], most = best.reduce((most, one, place) => one && (most === null || one[3] > best[most][3]) ? place : most, null);
  const other = data.arms.findIndex((_, place) => place !== data.baseline && data.bestDifferences[0][data.baseline][place]);
  const values = place => Object.values(data.settings[place].s);
  ask("which arm is best, and at which setting?", () => { press("Arms", data.endpoints[0].words); const row = read("Arms")[0]; return row.arm === arm(most) && values(best[most][0]).every(value => row["best setting"].includes(value)); });
  ask("how sure is that?", () => { const row = read("Arms").find(row => row.arm === arm(other)), found = data.bestDifferences[0][data.baseline][other]; return row.verdict === found[5] && (found[2] === null ? row["95% interval"] === "–" : /to/.test(row["95% interval"])); });
  ask("is an arm ahead of the baseline?", () => notes().includes(arm(other)));
  ask("and of another baseline?", () => { choose("baseline", arm(other)); const row = read("Arms").find(row => row.arm === arm(data.baseline)), found = data.bestDifferences[0][other][data.baseline]; return row.verdict === found[5] && Math.abs(parseFloat(row.difference) - found[1]) <= 0.006 * Math.abs(found[1]) + 1e-9; });
  choose("baseline", arm(data.baseline));
  ask("which run failed?", () => { filter("diverged"); const rows = read("All runs"); return rows.length === data.counts[2] && rows.every(row => row.standing === "diverged" && row.run.includes("/")); });
  ask("which run is not finished, and how far is it?", () => { filter("unfinished"); const rows = read("All runs"); return rows.length === data.counts[1] && rows.every(row => row.standing === "unfinished"); });
  ask("what cannot be read, and why?", () => { const rows = read("Folders that cannot be read"); return rows.length === data.damaged.length && rows.every(row => row.why.length > 10); });
  ask("what changed between two arms?", () => { const rows = read("What the arms are"); return rows.length === data.arms.length && new Set(rows.map(row => Object.values(row).slice(1).join())).size === rows.length; });
  ask("which settings are best for an arm?", () => { choose("of arm", arm(most)); return /Best: .*=.* with/.test(picture(data.endpoints[0].words + " by")); });
  ask("where does its curve end?", () => picture("Mean over seeds").includes(arm(most)));
  ask("how often does it win?", () => picture("Probability of improvement").includes("%"));
  ask("how was this made?", () => { step(); return /niwaki board|niwaki compare/.test(words(page.querySelector(".made"))); });
  return asked;
}
