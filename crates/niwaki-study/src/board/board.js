// The board: what readers choose, and the sections that follow from it. Every statistic comes with the data; nothing is decided here.
const box = document.getElementById("board-data");
let data = JSON.parse(box.textContent);
const live = data.live;
const state = { baseline: data.baseline, endpoint: 0, statistic: 0, x: "iteration", setting: "best", smooth: 0, logX: false, logY: false, seeds: false, filter: "", off: new Set(), heatArm: null, heatX: null, heatY: null };
const sorts = { arms: { at: null }, groups: { at: null }, runs: { at: null } };
const STANDINGS = ["finished", "unfinished", "diverged"];

// Places in the data's lists.
const armOf = group => data.arms[group.a].n, settingOf = group => settingName(group.s);
const difference = group => { const found = data.differences[state.endpoint][state.baseline]; return found ? found[group] : null; };
const best = arm => data.best[state.endpoint][arm];
const bestDifference = arm => { const found = data.bestDifferences[state.endpoint][state.baseline]; return found ? found[arm] : null; };
const improvement = arm => { const found = data.improvements[state.endpoint][state.baseline]; return found ? found[arm] : null; };
const endpoint = () => data.endpoints[state.endpoint];
const baseline = () => data.arms[state.baseline].n;
const interval = found => found && found[2] !== null ? `${signed(found[2])} to ${signed(found[3])}` : "–";
const keys = () => data.settings.length ? Object.keys(data.settings[0].s) : [];
const short = key => keys().filter(other => other.split(".").pop() === key.split(".").pop()).length > 1 ? key : key.split(".").pop();
// Settings by their values, without what all keys begin with.
const settingName = place => Object.entries(data.settings[place].s).map(([key, value]) => `${short(key)} = ${value}`).join(", ") || "the one setting";
const inOrder = (a, b) => isNaN(a) || isNaN(b) ? String(a).localeCompare(String(b), undefined, { numeric: true }) : a - b;
const matches = (...texts) => state.filter.toLowerCase().split(/\s+/).every(word => texts.some(text => text.toLowerCase().includes(word)));
const groupShown = group => matches(group.n, armOf(group), settingOf(group), Object.entries(data.settings[group.s].s).map(pair => pair.join("=")).join(" "));
const plural = (count, word) => count === 1 ? `1 ${word}` : `${count} ${word}s`;

// The verdict on an arm in words; the verdict itself is the data's.
const sentence = (arm, found) => {
  const [pairs, mean, low, , p, verdict, wins] = found, name = data.arms[arm].n;
  const says = { ahead: `${name} is ahead of ${baseline()}.`, behind: `${name} is behind ${baseline()}.`, undecided: `Undecided between ${name} and ${baseline()}.` }[verdict] || `Too few pairs to decide between ${name} and ${baseline()}.`;
  const sure = low === null ? "six pairs are the fewest that can decide" : `95% interval ${interval(found)}, p = ${digits(p)}`;
  return [says, `Difference in ${endpoint().words}: ${signed(mean)} (${sure}), ahead on ${wins} of ${plural(pairs, "seed")}.`, verdict];
};

const verdicts = () => {
  const all = data.arms.map((_, arm) => [arm, bestDifference(arm)]).filter(([, found]) => found);
  const boxes = all.length > 6 ? [] : all.map(([arm, found]) => {
    const [says, because, verdict] = sentence(arm, found), mood = { ahead: ["good", "✓"], behind: ["bad", "!"] }[verdict] || ["neutral", "–"];
    return el("div", { class: "verdict " + mood[0], role: "note" }, el("span", { class: "sign", "aria-hidden": "true" }, mood[1]), el("div", {}, el("p", { class: "says" }, says), el("p", {}, because)));
  });
  if (all.length > 6) {
    const count = word => all.filter(([, found]) => found[5] === word).map(([arm]) => data.arms[arm].n);
    const part = (words, names) => names.length ? `${words}: ${names.join(", ")}. ` : "";
    boxes.push(el("div", { class: "verdict neutral", role: "note" }, el("span", { class: "sign", "aria-hidden": "true" }, "–"), el("div", {}, el("p", { class: "says" }, `Against ${baseline()}: ${count("ahead").length} ahead, ${count("behind").length} behind, ${all.length - count("ahead").length - count("behind").length} open.`), el("p", {}, part("Ahead", count("ahead")) + part("Behind", count("behind"))))));
  }
  return boxes;
};

const ahead = () => {
  const several = data.settings.length > 1, rows = data.arms.map((arm, place) => ({ arm, place, best: best(place), found: bestDifference(place), better: improvement(place) })).filter(row => matches(row.arm.n));
  const columns = [{ name: "arm", of: row => row.arm.n }, { name: "verdict", of: row => row.place === state.baseline ? "baseline" : row.found ? row.found[5] : null }];
  if (several) columns.push({ name: "best setting", of: row => row.best ? settingName(row.best[0]) : null });
  columns.push({ name: endpoint().words, number: true, of: row => row.best ? row.best[3] : null, words: row => row.best ? digits(row.best[3]) + (row.best[4] === null ? "" : " ± " + digits(row.best[4])) : "–" },
    { name: "difference", number: true, of: row => row.found ? row.found[1] : null, words: row => row.found ? signed(row.found[1]) : "–" },
    { name: "95% interval", of: row => row.found && row.found[2] !== null ? interval(row.found) : null },
    { name: "p", number: true, of: row => row.found ? row.found[4] : null, words: row => row.found ? digits(row.found[4]) : "–" },
    { name: "seeds ahead", of: row => row.found ? `${row.found[6]} of ${row.found[0]}` : null },
    { name: "wins against the baseline", of: row => row.better ? row.better[0] : null, words: row => row.better ? `${percent(row.better[0])} (${percent(row.better[1])} to ${percent(row.better[2])})` : "–" });
  const chosen = several && data.best[state.endpoint].some(one => one && one[1]);
  const note = (chosen ? `Best settings are chosen on every second seed; all numbers in this table but the last are of the other seeds. ` : "") + "Wins: how often a run beats the baseline's with the same seed at the same setting, over all settings; ties count half. " + data.rule;
  const drawn = rows.filter(row => row.found).map(row => ({ name: row.arm.n + (several && row.best ? ", " + settingName(row.best[0]) : ""), tone: hue(row.place), mean: row.found[1], low: row.found[2], high: row.found[3] }));
  const words = drawn.map(row => `${row.name}: ${signed(row.mean)}` + (row.low === null ? "" : `, ${signed(row.low)} to ${signed(row.high)}`)).join("; ");
  return [...verdicts(), table("Arms" + (several ? ", each at its best setting" : ""), columns, rows, sorts.arms), el("p", { class: "note" }, note),
    drawn.length ? figure(`Difference from ${baseline()} in ${endpoint().words}`, "Mean paired difference with its 95% interval; right of zero is ahead.", forest(room(), drawn, 0, `difference in ${endpoint().words}`), words) : null];
};

const room = () => Math.max(300, Math.min(1040, document.querySelector("main").clientWidth));
const smoothed = points => {
  let kept = null;
  return points.map(([x, ...ys]) => { kept = kept ? ys.map((y, at) => state.smooth * kept[at] + (1 - state.smooth) * y) : ys; return [x, ...kept]; });
};
const along = group => {
  const time = new Map(group.x.map((x, at) => [x, group.t[at]]));
  return { iteration: x => x, samples: x => x * group.w, time: x => { const found = time.get(x); return found === null || found === undefined ? NaN : found; } }[state.x];
};
const chosenGroups = () => data.groups.map((group, place) => ({ group, place })).filter(({ group }) => {
  if (state.off.has(group.a) || !groupShown(group)) return false;
  if (state.setting === "all") return true;
  if (state.setting === "best") { const found = best(group.a); return found ? found[0] === group.s : data.settings.length === 1 || group.s === 0; }
  return group.s === state.setting;
});
const curves = () => {
  const groups = chosenGroups().slice(0, 24), several = new Set(groups.map(({ group }) => group.s)).size > 1 || state.setting !== "all" && data.settings.length > 1;
  const series = groups.map(({ group, place }) => {
    const x = along(group), band = group.b[state.statistic] || [];
    const points = group.p.map((at, n) => [x(at), band[3 * n], band[3 * n + 1], band[3 * n + 2]]).filter(p => Number.isFinite(p[0]) && p[1] !== null);
    const unfinished = row => data.runs[row][3] === 1;
    const thin = data.runs.map((run, row) => row).filter(row => data.runs[row][1] === place && (state.seeds || unfinished(row))).map(row => ({
      name: `seed ${data.runs[row][2]}` + (unfinished(row) ? ", unfinished" : ""),
      points: smoothed(data.curves[row].map((y, n) => [x(group.x[n]), y]).filter(p => p[1] !== null && Number.isFinite(p[0]))),
    }));
    return { name: armOf(group) + (several ? ", " + settingOf(group) : ""), tone: hue(state.setting === "all" && data.arms.length === 1 ? place : group.a), points: smoothed(state.seeds ? points.map(p => p.slice(0, 2)) : points), thin };
  });
  const names = { x: { iteration: "iteration", samples: "trajectories", time: "seconds since the run began" }[state.x], y: data.judged };
  const title = ["Mean", "Interquartile mean", "Median"][state.statistic] + " over seeds";
  const words = series.filter(one => one.points.length).map(one => { const last = one.points[one.points.length - 1]; return `${one.name} ends at ${digits(last[1])} (${names.x} ${digits(last[0])})`; }).join("; ") || "No curve yet";
  const cut = chosenGroups().length > groups.length ? ` The first ${groups.length} of ${chosenGroups().length} groups.` : "";
  const caption = "Ribbons: 95% of resampled seeds. Thin lines: single runs, unfinished ones always." + (state.smooth ? " Smoothed for the eye; numbers elsewhere are not." : "") + cut;
  const image = lines(room(), series, { x: { log: state.logX }, y: { log: state.logY } }, names);
  return [figure(title, caption, image, words)];
};
const legend = () => el("div", { class: "legend", role: "group", "aria-label": "Arms shown" }, ...data.arms.slice(0, 40).map((arm, place) => el("button", { type: "button", "aria-pressed": String(!state.off.has(place)), onclick: event => {
  if (!state.off.delete(place)) state.off.add(place);
  event.currentTarget.setAttribute("aria-pressed", String(!state.off.has(place)));
  fill("curves");
} }, el("i", { class: hue(place), "aria-hidden": "true" }), arm.n)));

// The group of an arm at the settings of its best, with some of them changed.
const groupAt = (arm, changed) => {
  const base = best(arm) ? data.settings[best(arm)[0]].s : data.settings[0].s, wanted = { ...base, ...changed };
  return data.groups.find(group => group.a === arm && Object.entries(data.settings[group.s].s).every(([key, value]) => wanted[key] === value));
};
const valuesOf = key => [...new Set(data.settings.map(setting => setting.s[key]))].sort(inOrder);
const settings = () => {
  const all = keys();
  if (!all.length || data.settings.length === 1) return [];
  const parts = [], arm = state.heatArm ?? state.baseline;
  const x = state.heatX && all.includes(state.heatX) ? state.heatX : all[0], y = state.heatY && (state.heatY === "arm" || all.includes(state.heatY)) ? state.heatY : all[1] || "arm";
  const rows = y === "arm" ? data.arms.map(one => one.n).slice(0, 24) : valuesOf(y), columns = valuesOf(x), cells = [];
  rows.forEach((row, r) => columns.forEach((column, c) => {
    const group = y === "arm" ? groupAt(r, { [x]: column }) : groupAt(arm, { [x]: column, [y]: row });
    const value = group && group.v[state.endpoint];
    if (value) cells.push([r, c, value[0], `${group.n}: ${digits(value[0])}, ${plural(group.k, "seed")}`]);
  }));
  if (cells.length) {
    const most = cells.reduce((a, b) => (endpoint().falls ? a[2] > b[2] : b[2] > a[2]) ? b : a);
    const words = `Best: ${y === "arm" ? "" : short(y) + " = "}${rows[most[0]]} at ${short(x)} = ${columns[most[1]]} with ${digits(most[2])}. ` + cells.map(cell => `${rows[cell[0]]}, ${columns[cell[1]]}: ${digits(cell[2])}`).join("; ");
    const fixed = all.length > (y === "arm" ? 1 : 2) ? " Other settings are those of the arm's best." : "";
    parts.push(figure(`${endpoint().words} by ${short(x)} and ${y === "arm" ? "arm" : short(y)}` + (y === "arm" ? "" : `, ${data.arms[arm].n}`), "Means over all finished seeds." + fixed, heat(room(), rows, columns, cells, { x: short(x), y: y === "arm" ? "arm" : short(y) }), words));
  }
  if (all.length > 2 || all.length === 2 && data.arms.length > 1) {
    const axes = [...(data.arms.length > 1 ? [{ name: "arm", words: data.arms.map(one => one.n) }] : []), ...all.map(key => ({ name: short(key), key, words: valuesOf(key) })), { name: endpoint().words, values: data.groups.flatMap(group => group.v[state.endpoint] ? [group.v[state.endpoint][0]] : []) }];
    const lines = data.groups.filter(group => group.v[state.endpoint] && groupShown(group) && !state.off.has(group.a)).map(group => ({ tone: hue(group.a), at: axes.map(axis => axis.key ? axis.words.indexOf(data.settings[group.s].s[axis.key]) : axis.words ? group.a : group.v[state.endpoint][0]) }));
    if (axes[axes.length - 1].values.length) parts.push(figure("Every group through its settings", "A line for each arm at each setting, from what it was given to what came out.", parallel(room(), axes, lines), `${lines.length} groups over ${axes.map(axis => axis.name).join(", ")}`));
  }
  return parts;
};

const spread = () => {
  const found = data.profiles[state.endpoint], parts = [];
  if (found && data.arms.length > 1) {
    const series = found.a.map((flat, arm) => ({ name: data.arms[arm].n, tone: hue(arm), points: flat ? found.x.map((x, at) => [x, flat[3 * at], flat[3 * at + 1], flat[3 * at + 2]]) : [] })).filter((one, arm) => one.points.length && !state.off.has(arm));
    const half = series.map(one => { const p = one.points[Math.floor(one.points.length / 2)]; return `${one.name}: ${percent(p[1])} of runs beyond ${digits(p[0])}`; }).join("; ");
    parts.push(figure(`Performance profiles of ${endpoint().words}`, `The share of runs ${endpoint().falls ? "below" : "above"} a threshold, over all settings; a curve above another everywhere is better whatever one asks for. Ribbons: 95% of resampled seeds.`, lines(room(), series, { x: {}, y: { words: percent } }, { x: endpoint().words, y: "share of runs" }), half));
    const rows = data.arms.map((arm, place) => ({ arm, place, found: improvement(place) })).filter(row => row.found);
    if (rows.length) parts.push(figure(`Probability of improvement over ${baseline()}`, "How often a run beats the baseline's with the same seed at the same setting; ties count half. Bars: 95% of resampled seeds.", forest(room(), rows.map(row => ({ name: row.arm.n, tone: hue(row.place), mean: row.found[0], low: row.found[1], high: row.found[2] })), 0.5, "probability"), rows.map(row => `${row.arm.n}: ${percent(row.found[0])}`).join("; ")));
  }
  return parts;
};

const groupsTable = () => {
  const rows = data.groups.map((group, place) => ({ group, found: difference(place) })).filter(row => groupShown(row.group));
  const columns = [{ name: "arm", of: row => armOf(row.group) }, ...keys().map(key => ({ name: short(key), of: row => data.settings[row.group.s].s[key] })),
    { name: "seeds", number: true, of: row => row.group.k, words: row => row.group.k + (row.group.u ? ` + ${row.group.u} unfinished` : "") }];
  data.endpoints.forEach((one, at) => columns.push({ name: one.words, number: true, of: row => row.group.v[at] ? row.group.v[at][0] : null, words: row => row.group.v[at] ? digits(row.group.v[at][0]) + (row.group.v[at][1] === null ? "" : " ± " + digits(row.group.v[at][1])) : "–" }));
  columns.push({ name: "IQM", number: true, of: row => row.group.v[state.endpoint] ? row.group.v[state.endpoint][2] : null, words: row => row.group.v[state.endpoint] ? digits(row.group.v[state.endpoint][2]) : "–" },
    { name: `verdict against ${baseline()}`, of: row => row.group.a === state.baseline ? "baseline" : row.found ? row.found[5] : "no match" },
    { name: "difference", number: true, of: row => row.found ? row.found[1] : null, words: row => row.found ? signed(row.found[1]) : "–" },
    { name: "95% interval", of: row => row.found && row.found[2] !== null ? interval(row.found) : null },
    { name: "p", number: true, of: row => row.found ? row.found[4] : null, words: row => row.found ? digits(row.found[4]) : "–" },
    { name: "mean drift", number: true, of: row => row.group.d, words: row => digits(row.group.d) });
  return [table("All groups", columns, rows, sorts.groups, 60), el("p", { class: "note" }, data.endpoints.map(one => `${one.words}: ${one.says}.`).join(" ") + " ± is one standard error over seeds. IQM: mean of the middle half of the seeds.")];
};
const runsTable = () => {
  if (data.all > data.runs.length) return [el("p", {}, `${data.all} runs are too many to list; groups above hold all of them.`)];
  const rows = data.runs.filter(run => matches(run[0], data.groups[run[1]].n, STANDINGS[run[3]], `seed=${run[2]}`));
  const left = run => run[3] === 1 && run[10] && run[4] ? run[10] / run[4] * (run[5] - run[4]) : null;
  const columns = [{ name: "run", of: run => run[0] }, { name: "arm", of: run => armOf(data.groups[run[1]]) }, ...(data.settings.length > 1 ? [{ name: "setting", of: run => settingOf(data.groups[run[1]]) }] : []),
    { name: "seed", number: true, of: run => run[2] }, { name: "standing", of: run => STANDINGS[run[3]] }, { name: "iterations", number: true, of: run => run[4], words: run => run[4] === run[5] ? String(run[4]) : `${run[4]} of ${run[5]}` },
    { name: "last score", number: true, of: run => run[8], words: run => digits(run[8]) },
    ...data.endpoints.map((one, at) => ({ name: one.words, number: true, of: run => run[6 + at], words: run => digits(run[6 + at]) })),
    { name: "mean drift", number: true, of: run => run[9], words: run => digits(run[9]) }, { name: "time", number: true, of: run => run[10], words: run => span(run[10]) }, { name: "time left", number: true, of: left, words: run => span(left(run)) }];
  const parts = [table("All runs", columns, rows, sorts.runs, 60)];
  if (data.damaged.length) parts.push(table("Folders that cannot be read", [{ name: "folder", of: one => one[0] }, { name: "why", of: one => one[1] }], data.damaged, null, 60));
  const folded = (title, list) => list.length ? el("details", {}, el("summary", {}, `${title}: ${list.length}`), el("ul", {}, ...list.slice(0, 500).map(one => el("li", {}, one)))) : null;
  parts.push(folded("Judged by something else, and not counted", data.odd), folded("There twice, and counted once", data.twice));
  return parts;
};
// What differs between two arms, key by key.
const arms = () => {
  const all = [...new Set(data.arms.flatMap(arm => Object.keys(arm.s)))];
  if (2 > data.arms.length || !all.length) return [];
  return [table("What the arms are", [{ name: "arm", of: arm => arm.n }, ...all.map(key => ({ name: key, of: arm => arm.s[key] ?? "none" }))], data.arms, null, 60)];
};

const SECTIONS = { ahead, curves, settings, spread, groups: () => [...groupsTable(), ...arms()], runs: runsTable };
const fill = name => {
  const host = document.getElementById("board-" + name), parts = SECTIONS[name]().filter(Boolean);
  host.closest("section").hidden = !parts.length;
  host.replaceChildren(...parts);
};
const redraw = () => Object.keys(SECTIONS).forEach(fill);

// What readers may choose.
const select = (label, options, value, change) => {
  const id = "board-" + label.replace(/\W+/g, "-"), node = el("select", { id, onchange: event => change(event.target.value) }, ...options.map(([key, words]) => el("option", { value: String(key), selected: String(key) === String(value) }, words)));
  return el("div", { class: "choice" }, el("label", { for: id }, label), node);
};
const check = (label, key, where) => { const id = "board-check-" + key; return el("div", { class: "choice check" }, el("input", { type: "checkbox", id, onchange: event => { state[key] = event.target.checked; fill(where); } }), el("label", { for: id }, label)); };
const choices = () => {
  const filter = el("input", { id: "board-filter", type: "search", placeholder: "e.g. ppo rate=0.1", value: state.filter, oninput: event => { state.filter = event.target.value; redraw(); } });
  document.getElementById("board-choices").replaceChildren(
    select("baseline", data.baselines.map(arm => [arm, data.arms[arm].n]), state.baseline, value => { state.baseline = Number(value); redraw(); }),
    select("compare by", data.endpoints.map((one, at) => [at, one.words]), state.endpoint, value => { state.endpoint = Number(value); redraw(); }),
    el("div", { class: "choice wide" }, el("label", { for: "board-filter" }, "filter"), filter));
  const where = data.settings.length > 1 ? [select("setting", [["best", "each arm's best"], ["all", "all"], ...data.settings.map((_, at) => [at, settingName(at)])], state.setting, value => { state.setting = isNaN(value) ? value : Number(value); fill("curves"); })] : [];
  const smooth = el("input", { type: "range", id: "board-smooth", min: 0, max: 0.95, step: 0.05, value: state.smooth, oninput: event => { state.smooth = Number(event.target.value); fill("curves"); } });
  document.getElementById("board-curve-choices").replaceChildren(
    select("statistic", [[0, "mean"], [1, "interquartile mean"], [2, "median"]], state.statistic, value => { state.statistic = Number(value); fill("curves"); }),
    select("along", [["iteration", "iterations"], ["samples", "trajectories"], ["time", "wall time"]], state.x, value => { state.x = value; fill("curves"); }), ...where,
    check("each seed", "seeds", "curves"), check("log x", "logX", "curves"), check("log y", "logY", "curves"), el("div", { class: "choice" }, el("label", { for: "board-smooth" }, "smoothing"), smooth), legend());
  const all = keys(), heats = document.getElementById("board-setting-choices");
  heats.replaceChildren(...(all.length > 1 ? [
    select("across", all.map(key => [key, short(key)]), state.heatX ?? all[0], value => { state.heatX = value; fill("settings"); }),
    select("down", [...all.map(key => [key, short(key)]), ["arm", "arm"]], state.heatY ?? all[1], value => { state.heatY = value; fill("settings"); }),
    select("of arm", data.arms.map((arm, at) => [at, arm.n]), state.heatArm ?? state.baseline, value => { state.heatArm = Number(value); fill("settings"); })] : []));
};

// The page as it stands without a script makes room for the same with choices.
const section = (id, title, ...inside) => el("section", { id }, el("h2", {}, title), ...inside, el("div", { id: "board-" + id }));
const build = () => {
  for (const id of ["ahead", "differences", "groups"]) document.getElementById(id)?.remove();
  document.querySelector("main").prepend(el("form", { id: "board-choices", class: "choices", "aria-label": "What is compared", onsubmit: event => event.preventDefault() }),
    section("ahead", "Who is ahead"), section("curves", "Curves", el("div", { id: "board-curve-choices", class: "choices small", role: "group", "aria-label": "How curves are drawn" })),
    section("settings", "Settings", el("div", { id: "board-setting-choices", class: "choices small", role: "group", "aria-label": "Which settings are shown" })),
    section("spread", "Over all runs"), section("groups", "Groups"), section("runs", "Runs"));
  document.body.append(bubble);
  choices();
  redraw();
  let width = room();
  addEventListener("resize", () => { if (room() !== width) { width = room(); redraw(); } });
};
const counted = () => {
  const [finished, unfinished, diverged, damaged] = data.counts, values = document.querySelectorAll("header .tiles .value");
  [finished + unfinished + diverged + damaged + data.odd.length, finished, unfinished, diverged + damaged].forEach((count, at) => { if (values[at]) values[at].textContent = count; });
};

// A board that is served asks for what is new; what readers have chosen stays.
// Newer data under the reader's choices, which are found again by name: a new arm or setting moves the others.
const renew = next => {
  const before = data.arms[state.baseline]?.n, hidden = [...state.off].map(arm => data.arms[arm]?.n);
  const setting = typeof state.setting === "number" ? JSON.stringify(data.settings[state.setting]?.s) : null;
  data = next;
  const place = name => data.arms.findIndex(arm => arm.n === name);
  state.baseline = data.baselines.includes(place(before)) ? place(before) : data.baseline;
  state.off = new Set(hidden.map(place).filter(arm => arm >= 0));
  if (setting !== null) {
    const same = data.settings.findIndex(one => JSON.stringify(one.s) === setting);
    state.setting = same >= 0 ? same : "best";
  }
  state.heatArm = null;
  counted();
  if (!built) { if (data.groups.length) { built = true; build(); } return; }
  // What is being chosen is not taken out of the reader's hand.
  if (!document.activeElement?.closest(".choices")) choices();
  redraw();
};
const follow = () => {
  const said = el("p", { class: "subtitle", role: "status" });
  document.querySelector("header").append(said);
  let tag = null, stale = null;
  const ask = async () => {
    let next = null, heard = null;
    try {
      const answer = await fetch("data", { headers: tag ? { "If-None-Match": tag } : {}, cache: "no-store" });
      if (answer.status === 200) {
        next = await answer.json();
        tag = answer.headers.get("ETag");
      }
      heard = answer.ok || answer.status === 304;
    } catch { said.textContent = "The board is not served any more; this is what it said last."; }
    setTimeout(ask, 2000);
    if (next) {
      stale = next.stale ?? null;
      if (!stale) renew(next);
    }
    if (heard) said.textContent = stale ?? `live: last looked at ${new Date().toLocaleTimeString()}, ${plural(data.counts[1], "run")} unfinished`;
  };
  ask();
};
let built = data.groups.length > 0;
if (built) build();
if (live) follow();
