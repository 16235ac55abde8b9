"use strict";
// Tables sort by the buttons of their headings; the chart beside follows the order.
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const rows = [...body.rows];
  const value = (row, at) => {
    const cell = row.cells[at];
    return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
  };
  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
    return a.localeCompare(b, "en", { numeric: true });
  };
  heads.forEach((head, at) => {
    head.querySelector("button").addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of heads) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const sign = up ? 1 : -1;
      const sorted = [...rows].sort(
        (a, b) => sign * compare(value(a, at), value(b, at)),
      );
      body.append(...sorted);
      table.dispatchEvent(new CustomEvent("order", { detail: sorted }));
    });
  });
}

// Charts say what is under the pointer, or under the arrow keys.
for (const plot of document.querySelectorAll(".plot")) {
  const query = plot.closest("section");
  const table = query.querySelector("table.sortable");
  const said = query.querySelector(".readout");
  const marks = new Map(
    [...plot.querySelectorAll(".mark")].map((mark) => [mark.dataset.i, mark]),
  );
  const ticks = [...plot.querySelectorAll(".label.x")];
  const width = plot.querySelector("svg").viewBox.baseVal.width;
  let order = [...table.tBodies[0].rows];
  let near = -1;
  const names = [...table.tHead.rows[0].cells].map((head) => head.textContent);
  const words = (row) => {
    const cells = [...row.cells].map((cell) => cell.textContent);
    const keys = cells.slice(0, -3).map((key, at) => `${names[at]} ${key}`);
    const [estimate, low, high] = cells.slice(-3);
    const found = `${estimate}, between ${low} and ${high}`;
    return keys.length ? `${keys.join(", ")}: ${found}` : found;
  };
  const show = (at) => {
    if (at === near) return;
    for (const row of [order[near], order[at]]) {
      if (!row) continue;
      row.classList.toggle("seen", row === order[at]);
      const mark = marks.get(row.dataset.i);
      if (mark) mark.classList.toggle("near", row === order[at]);
    }
    near = at;
    said.textContent = words(order[at]);
  };
  const point = (event) => {
    const box = plot.getBoundingClientRect();
    const share = (event.clientX - box.left) / box.width;
    const at = Math.floor(share * order.length);
    show(Math.min(order.length - 1, Math.max(0, at)));
  };
  plot.addEventListener("pointermove", point);
  // A finger that touches does not move.
  plot.addEventListener("pointerdown", point);
  plot.addEventListener("focus", () => show(Math.max(0, near)));
  plot.addEventListener("keydown", (event) => {
    const last = order.length - 1;
    const to = {
      ArrowLeft: near - 1,
      ArrowRight: near + 1,
      Home: 0,
      End: last,
    }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    show(Math.min(last, Math.max(0, to)));
  });
  table.addEventListener("order", (event) => {
    const seen = order[near];
    order = event.detail;
    near = seen ? order.indexOf(seen) : -1;
    order.forEach((row, at) => {
      const mark = marks.get(row.dataset.i);
      const place = ((at + 0.5) / order.length) * width;
      if (mark) mark.setAttribute("transform", `translate(${place} 0)`);
    });
    for (const edge of plot.querySelectorAll(".edge")) edge.remove();
    for (const tick of ticks) {
      const row = order[Number(tick.dataset.at)];
      const keys = [...row.cells].slice(0, -3).map((cell) => cell.textContent);
      tick.textContent = keys.join(", ");
      // Groups are gone: a label that stood in the middle of one goes to its row.
      const place = (Number(tick.dataset.at) + 0.5) / order.length;
      tick.style.setProperty("--at", `${100 * place}%`);
      tick.style.setProperty("--letters", tick.textContent.length);
    }
  });
}
