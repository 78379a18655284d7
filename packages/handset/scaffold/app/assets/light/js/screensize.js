// Notes the size of the screen on <html>, for style sheets of devices that know no media queries.
(function () {
  var root = document.documentElement;

  function note() {
    var landscape = window.innerWidth > window.innerHeight;
    var small = Math.min(window.innerWidth, window.innerHeight) < 240;
    root.className = (landscape ? 'landscape' : 'portrait') + (small ? ' small' : '');
  }

  window.addEventListener('resize', note);
  note();
})();
