// A finding leads to its line of the job file; answers with errors are shown like others.
"use strict";
document.addEventListener("click", (event) => {
  const line = event.target.closest?.("[data-line]")?.dataset.line;
  if (!line) return;
  const area = document.getElementById("job");
  const lines = area.value.split("\n");
  const begin = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
  area.focus();
  area.setSelectionRange(begin, begin + (lines[line - 1] ?? "").length);
  area.scrollTop = (area.scrollHeight / lines.length) * Math.max(0, line - 6);
});
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.detail.xhr.status === 422) {
    event.detail.shouldSwap = true;
    event.detail.isError = false;
  }
});
// A submitted job has a page of its own.
document.addEventListener("htmx:beforeOnLoad", (event) => {
  const found = new URL(event.detail.xhr.responseURL).pathname;
  if (found.startsWith("/jobs/")) {
    event.preventDefault();
    location.assign(found);
  }
});
