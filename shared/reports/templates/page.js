// Pages work without. With it contents fold on a narrow screen, tables are sorted by a click, and rows can be chosen.
(function () {
  "use strict";
  var contents = document.querySelector(".contents");
  if (contents && window.matchMedia("(max-width: 72rem)").matches) contents.open = false;

  function value(row, column) {
    var cell = row.cells[column];
    var text = cell ? cell.textContent.trim().replace(/\u2212/g, "-").replace(/,(?=\d{3})/g, "") : "";
    var number = parseFloat(text.replace(/^[^\d+.-]+/, ""));
    return { text: text, number: number };
  }

  function sortBy(table, column, head) {
    var falling = head.getAttribute("aria-sort") === "descending";
    var body = table.tBodies[0];
    var rows = Array.from(body.rows).map(function (row, place) {
      return { row: row, place: place, value: value(row, column) };
    });
    var numeric = rows.some(function (each) { return !isNaN(each.value.number); }) && head.classList.contains("r");
    rows.sort(function (a, b) {
      var order = numeric
        ? (isNaN(a.value.number) - isNaN(b.value.number)) || (b.value.number - a.value.number)
        : a.value.text.localeCompare(b.value.text);
      return (falling && !(numeric && (isNaN(a.value.number) || isNaN(b.value.number))) ? -order : order) || a.place - b.place;
    });
    rows.forEach(function (each) { body.appendChild(each.row); });
    Array.from(head.parentNode.cells).forEach(function (other) { other.removeAttribute("aria-sort"); });
    head.setAttribute("aria-sort", falling ? "ascending" : "descending");
  }

  function firstWords(row, column) {
    return row.cells[column].textContent.split(/[,:;]/)[0].replace(/^[^\p{L}]+/u, "").trim();
  }

  document.querySelectorAll("[data-filters]").forEach(function (frame) {
    var table = frame.querySelector("table");
    var rows = Array.from(table.tBodies[0].rows);
    var heads = Array.from(table.tHead.rows[0].cells).map(function (head) { return head.textContent; });
    var bar = document.createElement("div");
    var count = document.createElement("output");
    bar.className = "filters";
    var selects = frame.dataset.filters.split("|").map(function (name) {
      var column = heads.indexOf(name);
      var label = document.createElement("label");
      var select = document.createElement("select");
      var words = new Set(rows.map(function (row) { return firstWords(row, column); }).filter(Boolean));
      select.add(new Option("all", ""));
      words.forEach(function (word) { select.add(new Option(word, word)); });
      label.append(name + " ", select);
      bar.append(label);
      select.addEventListener("change", choose);
      return { select: select, column: column };
    });
    function choose() {
      var shown = 0;
      rows.forEach(function (row) {
        row.hidden = selects.some(function (each) {
          return each.select.value && firstWords(row, each.column) !== each.select.value;
        });
        shown += !row.hidden;
      });
      count.textContent = shown + " of " + rows.length;
    }
    bar.append(count);
    frame.prepend(bar);
    choose();
  });

  document.querySelectorAll(".table table").forEach(function (table) {
    if (table.tBodies[0].rows.length < 3) return;
    Array.from(table.tHead.rows[0].cells).forEach(function (head, column) {
      var button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      button.title = "Sort by this column";
      head.textContent = "";
      head.appendChild(button);
      button.addEventListener("click", function () { sortBy(table, column, head); });
    });
  });
})();
