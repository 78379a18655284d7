import { handOver, scriptOf } from './hand-over.mjs';
import { locksDiffer } from './lock.mjs';
import { installParts, missingParts } from './machine.mjs';
import { ensurePackages } from './packages.mjs';
import { sideBySide } from './side-by-side.mjs';
import { Stop } from './stop.mjs';

/** Tasks by name, each a script of that name. */
const tasks = {
  start: 'starts the platform, deploys examples/hello-agent and talks to it',
  platform: 'only serves',
  test: 'runs the tests',
  bench: 'runs a benchmark: npm run bench -- <name>',
  check: 'checks format, lint, types, dead code and the rules of the house',
  'docs-update': 'writes the generated pages of docs/',
  'contract-update': 'regenerates the wire contract from the published model',
  'contract-coverage': 'prints how much of the contract is served',
};

/**
 * Makes everything ready for the task named first in `argv` and runs it with the other arguments.
 * Returns the exit code; what stops it is said in one paragraph on stderr.
 */
export async function bootstrap(root, argv) {
  const [task, ...args] = argv;
  if (!Object.hasOwn(tasks, task ?? '') || !scriptOf(root, task)) {
    const list = Object.entries(tasks).map(([name, what]) => `  ${name.padEnd(18)} ${what}\n`);
    process.stderr.write(`Usage: node scripts/bootstrap.mjs <task> [arguments]\n${list.join('')}`);
    return task === undefined || task === '--help' ? 0 : 2;
  }
  try {
    // --help needs no sandbox.
    const missing = args.includes('--help') ? [] : missingParts(root, task, args);
    const installing = installParts(missing);
    // Side by side where each can have its lock.
    if (!locksDiffer) await installing;
    const [, node] = await sideBySide([installing, ensurePackages(root)]);
    return await handOver(node, root, task, args);
  } catch (error) {
    if (!(error instanceof Stop)) throw error;
    process.stderr.write(`\n${wrapped(error.message, 100)}\n`);
    return error.exitCode;
  }
}

/** `text` with line breaks at words, so that no line is longer than `width` but those that were made so on purpose. */
function wrapped(text, width) {
  return text.replace(new RegExp(`(?![^\\n]{1,${width}}$)(?! {2})([^\\n]{1,${width}}) `, 'gm'), '$1\n');
}
