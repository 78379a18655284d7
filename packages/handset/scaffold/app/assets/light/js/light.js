// The theme's own local shortcuts: which row is lit, and how swipes and navigation keys move it.
(function () {
  handset.onKey('down', "handset.setGroupNext('.item', 'lit', '', 1)");
  handset.onKey('up', "handset.setGroupNext('.item', 'lit', '', -1)");
  handset.onSwipe('#list', 'left', "handset.setGroupTarget('.tab', '.tab-new', 'on'); handset.addClass('#list', 'only-new')");
  handset.onSwipe('#list', 'right', "handset.setGroupTarget('.tab', '.tab-all', 'on'); handset.removeClass('#list', 'only-new')");
  handset.onLongPress('#list', "handset.show('#menu')");
})();
