interface CatalogueEntry {
  readonly severity: 'error' | 'warning';
  /** What to do about it, as a whole sentence. */
  readonly remedy: string;
}

const error = (remedy: string): CatalogueEntry => ({ severity: 'error', remedy });
const warning = (remedy: string): CatalogueEntry => ({ severity: 'warning', remedy });

/** Every problem that handset can report. A code is never reused for another meaning; docs/guides/handset.md lists them. */
export const PROBLEM_CATALOGUE = {
  // the project as a whole
  'project-missing': error('Change into a handset project, or make one with `npx handset new my-app`.'),
  'project-exists': error('Choose a name that is free, or empty the folder first.'),
  'settings-invalid': error(
    'Correct handset.config.json; this is a right one: { "first": ["vendor/base.js"], "port": 3333 }',
  ),
  'plugin-invalid': error('A plugin file must export `plugin` with name, extensions, targets and compile.'),
  usage: error('Run the command with --help to see its options and examples.'),
  failed: error('If this is not a fault of your own file, report it with the command that you ran.'),

  // reading sources
  'config-missing': error('Create app/assets/config.xml; `npx handset new` makes one that you can copy.'),
  'config-malformed': error('Close every tag, quote every attribute and escape & as &amp; in config.xml.'),
  'icon-missing': error('Put a PNG at app/assets/icon.png; devices show it in their list of applications.'),
  'page-missing': error('Create app/index.pug (or app/assets/index.html).'),
  'page-twice': warning(
    'Delete one of the two, or write `<!-- handset: spare page -->` into app/assets/index.html to keep both.',
  ),
  'page-ambiguous': error('Keep one main page template and delete the other.'),
  'not-utf8': error('Save the file as UTF-8 without a byte order mark.'),
  'file-unreadable': error('Check that the file exists and that you may read it.'),
  'folder-link': warning('Replace the link with a real folder, or link single files.'),
  'link-outside': error('Copy the file into the application.'),
  'output-clash': error('Rename one of the two sources.'),
  'source-unused': warning(
    'Put what is to be copied below app/assets/; for another language name a plugin in handset.config.json.',
  ),
  'order-unmatched': warning(
    'Correct the name in handset.config.json; it is a path such as vendor/base.js, or a pattern.',
  ),
  'runtime-other': warning(
    'Replace it with vendor/pug_runtime.js, which `npx handset new` makes; until then templates.js brings it.',
  ),
  'module-missing': warning('Correct the name, or put a library that brings it into vendor/.'),
  'client-unreached': warning('Load javascripts/vendor.js in the page before its other scripts.'),
  'runtime-missing': error('Copy pug_runtime.js into vendor/: `npx handset new` makes one.'),

  // compiling
  'script-syntax': error('Correct the line shown.'),
  'template-syntax': error('Correct the line shown.'),
  'template-cycle': error('Take one include out of the circle; use a mixin if a part must repeat.'),
  'include-missing': error('Create the file or correct the path; paths are relative to the including file.'),
  'include-outside': error('Move the included file into app/.'),
  'compile-failed': error('Correct the line shown.'),
  'page-render': error('The main page is rendered at build time: give every variable it uses a value in the template.'),
  'not-es5': error('Write it in ES5, as `npx handset lint` explains, or name a plugin that compiles it to ES5.'),
  'minify-failed': error('Correct the line shown, or build without --production to look at the code.'),

  // writing outputs
  'output-readonly': error('Make public/ writable for you (for example `chmod -R u+w public`), then save again.'),
  'output-foreign': warning('Delete the files, or run `npx handset build --clean` to have them removed.'),

  // serving
  'port-in-use': error('Stop the other program or choose another port with --port.'),
  'watch-limit': error('Raise the limit: `sudo sysctl fs.inotify.max_user_watches=524288`.'),
  'chromium-missing': error(
    'Install Chromium (Debian: `apt-get install chromium`) or set HANDSET_CHROMIUM to its path.',
  ),
  'display-missing': error('Run it in a desktop session, or add --screenshot page.png or --headless.'),
  'visits-full': error('Wait for a visit to end, or start the proxy with a larger --visits.'),

  // lint
  'lint-es5-syntax': error('Write it in ES5 (function, var, string concatenation), or write the file in CoffeeScript.'),
  'lint-es5-global': warning('Do without it, or put a library that brings it into vendor/.'),
  'lint-es5-method': warning('Write it as ES5 does, or put a library that brings it into vendor/.'),
  'lint-use-strict': warning('Put "use strict" inside a function.'),
  'lint-document': error('Keep one document, index.html; make the other pages templates.'),
  'lint-frame': error('Take the frame out; show the content with a template.'),
  'lint-unsupported': warning('Do without it on phones.'),
  'lint-order': error('Put the script tag of vendor.js before templates.js and app.js.'),
  'lint-path': error('Use a path relative to index.html, without a leading slash or a host name.'),
  'lint-reference': error('Add the file under app/assets/ or take the reference out.'),
  'lint-weight': warning('Make it smaller, or set another budget in handset.config.json.'),
  'lint-image-size': warning('Scale the image to the size that the screen shows.'),
  'lint-image-name': warning('Rename the file or scale the image so that both agree.'),
  'lint-image-broken': error('Save the image again as PNG, GIF or JPEG.'),
  'widget-invalid': error('Correct config.xml as the W3C Widget Packaging recommendation asks.'),
  'widget-advice': warning('Devices ignore what they do not know; take it out or correct it.'),
} as const satisfies Record<string, CatalogueEntry>;

export type ProblemCode = keyof typeof PROBLEM_CATALOGUE;
