# What the reader's owner chose; kept where the platform keeps preferences, or for the visit only.
news = @news ?= {}
store = try @localStorage catch then null

news.themes = ['day', 'night']
news.settings = { theme: 'day', images: yes, size: 1 }

news.loadSettings = ->
  try
    saved = JSON.parse store.getItem('settings') or '{}'
    news.settings[name] = saved[name] for name of news.settings when saved[name]?
  catch
    null
  news.applyTheme()

news.saveSettings = (changes) ->
  news.settings[name] = value for name, value of changes
  try store.setItem 'settings', JSON.stringify news.settings
  news.applyTheme()

news.applyTheme = ->
  for theme in news.themes
    # Both sheets stay loaded, so that the page never stands without one.
    document.getElementById("theme-#{theme}").media = if theme is news.settings.theme then 'all' else 'not all'
  undefined
