// Before the first paint; the page's policy allows no script inside it.
(function () {
  var said = localStorage.getItem("penstock-theme");
  if (said === "light" || said === "dark") document.documentElement.dataset.theme = said;
})();
