import { spawn } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { compileParser } from './baseline-parser.ts';
import { ensurePgliteDirectory } from './pglite-snapshot.ts';
import { EMBEDDED_CACHE } from './testing/databases.ts';

let directory: string;
beforeAll(async () => {
  directory = join(await mkdtemp(join(tmpdir(), 'agentplatform-parser-')), 'database');
  await ensurePgliteDirectory(directory, { cacheDir: EMBEDDED_CACHE, migrations: [] });
});
afterAll(() => rm(dirname(directory), { recursive: true, force: true }));

/** What opens the database, with our parser and without. */
const OURS = `(await import(${JSON.stringify(join(import.meta.dirname, 'pglite-open.ts'))})).openPglite`;
const PGLITE = createRequire(import.meta.url).resolve('@electric-sql/pglite');
const THEIRS = `(await import(${JSON.stringify(PGLITE)})).PGlite.create`;

/** Lets V8 tell, while one long statement is parsed, whether it optimizes the parser: at once and not in the background. */
async function optimizesParser(open: string): Promise<boolean> {
  const program = `
    const { instantiate } = WebAssembly;
    WebAssembly.instantiate = async (...args) => {
      const made = await instantiate(...args);
      const { raw_parser: parser } = (made.instance ?? made).exports;
      if (parser) console.log('the parser is function #' + parser.name);
      return made;
    };
    const database = await (${open})(${JSON.stringify(directory)});
    await database.exec('SELECT ' + '1+'.repeat(2000) + '1');
    await database.close();`;
  const flags = ['--trace-wasm-compilation-times', '--wasm-sync-tier-up', '--wasm-tiering-budget=500000'];
  const child = spawn(process.execPath, [...flags, '--input-type=module', '--eval', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  child.once('error', (error) => child.stdout.destroy(error));
  const said = await text(child.stdout);
  const index = /the parser is function (#\d+)/.exec(said)?.[1] ?? expect.fail(said);
  expect(said).toContain(' using TurboFan');
  return said.includes(`${index} using TurboFan`);
}

it('leaves the parser as it is first compiled, where V8 by itself optimizes it', async () => {
  expect(await optimizesParser(THEIRS)).toBe(true);
  expect(await optimizesParser(OURS)).toBe(false);
});

it('changes nothing in the memory of the database', async () => {
  const { WebAssembly: wasm } = globalThis as unknown as { WebAssembly: Wasm };
  const file = join(dirname(PGLITE), 'pglite.wasm');
  const module = new wasm.Module(await readFile(file));
  const memory = new wasm.Memory({ initial: 2048, maximum: 32768 });
  const imports: Record<string, Record<string, unknown>> = {};
  for (const { module: from, name, kind } of wasm.Module.imports(module)) {
    imports[from] ??= {};
    imports[from][name] = kind === 'memory' ? memory : () => expect.fail(`${name} was called`);
  }
  const instance = new wasm.Instance(module, imports);
  const stack = (): unknown => instance.exports.emscripten_stack_get_current?.();
  const before = { stack: stack(), memory: Buffer.from(memory.buffer.slice(0)) };
  compileParser(instance);
  expect(stack()).toBe(before.stack);
  expect(before.memory.equals(Buffer.from(memory.buffer))).toBe(true);
});

it('says so when PGlite has no such parser any more', () => {
  expect(() => compileParser({ exports: {} })).toThrow('this version of PGlite exports no raw_parser');
});

/** What of WebAssembly's interface is used here; the types of Node leave it out. */
interface Wasm {
  Module: {
    new (bytes: Uint8Array): object;
    imports(module: object): { module: string; name: string; kind: string }[];
  };
  Memory: new (limits: { initial: number; maximum: number }) => { buffer: ArrayBuffer };
  Instance: new (module: object, imports: object) => { exports: Record<string, (() => unknown) | undefined> };
}
