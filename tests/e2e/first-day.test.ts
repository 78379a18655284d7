import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  type ScriptedModel,
  startScriptedModel,
} from '../../packages/platform/src/kernel/models/testing/scripted-model.ts';
import { PLATFORM_CACHE } from '../../scripts/test/fetched-once.ts';
import { embeddingModel } from '../support/embedding-model.ts';
import { testPython } from '../support/python.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const PAGE = join(ROOT, 'docs/first-day.md');
const CONSOLE = /^```console\n([\s\S]*?)^```$/gm;
/** What the page starts the platform with. */
const START = /^npm start -- (--models-url) \S+ (.+)$/m;
const python = await testPython();
const meaning = await embeddingModel();
const able = process.getuid?.() === 0 && python && meaning;

let model: ScriptedModel;
let folder: string;
let end: () => Promise<void>;
beforeAll(async () => {
  if (!able) return;
  await mkdir(join(ROOT, '.cache'), { recursive: true });
  // In the checkout, where npx finds the command.
  folder = await mkdtemp(join(ROOT, '.cache/first-day-'));
  await symlink(join(ROOT, 'examples'), join(folder, 'examples'));
  model = await startScriptedModel('openai');
});
afterAll(async () => {
  await end?.();
  await model?.close();
  if (folder) await rm(folder, { recursive: true, force: true });
});

/** `npm start` with the options of the page. Resolves when it serves. */
async function start(page: string): Promise<void> {
  const [, option = '', name = ''] = START.exec(page) ?? [];
  const own = ['--port', '0', '--data', join(folder, '.agentplatform'), '--cache', PLATFORM_CACHE];
  const words = ['start', '--silent', '--', ...own, option, model.url, ...name.split(' ')];
  const child = spawn('npm', words, { cwd: ROOT });
  let said = '';
  const serves = new Promise<void>((done, failed) => {
    const see = (chunk: unknown): void => {
      said += String(chunk);
      if (said.includes('until Ctrl-C')) done();
    };
    child.stdout.on('data', see);
    child.stderr.on('data', see);
    child.once('close', () => failed(new Error(`npm start ended:\n${said}`)));
  });
  end = async () => {
    if (child.exitCode !== null) return;
    const closed = once(child, 'close');
    child.kill('SIGINT');
    await closed;
  };
  await serves;
}

/** The commands of the page in one shell, each with what it wrote to stdout. Rejects at the first one that fails. */
async function follow(commands: string[]): Promise<string[]> {
  const script = commands.flatMap((command, at) => [`exec > '${folder}/said-${at}'`, command]).join('\n');
  const env: NodeJS.ProcessEnv = { ...process.env, ...python?.env };
  for (const name of Object.keys(env)) if (/^AWS_|^npm_/.test(name)) delete env[name];
  await promisify(execFile)('bash', ['-euc', script], { cwd: folder, env, timeout: 1_200_000 });
  return Promise.all(commands.map((_, at) => readFile(join(folder, `said-${at}`), 'utf8')));
}

/** Ids that are others each time, as the page has them. */
const steady = (text: string): string =>
  text.replace(/\b[0-9]{12}\b/g, '123456789012').replace(/\b(first_day|notes)-[A-Za-z0-9]{10}\b/g, '$1-a1B2c3D4e5');

describe.skipIf(!able)('the first day, as docs/first-day.md tells it', () => {
  it('goes from npm start to an answer, a memory that finds by meaning, and a plot', async () => {
    const page = await readFile(PAGE, 'utf8');
    const fact = { fact: 'Jane is allergic to peanuts.', messages: [1] };
    model.script = [{ text: 'A spider has eight legs.' }, { text: JSON.stringify([fact]) }];
    await start(page);
    const commands = [...page.matchAll(CONSOLE)].flatMap(([, block = '']) =>
      [...block.matchAll(/^\$ (.+)$/gm)].map(([, command = '']) => command),
    );
    const said = await follow(commands);
    const picture = await readFile(join(folder, 'my-agent/picture-1.png'));
    expect(picture.subarray(1, 4).toString()).toBe('PNG');
    let at = 0;
    const shown = page.replace(CONSOLE, (_, block: string) => {
      const lines = [...block.matchAll(/^\$ .+$/gm)].map(([line]) => `${line}\n${steady(said[at++] ?? '')}`);
      return `\`\`\`console\n${lines.join('')}\`\`\``;
    });
    // `npm test -- first-day -u` writes what was printed into the page.
    await expect(shown).toMatchFileSnapshot(PAGE);
    const [asked] = model.asked;
    expect(asked?.body).toMatchObject({ model: 'llama3.2', stream: true });
  }, 1_500_000);
});
