// What is touched, and what follows. All of this runs on the proxy; what the phone answers itself is in the templates.
(function (news) {
  'use strict';

  function on(id, action) {
    document.getElementById(id).addEventListener('click', function (event) {
      event.preventDefault();
      action();
    });
  }

  // The nearest element around a tap that carries this attribute, and the attribute's value.
  function answer(event, name) {
    for (var element = event.target; element && element.getAttribute; element = element.parentNode) {
      if (element.getAttribute(name) !== null) return element.getAttribute(name);
    }
    return null;
  }

  function tapped(event) {
    var story = answer(event, 'data-story');
    var section = answer(event, 'data-section');
    var id = event.target.id;
    if (story !== null) news.showStory(news.byId(story));
    else if (section !== null) news.showList(section);
    else if (id === 'save') {
      news.page.story.saved = !news.page.story.saved;
      event.target.textContent = news.page.story.saved ? 'Saved' : 'Save';
    } else if (id === 'next') next();
  }

  function next() {
    if (news.page.name === 'detail') news.showStory(news.after(news.page.story));
  }

  function changed(event) {
    if (event.target.name === 'theme') news.saveSettings({ theme: event.target.value });
    else if (event.target.name === 'images') news.saveSettings({ images: event.target.checked });
    else if (event.target.name === 'size') news.saveSettings({ size: Number(event.target.value) });
  }

  document.addEventListener('DOMContentLoaded', function () {
    var page = document.getElementById('page');
    news.loadSettings();
    on('back', news.showList);
    on('search', function () {
      news.showSearch();
    });
    on('settings', news.showSettings);
    on('refresh', news.showList);
    page.addEventListener('click', tapped);
    page.addEventListener('change', changed);
    page.addEventListener('submit', function (event) {
      event.preventDefault();
      if (event.target.id === 'find') news.showSearch(document.getElementById('words').value);
    });
    // A swipe is answered by a function, so it costs a round trip; the theme's keys are shortcuts and cost none.
    handset.onSwipe('#page', 'left', next);
    news.showList('All');
  });
})((this.news = this.news || {}));
