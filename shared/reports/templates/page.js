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
    var before = head.getAttribute("aria-sort");
    var body = table.tBodies[0];
    var rows = Array.from(body.rows).map(function (row, place) {
      return { row: row, place: place, value: value(row, column) };
    });
    var numeric = rows.some(function (each) { return !isNaN(each.value.number); }) && head.classList.contains("r");
    var first = numeric ? "descending" : "ascending"; // the largest number, or the letter A, comes first
    var turned = before === first;
    rows.sort(function (a, b) {
      var order = numeric
        ? (isNaN(a.value.number) - isNaN(b.value.number)) || (b.value.number - a.value.number)
        : a.value.text.localeCompare(b.value.text);
      return (turned && !(numeric && (isNaN(a.value.number) || isNaN(b.value.number))) ? -order : order) || a.place - b.place;
    });
    rows.forEach(function (each) { body.appendChild(each.row); });
    Array.from(head.parentNode.cells).forEach(function (other) { other.removeAttribute("aria-sort"); });
    head.setAttribute("aria-sort", turned ? (numeric ? "ascending" : "descending") : first);
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

  document.querySelectorAll(".explorer").forEach(function (figure) {
    var maps = JSON.parse(figure.querySelector("script").textContent).maps;
    if (!maps.length) return;
    var bar = document.createElement("div");
    var rows = document.createElement("p");
    var columns = document.createElement("p");
    var grounds = figure.querySelectorAll(".ground");
    var legend = document.createElement("p");
    var names = Object.keys(maps[0].choices);
    var current = maps[0];
    bar.className = "filters";
    rows.className = "rows";
    rows.dataset.label = figure.dataset.choose;
    columns.dataset.label = "It attends to:";
    legend.className = "legend";
    legend.innerHTML = grounds.length ? "The brighter, the more weight; brightest where there is most." : 'no weight <span style="--w:0">\u2003</span> <span style="--w:.25">\u2003</span> ' +
      '<span style="--w:.5">\u2003</span> <span style="--w:1">\u2003</span> ' +
      (current.ofLargest ? "the largest weight of the row" : "all of it");

    var selects = names.map(function (name) {
      var label = document.createElement("label");
      var select = document.createElement("select");
      new Set(maps.map(function (map) { return map.choices[name]; })).forEach(function (value) {
        select.add(new Option(value, value));
      });
      label.append(name + " ", select);
      if (select.length > 1) bar.append(label);
      select.addEventListener("change", choose);
      return select;
    });

    function look(row) {
      Array.from(rows.children).forEach(function (each, place) {
        each.setAttribute("aria-pressed", place === row);
      });
      columns.querySelectorAll("span").forEach(function (each, place) {
        var weight = current.weights[row][place];
        each.style.setProperty("--w", weight / 100);
        each.title = weight + (current.ofLargest ? " % of the largest weight" : " %");
      });
    }

    function choose() {
      current = maps.find(function (map) {
        return names.every(function (name, place) { return map.choices[name] === selects[place].value; });
      });
      rows.replaceChildren();
      columns.replaceChildren();
      current.rows.forEach(function (word, row) {
        var button = document.createElement("button");
        button.type = "button";
        button.textContent = word;
        ["mouseenter", "focus", "click"].forEach(function (event) {
          button.addEventListener(event, function () { look(row); });
        });
        rows.append(button, " ");
      });
      columns.className = current.across ? "places" : "columns";
      if (current.across) {
        columns.style.setProperty("--across", current.across);
        columns.append(grounds[current.picture].cloneNode());
        columns.firstChild.hidden = false;
        current.weights[0].forEach(function () { columns.append(document.createElement("span")); });
      }
      current.columns.forEach(function (word) {
        var span = document.createElement("span");
        span.textContent = word;
        columns.append(span, " ");
      });
      look(0);
    }

    figure.querySelector(".picture").open = false;
    figure.prepend(bar, rows, columns, legend);
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
