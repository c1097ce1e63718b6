// What the chart of trials shows, as numbers and words. Nothing here knows a document.
"use strict";
(() => {
  const NONE = "–";

  // Trials by number, from columns as `GET /v1/jobs/{id}/points` sends them; a number that is known is replaced.
  function merge(trials, points) {
    const why = points.rejections || [];
    points.number.forEach((number, i) => {
      const rejection = points.rejection[i] == null ? null : why[points.rejection[i]];
      trials.set(number, {
        number,
        at: points.at_s[i],
        round: points.round[i],
        candidate: points.candidate[i],
        gain: points.gain[i],
        kind: points.outcome[i],
        stage: rejection ? rejection.stage : "",
        reason: rejection ? rejection.reason : "",
        reused: points.reused[i],
      });
    });
    return trials;
  }

  // A configuration on one line, of its names and values.
  function configuration(values) {
    return Object.entries(values).map(([name, value]) => `${name}=${value}`).join(", ") || "no parameters";
  }

  // Configurations that a file brings along: for each parameter its name, its values, and an index for each trial.
  function configurations(numbers, parameters) {
    const found = new Map();
    numbers.forEach((number, i) => {
      const own = parameters.filter((p) => p.index[i] != null);
      found.set(number, configuration(Object.fromEntries(own.map((p) => [p.name, p.values[p.index[i]]]))));
    });
    return found;
  }

  // The trials in the order of an axis, `number` or `at`, each with its place on it and the best gain so far.
  function series(trials, axis) {
    const list = [...trials.values()].sort((a, b) => a[axis] - b[axis] || a.number - b.number);
    let top = null;
    const best = list.map((t) => {
      if (t.gain != null && (top == null || t.gain > top)) top = t.gain;
      return top;
    });
    return { list, x: list.map((t) => t[axis]), best };
  }

  // The trials that were better than all before them.
  function steps(list) {
    let top = -Infinity;
    return list.filter((t) => t.gain != null && t.gain > top && ((top = t.gain), true));
  }

  // Where each round begins on the axis.
  function rounds(list, axis) {
    const found = new Map();
    for (const t of list) if (!t.reused && !found.has(t.round)) found.set(t.round, t[axis]);
    return [...found].map(([round, x]) => ({ round, x })).sort((a, b) => a.x - b.x);
  }

  function counts(list) {
    const found = { measured: 0, rejected: 0, cut_short: 0, reused: 0, stages: new Map() };
    for (const t of list) {
      found[t.kind] += 1;
      if (t.reused) found.reused += 1;
      if (t.kind === "rejected") found.stages.set(t.stage, (found.stages.get(t.stage) || 0) + 1);
    }
    return found;
  }

  // Index of the point nearest to a place in pixels, at most `reach` away from it; -1 if there is none.
  // `left` gives pixels across and never falls with the index, `above` gives pixels down.
  function nearest(length, left, above, x, y, reach) {
    let low = 0;
    let high = length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (left(middle) < x - reach) low = middle + 1;
      else high = middle;
    }
    let found = -1;
    let least = reach * reach;
    for (let i = low; i < length && left(i) <= x + reach; i++) {
      const far = (left(i) - x) ** 2 + (above(i) - y) ** 2;
      if (far <= least) [found, least] = [i, far];
    }
    return found;
  }

  function seconds(value) {
    if (value == null) return NONE;
    if (value < 10) return `${value.toFixed(1)} s`;
    const whole = Math.round(value);
    if (whole < 120) return `${whole} s`;
    if (whole < 7200) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
    return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  }

  const count = (value) => value.toLocaleString("en");
  const gain = (value) => (value == null ? NONE : `${value.toFixed(2)}×`);

  // What came of a trial, in words.
  function outcome(t) {
    if (t.kind === "measured") return gain(t.gain);
    if (t.kind === "cut_short") return "cut short: too little promise";
    return `rejected at ${t.stage}`;
  }

  function title(t, timed) {
    const when = timed ? ` · after ${seconds(t.at)}` : "";
    const taken = t.reused ? " · of an earlier job" : "";
    return `Trial ${count(t.number)} · round ${t.round} · ${outcome(t)}${when}${taken}`;
  }

  function summary(list, timed) {
    if (!list.length) return "No trial has ended yet.";
    const n = counts(list);
    const parts = [`${count(n.measured)} measured`, `${count(n.rejected)} rejected`];
    if (n.cut_short) parts.push(`${count(n.cut_short)} cut short`);
    const said = `${count(list.length)} trial${list.length === 1 ? "" : "s"}: ${parts.join(", ")}.`;
    const last = steps(list).at(-1);
    if (!last) return said;
    const when = timed ? `, after ${seconds(last.at)}` : "";
    return `${said} Best in the search: ${gain(last.gain)}, trial ${count(last.number)}${when}.`;
  }

  const found = {
    merge, configuration, configurations, series, steps, rounds, counts, nearest, seconds, gain, outcome, title, summary,
  };
  if (typeof module === "object") module.exports = found;
  else globalThis.warpsmithChartData = found;
})();
