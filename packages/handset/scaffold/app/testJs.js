// The JavaScript half of the start page: what happens when it is touched.
(function (app) {
  'use strict';

  // Marks all items as seen and shows those that the search box asks for.
  app.refresh = function () {
    var words = document.getElementById('words').value;
    app.items.forEach(function (item) {
      item.isNew = false;
    });
    app.show(app.search(app.items, words));
  };

  app.start = function () {
    app.show(app.items);
    document.getElementById('refresh').addEventListener('click', app.refresh);
    document.getElementById('search').addEventListener('submit', function (event) {
      event.preventDefault();
      app.show(app.search(app.items, document.getElementById('words').value));
    });
  };

  document.addEventListener('DOMContentLoaded', app.start);
})((this.app = this.app || {}));

if (typeof test === 'function') {
  test('refresh marks every item as seen', function () {
    app.refresh();
    assert.equal(document.querySelectorAll('.item.new').length, 0);
  });
}
