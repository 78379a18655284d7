describe 'news', ->
  test 'each section is named once, after All', ->
    assert.deepEqual news.sections(), ['All', 'Town', 'Nature', 'Trade']

  test 'a section holds its own stories', ->
    assert.deepEqual (story.id for story in news.inSection 'Nature'), [3, 5]

  test 'find wants every word, in any case', ->
    assert.deepEqual (story.id for story in news.find 'HARBOUR hall'), [4]

  test 'find without words finds nothing', ->
    assert.deepEqual news.find('  '), []

  test 'after the last story comes the first', ->
    assert.equal news.after(news.byId 5).id, 1
