// The page of a job: its points are loaded once, then those that are new.
"use strict";
(() => {
  const figure = document.querySelector("[data-points]");
  if (!figure) return;
  const chart = new warpsmithCharts.TrialChart(figure);
  // Trials are stored once a second, a little after they have ended.
  const OVERLAP_S = 10;
  let done = -1;
  let loading = false;
  let again = false;

  async function load(whole) {
    if (loading) {
      again = true;
      return;
    }
    loading = true;
    try {
      const since = whole ? 0 : Math.max(0, chart.lastSecond() - OVERLAP_S);
      const reply = await fetch(since > 0 ? `${figure.dataset.points}?since=${since.toFixed(2)}` : figure.dataset.points);
      if (reply.ok) chart.update(await reply.json());
    } finally {
      loading = false;
      if (again) {
        again = false;
        load(false);
      }
    }
  }

  load(true).then(() => { figure.dataset.ready = "yes"; });
  document.body.addEventListener("warpsmith:status", (event) => {
    const status = event.detail;
    if (status.trials_done === done) return;
    const first = done < 0;
    done = status.trials_done;
    if (!first) load(false);
  });
  document.body.addEventListener("warpsmith:event", (event) => {
    const { kind, data } = event.detail;
    const ended = kind === "state" && ["done", "failed", "cancelled"].includes(data.state);
    if (ended && document.querySelector("main").dataset.ended !== "yes") location.reload();
  });
})();
