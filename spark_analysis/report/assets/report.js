/* The page reads without this script; with it, tables sort, and the table of all clusters filters and pages.
   Names come from other people's clusters: they only ever become text nodes. */
"use strict";
(() => {
  const UNKNOWN = "\u2013";
  const PAGE_ROWS = 100;
  const byId = (id) => document.getElementById(id);

  const make = (name, text, className) => {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    if (className) element.className = className;
    return element;
  };

  /* Unknown values stay last whichever way the column is sorted; equal rows keep their order. */
  const compare = (a, b, sign) => {
    const missing = (value) => value === null || value === "" || value === UNKNOWN;
    if (missing(a) || missing(b)) return missing(a) - missing(b);
    if (typeof a === "number" && typeof b === "number") return sign * (a - b);
    return sign * String(a).localeCompare(String(b), "en", { numeric: true });
  };

  const addSortButton = (head, onSort) => {
    const link = head.querySelector("a");
    const button = make("button");
    button.type = "button";
    if (link) {
      button.setAttribute("aria-label", "Sort by " + head.textContent);
      head.append(button);
    } else {
      button.append(...head.childNodes);
      head.append(button);
    }
    head.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const numeric = head.classList.contains("num");
      const now = head.getAttribute("aria-sort");
      const next = now === "none" ? (numeric ? "descending" : "ascending") : now === "ascending" ? "descending" : "ascending";
      for (const other of head.parentNode.cells) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", next);
      onSort(head.cellIndex, next === "ascending" ? 1 : -1);
    });
  };

  const cellValue = (cell, numeric) => {
    const text = cell.textContent.trim();
    if (text === UNKNOWN || text === "") return null;
    if (cell.dataset.v !== undefined) return Number(cell.dataset.v);
    if (!numeric) return text;
    const number = parseFloat(text.replace(/[,<]/g, ""));
    return Number.isNaN(number) ? text : number;
  };

  const enhanceTable = (table) => {
    const body = table.tBodies[0];
    for (const head of table.tHead.rows[0].cells) {
      addSortButton(head, (place, sign) => {
        const numeric = table.tHead.rows[0].cells[place].classList.contains("num");
        const rows = [...body.rows].map((row) => [cellValue(row.cells[place], numeric), row]);
        rows.sort((a, b) => compare(a[0], b[0], sign));
        body.append(...rows.map((pair) => pair[1]));
      });
    }
  };

  const shown = (value, kind) => {
    if (value === null) return UNKNOWN;
    if (kind === "int") return value.toLocaleString("en-US");
    if (kind !== "ppm") return value;
    if (value === 0) return "0 %";
    const tenths = Math.floor((value + 500) / 1000);
    return tenths === 0 ? "<0.1 %" : Math.floor(tenths / 10) + "." + (tenths % 10) + " %";
  };

  const enhanceRanking = () => {
    const block = byId("ranking-data");
    if (!block) return;
    const data = JSON.parse(block.textContent);
    const table = byId("ranking-table").querySelector("table");
    const body = table.tBodies[0];
    const columns = data.columns;
    const placeOf = (title) => columns.findIndex((column) => column.title === title);
    const nameColumn = placeOf("cluster");
    const texts = columns.map((column, place) => (column.kind === "text" ? place : -1)).filter((place) => place >= 0);
    const folded = data.rows.map((row) => texts.map((place) => row[place]).join("\n").toLowerCase());
    let order = data.rows.map((_, place) => place);
    let found = order;
    let page = 0;

    const cellOf = (row, place) => {
      const column = columns[place];
      const value = row[place];
      const cell = document.createElement(place === 0 ? "th" : "td");
      if (place === 0) cell.scope = "row";
      if (column.kind !== "text") cell.className = column.look && value ? "num alert" : "num";
      if (place === nameColumn && row[0] <= data.full) {
        const link = make("a", value);
        link.href = "#cluster-" + row[0];
        cell.append(link);
      } else {
        cell.textContent = shown(value, column.kind);
      }
      return cell;
    };

    const draw = () => {
      const start = page * PAGE_ROWS;
      const visible = found.slice(start, start + PAGE_ROWS);
      body.replaceChildren(...visible.map((place) => {
        const line = document.createElement("tr");
        line.append(...columns.map((_, column) => cellOf(data.rows[place], column)));
        return line;
      }));
      const total = found.length.toLocaleString("en-US");
      const all = data.rows.length.toLocaleString("en-US");
      const last = (start + visible.length).toLocaleString("en-US");
      const range = found.length === 0 ? "none" : (start + 1).toLocaleString("en-US") + "\u2013" + last + " of " + total;
      byId("ranking-status").textContent = "Showing " + range + (found.length === data.rows.length ? "" : ", filtered from " + all);
      byId("pager").hidden = found.length <= PAGE_ROWS;
      byId("page-back").disabled = page === 0;
      byId("page-on").disabled = start + PAGE_ROWS >= found.length;
    };

    const choose = () => {
      const wanted = byId("filter-text").value.trim().toLowerCase();
      const selects = [...document.querySelectorAll("#ranking-controls select")]
        .filter((select) => select.selectedIndex > 0)
        .map((select) => [placeOf(select.dataset.column), select.value]);
      found = order.filter((place) => folded[place].includes(wanted)
        && selects.every(([column, value]) => data.rows[place][column] === value));
      page = 0;
      draw();
    };

    for (const head of table.tHead.rows[0].cells) {
      addSortButton(head, (column, sign) => {
        order = data.rows.map((_, place) => place);
        order.sort((a, b) => compare(data.rows[a][column], data.rows[b][column], sign) || a - b);
        choose();
      });
    }
    table.tHead.rows[0].cells[0].setAttribute("aria-sort", "ascending");
    byId("ranking-controls").hidden = false;
    byId("ranking-controls").addEventListener("submit", (event) => event.preventDefault());
    byId("ranking-controls").addEventListener("input", choose);
    byId("page-back").addEventListener("click", () => { page -= 1; draw(); });
    byId("page-on").addEventListener("click", () => { page += 1; draw(); });
    draw();
  };

  /* A link into something folded unfolds it. */
  const unfold = () => {
    const target = location.hash.length > 1 && byId(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let node = target; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
    target.scrollIntoView();
    const summary = target.querySelector(":scope > summary");
    if (summary) summary.focus({ preventScroll: true });
  };

  /* Tables get their buttons when they come into view: most stay folded on a page of many clusters. */
  const ready = new WeakSet();
  const enhanceWithin = (root) => {
    for (const table of root.querySelectorAll("table.sortable")) {
      const fold = table.closest("details");
      if (ready.has(table) || (fold && !fold.open)) continue;
      ready.add(table);
      enhanceTable(table);
    }
  };
  document.addEventListener("toggle", (event) => { if (event.target.open) enhanceWithin(event.target); }, true);

  document.querySelectorAll("details[open]").forEach(enhanceWithin);
  enhanceRanking();
  window.addEventListener("hashchange", unfold);
  unfold();
})();
