// The chart of a job's trials: each a point with its configuration or its reason, and the best so far.
"use strict";
const warpsmithCharts = (() => {
  const OUTCOMES = ["measured", "cut short", "rejected"];
  const number = new Intl.NumberFormat("en");

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const times = (gain) => `${gain.toFixed(2)}×`;

  function merge(known, columns) {
    columns.number.forEach((n, i) => {
      known.set(n, {
        number: n,
        at: columns.at_s[i],
        candidate: columns.candidate[i],
        gain: columns.gain[i],
        outcome: columns.outcome[i],
        reason: columns.reason[i] == null ? "" : columns.reasons[columns.reason[i]],
        reused: columns.reused[i],
      });
    });
    return known;
  }

  // In the order of what is on the axis; ties in the order of numbers.
  function inOrder(known, axis) {
    const points = [...known.values()];
    const by = axis === "seconds" ? (p) => p.at : (p) => p.number;
    return points.sort((a, b) => by(a) - by(b) || a.number - b.number);
  }

  // The best gain up to each point; the user's kernel is 1.
  function bestSoFar(points) {
    let best = 1;
    return points.map((p) => (best = Math.max(best, p.gain ?? 0)));
  }

  function improvements(points) {
    const best = bestSoFar(points);
    return points.filter((p, i) => best[i] > (i ? best[i - 1] : 1));
  }

  function summary(points) {
    if (!points.length) return "No trial has ended yet.";
    const counts = OUTCOMES.map((name, o) => `${number.format(points.filter((p) => p.outcome === o).length)} ${name}`);
    const found = improvements(points).at(-1);
    const last = found ? `best ${times(found.gain)} at trial ${found.number}, after ${found.at.toFixed(1)} s` : "none faster than your kernel yet";
    return `${number.format(points.length)} trials: ${counts.join(", ")}; ${last}. Figures of the search are estimates.`;
  }

  class TrialChart {
    constructor(figure) {
      this.figure = figure;
      this.place = figure.querySelector(".chart");
      this.said = figure.querySelector(".chart-said");
      this.known = new Map();
      this.axis = "trials";
      this.chosen = null;
      for (const choice of figure.querySelectorAll('input[type="radio"]')) {
        choice.addEventListener("change", () => { this.axis = choice.value; this.draw(); });
      }
      this.place.addEventListener("keydown", (event) => this.key(event));
      new ResizeObserver(() => this.resize()).observe(this.place);
      addEventListener("warpsmith:theme", () => this.draw());
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    }

    update(columns) {
      merge(this.known, columns);
      this.draw();
    }

    verify(gain) {
      this.figure.dataset.verified = gain;
      this.draw();
    }

    lastSecond() {
      let last = 0;
      for (const point of this.known.values()) last = Math.max(last, point.at);
      return last;
    }

    size() {
      return { width: Math.max(200, this.place.clientWidth), height: 270 };
    }

    resize() {
      if (this.plot && this.plot.width !== this.size().width) this.plot.setSize(this.size());
    }

    data() {
      const points = (this.points = inOrder(this.known, this.axis));
      const x = points.map((p) => (this.axis === "seconds" ? p.at : p.number));
      const of = (outcome) => points.map((p) => (p.outcome === outcome ? p.gain ?? 0 : null));
      return [x, bestSoFar(points), of(0), of(1), of(2)];
    }

    draw() {
      const data = this.data();
      this.figure.querySelector("[data-summary]").textContent = summary(this.points);
      this.table();
      const look = [this.axis, colour("--ink"), this.figure.dataset.verified].join();
      if (this.plot && this.look === look) {
        this.plot.setData(data);
        return;
      }
      this.look = look;
      this.plot?.destroy();
      this.plot = new uPlot(this.options(), data, this.place);
    }

    options() {
      const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 }, font: "12px system-ui, sans-serif" };
      const dots = (label, name, size) => ({ label, stroke: colour(name), paths: () => null, points: { show: true, size, stroke: colour(name), fill: colour(name) } });
      const verified = Number(this.figure.dataset.verified) || 0;
      return {
        ...this.size(),
        legend: { show: false },
        cursor: { drag: { x: true, y: false }, focus: { prox: 24 }, points: { size: 9 } },
        scales: { x: { time: false }, y: { range: (_, __, high) => [0, Math.max(1.1, high, verified) * 1.08] } },
        axes: [
          { ...axis, label: this.axis === "seconds" ? "seconds since submission" : "trial", labelSize: 22, labelFont: axis.font },
          { ...axis, size: 52, values: (_, ticks) => ticks.map((v) => `${+v.toFixed(2)}×`) },
        ],
        series: [
          {},
          { label: "best so far", stroke: colour("--series-3"), width: 2, paths: uPlot.paths.stepped({ align: 1 }), points: { show: false } },
          dots("measured", "--series-1", 5),
          dots("cut short", "--series-2", 5),
          dots("rejected", "--series-6", 4),
        ],
        hooks: {
          drawAxes: [(plot) => this.marks(plot)],
          draw: [(plot) => this.ring(plot, verified)],
          setLegend: [(plot) => this.hover(plot)],
        },
      };
    }

    // The user's kernel at 1, and where the search of another candidate begins.
    marks(plot) {
      const { ctx, bbox } = plot;
      ctx.save();
      ctx.strokeStyle = colour("--muted");
      ctx.fillStyle = colour("--muted");
      ctx.font = `${12 * devicePixelRatio}px system-ui, sans-serif`;
      ctx.setLineDash([4 * devicePixelRatio, 4 * devicePixelRatio]);
      const y = plot.valToPos(1, "y", true);
      ctx.beginPath();
      ctx.moveTo(bbox.left, y);
      ctx.lineTo(bbox.left + bbox.width, y);
      ctx.stroke();
      const seen = new Set();
      this.points.forEach((p) => {
        if (seen.has(p.candidate)) return;
        if (seen.size) {
          const x = plot.valToPos(this.axis === "seconds" ? p.at : p.number, "x", true);
          ctx.beginPath();
          ctx.moveTo(x, bbox.top);
          ctx.lineTo(x, bbox.top + bbox.height);
          ctx.stroke();
          ctx.fillText(`candidate ${p.candidate}`, x + 4 * devicePixelRatio, bbox.top + 12 * devicePixelRatio);
        }
        seen.add(p.candidate);
      });
      ctx.restore();
    }

    ring(plot, verified) {
      if (!verified || !this.points.length) return;
      const { ctx, bbox } = plot;
      const x = bbox.left + bbox.width - 7 * devicePixelRatio, y = plot.valToPos(verified, "y", true);
      ctx.save();
      ctx.strokeStyle = ctx.fillStyle = colour("--good");
      ctx.lineWidth = 2 * devicePixelRatio;
      ctx.beginPath();
      ctx.arc(x, y, 5 * devicePixelRatio, 0, 7);
      ctx.stroke();
      ctx.font = `600 ${12 * devicePixelRatio}px system-ui, sans-serif`;
      ctx.textAlign = "right";
      ctx.fillText(`verified ${times(verified)}`, x - 9 * devicePixelRatio, y + 4 * devicePixelRatio);
      ctx.restore();
    }

    hover(plot) {
      const index = plot.cursor.idx;
      if (index == null || plot.cursor.left < 0) return;
      this.show(this.points[index]);
    }

    key(event) {
      const step = { ArrowRight: 1, ArrowLeft: -1, PageDown: 20, PageUp: -20, Home: -Infinity, End: Infinity }[event.key];
      if (step === undefined || !this.points?.length) return;
      event.preventDefault();
      const now = this.points.indexOf(this.chosen);
      const next = Math.min(this.points.length - 1, Math.max(0, now + step));
      this.plot.setCursor({ left: this.plot.valToPos(this.plot.data[0][next], "x"), top: 20 }, false);
      this.show(this.points[next]);
    }

    async show(point) {
      if (!point || point === this.chosen) return;
      this.chosen = point;
      const gain = point.gain == null ? OUTCOMES[point.outcome] : times(point.gain);
      const head = `Trial ${point.number}, ${point.at.toFixed(1)} s, candidate ${point.candidate}: ${gain}${point.reused ? ", taken over from an earlier job" : ""}`;
      this.said.textContent = point.reason ? `${head}. ${point.reason}` : head;
      const detail = await this.detail(point);
      if (detail && this.chosen === point) this.said.textContent = `${this.said.textContent}. ${detail}`;
    }

    async detail(point) {
      const kept = this.figure.dataset.configurations && document.getElementById(this.figure.dataset.configurations);
      if (kept) return (this.kept ??= JSON.parse(kept.textContent))[point.number] ?? "";
      if (!this.figure.dataset.trial) return "";
      await new Promise((done) => setTimeout(done, 120));
      if (this.chosen !== point) return "";
      const reply = await fetch(`${this.figure.dataset.trial}/${point.number}`);
      if (!reply.ok) return "";
      const trial = await reply.json();
      const words = Object.entries(trial.configuration).map(([name, value]) => `${name}=${value}`).join(", ");
      return trial.outcome?.reason ? `${words}. ${trial.outcome.reason}` : words;
    }

    table() {
      const body = this.figure.querySelector("[data-improvements]");
      const rows = improvements(this.points).map((p) => {
        const row = document.createElement("tr");
        for (const text of [p.number, `${p.at.toFixed(1)} s`, p.candidate, times(p.gain)]) {
          const cell = document.createElement("td");
          cell.className = "right";
          cell.textContent = text;
          row.append(cell);
        }
        return row;
      });
      body.replaceChildren(...rows);
    }
  }

  return { merge, inOrder, bestSoFar, improvements, summary, TrialChart };
})();
if (typeof module !== "undefined") module.exports = warpsmithCharts;
