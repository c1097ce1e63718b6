// A new question is shown at once, unless an answer is being written.
"use strict";
document.body.addEventListener("warpsmith:event", (event) => {
  const writing = [...document.querySelectorAll("textarea")].some((area) => area.value !== area.defaultValue);
  if (event.detail.kind === "agent_request" && !writing) location.reload();
});
