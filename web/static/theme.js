// Light or dark: the choice of whoever looks, kept in the browser, before anything is painted.
"use strict";
(() => {
  const root = document.documentElement;
  const kept = localStorage.getItem("theme");
  if (kept) root.dataset.theme = kept;
  addEventListener("DOMContentLoaded", () => {
    document.getElementById("theme").addEventListener("click", () => {
      const dark = matchMedia("(prefers-color-scheme: dark)").matches;
      const now = root.dataset.theme || (dark ? "dark" : "light");
      root.dataset.theme = now === "dark" ? "light" : "dark";
      localStorage.setItem("theme", root.dataset.theme);
      dispatchEvent(new Event("warpsmith:theme"));
    });
  });
})();
