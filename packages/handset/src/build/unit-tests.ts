/** Unit tests that stand in a source stand behind `if (typeof test === 'function')`. */
const ASKS_FOR_TEST = /\btypeof\s+test\b/;

/**
 * A script that seems to have a `test` of its own: declared, assigned, taken apart from an object, or used as one. Said too
 * often rather than too seldom: it costs some bytes then, and not the application.
 */
const OWN_TEST = new RegExp(
  [
    /\b(?:var|let|const|function|class)\s+test\b/,
    /(?<![\w$.])test\s*=(?![=>])/,
    /\b(?:window|self|top|global|globalThis|root|this)\s*\.\s*test\s*=(?!=)/,
    /['"]test['"]\s*\]\s*=(?!=)/,
    /[{[,]\s*test\s*[},\]]/,
    /(?<![\w$.'"/-])test(?:\.[\w$]|\[)/,
  ]
    .map(({ source }) => source)
    .join('|'),
);

/** Whether app.js may be minified as if there were no global `test`, which leaves out the unit tests that ask for one. */
export function leavesOutTests(app: readonly string[], others: readonly string[]): boolean {
  return app.some((code) => ASKS_FOR_TEST.test(code)) && ![...app, ...others].some((code) => OWN_TEST.test(code));
}
