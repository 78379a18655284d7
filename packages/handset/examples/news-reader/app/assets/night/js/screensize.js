// Notes on <html> how the screen lies, for style sheets of devices that know no media queries.
(function () {
  function note() {
    var root = document.documentElement;
    handset.removeClass(root, 'portrait');
    handset.removeClass(root, 'landscape');
    handset.addClass(root, window.innerWidth > window.innerHeight ? 'landscape' : 'portrait');
  }
  window.addEventListener('resize', note);
  note();
})();
