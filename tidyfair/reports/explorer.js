// Ties the controls of a report to its charts. It reads data from the page, and nothing else.
(() => {
  "use strict";
  const root = document.querySelector(".explorer");
  const data = JSON.parse(document.querySelector(".explorer-data").textContent);
  const form = root.querySelector("form"), charts = root.querySelector(".charts");
  const names = Object.keys(data.values);
  const rows = data.values.estimate.map((estimate, index) => {
    const row = Object.fromEntries(names.map(name => [name, data.values[name][index]]));
    // readers of screens hear the names of these two
    row.groupNumber = row.group;
    row.group = data.groups[row.feature][row.group];
    row.metricNumber = row.metric;
    row.metric = data.metrics[row.metric];
    row.count = estimate === null ? null : Math.round(estimate * row.out_of);
    return row;
  });
  const state = { feature: 0, metric: 0, reference: 1, threshold: data.start };
  for (const [name, text] of new URLSearchParams(location.hash.slice(1))) {
    if (name in state && /^[0-9]+$/.test(text)) state[name] = Number(text);
  }
  let view = null;

  function control(name, label, options) {
    const wrapper = document.createElement("label");
    wrapper.textContent = label + " ";
    const select = document.createElement("select");
    options.forEach((text, index) => select.add(new Option(text, index)));
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
      view.signal(name, value).runAsync();
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
  const shares = { domain: [0, 1] };
  const percent = { format: ".0%", tickCount: 5 };

  function values(width) {
    const group = ofGroups();
    const x = { type: "quantitative", scale: shares, axis: percent };
    const some = { filter: "datum.groupNumber > 0" };
    return {
      title: "Each group", width, height: { step: 26 }, transform: [ofMetric],
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

  function differences(width) {
    const group = ofGroups();
    const x = { type: "quantitative", title: null, axis: { format: "+.0%", tickCount: 5 } };
    const square = text => "pow(" + text + ", 2)";
    const transform = [
      ofMetric,
      { calculate: "datum.groupNumber === reference ? datum.estimate : null", as: "ofReference" },
      { calculate: "datum.groupNumber === reference ? datum.lower : null", as: "lowerOfReference" },
      { calculate: "datum.groupNumber === reference ? datum.upper : null", as: "upperOfReference" },
      { joinaggregate: [
        { op: "max", field: "ofReference", as: "base" }, { op: "max", field: "lowerOfReference", as: "baseLower" },
        { op: "max", field: "upperOfReference", as: "baseUpper" } ] },
      { filter: "datum.groupNumber > 0 && isValid(datum.estimate) && isValid(datum.base)" },
      { calculate: "datum.estimate - datum.base", as: "difference" },
      { calculate: "reference > 0 && datum.groupNumber !== reference && isValid(datum.lower) && isValid(datum.baseLower)",
        as: "hasLimits" },
      { calculate: `datum.hasLimits ? datum.difference - sqrt(${square("datum.estimate - datum.lower")}`
          + ` + ${square("datum.baseUpper - datum.base")}) : null`, as: "least" },
      { calculate: `datum.hasLimits ? datum.difference + sqrt(${square("datum.upper - datum.estimate")}`
          + ` + ${square("datum.base - datum.baseLower")}) : null`, as: "most" },
    ];
    const details = [
      { field: "group", title: "group" }, { field: "difference", title: "difference", format: "+.1%" },
      { field: "least", title: "lower limit", format: "+.1%" }, { field: "most", title: "upper limit", format: "+.1%" },
      { field: "count", title: "count", format: "," }, { field: "out_of", title: "out of", format: "," },
    ];
    return {
      title: "Difference to the reference", width, height: { step: 26 }, transform,
      layer: [
        { mark: { type: "rule", color: colour("--muted") }, encoding: { x: { datum: 0, type: "quantitative" } } },
        { mark: { type: "rule", strokeWidth: 2 },
          encoding: { y: group, x: { ...x, field: "least" }, x2: { field: "most" } } },
        { mark: { type: "point", filled: true, opacity: 1, size: 80 },
          encoding: { y: group, x: { ...x, field: "difference" }, tooltip: details } },
      ],
    };
  }

  function ranges(width) {
    return {
      title: "Highest less lowest group, every metric", width, height: { step: 26 },
      transform: [
        { filter: chosen + " && datum.groupNumber > 0" },
        { aggregate: [{ op: "max", field: "estimate", as: "high" }, { op: "min", field: "estimate", as: "low" }],
          groupby: ["metric", "metricNumber"] },
        { calculate: "datum.high - datum.low", as: "range" },
      ],
      layer: [
        { mark: { type: "bar", height: 12 },
          encoding: {
            y: { field: "metric", type: "nominal", title: null, sort: null },
            x: { field: "range", type: "quantitative", title: null, scale: shares, axis: percent },
            tooltip: [{ field: "metric", title: "metric" }, { field: "range", title: "range", format: ".1%" }],
          } },
        { mark: { type: "text", align: "left", dx: 5, color: colour("--ink") },
          encoding: {
            y: { field: "metric", type: "nominal", sort: null },
            x: { field: "range", type: "quantitative" }, text: { field: "range", format: ".1%" },
          } },
      ],
    };
  }

  function draw() {
    const ink = colour("--ink"), muted = colour("--muted"), rule = colour("--rule"), accent = colour("--accent");
    const space = root.clientWidth, wide = space >= 760;
    const width = wide ? Math.floor((space - 290) / 2) : space - 190;
    const pair = [values(width), differences(width)];
    const concat = wide ? [{ hconcat: pair }, ranges(2 * width + 110)] : [...pair, ranges(width)];
    const params = Object.entries(state).map(([name, value]) => ({ name, value }));
    const spec = {
      data: { values: rows }, params, vconcat: concat,
      background: null,
      config: {
        font: "system-ui, sans-serif", view: { stroke: null }, title: { anchor: "start", color: ink, fontSize: 13 },
        axis: { labelColor: ink, titleColor: muted, domain: false, gridColor: rule, tickColor: rule, labelLimit: 120,
                labelFontSize: 12 },
        mark: { color: accent, tooltip: true }, rule: { color: accent }, point: { color: accent }, bar: { color: accent },
        concat: { spacing: 24 }, legend: { disable: true },
      },
    };
    const options = { mode: "vega-lite", actions: false, ast: true, renderer: "svg", tooltip: { theme: "custom" } };
    vegaEmbed(charts, spec, options).then(result => { view = result.view; });
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
