# The CoffeeScript half of the start page: what is listed and how it is searched.
app = @app ?= {}

app.items = [
  { id: 1, title: 'Edit a file', text: 'Save app/index.pug while npm start runs: the page follows.', isNew: yes }
  { id: 2, title: 'Add a template', text: 'Each file in app/templates/ becomes a function.', isNew: yes }
  { id: 3, title: 'Try the proxy', text: 'npm run proxy shows what costs a round trip.', isNew: no }
]

# Items whose title or text holds all words, whatever their case.
app.search = (items, words) ->
  wanted = (word for word in words.toLowerCase().split(' ') when word)
  items.filter (item) ->
    text = "#{item.title} #{item.text}".toLowerCase()
    wanted.every (word) -> text.indexOf(word) isnt -1

app.show = (items) =>
  @document.getElementById('list').innerHTML = @templates['main-list'] items: items

# `test` is there when `handset test` runs this file.
if test?
  test 'search finds every word, in any case', ->
    assert.equal app.search(app.items, 'EDIT save').length, 1
    assert.equal app.search(app.items, '').length, 3

  test 'the list shows a title for each item', ->
    app.show app.items
    assert.equal document.querySelectorAll('#list h2').length, 3
