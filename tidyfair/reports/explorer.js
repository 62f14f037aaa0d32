// Ties the controls of a report to its charts. It reads data from the page, and nothing else.
(() => {
  "use strict";
  const root = document.querySelector(".explorer");
  const data = JSON.parse(document.querySelector(".explorer-data").textContent);
  const form = root.querySelector("form"), charts = root.querySelector(".charts");
  const rowsOf = columns => columns.estimate.map((estimate, index) => {
    const row = Object.fromEntries(Object.keys(columns).map(name => [name, columns[name][index]]));
    // readers of screens hear the names of these two
    row.groupNumber = row.group;
    if ("group" in row) row.group = data.groups[row.feature][row.group];
    row.metricNumber = row.metric;
    row.metric = data.metrics[row.metric];
    row.isApart = (data.apart[row.feature] || []).includes(row.groupNumber);
    row.count = estimate === null ? null : Math.round(estimate * row.out_of);
    return row;
  });
  const rows = rowsOf(data.values), gaps = rowsOf(data.gaps);
  const state = { feature: 0, metric: 0, reference: 1, threshold: data.start };
  for (const [name, text] of new URLSearchParams(location.hash.slice(1))) {
    if (name in state && /^[0-9]+$/.test(text)) state[name] = Number(text);
  }
  let views = [];

  function control(name, label, options) {
    const wrapper = document.createElement("label");
    wrapper.textContent = label + " ";
    const select = document.createElement("select");
    // people of unknown groups are shown, and compared with nobody
    const apart = name === "reference" ? data.apart[state.feature] : [];
    options.forEach((text, index) => { if (!apart.includes(index)) select.add(new Option(text, index)); });
    select.value = state[name];
    select.addEventListener("change", () => choose(name, Number(select.value)));
    wrapper.append(select);
    form.append(wrapper);
  }

  function slider() {
    const wrapper = document.createElement("label");
    const output = document.createElement("output");
    const range = document.createElement("input");
    wrapper.className = "threshold";
    range.type = "range";
    range.min = 0;
    range.max = data.thresholds.length - 1;
    range.value = state.threshold;
    const show = () => { output.textContent = String(Number(Number(data.thresholds[range.value]).toPrecision(3))); };
    range.addEventListener("input", () => { show(); choose("threshold", Number(range.value)); });
    show();
    wrapper.append("Threshold ", range, " ", output);
    form.append(wrapper);
  }

  function controls() {
    form.replaceChildren();
    if (data.thresholds.length > 1) slider();
    if (data.features.length > 1) control("feature", "Feature", data.features);
    control("metric", "Metric", data.metrics);
    control("reference", "Compared with", data.groups[state.feature]);
  }

  function choose(name, value) {
    state[name] = value;
    if (name === "feature") {
      state.reference = Math.min(1, data.groups[value].length - 1);
      controls();
      draw();
    } else {
      views.forEach(view => view.signal(name, value).runAsync());
    }
  }

  const colour = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const chosen = "datum.feature === feature && datum.threshold === threshold";
  const ofMetric = { filter: chosen + " && datum.metricNumber === metric" };
  const ofGroups = () => ({ field: "group", type: "nominal", title: null, sort: data.groups[state.feature] });
  const tooltip = [
    { field: "group", title: "group" }, { field: "metric", title: "metric" },
    { field: "estimate", title: "value", format: ".1%" }, { field: "lower", title: "lower limit", format: ".1%" },
    { field: "upper", title: "upper limit", format: ".1%" }, { field: "count", title: "count", format: "," },
    { field: "out_of", title: "out of", format: "," }, { field: "rows", title: "rows in group", format: "," },
  ];
  const inPoints = name => ({ calculate: `isValid(datum.${name}) ? 100 * datum.${name} : null`, as: name + "Points" });
  const points = { type: "quantitative", title: null, axis: { tickCount: 5, title: "points" } };

  function values() {
    const group = ofGroups();
    const x = { type: "quantitative", scale: { domain: [0, 1] }, axis: { format: ".0%", tickCount: 5 } };
    const some = { filter: "datum.groupNumber > 0" };
    return {
      title: "Each group; dashed: all rows", data: { values: rows }, transform: [ofMetric],
      layer: [
        { transform: [{ filter: "datum.groupNumber === 0" }], mark: { type: "rule", strokeDash: [4, 3], color: colour("--muted") },
          encoding: { x: { ...x, field: "estimate", title: null } } },
        { transform: [some], mark: { type: "rule", strokeWidth: 2 },
          encoding: { y: group, x: { ...x, field: "lower", title: null }, x2: { field: "upper" } } },
        { transform: [some], mark: { type: "point", filled: true, opacity: 1, size: 80 },
          encoding: { y: group, x: { ...x, field: "estimate", title: null }, tooltip } },
      ],
    };
  }

  function differences() {
    const group = ofGroups();
    const x = points;
    const square = text => "pow(" + text + ", 2)";
    const transform = [
      ofMetric,
      { calculate: "datum.groupNumber === reference ? datum.estimate : null", as: "ofReference" },
      { calculate: "datum.groupNumber === reference ? datum.lower : null", as: "lowerOfReference" },
      { calculate: "datum.groupNumber === reference ? datum.upper : null", as: "upperOfReference" },
      { joinaggregate: [
        { op: "max", field: "ofReference", as: "base" }, { op: "max", field: "lowerOfReference", as: "baseLower" },
        { op: "max", field: "upperOfReference", as: "baseUpper" } ] },
      { filter: "datum.groupNumber > 0 && !datum.isApart && isValid(datum.estimate) && isValid(datum.base)" },
      { calculate: "datum.estimate - datum.base", as: "difference" },
      { calculate: "reference > 0 && datum.groupNumber !== reference && isValid(datum.lower) && isValid(datum.baseLower)",
        as: "hasLimits" },
      { calculate: `datum.hasLimits ? datum.difference - sqrt(${square("datum.estimate - datum.lower")}`
          + ` + ${square("datum.baseUpper - datum.base")}) : null`, as: "least" },
      { calculate: `datum.hasLimits ? datum.difference + sqrt(${square("datum.upper - datum.estimate")}`
          + ` + ${square("datum.base - datum.baseLower")}) : null`, as: "most" },
      inPoints("difference"), inPoints("least"), inPoints("most"),
    ];
    const details = [
      { field: "group", title: "group" }, { field: "differencePoints", title: "difference (points)", format: "+.1f" },
      { field: "leastPoints", title: "lower limit (points)", format: "+.1f" },
      { field: "mostPoints", title: "upper limit (points)", format: "+.1f" },
      { field: "count", title: "count", format: "," }, { field: "out_of", title: "out of", format: "," },
    ];
    return {
      title: "Difference to the reference", data: { values: rows }, transform,
      layer: [
        { mark: { type: "rule", color: colour("--muted") }, encoding: { x: { datum: 0, type: "quantitative" } } },
        { mark: { type: "rule", strokeWidth: 2 },
          encoding: { y: group, x: { ...x, field: "leastPoints" }, x2: { field: "mostPoints" } } },
        { mark: { type: "point", filled: true, opacity: 1, size: 80 },
          encoding: { y: group, x: { ...x, field: "differencePoints" }, tooltip: details } },
      ],
    };
  }

  function ranges() {
    const metric = { field: "metric", type: "nominal", title: null, sort: data.metrics };
    const details = [
      { field: "metric", title: "metric" }, { field: "estimatePoints", title: "gap (points)", format: ".1f" },
      { field: "lowerPoints", title: "lower limit (points)", format: ".1f" },
      { field: "upperPoints", title: "upper limit (points)", format: ".1f" },
    ];
    return {
      title: "Highest minus lowest group, by metric", data: { values: gaps },
      transform: [{ filter: chosen }, inPoints("estimate"), inPoints("lower"), inPoints("upper")],
      layer: [
        { mark: { type: "rule", strokeWidth: 2 },
          encoding: { y: metric, x: { ...points, field: "lowerPoints", scale: { zero: true } }, x2: { field: "upperPoints" } } },
        { mark: { type: "point", filled: true, opacity: 1, size: 80 },
          encoding: { y: metric, x: { ...points, field: "estimatePoints" }, tooltip: details } },
      ],
    };
  }

  function draw() {
    const ink = colour("--ink"), muted = colour("--muted"), rule = colour("--rule"), accent = colour("--accent");
    const params = Object.entries(state).map(([name, value]) => ({ name, value }));
    const common = {
      params, background: null, autosize: { type: "fit-x", contains: "padding" },
      config: {
        font: "system-ui, sans-serif", view: { stroke: null }, title: { anchor: "start", color: ink, fontSize: 13 },
        axis: { labelColor: ink, titleColor: muted, domain: false, gridColor: rule, tickColor: rule, labelLimit: 160, titleFontWeight: "normal",
                labelFontSize: 12 },
        mark: { color: accent, tooltip: true }, rule: { color: accent }, point: { color: accent },
        legend: { disable: true },
      },
    };
    const options = { mode: "vega-lite", actions: false, ast: true, renderer: "svg", tooltip: { theme: "custom" } };
    const specs = [values(), differences(), ranges()];
    charts.replaceChildren(...specs.map(() => document.createElement("div")));
    const drawn = specs.map((spec, index) => {
      const place = charts.children[index];
      const lines = index < 2 ? data.groups[state.feature].length - 1 : data.metrics.length;
      return vegaEmbed(place, { ...common, ...spec, width: place.clientWidth, height: 26 * lines }, options);
    });
    Promise.all(drawn).then(results => { views = results.map(result => result.view); });
  }

  state.feature = Math.min(state.feature, data.features.length - 1);
  state.reference = Math.min(state.reference, data.groups[state.feature].length - 1);
  controls();
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  let last = root.clientWidth;
  addEventListener("resize", () => {
    if (Math.abs(root.clientWidth - last) > 40) { last = root.clientWidth; draw(); }
  });
})();
