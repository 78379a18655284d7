# What the reader knows: stories, what was read and saved, and how to find them.
news = @news ?= {}

# Words a person reads in a minute on a small screen.
PACE = 45

news.sections = -> ['All'].concat (story.section for story, i in news.stories when isFirst story, i)

isFirst = (story, i) ->
  news.stories.slice(0, i).every (other) -> other.section isnt story.section

news.minutes = (story) ->
  words = "#{story.lead} #{story.text.join ' '}".split(/\s+/).length
  Math.max 1, Math.round words / PACE

news.inSection = (section) ->
  story for story in news.stories when section is 'All' or story.section is section

# Stories that hold every word, in any case.
news.find = (words) ->
  wanted = (word for word in words.toLowerCase().split /\s+/ when word)
  return [] if wanted.length is 0
  news.stories.filter (story) ->
    text = "#{story.title} #{story.lead} #{story.text.join ' '}".toLowerCase()
    wanted.every (word) -> text.indexOf(word) isnt -1

news.byId = (id) ->
  return story for story in news.stories when story.id is Number id
  null

news.after = (story) ->
  news.stories[(news.stories.indexOf(story) + 1) % news.stories.length]
