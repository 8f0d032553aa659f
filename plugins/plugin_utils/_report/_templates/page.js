// Copyright (c) 2026, osops.placement contributors
// GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The table of findings. Data becomes elements by make() alone, which sets text and never markup.
(() => {
  "use strict";

  const ROWS_AT_ONCE = 60;
  const ROWS_WITHOUT_FOLD = 5;

  const byId = (id) => document.getElementById(id);
  const parsed = (element) => JSON.parse(element.textContent);

  const rows = parsed(byId("index"));
  const chunk = Number(byId("index").dataset.chunk);
  const chunks = document.getElementsByClassName("chunk");
  const collator = new Intl.Collator("en", { numeric: true });

  const COLUMNS = [
    { key: "kind", title: "Finding", value: (row) => row.kind },
    { key: "about", title: "Server or subject", value: (row) => row.server || row.about },
    { key: "hosts", title: "Host", value: (row) => row.hosts.join(", ") },
    { key: "vcpu", title: "VCPU", value: (row) => row.frees[0], number: 0 },
    { key: "memory", title: "Memory", value: (row) => row.frees[1], number: 1 },
    { key: "disk", title: "Disk", value: (row) => row.frees[2], number: 2 },
    { key: "age", title: "Age", value: (row) => row.age ?? -1 },
    { key: "state", title: "Change", value: (row) => row.state },
  ];
  const FILTERS = {
    verdict: (row) => [row.verdict],
    kind: (row) => [row.kind],
    host: (row) => row.hosts,
    project: (row) => [row.project],
    state: (row) => [row.state],
  };

  const opened = new Set();
  const read = new Map();
  let sorting = { key: null, descending: false };
  let sorted = rows;
  let shown = rows;
  let drawn = 0;

  rows.forEach((row, place) => {
    row.place = place;
    row.text = [row.kind, row.verdict, row.about, row.server, ...row.hosts, row.project, row.state, row.reason, row.others]
      .join("\n")
      .toLowerCase();
  });

  /** An element with attributes and children; a child that is not an element becomes text. */
  function make(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.filter((child) => child !== "" && child !== false && child !== null && child !== undefined));
    return element;
  }

  const name = (text, attributes = {}) => make("bdi", { class: "name", title: text, ...attributes }, text);

  /** What is to be unfolded from a row, null while the file is still being read. */
  function detailOf(row) {
    const number = Math.floor(row.place / chunk);
    // Only of what is followed by something else all is there.
    if (document.readyState === "loading" && number + 1 >= chunks.length) return null;
    if (!read.has(number)) read.set(number, parsed(chunks[number]));
    return read.get(number)[row.place % chunk];
  }

  // ---- the table ----

  function drawHead() {
    byId("head").replaceChildren(
      ...COLUMNS.map((column) => {
        const button = make("button", { type: "button", class: "sort" }, column.title);
        button.addEventListener("click", () => sortBy(column));
        return make(
          "th",
          { role: "columnheader", scope: "col", "data-key": column.key, class: column.number !== undefined ? "number" : null },
          button,
        );
      }),
    );
  }

  function sortBy(column) {
    // What is most comes first where numbers are compared; a third time restores the order of the file.
    const first = column.number !== undefined || column.key === "age";
    if (sorting.key !== column.key) sorting = { key: column.key, descending: first };
    else if (sorting.descending === first) sorting = { key: column.key, descending: !first };
    else sorting = { key: null, descending: false };
    if (sorting.key === null) sorted = rows;
    else {
      const keyed = rows.map((row) => [column.value(row), row]);
      const compare = typeof keyed[0]?.[0] === "number" ? (a, b) => a[0] - b[0] : (a, b) => collator.compare(a[0], b[0]);
      const way = sorting.descending ? -1 : 1;
      sorted = keyed.sort((a, b) => way * compare(a, b) || a[1].place - b[1].place).map((pair) => pair[1]);
    }
    for (const cell of byId("head").children) {
      if (cell.dataset.key === sorting.key) cell.setAttribute("aria-sort", sorting.descending ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    }
    filter();
  }

  function filter() {
    const words = byId("text").value.toLowerCase().split(/\s+/).filter(Boolean);
    const chosen = Object.entries(FILTERS)
      .map(([id, values]) => [byId(id).value, values])
      .filter(([value]) => value !== "");
    const fresh = byId("fresh").checked;
    shown = sorted.filter(
      (row) =>
        words.every((word) => row.text.includes(word)) &&
        chosen.every(([value, values]) => values(row).includes(value.slice(1))) &&
        (!fresh || row.new),
    );
    const total = rows.length === 1 ? "1 finding" : `${grouped(rows.length)} findings`;
    byId("count").textContent = shown.length === rows.length ? `${total}` : `${grouped(shown.length)} of ${total}`;
    byId("body").replaceChildren();
    drawn = 0;
    draw(ROWS_AT_ONCE);
    if (rows.length && !shown.length) {
      byId("body").append(
        make("tr", { role: "row", class: "empty" }, make("td", { role: "cell", colspan: COLUMNS.length }, "No finding is like that.")),
      );
    }
  }

  const grouped = (number) => String(number).replace(/\B(?=(\d{3})+$)/g, "\u00a0");

  function draw(count) {
    const part = document.createDocumentFragment();
    for (const row of shown.slice(drawn, drawn + count)) {
      const line = drawRow(row);
      part.append(line);
      if (opened.has(row.place)) part.append(drawDetail(row));
    }
    drawn = Math.min(shown.length, drawn + count);
    byId("body").append(part);
    const left = shown.length - drawn;
    byId("further").hidden = left === 0;
    byId("further").textContent = `Show more (${grouped(left)} left)`;
  }

  function drawRow(row) {
    const button = make(
      "button",
      { type: "button", class: "fold", "aria-expanded": String(opened.has(row.place)), "aria-controls": `detail-${row.place}` },
      make("span", { class: "mark", "aria-hidden": "true" }),
      make("span", { class: "kind" }, row.kind),
    );
    const cells = [
      make(
        "td",
        { role: "cell", class: "what" },
        button,
        make("span", { class: `verdict ${row.verdict}` }, row.verdict),
        row.new && make("span", { class: "fresh" }, "new"),
      ),
      make(
        "td",
        { role: "cell", class: "about" },
        row.server && name(row.server, { class: "name server" }),
        name(row.about, { class: row.about.length === 36 ? "name uuid" : "name" }),
        make("bdi", { class: "why" }, row.reason),
      ),
      make("td", { role: "cell", class: "hosts", "data-title": "Host" }, ...row.hosts.map((host) => name(host))),
    ];
    for (const column of COLUMNS.slice(3, 6)) {
      const amount = row.amounts[column.number];
      cells.push(
        make("td", { role: "cell", class: amount ? "number" : "number void", "data-title": column.title }, amount || make("span", { class: "none" }, "–")),
      );
    }
    cells.push(
      make("td", { role: "cell", class: row.age_text ? "age" : "age void", "data-title": "Age" }, row.age_text || make("span", { class: "none" }, "–")),
      make("td", { role: "cell", class: "state" }, make("span", { class: `chip ${row.look}` }, row.state)),
    );
    const line = make("tr", { role: "row", class: opened.has(row.place) ? "row open" : "row" }, ...cells);
    line.addEventListener("click", (event) => {
      if (event.target.closest("button") === button || String(getSelection()) === "") fold(row, line, button);
    });
    return line;
  }

  function fold(row, line, button) {
    const open = !opened.has(row.place);
    button.setAttribute("aria-expanded", String(open));
    line.classList.toggle("open", open);
    if (open) {
      opened.add(row.place);
      line.after(drawDetail(row));
    } else {
      opened.delete(row.place);
      line.nextElementSibling.remove();
    }
  }

  // ---- what unfolds ----

  function drawDetail(row) {
    const cell = make("td", { role: "cell", colspan: COLUMNS.length });
    const details = detailOf(row);
    if (details) cell.append(...drawParts(row, details));
    else {
      cell.append(make("p", { class: "hint" }, "Still being read …"));
      document.addEventListener("DOMContentLoaded", () => cell.replaceChildren(...drawParts(row, detailOf(row))), { once: true });
    }
    return make("tr", { role: "row", class: "detail", id: `detail-${row.place}` }, cell);
  }

  function drawParts(row, details) {
    const parts = [make("p", { class: "reason" }, name(row.reason, { title: null })), ...drawMeaning(row.kind)];
    if (details.why) parts.push(make("p", { class: `became ${row.look}` }, make("b", {}, `${row.state}: `), make("bdi", {}, details.why)));
    if (details.fixes.length) parts.push(section("To fix it", ...details.fixes.map((text) => drawCommand("Paste this into a shell", text))));
    if (details.providers.length) parts.push(section("Allocations", drawProviders(details.providers)));
    if (details.changes.length) parts.push(section("Change", ...details.changes.map((change) => drawChange(change, details.names))));
    if (details.complaints.length) {
      parts.push(section("Complaints of hosts", make("ul", {}, ...details.complaints.map((text) => make("li", {}, make("bdi", {}, text))))));
    }
    parts.push(section("Evidence", ...details.evidence.map((answer, place) => drawAnswer(answer, details.names, details.evidence.length <= ROWS_WITHOUT_FOLD && place === 0))));
    parts.push(section("Details", make("dl", {}, ...details.known.map(([label, text]) => make("div", {}, make("dt", {}, label), make("dd", {}, make("bdi", {}, text)))))));
    if (details.command) parts.push(section("Command", drawCommand("Look at this host only, and show what would be changed there", details.command)));
    return parts;
  }

  /** What the kind means, copied from the list of kinds, which has only those of findings. */
  function drawMeaning(kind) {
    const known = [...document.querySelectorAll("[data-kind]")].find((element) => element.dataset.kind === kind);
    const meaning = known?.querySelector(".meaning");
    return meaning ? [meaning.cloneNode(true)] : [];
  }

  function drawCommand(label, text) {
    const command = make("div", { class: "command" }, make("p", { class: "hint" }, label), make("pre", { tabindex: "0" }, make("bdi", {}, text)));
    addCopyButton(command);
    return command;
  }

  /** A button that copies a command, or selects it where a page may not write to the clipboard. */
  function addCopyButton(command) {
    const text = command.querySelector("pre");
    const button = make("button", { type: "button", class: "plain" }, "Copy");
    const say = (word) => {
      button.textContent = word;
      setTimeout(() => (button.textContent = "Copy"), 2000);
    };
    const select = () => {
      getSelection().selectAllChildren(text);
      say("Selected");
    };
    button.addEventListener("click", () => {
      if (navigator.clipboard) navigator.clipboard.writeText(text.textContent).then(() => say("Copied"), select);
      else select();
    });
    command.append(button);
  }

  /** A text with the names of the things whose uuids it has. */
  function named(text, names) {
    const known = [...new Set(text.match(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g) || [])].filter((uuid) => Object.hasOwn(names, uuid));
    return known.map((uuid) => make("bdi", { class: "hint known" }, names[uuid]));
  }

  function section(title, ...children) {
    return make("section", {}, make("h3", {}, title), ...(children.length ? children : [make("p", { class: "hint" }, "None.")]));
  }

  function drawProviders(providers) {
    const lines = providers.map((provider) =>
      make(
        "tr",
        { class: provider.dropped ? "dropped" : null },
        make("td", {}, name(provider.name), make("bdi", { class: "name uuid" }, provider.uuid)),
        make("td", {}, provider.allocated),
        make("td", {}, make("span", { class: provider.dropped ? "chip orphaned" : "chip left" }, provider.dropped ? "orphaned" : "kept")),
      ),
    );
    const head = make("tr", {}, ...["Provider", "Resources", "Verdict"].map((title) => make("th", { scope: "col" }, title)));
    return make("div", { class: "scroll" }, make("table", { class: "providers" }, make("thead", {}, head), make("tbody", {}, ...lines)));
  }

  function drawChange(change, names) {
    if (change.providers) {
      const items = change.providers.map((provider) => make("li", {}, name(provider.name), " ", make("bdi", { class: "name uuid" }, provider.uuid)));
      return make("div", {}, make("p", {}, change.title), make("ol", {}, ...items));
    }
    const [before, after] = [change.before, change.after].map((document) => JSON.stringify(document, null, 2).split("\n"));
    const common = inCommon(before, after);
    const side = (title, lines, kept, mark) =>
      make(
        "div",
        { class: `side ${mark}` },
        make("h4", {}, title),
        make("pre", { tabindex: "0" }, ...lines.map((line, place) => drawLine(line, kept.has(place) ? "same" : mark, names))),
      );
    return make(
      "div",
      { class: "change" },
      make("p", {}, make("bdi", {}, change.title), ...named(change.title, names)),
      make("div", { class: "sides" }, side("Before", before, common[0], "removed"), side("After", after, common[1], "added")),
    );
  }

  function drawLine(line, mark, names) {
    const sign = { same: "  ", removed: "− ", added: "+ " }[mark];
    return make("span", { class: `line ${mark}` }, sign, line, ...named(line, names), "\n");
  }

  /** The places of those lines in either list that both have, in order. */
  function inCommon(one, other) {
    const lengths = Array.from({ length: one.length + 1 }, () => new Uint16Array(other.length + 1));
    for (let i = one.length - 1; i >= 0; i--) {
      for (let j = other.length - 1; j >= 0; j--) {
        lengths[i][j] = one[i] === other[j] ? lengths[i + 1][j + 1] + 1 : Math.max(lengths[i + 1][j], lengths[i][j + 1]);
      }
    }
    const [left, right] = [new Set(), new Set()];
    for (let i = 0, j = 0; i < one.length && j < other.length; ) {
      if (one[i] === other[j]) {
        left.add(i++);
        right.add(j++);
      } else if (lengths[i + 1][j] >= lengths[i][j + 1]) i++;
      else j++;
    }
    return [left, right];
  }

  function drawAnswer(answer, names, open) {
    const version = answer.microversion ? `microversion ${answer.microversion}` : "";
    const status = answer.status === null ? "no answer" : String(answer.status);
    return make(
      "details",
      { class: "answer", open },
      make(
        "summary",
        {},
        make("code", {}, make("bdi", {}, answer.request)),
        ...named(answer.request, names),
        make("span", { class: `status s${status[0]}` }, status),
        make("span", { class: "hint" }, [version, answer.at].filter(Boolean).join(", ")),
      ),
      make("pre", { tabindex: "0" }, make("bdi", {}, JSON.stringify(answer.facts, null, 2))),
    );
  }

  // ---- filters ----

  function drawChoices() {
    for (const [id, values] of Object.entries(FILTERS)) {
      const counts = new Map();
      for (const row of rows) for (const value of values(row)) counts.set(value, (counts.get(value) || 0) + 1);
      const order = id === "verdict" ? [...counts.keys()] : [...counts.keys()].sort(collator.compare);
      // A value has a mark ahead, so that an empty one is not taken for none.
      const choices = order.map((value) => make("option", { value: `=${value}` }, `${value || "none"} (${grouped(counts.get(value))})`));
      byId(id).replaceChildren(make("option", { value: "" }, "all"), ...choices);
    }
    byId("fresh-label").hidden = !rows.some((row) => row.new);
  }

  const drawAll = () => draw(shown.length - drawn);

  byId("text").addEventListener("input", filter);
  for (const id of [...Object.keys(FILTERS), "fresh"]) byId(id).addEventListener("change", filter);
  byId("filters").addEventListener("submit", (event) => event.preventDefault());
  byId("filters").addEventListener("reset", () => setTimeout(filter));
  byId("further").addEventListener("click", () => draw(ROWS_AT_ONCE));
  new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && drawn < shown.length && draw(ROWS_AT_ONCE), {
    rootMargin: "600px",
  }).observe(byId("further").parentElement);
  // What is printed is all that is chosen.
  addEventListener("beforeprint", drawAll);
  matchMedia("print").addEventListener("change", (media) => media.matches && drawAll());

  document.querySelectorAll(".command").forEach(addCopyButton);
  drawHead();
  drawChoices();
  filter();
  byId("findings").hidden = false;
})();
