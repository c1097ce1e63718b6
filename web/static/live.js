// What happens to jobs, as the service tells it: figures change where they stand, and other scripts hear of it.
"use strict";
(() => {
  const NONE = "–";
  const ENDED = ["done", "failed", "cancelled"];
  const show = {
    state: (s) => s.state,
    gain: (s) => (s.best_speedup == null ? NONE : `${s.best_speedup.toFixed(2)}×`),
    kind: (s) => (s.best_speedup == null ? "" : s.state === "done" ? "verified" : ENDED.includes(s.state) ? "in the search" : "so far"),
    reason: (s) => (s.state === "failed" && s.reason ? s.reason.sentence.slice(0, 160) : ""),
    trials: (s) => s.trials_done.toLocaleString("en"),
    rejected: (s) => s.trials_rejected.toLocaleString("en"),
    round: (s) => `${s.round} of ${s.rounds}`,
    detail: (s) => s.detail,
    device: (s) => s.device_class || NONE,
    left: (s) => (s.seconds_left == null ? NONE : seconds(s.seconds_left)),
    tokens: (s) => s.tokens_used.toLocaleString("en"),
    feasible: (s) => (s.feasible == null ? NONE : s.feasible.toLocaleString("en")),
  };
  const micros = (v) => {
    if (v == null) return NONE;
    const digits = v < 100 ? 2 : v < 1000 ? 1 : 0;
    return `${v.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })} µs`;
  };

  function seconds(value) {
    if (value < 10) return `${value.toFixed(1)} s`;
    const whole = Math.round(value);
    if (whole < 120) return `${whole} s`;
    if (whole < 7200) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
    return `${Math.floor(whole / 3600)} h ${Math.floor((whole % 3600) / 60)} min`;
  }

  function put(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }

  function update(status) {
    for (const place of document.querySelectorAll(`[data-job="${CSS.escape(status.id)}"]`)) {
      for (const element of place.querySelectorAll("[data-field]")) {
        const field = element.dataset.field;
        if (field === "progress") {
          element.max = status.trials_budget;
          element.value = status.trials_done;
          element.hidden = ENDED.includes(status.state);
        } else if (field in show) put(element, show[field](status));
        if (field === "state") element.dataset.state = status.state;
      }
      for (const row of place.querySelectorAll("[data-workload]")) {
        const found = status.workloads.find((w) => w.workload === row.dataset.workload);
        if (!found) continue;
        const texts = { baseline: micros(found.baseline_us), best: micros(found.best_us), speedup: found.speedup == null ? NONE : `${found.speedup.toFixed(2)}×` };
        for (const cell of row.querySelectorAll("[data-figure]")) put(cell, texts[cell.dataset.figure]);
      }
    }
  }

  const mark = document.getElementById("live");
  function say(state, words) {
    if (!mark) return;
    mark.dataset.live = state;
    put(mark, words);
  }

  function tell(name, detail) {
    document.body.dispatchEvent(new CustomEvent(name, { detail, bubbles: true }));
  }

  const FIRST_MS = 1000;
  const LONGEST_MS = 30000;

  function listen(path) {
    const own = document.querySelector("main").dataset.job;
    let source = null;
    let timer = 0;
    let last = "";
    let over = false;
    let wait = FIRST_MS;

    function hear(kind, message) {
      last = message.lastEventId || last;
      const event = JSON.parse(message.data);
      tell("warpsmith:event", event);
      tell(`warpsmith:${kind.replace("_", "-")}`, event);
    }

    function open() {
      const address = new URL(path, location.href);
      if (last) address.searchParams.set("after", last);
      source = new EventSource(address);
      source.onopen = () => {
        wait = FIRST_MS;
        say("on", "live");
      };
      source.onerror = () => {
        if (source.readyState === EventSource.CLOSED && over) {
          say("off", "ended");
          return;
        }
        say("lost", "reconnecting");
        if (source.readyState !== EventSource.CLOSED) return;
        // The browser gives up when the answer is no stream, as a proxy's is while the service starts anew.
        timer = setTimeout(open, wait);
        wait = Math.min(2 * wait, LONGEST_MS);
      };
      source.addEventListener("status", (message) => {
        const status = JSON.parse(message.data);
        over = over || (status.id === own && ENDED.includes(status.state));
        update(status);
        tell("warpsmith:status", status);
      });
      for (const kind of ["state", "candidate", "settled", "task", "agent_request"]) {
        source.addEventListener(kind, (message) => hear(kind, message));
      }
    }

    open();
    addEventListener("pagehide", () => {
      clearTimeout(timer);
      source.close();
    });
    addEventListener("pageshow", (shown) => {
      // A page out of the browser's memory has missed what happened.
      if (shown.persisted) location.reload();
    });
  }

  const path = document.querySelector("[data-stream]")?.dataset.stream;
  if (path) listen(path);
})();
