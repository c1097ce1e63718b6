// The chart of a job's trials: gains over trials or time, the best so far, rejections on a strip below.
"use strict";
(() => {
  const data = globalThis.warpsmithChartData;
  const REACH = 24; // pixels
  const MANY = 3000; // points that are drawn as squares, since circles take longer
  const STRIP = 0.17; // height of the strip, as a part of the highest gain
  const WHOLE = [1, 2, 5].flatMap((n) => [1, 10, 100, 1e3, 1e4, 1e5].map((p) => n * p)).sort((a, b) => a - b);
  const TIMES = [0.1, 0.5, ...[1, 5, 10, 30].flatMap((n) => [n, 60 * n]), 3600, 7200, 18000, 36000, 86400].sort((a, b) => a - b);
  const ROWS = { rejected: 0.065, cut_short: 0.13 };
  const REFRESH_MS = 2000;
  const ASK_MS = 120;

  function colours() {
    const style = getComputedStyle(document.documentElement);
    const named = (name) => style.getPropertyValue(`--${name}`).trim();
    return {
      surface: named("surface"), muted: named("muted"), line: named("line"), accent: named("accent"), good: named("good"),
      measured: named("series-1"), reused: named("series-4"), rejected: named("bad"), cut_short: named("warn"),
      font: `12px ${named("sans") || "sans-serif"}`,
    };
  }

  function splits(high, step) {
    const found = [];
    for (let n = 0; n * step <= high; n++) found.push(n * step);
    return found;
  }

  function made(tag, properties) {
    return Object.assign(document.createElement(tag), properties);
  }

  class Chart {
    constructor(root) {
      this.root = root;
      this.box = root.querySelector(".chart");
      this.said = root.querySelector(".chart-said");
      this.trials = new Map();
      this.told = new Map();
      this.axis = "number";
      this.timed = true;
      this.next = 0;
      this.at = -1;
      this.verified = Number(root.dataset.verified) || null;
      this.embedded();
      for (const button of root.querySelectorAll("[data-axis]")) {
        button.addEventListener("click", () => this.turn(button.dataset.axis));
      }
      this.box.addEventListener("keydown", (event) => this.key(event));
      new ResizeObserver(() => this.fit()).observe(this.box);
      const again = () => this.build();
      matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
      addEventListener("warpsmith:theme", again);
      if (root.dataset.points) {
        this.refresh();
        document.body.addEventListener("warpsmith:status", (event) => this.hear(event.detail));
      }
    }

    embedded() {
      const element = this.root.querySelector('script[type="application/json"]');
      if (!element) return;
      const recorded = JSON.parse(element.textContent);
      this.timed = recorded.timed;
      if (!this.timed) this.root.querySelector(".chart-axis").hidden = true;
      this.told = data.configurations(recorded.points.number, recorded.parameters);
      this.update(recorded.points);
    }

    // New points, as the API sends them.
    update(points) {
      const chosen = this.shown?.list[this.at]?.number;
      data.merge(this.trials, points);
      this.next = Math.max(this.next, points.next || 0);
      this.arrange(chosen);
    }

    arrange(chosen) {
      this.shown = data.series(this.trials, this.axis);
      this.at = chosen == null ? -1 : this.shown.list.findIndex((t) => t.number === chosen);
      this.write();
      if (this.plot) this.plot.setData([this.shown.x, this.shown.best]);
      else this.build();
    }

    turn(axis) {
      const chosen = this.shown?.list[this.at]?.number;
      this.axis = axis;
      for (const button of this.root.querySelectorAll("[data-axis]")) {
        button.setAttribute("aria-pressed", String(button.dataset.axis === axis));
      }
      this.plot?.destroy();
      this.plot = null;
      this.arrange(chosen);
    }

    // What the points say, in words and as a table.
    write() {
      const { list } = this.shown;
      this.root.querySelector(".chart-summary").textContent = data.summary(list, this.timed);
      const body = this.root.querySelector("tbody");
      const rows = data.steps(list).map((t) => {
        const row = document.createElement("tr");
        const when = this.timed ? data.seconds(t.at) : data.seconds(null);
        const cells = [t.number.toLocaleString("en"), String(t.round), when, data.gain(t.gain)];
        row.append(...cells.map((text) => made("td", { className: "right", textContent: text })));
        return row;
      });
      body.replaceChildren(...rows);
      const stages = [...data.counts(list).stages].sort((a, b) => b[1] - a[1]);
      const words = stages.map(([stage, n]) => `${stage} ${n.toLocaleString("en")}`).join(", ");
      this.root.querySelector(".chart-stages").textContent = words ? `Rejected by stage: ${words}.` : "";
    }

    top() {
      return Math.max(1.05, this.verified || 0, this.shown.best.at(-1) || 0) * 1.08;
    }

    fit() {
      if (!this.plot || !this.box.clientWidth) return this.build();
      this.plot.setSize({ width: this.box.clientWidth, height: this.box.clientHeight });
    }

    build() {
      if (!this.shown?.list.length) return;
      // Without the class the box is hidden, and has no width.
      this.root.classList.add("drawn");
      if (!this.box.clientWidth) return;
      this.plot?.destroy();
      this.ink = colours();
      const { ink } = this;
      const axis = { stroke: ink.muted, font: ink.font, grid: { stroke: ink.line, width: 1 }, ticks: { show: false } };
      const whole = this.axis === "number";
      const across = whole ? (v) => v.toLocaleString("en") : data.seconds;
      const gains = (v) => `${+v.toFixed(2)}×`;
      const range = (u, low, high) => [low, Math.max(high, low + 1)];
      const paths = uPlot.paths.stepped({ align: 1 });
      const options = {
        width: this.box.clientWidth,
        height: this.box.clientHeight,
        legend: { show: false },
        cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
        scales: { x: { time: false, range }, y: { range: () => [-STRIP * this.top(), this.top()] } },
        axes: [
          { ...axis, grid: { show: false }, space: 80, size: 32, incrs: whole ? WHOLE : TIMES, values: (u, values) => values.map(across) },
          { ...axis, size: 56, splits: (u, i, low, high, step) => splits(high, step), values: (u, values) => values.map(gains) },
        ],
        series: [{}, { stroke: ink.measured, width: 2, points: { show: false }, paths }],
        hooks: { drawAxes: [(u) => this.behind(u)], draw: [(u) => this.dots(u)] },
      };
      this.plot = new uPlot(options, [this.shown.x, this.shown.best], this.box);
      this.ring = made("div", { className: "chart-mark", hidden: true });
      this.plot.over.append(this.ring);
      for (const kind of ["pointermove", "pointerdown"]) {
        this.plot.over.addEventListener(kind, (event) => this.point(event));
      }
    }

    // Rounds, the baseline, and the strip of trials that were not measured.
    behind(u) {
      const { ctx, bbox } = u;
      const { ink } = this;
      const scale = devicePixelRatio;
      const line = (x1, y1, x2, y2, dash) => {
        ctx.setLineDash(dash);
        ctx.beginPath();
        ctx.moveTo(x1, y1);
        ctx.lineTo(x2, y2);
        ctx.stroke();
      };
      ctx.save();
      ctx.font = ink.font.replace("12px", `${11 * scale}px`);
      ctx.fillStyle = ink.muted;
      ctx.strokeStyle = ink.muted;
      ctx.lineWidth = scale;
      ctx.textBaseline = "top";
      ctx.textAlign = "left";
      const right = bbox.left + bbox.width;
      const one = u.valToPos(1, "y", true);
      line(bbox.left, one, right, one, [4 * scale, 4 * scale]);
      ctx.strokeStyle = ink.line;
      let free = -Infinity;
      for (const { round, x } of data.rounds(this.shown.list, this.axis)) {
        const left = u.valToPos(x, "x", true);
        if (left > bbox.left + scale) line(left, bbox.top, left, bbox.top + bbox.height, []);
        const words = `round ${round}`;
        if (left < free || left + ctx.measureText(words).width > right) continue;
        ctx.fillText(words, left + 4 * scale, bbox.top + 2 * scale);
        free = left + ctx.measureText(words).width + 12 * scale;
      }
      ctx.restore();
    }

    // Place of a trial down the chart, in the scale of gains.
    height(t) {
      return t.gain != null ? t.gain : -ROWS[t.kind] * this.top();
    }

    dots(u) {
      const { ctx, bbox } = u;
      const { list } = this.shown;
      const scale = devicePixelRatio;
      const size = (list.length > MANY ? 3 : 5) * scale;
      const top = this.top();
      const groups = { rejected: [], cut_short: [], reused: [], measured: [] };
      for (const t of list) groups[t.kind === "measured" && t.reused ? "reused" : t.kind].push(t);
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
      ctx.clip();
      for (const [kind, group] of Object.entries(groups)) {
        ctx.globalAlpha = kind === "measured" || kind === "reused" ? 0.5 : 0.7;
        ctx.fillStyle = this.ink[kind];
        ctx.beginPath();
        for (const t of group) {
          const x = u.valToPos(t[this.axis], "x", true);
          const y = u.valToPos(t.gain != null ? t.gain : -ROWS[t.kind] * top, "y", true);
          if (list.length > MANY || t.gain == null) ctx.rect(x - size / 2, y - size / 2, size, size);
          else {
            ctx.moveTo(x + size / 2, y);
            ctx.arc(x, y, size / 2, 0, 7);
          }
        }
        ctx.fill();
      }
      ctx.restore();
      if (this.verified) this.verdict(u);
      this.mark();
    }

    // The verified gain: a ring at the right end.
    verdict(u) {
      const { ctx, bbox } = u;
      const scale = devicePixelRatio;
      const x = bbox.left + bbox.width;
      const y = u.valToPos(this.verified, "y", true);
      ctx.save();
      ctx.strokeStyle = ctx.fillStyle = this.ink.good;
      ctx.lineWidth = 2 * scale;
      ctx.beginPath();
      ctx.arc(x - 7 * scale, y, 6 * scale, 0, 7);
      ctx.stroke();
      ctx.font = this.ink.font.replace("12px", `600 ${12 * scale}px`);
      ctx.textAlign = "right";
      ctx.textBaseline = "middle";
      const words = `verified ${data.gain(this.verified)}`;
      ctx.strokeStyle = this.ink.surface;
      ctx.lineWidth = 4 * scale;
      ctx.strokeText(words, x - 18 * scale, y);
      ctx.fillText(words, x - 18 * scale, y);
      ctx.restore();
    }

    point(event) {
      const { plot } = this;
      const area = plot.over.getBoundingClientRect();
      const { list, x } = this.shown;
      const found = data.nearest(
        list.length, (i) => plot.valToPos(x[i], "x"), (i) => plot.valToPos(this.height(list[i]), "y"),
        event.clientX - area.left, event.clientY - area.top, REACH,
      );
      if (found >= 0) this.choose(found);
    }

    key(event) {
      const last = (this.shown?.list.length || 0) - 1;
      const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[event.key];
      const ends = { Home: 0, End: last }[event.key];
      const to = ends ?? (by == null ? null : this.at < 0 ? last : this.at + by);
      if (to == null || last < 0) return;
      event.preventDefault();
      this.choose(Math.min(last, Math.max(0, to)));
    }

    choose(index) {
      if (index === this.at) return;
      this.at = index;
      this.mark();
      const trial = this.shown.list[index];
      const first = data.title(trial, this.timed);
      this.say(first, trial.reason);
      this.detail(trial, first);
    }

    // Each line is a text node: what kernels and compilers write stays text.
    say(...lines) {
      const shown = lines.filter(Boolean);
      this.said.replaceChildren(...shown.map((text) => made("div", { textContent: text })));
      this.box.setAttribute("aria-valuetext", shown.join(". "));
    }

    async detail(trial, first) {
      clearTimeout(this.asking);
      const shown = (told, reason = trial.reason) => this.say(first, reason, told);
      if (this.told.has(trial.number)) return shown(...[this.told.get(trial.number)].flat());
      if (!this.root.dataset.trials) return;
      this.asking = setTimeout(async () => {
        const reply = await fetch(`${this.root.dataset.trials}/${trial.number}`).catch(() => null);
        if (!reply?.ok) return;
        const found = await reply.json();
        const set = data.configuration(found.configuration);
        const told = [set, found.outcome?.reason || trial.reason];
        this.told.set(trial.number, told);
        if (this.shown.list[this.at]?.number === trial.number) shown(...told);
      }, ASK_MS);
    }

    mark() {
      const { list, x } = this.shown || { list: [] };
      this.box.setAttribute("aria-valuemax", String(Math.max(1, list.length)));
      this.box.setAttribute("aria-valuenow", String(Math.max(1, this.at + 1)));
      if (!this.ring) return;
      this.ring.hidden = this.at < 0;
      if (this.at < 0) return;
      this.ring.style.left = `${this.plot.valToPos(x[this.at], "x")}px`;
      this.ring.style.top = `${this.plot.valToPos(this.height(list[this.at]), "y")}px`;
    }

    // Of a job that runs: new points, at most every two seconds.
    hear(status) {
      if (status.id !== this.root.dataset.job) return;
      const done = status.state === "done";
      // A job that keeps its kernel has a verified gain of 1, and no ring.
      if (done && status.best_speedup != null && status.best_speedup !== 1) this.verified = status.best_speedup;
      if (status.trials_done === this.heard && !done) return;
      this.heard = status.trials_done;
      if (!this.soon) this.soon = setTimeout(() => this.refresh(), this.fresh ? REFRESH_MS : 0);
    }

    async refresh() {
      this.soon = null;
      this.fresh = true;
      const reply = await fetch(`${this.root.dataset.points}?since=${this.next}`).catch(() => null);
      if (reply?.ok) this.update(await reply.json());
      else this.say(`The trials could not be read: ${reply ? `HTTP ${reply.status}` : "no connection"}.`);
    }
  }

  const charts = new Map();
  globalThis.warpsmithCharts = {
    // Draw the charts of trials below an element that are not drawn yet.
    start(within = document) {
      for (const root of within.querySelectorAll(".trial-chart")) {
        if (!charts.has(root)) charts.set(root, new Chart(root));
      }
    },
    // Join points, as the API sends them, into every chart.
    update(points) {
      for (const chart of charts.values()) chart.update(points);
    },
  };
  globalThis.warpsmithCharts.start();
})();
