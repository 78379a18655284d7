// What the theme "day" answers on the phone itself: the lit row follows the navigation keys, a long press opens the menu.
(function () {
  handset.onKey('down', "handset.setGroupNext('.story', 'lit', '', 1)");
  handset.onKey('up', "handset.setGroupNext('.story', 'lit', '', -1)");
  handset.onLongPress('#page', "handset.show('#menu')");
})();
