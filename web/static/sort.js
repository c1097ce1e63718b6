// Tables whose rows are sorted by a click on a heading; without a script they keep the order of the service.
"use strict";
(() => {
  const key = (row, column) => row.cells[column].dataset.sort ?? row.cells[column].textContent.trim();
  const number = (text) => Number.parseFloat(text.replaceAll(",", ""));

  function sort(table, heading) {
    const column = heading.cellIndex;
    const numbers = heading.classList.contains("right");
    const down = heading.ariaSort ? heading.ariaSort === "ascending" : numbers;
    for (const other of table.tHead.rows[0].cells) other.ariaSort = null;
    heading.ariaSort = down ? "descending" : "ascending";
    const rows = [...table.tBodies[0].rows].map((row) => {
      const text = key(row, column);
      return { row, value: numbers ? number(text) : text };
    });
    // What is not known comes last in either order.
    const unknown = ({ value }) => Number.isNaN(value) || value === "";
    rows.sort((a, b) => {
      if (unknown(a) || unknown(b)) return unknown(a) - unknown(b);
      const order = numbers ? a.value - b.value : a.value.localeCompare(b.value, "en", { numeric: true });
      return down ? -order : order;
    });
    table.tBodies[0].append(...rows.map(({ row }) => row));
  }

  for (const table of document.querySelectorAll("table[data-sortable]")) {
    table.classList.add("sorts");
    for (const heading of table.tHead.rows[0].cells) {
      const button = Object.assign(document.createElement("button"), { type: "button", className: "sort" });
      button.append(...heading.childNodes);
      heading.append(button);
      button.addEventListener("click", () => sort(table, heading));
    }
  }
})();
