// Buttons that copy the text of an element; without a script they stay hidden.
"use strict";
(() => {
  function copied(text) {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    // A page over plain http has no clipboard; browsers still copy what is selected in a field.
    const field = Object.assign(document.createElement("textarea"), { value: text });
    document.body.append(field);
    field.select();
    const done = document.execCommand("copy");
    field.remove();
    return done ? Promise.resolve() : Promise.reject();
  }

  for (const button of document.querySelectorAll("[data-copies]")) {
    const words = button.textContent;
    button.hidden = false;
    button.addEventListener("click", async () => {
      const text = document.getElementById(button.dataset.copies).textContent;
      button.textContent = await copied(text).then(() => "Copied", () => "Select it and copy");
      setTimeout(() => (button.textContent = words), 2000);
    });
  }
})();
