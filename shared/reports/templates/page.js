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
    var data = JSON.parse(figure.querySelector("script").textContent);
    var grounds = figure.querySelectorAll(".ground");
    var names = Array.from(new Set(data.maps.flatMap(function (map) { return Object.keys(map.choices); })));
    var current;
    var bar = part("div", "filters");
    var rows = part("div", "rows");
    var columns = part("p", "columns");
    var said = part("output", "said");
    var legend = part("p", "legend");
    var caption = part("figcaption", "");
    rows.setAttribute("role", "group");
    columns.setAttribute("aria-hidden", "true"); // said in words
    rows.addEventListener("keydown", function (event) {
      var step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
      var next = step && rows.children[Array.from(rows.children).indexOf(document.activeElement) + step];
      if (step) event.preventDefault();
      if (next) next.focus();
    });

    var selects = names.map(function (name) {
      var label = document.createElement("label");
      var select = document.createElement("select");
      label.append(name + " ", select);
      bar.append(label);
      select.setAttribute("aria-label", name); // else what it offers counts as its name, too
      select.addEventListener("change", function () {
        choose(Object.fromEntries(names.map(function (each, place) { return [each, selects[place].value]; })));
      });
      return select;
    });

    function part(tag, name) {
      var made = document.createElement(tag);
      made.className = name;
      figure.append(made);
      return made;
    }

    // What a select offers depends on those before it; what was chosen stays chosen where it is offered.
    function choose(wanted) {
      var left = data.maps;
      names.forEach(function (name, place) {
        var values = new Set(left.map(function (map) { return map.choices[name] || ""; }));
        var value = values.has(wanted[name]) ? wanted[name] : values.values().next().value;
        selects[place].replaceChildren();
        values.forEach(function (each) { selects[place].add(new Option(each || "all", each)); });
        selects[place].value = value;
        selects[place].parentNode.hidden = values.size < 2;
        left = left.filter(function (map) { return (map.choices[name] || "") === value; });
      });
      show(left[0]);
    }

    function show(map) {
      var of = data.figures[map.figure];
      current = map;
      caption.textContent = of.caption;
      rows.dataset.label = of.choose;
      rows.setAttribute("aria-label", of.choose.replace(/:$/, ""));
      legend.innerHTML = map.across ? "The brighter, the more weight; brightest where there is most." :
        'no weight <span style="--w:0">\u2003</span> <span style="--w:.25">\u2003</span> ' +
        '<span style="--w:.5">\u2003</span> <span style="--w:1">\u2003</span> ' +
        (map.ofLargest ? "the largest weight of the row" : "all of it");
      rows.replaceChildren();
      columns.replaceChildren();
      map.rows.forEach(function (word, row) {
        var button = document.createElement("button");
        button.type = "button";
        button.textContent = word;
        ["mouseenter", "focus", "click"].forEach(function (event) {
          button.addEventListener(event, function () { look(row); });
        });
        rows.append(button);
      });
      columns.className = map.across ? "places" : "columns";
      columns.dataset.label = "It attends to:";
      if (map.across) {
        columns.style.setProperty("--across", map.across);
        columns.append(grounds[map.picture].cloneNode());
        columns.firstChild.hidden = false;
        map.weights[0].forEach(function () { columns.append(document.createElement("span")); });
      }
      map.columns.forEach(function (word) {
        var span = document.createElement("span");
        span.textContent = word;
        columns.append(span, " ");
      });
      look(0);
    }

    function look(row) {
      var weights = current.weights[row];
      var unit = current.ofLargest ? "\u202f% of the largest weight" : "\u202f%";
      Array.from(rows.children).forEach(function (each, place) {
        each.setAttribute("aria-pressed", place === row);
        each.tabIndex = place === row ? 0 : -1; // arrows lead from one to the next
      });
      columns.querySelectorAll("span").forEach(function (each, place) {
        each.style.setProperty("--w", weights[place] / 100);
        each.title = weights[place] + unit;
      });
      said.textContent = "\u201c" + current.rows[row] + "\u201d attends to " + strongest(weights).map(function (place) {
        return named(place) + " (" + weights[place] + "\u202f%)";
      }).join(", ") + (weights.some(Boolean) ? "" : "nothing by as much as 1\u202f%") +
        (current.ofLargest ? "; per cents of the largest weight." : ".");
    }

    function strongest(weights) {
      var order = weights.map(function (_, place) { return place; }).filter(function (place) { return weights[place]; });
      order.sort(function (a, b) { return weights[b] - weights[a] || a - b; });
      return order.slice(0, 3);
    }

    function named(place) {
      if (!current.across) return "\u201c" + current.columns[place] + "\u201d";
      return "row " + (1 + Math.floor(place / current.across)) + ", column " + (1 + place % current.across);
    }

    document.querySelectorAll("[data-map]").forEach(function (link) {
      link.addEventListener("click", function () { choose(data.maps[link.dataset.map].choices); });
    });
    choose(data.maps[0].choices);
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
