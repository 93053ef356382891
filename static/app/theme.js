// Sets the chosen theme before the first paint, so that a dark page never flashes white. A classic script on purpose:
// modules run after the document is parsed. Values: auto (follow the system), light, dark.
(() => {
  let theme = "auto";
  try {
    theme = localStorage.getItem("playground-theme") ?? "auto";
  } catch {
    // Storage may be blocked; the system's theme is a good answer.
  }
  document.documentElement.dataset.theme = ["light", "dark"].includes(theme) ? theme : "auto";
})();
