// The pages of the reader: each is a template, shown in #page, with a title and, but for the list, a way back.
(function (news) {
  'use strict';

  news.page = { name: 'list', section: 'All', story: null, words: '' };

  function element(id) {
    return document.getElementById(id);
  }

  function show(name, title, locals) {
    news.page.name = name;
    element('page').innerHTML = templates[name](locals);
    element('title').textContent = title;
    element('back').style.visibility = name === 'list' ? 'hidden' : 'visible';
    element('menu').style.display = 'none';
    window.scrollTo(0, 0);
  }

  function listed(stories) {
    return stories.map(function (story) {
      story.minutes = news.minutes(story);
      return story;
    });
  }

  news.showList = function (section) {
    news.page.section = section || news.page.section;
    show('list', 'News', {
      sections: news.sections(),
      current: news.page.section,
      stories: listed(news.inSection(news.page.section))
    });
  };

  news.showStory = function (story) {
    story.read = true;
    news.page.story = story;
    listed([story]);
    show('detail', story.section, { story: story, images: news.settings.images, size: news.settings.size });
  };

  news.showSearch = function (words) {
    news.page.words = words || '';
    show('search', 'Search', {
      words: news.page.words,
      searched: words !== undefined,
      stories: listed(news.find(news.page.words))
    });
  };

  news.showSettings = function () {
    show('settings', 'Settings', { settings: news.settings, themes: news.themes });
  };
})((this.news = this.news || {}));
