"use strict";
// The live page: takes frames (reports/live/state.py makes them) and shows how the run stands. It writes text as text,
// so that no name or log line is read as markup, and asks for nothing but its own server's events and report.
(() => {
  const STANDS = ["open", "right so far", "too many", "wrong"];
  const TONES = ["--open", "--right", "--many", "--wrong"];
  const MOST_BAD = 12, MOST_PIXELS_HIGH = 420;
  const $ = id => document.getElementById(id);
  const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // One run, as far as its frames tell.
  let run, dirty = new Set(), shownRun = null, experiment = null;
  function begin() {
    run = { set: {}, rows: [], use: [], parts: [], cells: new Map(), fields: [], keys: [], bad: new Map(), at: 0, got: 0 };
    dirty = new Set(["all"]);
  }

  function apply(frame) {
    if (frame.reset) begin();
    if (frame.run !== undefined) shownRun = frame.run;
    for (const [key, value] of Object.entries(frame.set || {})) {
      if (key === "experiment") { experiment = value; dirty.add("experiment"); continue; }
      run.set[key] = value;
      dirty.add(key);
    }
    if (frame.at_ms) { run.at = frame.at_ms; run.got = performance.now(); }
    if (frame.rows && frame.rows.length) { for (const row of frame.rows) run.rows.push(row); dirty.add("rows"); }
    if (frame.use && frame.use.length) {
      for (const each of frame.use) {
        run.use.push(each);
        for (const part of Object.keys(each[1])) if (!run.parts.includes(part)) { run.parts.push(part); dirty.add("new parts"); }
      }
      dirty.add("use");
    }
    if (frame.cells && frame.cells.length) { takeCells(frame.cells); dirty.add("cells"); }
    schedule();
  }

  let waiting = false;
  function schedule() {
    if (waiting) return;
    waiting = true;
    const draw = () => { waiting = false; render(); };
    if (document.hidden) setTimeout(draw, 500); else requestAnimationFrame(draw);
  }

  // Helpers.
  function element(name, text, attributes) {
    const made = document.createElement(name);
    if (text !== undefined && text !== null) made.textContent = text;
    for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
    return made;
  }
  const many = value => value === null || value === undefined ? "–" : Math.round(value).toLocaleString("en-US");
  const ms = value => value === null || value === undefined ? "–" : value < 10 ? value.toFixed(1) + " ms" : value < 10000 ? many(value) + " ms" : (value / 1000).toFixed(1) + " s";
  function span(seconds) {
    if (seconds < 100) return Math.max(0, Math.round(seconds)) + " s";
    const whole = Math.floor(seconds);
    return Math.floor(whole / 60) + ":" + String(whole % 60).padStart(2, "0") + " min";
  }
  const bytes = value => value >= 1e9 ? (value / 1e9).toFixed(2) + " GB" : Math.round(value / 1e6) + " MB";
  const base = () => (run.set.plan && run.set.plan.epoch_ms) || (run.rows.length ? run.rows[0][0] : run.at);
  const since = at => ((at - base()) / 1000).toFixed(0) + " s";
  const byVerdict = () => Boolean(run.set.verdict && run.set.verdict.cells);
  const over = () => Boolean(run.set.verdict && (run.set.verdict.judged || run.set.verdict.ended));
  const now = () => replaying || over() || ended ? run.at : run.at + performance.now() - run.got;

  function render() {
    const had = dirty, all = had.has("all"), has = (...keys) => all || keys.some(key => had.has(key));
    dirty = new Set();
    if (has("about", "experiment")) renderHead();
    if (all || had.has("experiment")) renderExperiment();
    if (has("verdict", "now", "numbers", "links")) renderAnswer();
    if (has("phases")) renderPhases();
    if (has("now", "numbers")) renderNumbers();
    if (has("rows", "plan", "faults")) renderRates();
    if (has("numbers", "verdict")) renderLegend();
    if (has("cells", "plan", "verdict", "numbers")) renderCells();
    if (has("faults", "rows")) renderFaults();
    if (has("events")) renderEvents();
    if (has("logs")) renderLogs();
    if (has("processes")) renderProcesses();
    if (has("use", "parts", "new parts", "faults")) renderUse(all || had.has("new parts"));
  }

  function renderHead() {
    const about = run.set.about;
    if (!about) return;
    $("title").textContent = `${about.scenario} on ${about.engine}/${about.sink}`;
    $("subtitle").textContent = [about.workload, `seed ${about.seed}`, about.disorder && `disorder ${about.disorder}`,
      about.load_ms && `${span(about.load_ms / 1000)} of load`].filter(Boolean).join(", ");
    document.title = `${$("title").textContent} – streamgauge`;
  }

  function renderAnswer() {
    const box = $("answer"), verdict = run.set.verdict || {}, judged = verdict.judged, n = run.set.now, cells = run.set.numbers;
    box.className = "verdict " + (judged ? judged.outcome : verdict.ended ? "UNKNOWN" : "unjudged");
    set($("answer-word"), judged ? judged.outcome : verdict.ended ? "Ended without a verdict" : "So far");
    let sentence = judged ? judged.sentence + "." : verdict.ended || "Nothing is counted yet.";
    if (!judged && !verdict.ended && cells && Object.keys(cells).length) {
      sentence = `Of ${many(Object.values(cells).reduce((a, b) => a + b, 0))} cells ${many(cells.right)} are right so far, ` +
        `${many(cells.open)} open, ${many(cells["too many"])} with too many, ${many(cells.wrong)} wrong. This is no verdict.`;
    } else if (!judged && !verdict.ended && n && n.at_ms) {
      sentence = `${many(n.offered)} of ${many(n.planned)} events are offered. This is no verdict.`;
    }
    set($("answer-sentence"), sentence);
    const failed = judged ? judged.checks.filter(check => check.outcome !== "PASS") : [];
    $("failed").replaceChildren(...failed.map(check => {
      const item = element("li");
      item.append(element("b", check.word || check.name), " " + check.sentence);
      return item;
    }));
    const link = run.set.links && run.set.links.report;
    $("answer-link").hidden = !link;
    if (link) linkReport((shownRun ? shownRun + "/" : "") + link);
  }
  function set(node, text) { if (node.textContent !== text) node.textContent = text; }

  // The report is kept by the page, so that the link leads somewhere when the server has ended with the run.
  let kept = null;
  function linkReport(href) {
    if (kept && kept.href === href) return;
    kept = { href };
    $("report").href = href;
    if (stored) return;
    fetch(href).then(answer => answer.ok ? answer.blob() : null).then(blob => {
      if (!blob || kept.href !== href) return;
      $("report").href = URL.createObjectURL(new Blob([blob], { type: "text/html" }));
      $("report").target = "_blank";
    }).catch(() => { kept = null; });
  }

  function renderPhases() {
    const list = run.set.phases || [];
    $("phases").replaceChildren(...list.map(phase => {
      const item = element("li", phase.name);
      if (phase.ended_ms === null) item.setAttribute("aria-current", "step");
      item.append(element("small", phaseTime(phase)));
      return item;
    }));
    const current = list.length && list[list.length - 1].ended_ms === null ? list[list.length - 1] : null;
    set($("waits-for"), current && current.waits_for ? `${current.name} waits for ${current.waits_for}` : "");
  }
  function phaseTime(phase) {
    if (phase.ended_ms !== null) return span((phase.ended_ms - phase.began_ms) / 1000);
    const gone = Math.max(0, now() - phase.began_ms);
    if (phase.ends_ms === null) return `for ${span(gone / 1000)}`;
    const left = Math.max(0, phase.ends_ms - now()) / 1000;
    return phase.at_most ? `${span(gone / 1000)}, at most ${span(left)} left` : `${span(left)} left`;
  }

  function renderNumbers() {
    const n = run.set.now;
    if (!n) return;
    const plan = run.set.plan || {}, visible = plan.visible_is === "cells" ? "cells seen" : "counted events seen";
    const none = why => n.at_ms ? why : "not yet";
    const values = [
      ["offered", many(n.rates.offered) + "/s", n.at_ms ? `${many(n.offered)} of ${many(n.planned)}` : none()],
      ["processed", n.processed === null ? "–" : many(n.rates.processed) + "/s", n.processed === null ? none("the engine reports no progress") : many(n.processed)],
      ["visible", n.visible === null ? "–" : many(n.rates.visible) + "/s", n.visible === null ? none("the results are not polled") : `${many(n.visible)} of ${many(plan.planned_visible)} ${visible}`],
      ["backlog", n.backlog === null ? "–" : many(n.backlog), "events"],
      ["probes p50", ms(n.p50_ms), `${many(n.probes_seen)} have appeared`],
      ["probes p99", ms(n.p99_ms), "last 30 s"],
    ];
    $("numbers").replaceChildren(...values.map(([name, value, note]) => {
      const box = element("div"), dd = element("dd", value);
      dd.append(element("br"), element("small", note));
      box.append(element("dt", name), dd);
      return box;
    }));
  }

  // Charts.
  const charts = {};
  const LINES = {
    rates: [["offered", "--blue", 1, []], ["processed", "--orange", 2, [8, 4]], ["visible", "--green", 3, [2, 3]]],
    backlog: [["events", "--purple", 4, []]],
    latency: [["p50", "--sky", 5, []], ["p99", "--red", 6, [8, 4]]],
  };
  const ALT = {
    rates: "Events per second: offered, and means of 5 seconds of those processed and visible",
    backlog: "Events that are offered and not yet processed",
    latency: "Latency of probes, p50 and p99",
    cpu: "Cores used, by part", memory: "Memory used, by part",
  };
  const PARTS = ["--orange", "--purple", "--blue", "--red", "--sky", "--green", "--ink", "--muted"];
  const DASHES = [[], [8, 4], [2, 3], [12, 3, 2, 3]];

  const WHOLE = Array.from({ length: 36 }, (_, at) => [1, 2, 5][at % 3] * 10 ** Math.floor(at / 3)); // steps of an axis

  function faultLines(u) {
    const context = u.ctx;
    for (const fault of run.set.faults || []) {
      for (const [at, tone] of [[fault.landed_ms, "--red"], [fault.healed_ms, "--green"]]) {
        if (!at) continue;
        const x = u.valToPos((at - base()) / 1000, "x", true);
        if (x < u.bbox.left || x > u.bbox.left + u.bbox.width) continue;
        context.save();
        context.strokeStyle = css(tone); context.lineWidth = 2 * devicePixelRatio; context.setLineDash([4, 4]);
        context.beginPath(); context.moveTo(x, u.bbox.top); context.lineTo(x, u.bbox.top + u.bbox.height); context.stroke();
        context.restore();
      }
    }
  }

  function chart(id, lines, data, format) {
    const holder = $(id), names = lines.map(line => line[0]).join("|");
    let made = charts[id];
    if (made && made.names !== names) { made.plot.destroy(); made = charts[id] = null; }
    const width = holder.clientWidth;
    if (!width) return;
    if (!made) {
      holder.replaceChildren();
      const caption = element("figcaption"), keys = element("span", null, { class: "keys" });
      caption.append(keys);
      const place = element("div", null, { role: "img" });
      holder.append(place, caption);
      const whole = format === many;
      const axis = { stroke: () => css("--muted"), grid: { stroke: () => css("--grid"), width: 1 }, ticks: { stroke: () => css("--grid") }, font: "12px system-ui, sans-serif" };
      const plot = new uPlot({
        width, height: id === "cpu" || id === "memory" ? 150 : 190, pxAlign: 0, legend: { show: false },
        cursor: { drag: { x: false, y: false } }, scales: { x: { time: false }, y: { range: (u, low, high) => [0, Math.max((high || 0) * 1.1, whole ? 5 : 0) || 1] } },
        axes: [{ ...axis, values: (u, ticks) => ticks.map(tick => tick + " s") }, { ...axis, size: 78, values: (u, ticks) => ticks.map(format), ...(whole ? { incrs: WHOLE } : {}) }],
        series: [{}, ...lines.map(([label, tone, , dash]) => ({ label, stroke: () => css(tone), width: 2, dash, spanGaps: true, points: { show: false } }))],
        hooks: { draw: [faultLines] },
      }, data, place);
      made = charts[id] = { plot, names, keys, place, lines };
      new ResizeObserver(() => { const wide = holder.clientWidth; if (wide && wide !== plot.width) plot.setSize({ width: wide, height: plot.height }); }).observe(holder);
    } else {
      made.plot.setData(data);
    }
    const newest = lines.map((line, at) => [line[0], lastOf(data[at + 1]), line[1]]);
    made.keys.replaceChildren(...newest.map(([name, value, tone]) => {
      const key = element("span");
      const swatch = element("span", null, { class: "swatch", "aria-hidden": "true" });
      swatch.style.background = `var(${tone})`;
      key.append(swatch, `${name} ${value === null ? "–" : format(value)}`);
      return key;
    }));
    made.place.setAttribute("aria-label", `${ALT[id]}. Newest: ${newest.map(([name, value]) => `${name} ${value === null ? "not known" : format(value)}`).join(", ")}.`);
  }
  function lastOf(column) {
    for (let at = column.length - 1; at >= 0; at--) if (column[at] !== null && column[at] !== undefined) return column[at];
    return null;
  }
  function renderRates() {
    const zero = base(), x = run.rows.map(row => (row[0] - zero) / 1000);
    for (const [id, lines] of Object.entries(LINES)) {
      const data = [x, ...lines.map(line => run.rows.map(row => row[line[2]]))];
      chart(id, lines, data, id === "latency" ? ms : many);
    }
  }
  function renderUse() {
    const zero = base(), x = run.use.map(each => (each[0] - zero) / 1000);
    const holders = [["cpu", 0, value => value.toFixed(2)], ["memory", 1, bytes]];
    if (!x.length) {
      for (const [id] of holders) if (!charts[id]) $(id).replaceChildren(element("p", id === "cpu" ? "CPU and memory are metered from the start of the load to the end of the drain." : "", { class: "muted" }));
      $("parts").replaceChildren();
      return;
    }
    const lines = run.parts.map((part, at) => [part, PARTS[at % PARTS.length], at, DASHES[Math.floor(at / 2) % DASHES.length]]);
    for (const [id, column, format] of holders) {
      const data = [x, ...run.parts.map(part => run.use.map(each => each[1][part] ? each[1][part][column] : null))];
      chart(id, lines, data, format);
    }
    const rows = (run.set.parts || []).map(part => [part.name, part.cores === null ? "–" : part.cores.toFixed(2), part.cpu_s.toFixed(1), bytes(part.rss_bytes)]);
    $("parts").replaceChildren(table(["part", "cores", "CPU-s so far", "memory"], rows, "Parts of the run"));
  }
  function table(head, rows, caption) {
    const made = element("table"), top = element("tr");
    made.append(element("caption", caption));
    head.forEach((text, at) => top.append(element("th", text, { scope: "col", class: at ? "number" : "" })));
    const body = element("tbody");
    for (const row of rows) {
      const line = element("tr");
      row.forEach((text, at) => line.append(element(at ? "td" : "th", text, at ? { class: "number" } : { scope: "row" })));
      body.append(line);
    }
    const thead = element("thead");
    thead.append(top);
    made.append(thead, body);
    return made;
  }

  // The map of cells: one pixel a cell in an image, drawn large. Columns are windows, rows are keys.
  let image = null;
  function takeCells(groups) {
    for (const [field, stand, keys] of groups) {
      for (const key of keys) {
        let column = run.cells.get(field);
        if (!column) { run.cells.set(field, column = new Map()); run.fields = null; }
        if (!column.has(key)) run.keys = null;
        column.set(key, stand);
        const name = field + ":" + key;
        if (stand >= 2) run.bad.set(name, [field, key, stand]); else run.bad.delete(name);
      }
    }
  }
  function renderCells() {
    const plan = run.set.plan || {}, note = [];
    if (plan.lacks) note.push(`There is no map: ${plan.lacks}.`);
    if (plan.polled < plan.keys) note.push(`The map has the ${many(plan.polled)} keys that are polled, of ${many(plan.keys)}.`);
    if (!run.fields) run.fields = [...run.cells.keys()].sort((a, b) => a - b);
    if (!run.keys) {
      const keys = new Set();
      for (const column of run.cells.values()) for (const key of column.keys()) keys.add(key);
      run.keys = [...keys].sort((a, b) => a - b);
    }
    const wide = run.fields.length, high = run.keys.length, map = $("map");
    map.hidden = !wide;
    if (!wide) {
      if (!plan.lacks && plan.epoch_ms && run.set.numbers && Object.keys(run.set.numbers).length) note.push("There are too many cells for a map; the numbers above are of all of them.");
      set($("cells-note"), note.join(" "));
      return;
    }
    const judged = byVerdict();
    note.push(`Columns are windows, ${many(wide)} of them, rows are keys, ${many(high)} of them. ` + (judged ? "The map is that of the verdict." : "A cell is right so far if it holds what is planned for it."));
    set($("cells-note"), note.join(" "));
    const row = new Map(run.keys.map((key, at) => [key, at]));
    if (!image || image.width !== wide || image.height !== high) image = new ImageData(wide, high);
    const colours = TONES.map(tone => rgb(css(tone)));
    image.data.fill(0);
    run.fields.forEach((field, x) => {
      for (const [key, stand] of run.cells.get(field)) {
        const at = 4 * (row.get(key) * wide + x), colour = colours[stand] || colours[0];
        image.data[at] = colour[0]; image.data[at + 1] = colour[1]; image.data[at + 2] = colour[2]; image.data[at + 3] = 255;
      }
    });
    const canvas = $("cells-canvas");
    canvas.width = wide; canvas.height = high;
    canvas.getContext("2d").putImageData(image, 0, 0);
    canvas.style.height = Math.max(60, Math.min(MOST_PIXELS_HIGH, high * 8)) + "px";
    const bad = [...run.bad.values()];
    const shown = bad.slice(0, MOST_BAD).map(([field, key, stand]) => element("li", `${cellName(key, field)}: ${STANDS[stand]}`));
    if (bad.length > MOST_BAD) shown.push(element("li", `and ${many(bad.length - MOST_BAD)} more`));
    $("bad-cells").replaceChildren(...shown);
    map.setAttribute("aria-label", `Map of ${many(wide)} windows and ${many(high)} keys. ${$("cells-numbers").textContent.trim()}. Arrow keys move from cell to cell.`);
    placeCursor();
  }
  const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  function rgb(colour) {
    probe.fillStyle = colour;
    const text = probe.fillStyle;
    return [1, 3, 5].map(at => parseInt(text.slice(at, at + 2), 16));
  }
  const cellName = (key, field) => `key ${key}, ${field > 1e12 ? `window at ${since(field)}` : `field ${field}`}`;
  function renderLegend() {
    const numbers = run.set.numbers || {}, judged = byVerdict();
    const names = { open: "open", right: judged ? "right" : "right so far", "too many": "too many", wrong: "wrong" };
    $("cells-numbers").replaceChildren(...Object.entries(names).map(([name, text], at) => {
      const key = element("span"), swatch = element("span", null, { class: "swatch", "aria-hidden": "true" });
      swatch.style.background = `var(${TONES[at]})`;
      key.append(swatch, `${text} ${many(numbers[name] || 0)} `);
      return key;
    }));
  }

  let cursor = null;
  function placeCursor() {
    const mark = $("cursor"), map = $("map");
    mark.hidden = !cursor || !run.fields || !run.fields.length;
    if (mark.hidden) return;
    cursor.x = Math.max(0, Math.min(run.fields.length - 1, cursor.x));
    cursor.y = Math.max(0, Math.min(run.keys.length - 1, cursor.y));
    const w = map.clientWidth / run.fields.length, h = map.clientHeight / run.keys.length;
    mark.style.left = cursor.x * w - 2 + "px"; mark.style.top = cursor.y * h - 2 + "px";
    mark.style.width = Math.max(6, w + 4) + "px"; mark.style.height = Math.max(6, h + 4) + "px";
    const field = run.fields[cursor.x], key = run.keys[cursor.y], stand = run.cells.get(field).get(key);
    const judged = byVerdict();
    const word = stand === undefined ? "no event is planned there" : stand === 1 && judged ? "right" : STANDS[stand];
    set($("cell"), `${cellName(key, field)}: ${word}`);
  }
  $("map").addEventListener("keydown", event => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1], Home: [-1e9, 0], End: [1e9, 0], PageUp: [0, -10], PageDown: [0, 10] }[event.key];
    if (!step || !run.fields || !run.fields.length) return;
    event.preventDefault();
    cursor = cursor ? { x: cursor.x + step[0], y: cursor.y + step[1] } : { x: 0, y: 0 };
    placeCursor();
  });
  $("map").addEventListener("pointerdown", event => {
    if (!run.fields || !run.fields.length) return;
    const box = $("map").getBoundingClientRect();
    cursor = { x: Math.floor((event.clientX - box.left) / box.width * run.fields.length), y: Math.floor((event.clientY - box.top) / box.height * run.keys.length) };
    placeCursor();
  });

  function renderFaults() {
    const faults = run.set.faults || [];
    if (!faults.length) { $("faults").replaceChildren(element("li", "No fault is planned.")); return; }
    const begin = run.rows.length ? run.rows[0][0] : base(), end = Math.max(run.at, run.rows.length ? run.rows[run.rows.length - 1][0] : 0, begin + 1);
    $("faults").replaceChildren(...faults.map(fault => {
      const item = element("li"), words = element("div"), track = element("div", null, { class: "track", "aria-hidden": "true" });
      const tone = { "took effect": "took", undone: "undone", "did not take effect": "did" }[fault.state] || "";
      words.append(element("code", fault.text), " ", element("span", fault.state, { class: "badge " + tone }));
      if (fault.replayed !== null && fault.replayed !== undefined) words.append(" ", element("span", fault.replayed ? "replayed" : "not replayed", { class: "badge" }));
      const when = [fault.landed_ms && `took effect at ${since(fault.landed_ms)}`, fault.healed_ms && `undone at ${since(fault.healed_ms)}`].filter(Boolean).join(", ");
      if (when) words.append(element("div", when, { class: "muted" }));
      if (fault.landed_ms) {
        const bar = element("i", null, { class: fault.healed_ms ? "undone" : "" }), at = moment => Math.max(0, Math.min(100, (moment - begin) / (end - begin) * 100));
        bar.style.left = at(fault.landed_ms) + "%";
        bar.style.width = Math.max(0.4, at(fault.healed_ms || end) - at(fault.landed_ms)) + "%";
        track.append(bar);
      }
      item.append(words, track);
      if (fault.proof) item.append(element("p", fault.proof, { class: "proof muted" }));
      return item;
    }));
  }

  function renderEvents() {
    $("events").replaceChildren(...(run.set.events || []).map(each => {
      const item = element("li");
      item.append(element("time", since(each.at_ms)), each.text);
      return item;
    }));
  }
  const opened = new Map(); // name of a log -> whether the reader has it open
  function renderLogs() {
    const logs = run.set.logs || [], found = logs.find(log => log.exception.length);
    const newest = logs.filter(log => log.name.startsWith("engine")).map(log => log.name).pop();
    $("exception").replaceChildren();
    if (found) {
      $("exception").append(element("p", `The last exception, in ${found.name}:`), element("pre", found.exception.join("\n"), { class: "exception" }));
    }
    $("logs").replaceChildren(...logs.map(log => {
      const made = element("details");
      made.open = opened.has(log.name) ? opened.get(log.name) : log.name === newest;
      made.addEventListener("toggle", () => { if (made.open !== (log.name === newest) || opened.has(log.name)) opened.set(log.name, made.open); });
      made.append(element("summary", `The end of ${log.name}`), element("pre", log.lines.join("\n") || "It is empty."));
      return made;
    }));
  }
  function renderProcesses() {
    const rows = (run.set.processes || []).map(each => [`${each.name} (${each.pid})`, each.cpu_s.toFixed(1), bytes(each.rss_bytes)]);
    $("processes").replaceChildren(...(rows.length ? [table(["process", "CPU-s", "memory"], rows, "Processes of the engine")] : []));
  }

  function renderExperiment() {
    $("experiment").hidden = !experiment || !experiment.cases;
    if ($("experiment").hidden) return;
    const finished = experiment.finished;
    set($("experiment-title"), `${experiment.kind}: ${many(experiment.cases.length)} cases`);
    const numbers = Object.entries(experiment.numbers).map(([state, count]) => `${count} ${state}`).join(", ");
    set($("experiment-state"), finished ? `${finished.outcome} ${finished.sentence}` : `So far: ${numbers}.`);
    $("cases").replaceChildren(...experiment.cases.map(each => {
      const item = element("li", null, { class: each.state.replace(/\W/g, "") + (each.run && each.run === shownRun ? " shown" : "") });
      const inner = each.run && !stored ? element("a", null, { href: "?run=" + encodeURIComponent(each.run) }) : each.run && stored ? element("a", null, { href: each.run + "/live.html" }) : element("span");
      inner.append(element("b", each.word ? `${each.state}: ${each.word}` : each.state), element("span", each.label, { class: "what" }));
      if (each.sentence) inner.title = each.sentence;
      item.append(inner);
      return item;
    }));
    set($("shown-title"), over() ? "The run that is shown" : "The run in progress");
    set($("shown"), shownRun || "No run has begun.");
    $("follow").hidden = !wanted;
  }

  // Where frames come from: the server's events, or the page itself if it replays a stored run.
  let stored = null, replaying = false, ended = false, wanted = null;
  const inside = $("frames");
  begin();
  if (inside) replay(JSON.parse(inside.textContent)); else listen();

  function listen() {
    wanted = new URLSearchParams(location.search).get("run");
    const source = new EventSource("events" + (wanted ? "?run=" + encodeURIComponent(wanted) : ""));
    source.onmessage = event => { notice(""); apply(JSON.parse(event.data)); };
    source.onerror = () => notice("The page has lost its server. It shows what it got last, and tries again.");
    source.addEventListener("end", () => {
      source.close();
      ended = true;
      set($("live-word"), "ended");
      notice(over() || (experiment && experiment.finished) ? "" : "The server has ended. The page shows what it got last.");
      dirty.add("phases");
      schedule();
    });
    setInterval(() => { if (!over() && !ended) { dirty.add("phases"); schedule(); } }, 1000);
  }
  function notice(text) { $("notice").hidden = !text; set($("notice"), text); }

  function replay(found) {
    stored = found;
    const frames = found.frames, seek = $("seek");
    $("replay").hidden = frames.length < 2;
    set($("live-word"), "replay");
    seek.max = frames.length - 1;
    let at = -1, timer = null;
    function show(number) {
      if (number < at || at < 0) { begin(); at = -1; if (found.experiment) apply({ set: { experiment: found.experiment } }); }
      while (at < number) apply(frames[++at]);
      replaying = at < frames.length - 1;
      seek.value = at;
      const moment = frames[at] && frames[at].at_ms ? since(frames[at].at_ms) : "";
      set($("moment"), moment);
      seek.setAttribute("aria-valuetext", moment);
    }
    function stop() { clearInterval(timer); timer = null; set($("play"), "Replay"); }
    function play() {
      if (at >= frames.length - 1) show(0);
      set($("play"), "Pause");
      let last = performance.now(), clock = frames[at].at_ms;
      timer = setInterval(() => {
        const moment = performance.now();
        clock += (moment - last) * Number($("speed").value);
        last = moment;
        let next = at;
        while (next < frames.length - 1 && frames[next + 1].at_ms <= clock) next++;
        if (next > at) show(next);
        if (at >= frames.length - 1) stop();
      }, 100);
    }
    $("play").addEventListener("click", () => timer ? stop() : play());
    seek.addEventListener("input", () => { stop(); show(Number(seek.value)); });
    $("replay").addEventListener("submit", event => event.preventDefault());
    if (frames.length) show(frames.length - 1); else if (found.experiment) apply({ set: { experiment: found.experiment } });
  }

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
    for (const made of Object.values(charts)) if (made) made.plot.redraw();
    dirty.add("all");
    schedule();
  });
  addEventListener("resize", placeCursor);
})();
