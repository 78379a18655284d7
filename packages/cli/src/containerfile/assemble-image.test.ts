import { createHash } from 'node:crypto';
import { chmod, mkdir, mkdtemp, readFile, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { extract } from 'tar-stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { assembleLayers } from './assemble-image.ts';
import { configDocument, manifestDocument } from './image-document.ts';
import { readInstructions } from './instructions.ts';
import { checkInstructions, planImage, readFrom } from './plan-image.ts';

let root: string;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'agentcore-assemble-'));
});
afterAll(() => rm(root, { recursive: true, force: true }));

const base = {
  name: 'base',
  layers: [{ mediaType: 'application/vnd.oci.image.layer.v1.tar', digest: `sha256:${'a'.repeat(64)}`, size: 1 }],
  diffIds: [`sha256:${'a'.repeat(64)}`],
  platform: { os: 'linux', architecture: 'amd64' },
  settings: { WorkingDir: '/', Env: ['PATH=/bin'] },
};

async function folderOf(files: Record<string, string>): Promise<string> {
  const folder = await mkdtemp(join(root, 'context-'));
  for (const [name, text] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), text);
  }
  return folder;
}

/** The image of a folder: its layers, and the digest that its manifest has. */
async function assemble(folder: string, text: string) {
  const instructions = readInstructions(text);
  checkInstructions(instructions);
  const { from, rest } = readFrom(instructions);
  const plan = planImage(rest, base.settings, from.globals, { root: 0 });
  const work = await mkdtemp(join(root, 'work-'));
  const signal = AbortSignal.timeout(20_000);
  const { layers, settings } = await assembleLayers(
    plan,
    base,
    { folder, containerfile: 'Containerfile' },
    work,
    signal,
  );
  const config = configDocument(base, settings, layers);
  const manifest = manifestDocument({ digest: digestOf(config), size: config.length }, [...base.layers, ...layers]);
  return {
    digest: digestOf(manifest),
    layers: layers.map(({ digest }) => digest),
    paths: layers.map(({ path }) => path),
  };
}

function digestOf(bytes: Uint8Array): string {
  return `sha256:${createHash('sha256').update(bytes).digest('hex')}`;
}

/** `path` → what a tar has there, in its order. */
async function listed(path: string): Promise<string[]> {
  const untar = extract();
  untar.end(await readFile(path));
  const lines: string[] = [];
  for await (const entry of untar) {
    const { name, type, mode, uid, gid, linkname } = entry.header;
    lines.push(
      `${type} ${(mode & 0o7777).toString(8)} ${uid}:${gid} ${name}${type === 'symlink' ? ` -> ${linkname}` : ''}`,
    );
    entry.resume();
  }
  return lines;
}

const project = {
  'server.mjs': 'listen()',
  'lib/a.js': 'a',
  'lib/deep/b.js': 'b',
  'run.sh': '#!/bin/sh',
  '.env': 'SECRET=1',
};
const containerfile =
  'FROM base\nWORKDIR /app\nCOPY server.mjs .\nCOPY lib lib\nCOPY run.sh /usr/local/bin\nCMD ["node"]\n';

describe('an image that is made without a builder', () => {
  it('has the same digest whenever, wherever and by whomever it is made', async () => {
    const one = await folderOf(project);
    const other = await folderOf(Object.fromEntries(Object.entries(project).reverse()));
    for (const name of Object.keys(project)) {
      await utimes(join(other, name), new Date(0), new Date(86_400_000));
      await chmod(join(other, name), 0o600);
    }
    await chmod(join(other, 'lib'), 0o700);
    const first = await assemble(one, containerfile);
    expect(await assemble(other, containerfile)).toMatchObject({ digest: first.digest });
    // What is no part of it changes nothing; a word in the file that means the same does not either.
    await writeFile(join(one, '.env'), 'SECRET=2');
    expect(await assemble(one, `# a comment\n${containerfile}`)).toMatchObject({ digest: first.digest });
    await chmod(join(one, 'run.sh'), 0o755);
    expect((await assemble(one, containerfile)).digest).not.toBe(first.digest);
  });

  it('of which a file has changed differs in that file’s layer alone', async () => {
    const folder = await folderOf(project);
    const before = await assemble(folder, containerfile);
    await writeFile(join(folder, 'lib/deep/b.js'), 'other');
    const after = await assemble(folder, containerfile);
    expect(before.layers).toHaveLength(3);
    expect(after.layers.map((digest, i) => digest === before.layers[i])).toEqual([true, false, true]);
    expect(after.digest).not.toBe(before.digest);
  });

  it('holds files as root’s, without the folders above them; links as links; and of modes only whether one can be run', async () => {
    const folder = await folderOf(project);
    await chmod(join(folder, 'run.sh'), 0o4711);
    await symlink('../../etc/passwd', join(folder, 'lib/link'));
    const { paths } = await assemble(folder, `${containerfile}COPY --chown=1000:7 --chmod=700 lib/deep /data/\n`);
    expect(await listed(paths[0] ?? '')).toEqual(['file 644 0:0 app/server.mjs']);
    expect(await listed(paths[1] ?? '')).toEqual([
      'file 644 0:0 app/lib/a.js',
      'directory 755 0:0 app/lib/deep/',
      'file 644 0:0 app/lib/deep/b.js',
      'symlink 777 0:0 app/lib/link -> ../../etc/passwd',
    ]);
    expect(await listed(paths[2] ?? '')).toEqual(['file 755 0:0 usr/local/bin/run.sh']);
    expect(await listed(paths[3] ?? '')).toEqual(['file 700 1000:7 data/b.js']);
  });

  it('takes patterns, and never what the ignore file leaves out', async () => {
    const folder = await folderOf({
      ...project,
      '.dockerignore': '.env\n.dockerignore\nlib/deep\n!lib/deep/b.js\n*.sh\n',
    });
    await mkdir(join(folder, '.agentcore'));
    await writeFile(join(folder, '.agentcore/state.json'), '{}');
    const { paths } = await assemble(folder, 'FROM base\nCOPY . /all\nCOPY *.mjs l?b /some/\n');
    expect(await listed(paths[0] ?? '')).toEqual([
      'directory 755 0:0 all/lib/',
      'file 644 0:0 all/lib/a.js',
      'file 644 0:0 all/lib/deep/b.js',
      'file 644 0:0 all/server.mjs',
    ]);
    expect(await listed(paths[1] ?? '')).toEqual([
      'file 644 0:0 some/a.js',
      'file 644 0:0 some/deep/b.js',
      'file 644 0:0 some/server.mjs',
    ]);
    await expect(assemble(folder, 'FROM base\nCOPY .env /x\n')).rejects.toThrow(/^Line 2 .*\.env is not among/);
    await expect(assemble(folder, 'FROM base\nCOPY *.sh /x\n')).rejects.toThrow(/^Line 2 /);
  });

  it('holds nothing from outside of its folder, whatever leads there', async () => {
    const outside = await folderOf({ 'secret.txt': 'secret', 'inner/more.txt': 'secret' });
    const folder = await folderOf({ ...project, 'real/inside.txt': 'mine' });
    await symlink(join(outside, 'secret.txt'), join(folder, 'file-link'));
    await symlink(outside, join(folder, 'folder-link'));
    await symlink('real', join(folder, 'good-link'));
    // A link that stays inside is followed, so the ones that do not are refused for where they lead.
    expect(await listed((await assemble(folder, 'FROM base\nCOPY good-link /x\n')).paths[0] ?? '')).toEqual([
      'file 644 0:0 x/inside.txt',
    ]);
    for (const source of [
      'file-link',
      'folder-link',
      'folder-link/secret.txt',
      'folder-link/inner',
      'folder-l*',
      'folder-link/*',
    ])
      await expect(assemble(folder, `FROM base\nCOPY ${source} /x\n`)).rejects.toThrow(
        /^Line 2 .*is outside this folder/,
      );
    // As with any builder, `..` ends at the folder.
    await expect(assemble(folder, `FROM base\nCOPY ../../../../../../..${outside}/secret.txt /x\n`)).rejects.toThrow(
      /not among/,
    );
    const { paths } = await assemble(folder, 'FROM base\nCOPY . /all\n');
    const all = await listed(paths[0] ?? '');
    expect(all).toContain(`symlink 777 0:0 all/folder-link -> ${outside}`);
    expect(all.filter((line) => /^file .*(secret|more)/.test(line))).toEqual([]);
    expect(await readFile(paths[0] ?? '', 'latin1')).not.toContain('secret\0');
  });
});
