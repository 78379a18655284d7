import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CliError } from '../cli-error.ts';
import type { Connection } from '../platform/connection.ts';
import { credentialsOf } from '../platform/credentials.ts';
import type { Project } from '../project/project.ts';
import { runTool } from './run-tool.ts';

type Say = (text: string) => void;

/** The first of docker and buildah that works here. Rejects with a `CliError` that names the choices. */
export async function findBuilder(): Promise<'docker' | 'buildah'> {
  for (const name of ['docker', 'buildah'] as const) {
    // `docker info` asks the engine; the client alone builds nothing.
    const works = await runTool(name, ['info']).then(
      () => true,
      () => false,
    );
    if (works) return name;
  }
  throw new CliError(
    'failure',
    'An image has to be built, and neither a running Docker engine nor buildah was found.',
    'Choose one: start Docker · install buildah (Debian: apt-get install buildah) · build elsewhere, push to a registry, and ' +
      'name it with "image" in agentcore.json · use language typescript or python, which need no builder.',
  );
}

/** Builds the project's Containerfile, pushes it into the platform's own registry and resolves with `platform/<name>@sha256:…`. */
export async function packageImage(
  project: Project,
  connection: Connection,
  say: Say,
  signal: AbortSignal,
): Promise<string> {
  const builder = await findBuilder();
  const folder = await mkdtemp(join(tmpdir(), 'agentcore-image-'));
  try {
    const registry = new URL(connection.endpoint);
    const repository = project.file.name.toLowerCase();
    const target = `${registry.host}/${repository}:latest`;
    await writeAuth(connection, registry.host, folder);
    const file = project.file.containerfile ?? 'Containerfile';
    const run = (args: string[]): Promise<string> =>
      runTool(builder, args, { cwd: project.folder, signal, onLine: say });
    const digest =
      builder === 'docker'
        ? await buildWithDocker(run, target, file, folder)
        : await buildWithBuildah(run, target, file, folder, registry.protocol === 'http:');
    return `platform/${repository}@${digest}`;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

type Run = (args: string[]) => Promise<string>;

async function buildWithDocker(run: Run, target: string, file: string, folder: string): Promise<string> {
  await run(['build', '--file', file, '--tag', target, '.']);
  const printed = await run(['--config', folder, 'push', target]);
  return digestIn(printed);
}

async function buildWithBuildah(
  run: Run,
  target: string,
  file: string,
  folder: string,
  plainHttp: boolean,
): Promise<string> {
  const digestFile = join(folder, 'digest');
  // With its layer cache, as Docker has it by default: what has not changed keeps its digest.
  await run(['build', '--layers', '--file', file, '--tag', target, '.']);
  const tls = plainHttp ? ['--tls-verify=false'] : [];
  await run(['push', ...tls, '--authfile', join(folder, 'config.json'), '--digestfile', digestFile, target]);
  return digestIn(await readFile(digestFile, 'utf8'));
}

function digestIn(text: string): string {
  const digest = /sha256:[0-9a-f]{64}/.exec(text)?.[0];
  if (digest) return digest;
  throw new CliError('failure', 'The image was pushed, but the builder did not say under which digest.');
}

// In a file of our own, not by `login`: the user's configuration stays as it is, and no secret is on a command line.
async function writeAuth(connection: Connection, host: string, folder: string): Promise<void> {
  const { accessKeyId, secretAccessKey } = await credentialsOf(connection)();
  const auth = Buffer.from(`${accessKeyId}:${secretAccessKey}`).toString('base64');
  await writeFile(join(folder, 'config.json'), JSON.stringify({ auths: { [host]: { auth } } }), { mode: 0o600 });
}
