"""The only script of the page: it shows the text of a chart's mark when the pointer or the keyboard is on it.

It writes text only as text, so that nothing in a table's log becomes markup.
"""

SCRIPT = """
document.querySelectorAll("svg.plot").forEach(function (plot) {
  var marks = Array.prototype.slice.call(plot.querySelectorAll(".mark")), at = -1;
  var readout = plot.parentNode.querySelector(".readout");
  function show(index) {
    if (!marks.length) return;
    if (at >= 0) marks[at].classList.remove("on");
    at = index < 0 ? -1 : Math.min(index, marks.length - 1);
    readout.textContent = at < 0 ? "" : marks[at].getAttribute("data-text");
    if (at >= 0) marks[at].classList.add("on");
  }
  function hide() { show(-1); }
  marks.forEach(function (mark, index) {
    mark.querySelector("title").remove();
    mark.addEventListener("pointerenter", function () { show(index); });
    mark.addEventListener("click", function () { show(index); });
  });
  plot.addEventListener("pointerleave", function () { if (document.activeElement !== plot) hide(); });
  plot.addEventListener("focus", function () {
    if (at < 0 && plot.matches(":focus-visible")) show(marks.length - 1);
  });
  plot.addEventListener("blur", hide);
  plot.addEventListener("keydown", function (event) {
    var moves = { ArrowLeft: at - 1, ArrowUp: at - 1, ArrowRight: at + 1, ArrowDown: at + 1, Home: 0,
      End: marks.length - 1 };
    if (event.key === "Escape") return hide();
    if (!(event.key in moves)) return;
    event.preventDefault();
    show(Math.max(moves[event.key], 0));
  });
});
"""
