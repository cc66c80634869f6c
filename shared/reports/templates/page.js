// Pages work without. With it contents fold on a narrow screen, tables are sorted by a click, and rows can be chosen.
(function () {
  "use strict";
  var contents = document.querySelector(".contents");
  if (contents && window.matchMedia("(max-width: 72rem)").matches) contents.open = false;

  // A link to a section that is folded away, or to what is in one, unfolds it.
  function unfold() {
    var part = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (var each = part; each; each = each.parentElement) if (each.tagName === "DETAILS") each.open = true;
    if (part) part.scrollIntoView();
  }
  window.addEventListener("hashchange", unfold);
  unfold();

  // Signs, thousands and powers of ten as pages write them: "−1.25×10⁻⁵", "< 0.001", "12,500 nats [12,000, 13,000]".
  function value(row, column) {
    var text = row.cells[column] ? row.cells[column].textContent.trim() : "";
    var plain = text.replace(/\u2212/g, "-").replace(/,(?=\d{3}\b)/g, "");
    var found = /^[^\d+.-]*([+-]?\d*\.?\d+)(?:\u00d710([\u207b\u2070\u00b9\u00b2\u00b3\u2074-\u2079]+))?/.exec(plain);
    var power = found && found[2] ? found[2].replace(/./g, function (each) {
      return "-0123456789"["\u207b\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079".indexOf(each)];
    }) : "0";
    return { text: text, number: found ? parseFloat(found[1] + "e" + power) : NaN };
  }

  function sortBy(table, column, head) {
    var before = head.getAttribute("aria-sort");
    var body = table.tBodies[0];
    var rows = Array.from(body.rows).map(function (row, place) {
      return { row: row, place: place, value: value(row, column) };
    });
    var filled = rows.filter(function (each) { return each.value.text && each.value.text !== "\u2013"; });
    var numeric = filled.length && filled.every(function (each) { return /^[<>\u2264\u2265\u00b1\s]*[+.\u2212-]?\d/.test(each.value.text); });
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
    var search = document.createElement("input");
    var asked = document.createElement("label");
    search.type = "search";
    asked.append("Search ", search);
    bar.append(asked);
    search.addEventListener("input", choose);
    function choose() {
      var shown = 0;
      var words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      rows.forEach(function (row) {
        var text = row.textContent.toLowerCase();
        row.hidden = selects.some(function (each) {
          return each.select.value && firstWords(row, each.column) !== each.select.value;
        }) || words.some(function (word) { return !text.includes(word); });
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
    var heads = part("div", "heads");
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
        remember(0);
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
        values.forEach(function (each) {
          var first = left.find(function (map) { return (map.choices[name] || "") === each; });
          var text = /^\d+$/.test(each) && first.columns.length && name !== "Head" && name !== "Layer" ? ": " + beginning(first.columns) : "";
          selects[place].add(new Option((each || "all") + text, each));
        });
        selects[place].value = value;
        selects[place].parentNode.hidden = values.size < 2;
        left = left.filter(function (map) { return (map.choices[name] || "") === value; });
      });
      show(left[0], wanted.row);
    }

    function beginning(words) {
      return words.slice(0, 6).join(" ") + (words.length > 6 ? " \u2026" : "");
    }

    function show(map, row) {
      var of = data.figures[map.figure];
      current = map;
      caption.textContent = [Object.keys(map.choices).map(function (name) { return name + " " + map.choices[name]; }).join(", "),
        map.columns.length ? "Weights that each of " + map.rows.length + " rows gives to " + map.columns.length + " columns." : ""
      ].filter(Boolean).join(". ");
      thumbnails(map);
      rows.dataset.label = of.choose;
      rows.setAttribute("aria-label", of.choose.replace(/:$/, ""));
      legend.innerHTML = map.across ? "The brighter, the more weight; brightest where there is most." :
        'no weight <span style="--w:0">\u2003</span> <span style="--w:.25">\u2003</span> ' +
        '<span style="--w:.5">\u2003</span> <span style="--w:1">\u2003</span> ' +
        (map.ofLargest ? "the largest weight of the row" : "all of it") + (map.gold.length ? "; framed: the true alignment" : "");
      rows.replaceChildren();
      columns.replaceChildren();
      map.rows.forEach(function (word, row) {
        var button = document.createElement("button");
        button.type = "button";
        button.textContent = word;
        ["mouseenter", "focus", "click"].forEach(function (event) {
          button.addEventListener(event, function () { look(row); remember(row); });
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
      look(map.rows[row] === undefined ? 0 : row);
    }

    // All heads of all layers beside each other, where there are several; each leads to its weights.
    function thumbnails(chosen) {
      var alike = data.maps.filter(function (map) {
        return map.choices.Head && names.every(function (name) {
          return name === "Head" || name === "Layer" || map.choices[name] === chosen.choices[name];
        });
      });
      heads.replaceChildren();
      (alike.length > 1 ? alike : []).forEach(function (map) {
        var button = document.createElement("button");
        var canvas = document.createElement("canvas");
        var layer = map.choices.Layer ? "layer " + map.choices.Layer + ", " : "";
        canvas.width = map.weights[0].length;
        canvas.height = map.weights.length;
        map.weights.forEach(function (weights, row) {
          weights.forEach(function (weight, column) {
            canvas.getContext("2d").fillStyle = "rgb(61 124 199 / " + weight + "%)";
            canvas.getContext("2d").fillRect(column, row, 1, 1);
          });
        });
        button.type = "button";
        button.setAttribute("aria-pressed", map === chosen);
        button.append(canvas, layer + "head " + map.choices.Head);
        button.addEventListener("click", function () { choose(map.choices); remember(0); });
        heads.append(button);
      });
    }

    // What is looked at stands in the address, so that it can be sent.
    function remember(row) {
      var state = new URLSearchParams(current.choices);
      state.set("row", row);
      history.replaceState(null, "", "#explore?" + state);
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
        each.classList.toggle("gold", current.gold.some(function (link) { return link[0] === row && link[1] === place; }));
      });
      said.textContent = "\u201c" + current.rows[row] + "\u201d attends to " + strongest(weights).map(function (place) {
        return named(place) + " (" + weights[place] + "\u202f%)";
      }).join(", ") + (weights.some(Boolean) ? "" : "nothing by as much as 1\u202f%") +
        (current.ofLargest ? "; per cents of the largest weight." : ".");
    }

    // The first map whose rows look at different places, for a reader to see at once what attention is.
    function telling() {
      return Math.max(0, data.maps.findIndex(function (map) {
        var places = new Set(map.weights.map(function (weights) { return weights.indexOf(Math.max.apply(null, weights)); }));
        return places.size > map.weights.length / 2;
      }));
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
    if (location.hash.startsWith("#explore?")) {
      choose(Object.fromEntries(new URLSearchParams(location.hash.slice(9))));
      look(Number(new URLSearchParams(location.hash.slice(9)).get("row")) || 0);
      figure.scrollIntoView();
    } else {
      choose(data.maps[telling()].choices);
    }
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
