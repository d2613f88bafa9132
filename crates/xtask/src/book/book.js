// Search, copy buttons and the table of contents of a small screen. The book reads the same without it.
(() => {
  const input = document.querySelector("input[type=search]"), found = document.getElementById("found"), up = document.body.dataset.up;
  const load = () => window.BOOK ? Promise.resolve() : new Promise((done, fail) => {
    const script = document.createElement("script");
    script.src = up + "search.js";
    script.onload = done;
    script.onerror = fail;
    document.head.append(script);
  });
  const rank = (entry, words) => {
    const title = entry.t.toLowerCase(), section = entry.s.toLowerCase(), text = entry.x.toLowerCase();
    let sum = entry.u.startsWith("repository/") ? 0 : 1;
    for (const word of words) {
      const worth = (title.includes(word) ? 4 : 0) + (section.includes(word) ? 6 : 0) + Math.min(3, text.split(word).length - 1);
      if (!worth) return 0;
      sum += worth;
    }
    return sum;
  };
  // The words around the first hit, with each hit marked.
  const around = (entry, words) => {
    const line = document.createElement("span"), at = entry.x.toLowerCase().indexOf(words.find(word => entry.x.toLowerCase().includes(word)));
    let rest = entry.x.slice(Math.max(0, at - 40), Math.max(0, at - 40) + 140);
    while (rest) {
      const hits = words.map(word => [rest.toLowerCase().indexOf(word), word.length]).filter(([place]) => place >= 0).sort((a, b) => a[0] - b[0]);
      if (!hits.length) break;
      const [place, length] = hits[0], mark = document.createElement("mark");
      mark.textContent = rest.slice(place, place + length);
      line.append(rest.slice(0, place), mark);
      rest = rest.slice(place + length);
    }
    line.append(rest + " …");
    return line;
  };
  const search = async () => {
    await load();
    // A long word is looked for without its ending: "merge" finds "merging".
    const words = input.value.toLowerCase().split(/\s+/).filter(Boolean).map(word => word.length > 4 ? word.slice(0, -1) : word);
    found.replaceChildren();
    if (!words.length) return;
    const hits = window.BOOK.map(entry => [rank(entry, words), entry]).filter(([sum]) => sum).sort((a, b) => b[0] - a[0]).slice(0, 12);
    for (const [, entry] of hits) {
      const link = document.createElement("a"), title = document.createElement("strong");
      link.href = up + entry.u;
      title.textContent = entry.s ? entry.t + " › " + entry.s : entry.t;
      link.append(title, around(entry, words));
      found.append(link);
    }
    if (!hits.length) found.textContent = "Nothing has all of these words.";
  };
  input.addEventListener("input", search);
  input.form.addEventListener("submit", event => {
    event.preventDefault();
    const first = found.querySelector("a");
    if (first) first.click();
  });
  document.addEventListener("keydown", event => {
    if (event.key === "/" && document.activeElement !== input) { event.preventDefault(); input.focus(); }
    if (event.key === "Escape") { input.value = ""; found.replaceChildren(); }
  });
  for (const block of document.querySelectorAll(".code")) {
    const button = document.createElement("button");
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(block.querySelector("code").textContent.trimEnd());
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    block.append(button);
  }
  const sections = document.querySelector(".sections details");
  if (sections && matchMedia("(max-width:80rem)").matches) sections.open = false;
})();
