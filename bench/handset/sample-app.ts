import { mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';

/** How many files of each kind an application has, besides the fixed seven (page, config, icon, styles, runtime, readme). */
export interface AppSize {
  readonly coffee: number;
  readonly javascript: number;
  readonly templates: number;
}

const FIXED = 7;

export const FORTY_SIX: AppSize = { coffee: 24, javascript: 9, templates: 6 };
export const TWO_THOUSAND: AppSize = { coffee: 1400, javascript: 393, templates: 200 };

export function fileCount({ coffee, javascript, templates }: AppSize): number {
  return FIXED + coffee + javascript + templates;
}

/** The file whose save is measured, and its text for a marker that the page can see. */
export const EDITED = 'app/module0.coffee';
export function editedText(marker: number): string {
  return `${coffeeModule(0)}\n@lastMarker = ${marker}\n@seen?(${marker})\n`;
}

/** Write an application of this size: small modules of about forty lines, as in a real one. */
export async function writeSampleApp(
  root: string,
  size: AppSize,
  files: { runtime: string; icon: Uint8Array },
): Promise<void> {
  const all: Record<string, string | Uint8Array> = {
    'app/assets/config.xml': '<widget xmlns="http://www.w3.org/ns/widgets"><name>bench</name></widget>\n',
    'app/assets/icon.png': files.icon,
    'app/assets/light/css/light.css': 'body { margin: 0; }\n'.repeat(40),
    'app/assets/light/js/light.js': 'var theme = "light";\n',
    'app/index.pug':
      'doctype html\nhtml\n  head\n    title bench\n    link(rel="stylesheet" href="light/css/light.css")\n  body\n    main#list\n    script(src="javascripts/vendor.js")\n    script(src="javascripts/templates.js")\n    script(src="javascripts/app.js")\n',
    'app/README.md': '# bench\n',
    'vendor/pug_runtime.js': files.runtime,
  };
  for (let i = 0; i < size.coffee; i += 1) all[folderName(i, 'coffee')] = coffeeModule(i);
  for (let i = 0; i < size.javascript; i += 1) all[folderName(i, 'js')] = javascriptModule(i);
  for (let i = 0; i < size.templates; i += 1) all[`app/templates/view${i}.pug`] = template(i);
  for (const [name, content] of Object.entries(all)) {
    const file = path.join(root, name);
    await mkdir(path.dirname(file), { recursive: true });
    await writeFile(file, content);
  }
}

/** The first forty stand in app/, the others in folders of forty. */
function folderName(i: number, extension: string): string {
  const base = extension === 'js' ? `plain${i}` : `module${i}`;
  return i < 40 ? `app/${base}.${extension}` : `app/part${Math.floor(i / 40)}/${base}.${extension}`;
}

function coffeeModule(i: number): string {
  return `# Module ${i}: a list that can be filtered, sorted and shown.
app = @app ?= {}

class List${i}
  constructor: (@items = [], @limit = ${10 + (i % 7)}) ->
    @filters = {}
    @listeners = []

  add: (item) =>
    @items.push item
    listener item, @items.length for listener in @listeners
    this

  filter: (name, test) ->
    @filters[name] = test
    this

  visible: ->
    found = @items.filter (item) =>
      for name, test of @filters when not test item
        return no
      yes
    found.sort (a, b) -> if a.rank is b.rank then 0 else b.rank - a.rank
    found[0...@limit]

  summary: ->
    count = @visible().length
    switch
      when count is 0 then 'nothing to show'
      when count is 1 then "one item of #{@items.length}"
      else "#{count} items of #{@items.length}, limit #{@limit}"

  onAdd: (listener) ->
    @listeners.push listener
    => @listeners = (other for other in @listeners when other isnt listener)

app.list${i} = new List${i}
app.list${i}.filter 'named', (item) -> item?.name?.length > 0
`;
}

function javascriptModule(i: number): string {
  return `// Helpers ${i}.
(function (app) {
  'use strict';
  app.format${i} = function (value, digits) {
    var text = String(Math.round(value * Math.pow(10, digits)) / Math.pow(10, digits));
    var parts = text.split('.');
    var whole = parts[0];
    var out = '';
    while (whole.length > 3) {
      out = ' ' + whole.slice(-3) + out;
      whole = whole.slice(0, -3);
    }
    return whole + out + (parts[1] ? '.' + parts[1] : '');
  };
  app.range${i} = function (from, to) {
    var list = [];
    for (var n = from; n < to; n++) {
      list.push({ id: n, name: 'item ' + n, rank: (n * 7919) % 101 });
    }
    return list;
  };
})((this.app = this.app || {}));
`;
}

function template(i: number): string {
  return `section.view${i}
  h2= title
  if items.length
    ul
      each item in items
        li(class=item.isNew ? 'new' : 'seen')
          a(href='#item' + item.id)= item.name
          span.rank #{item.rank} of ${i}
  else
    p.empty Nothing here.
`;
}
