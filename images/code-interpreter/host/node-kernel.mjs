// The other end of node_kernel.py: one line of JSON in, one line out, per call. Code sees an ordinary Node of its own.
import { closeSync, writeSync } from 'node:fs';
import { createRequire, stripTypeScriptTypes } from 'node:module';
import { Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { inspect } from 'node:util';
import vm from 'node:vm';
import { toCell } from './node-cell.mjs';

const [language, requests, answers] = [process.argv[2], Number(process.argv[3]), Number(process.argv[4])];
const base = `${process.cwd()}/`;
const MAX_TEXT = 1024 * 1024;
const ERROR_HEAD = MAX_TEXT / 2;
const ERROR_TAIL = 64 * 1024;
let cell = 0;
let onInterrupt;

globalThis.require = createRequire(base);
globalThis.__filename = `${base}cell.js`;
globalThis.__dirname = process.cwd();
process.argv.splice(1);

// What code prints is in the pipe before the next statement runs: otherwise all past the pipe's 64 KiB would still wait for a turn of
// the event loop when the answer is sent, and a loop that only prints would fill the memory. Node has no public way to ask for it.
for (const stream of [process.stdout, process.stderr]) stream._handle?.setBlocking?.(true);

process.on('SIGINT', () => onInterrupt?.(new Error('interrupted')));
// What a forgotten promise throws belongs to stderr, not to the end of the kernel with all its variables.
process.on('unhandledRejection', (reason) => console.error('Unhandled rejection:', reason));
process.on('uncaughtException', (error) => console.error('Uncaught exception:', error));

function answer(message) {
  const line = Buffer.from(`${JSON.stringify(message)}\n`);
  for (let at = 0; at < line.length; ) {
    try {
      at += writeSync(answers, line, at);
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
    }
  }
}

async function run(code) {
  cell += 1;
  const filename = `${base}cell-${cell}.js`;
  const source = language === 'typescript' ? stripTypeScriptTypes(code, { mode: 'transform' }) : code;
  const script = new vm.Script(toCell(source), {
    filename,
    importModuleDynamically: vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER,
  });
  const interrupted = new Promise((_, reject) => {
    onInterrupt = reject;
  });
  interrupted.catch(() => undefined);
  try {
    return await Promise.race([script.runInThisContext({ breakOnSigint: true }), interrupted]);
  } finally {
    onInterrupt = undefined;
  }
}

function shown(value) {
  if (value === undefined) return {};
  const text = inspect(value, { depth: 4, maxArrayLength: 200, maxStringLength: MAX_TEXT }).slice(0, MAX_TEXT);
  const html =
    typeof value === 'object' && value !== null && typeof value.toHTML === 'function' ? value.toHTML() : undefined;
  return { text, ...(typeof html === 'string' ? { html } : {}) };
}

/** The caller's own frames; those of this file mean nothing to him. */
function traceOf(error) {
  if (!(error instanceof Error) && !(typeof error?.stack === 'string')) return `Uncaught ${inspect(error)}`;
  const lines = bounded(String(error.stack)).split('\n');
  const ours = lines.findIndex((line) => line.includes('node-kernel.mjs') || line.includes('node:vm'));
  return (ours > 0 ? lines.slice(0, ours) : lines).join('\n');
}

/** As `bounded` in error_text.py: the middle goes, where the message is long; the frames are at the end. */
function bounded(text) {
  if (text.length <= MAX_TEXT) return text;
  const cut = text.length - ERROR_HEAD - ERROR_TAIL;
  return `${text.slice(0, ERROR_HEAD)}\n[${cut} characters of this error were cut]\n${text.slice(-ERROR_TAIL)}`;
}

answer({ ready: true });
// Not a file stream: its pending read would hold `process.exit` up.
const input = createInterface({
  input: new Socket({ fd: requests, readable: true, writable: false }),
  crlfDelay: Infinity,
});
for await (const line of input) {
  try {
    answer(shown(await run(JSON.parse(line).code)));
  } catch (error) {
    let text;
    try {
      text = traceOf(error);
    } catch {
      text = 'An error that cannot be shown.';
    }
    answer({ error: text });
  }
}
closeSync(answers);
