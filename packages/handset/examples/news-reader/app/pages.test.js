describe('pages', function () {
  beforeEach(function () {
    news.showList('All');
  });

  test('the list shows all stories', function () {
    assert.equal(document.querySelectorAll('.story').length, news.stories.length);
  });

  test('a tap on a story opens it and marks it as read', function () {
    document.querySelector('[data-story="2"]').click();
    assert.match(document.querySelector('#story h2').textContent, /Bridge/);
    assert.ok(news.byId(2).read);
  });

  test('back leads to the list', function () {
    document.querySelector('[data-story="2"]').click();
    document.getElementById('back').click();
    assert.equal(news.page.name, 'list');
  });

  test('the arrow opens the lead without leaving the list', function () {
    document.getElementById('more-1').click();
    assert.equal(document.getElementById('lead-1').style.display === 'none', false);
    assert.equal(news.page.name, 'list');
  });

  test('the night theme switches the style sheets', function () {
    news.saveSettings({ theme: 'night' });
    assert.equal(document.getElementById('theme-day').media, 'not all');
    assert.equal(document.getElementById('theme-night').media, 'all');
    news.saveSettings({ theme: 'day' });
  });
});
