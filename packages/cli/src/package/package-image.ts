import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CliError } from '../cli-error.ts';
import { assembleImage, type PackagedImage } from '../containerfile/assemble-image.ts';
import type { Connection } from '../platform/connection.ts';
import { credentialsOf } from '../platform/credentials.ts';
import type { Project } from '../project/project.ts';
import { runTool } from './run-tool.ts';

type Say = (text: string) => void;

const WITHOUT_BUILDER =
  'A Containerfile without RUN needs no builder. It needs no registry either if FROM names node or python: agentcore deploy --builder none';

/** The programs that build a Containerfile: Docker, Buildah, or `none`: this program itself, which cannot run commands. */
export const builders = ['docker', 'buildah', 'none'] as const;
export type Builder = (typeof builders)[number];

/** How to make each program work as a builder. */
const remedies = {
  docker: {
    absent: 'Install and start Docker',
    silent: 'Start Docker (systemctl start docker), or add yourself to the group docker if it runs',
  },
  buildah: { absent: 'Install it (apt-get install buildah)', silent: 'See what "buildah info" says' },
} as const;

/** The first of docker and buildah that works here; `none` when neither does. */
async function findBuilder(signal: AbortSignal): Promise<Builder> {
  for (const name of ['docker', 'buildah'] as const) if ((await notWorking(name, signal)) === undefined) return name;
  return 'none';
}

/** Why a builder cannot be used here; undefined if it can. `docker info` asks the engine, because the client without an engine cannot build. */
async function notWorking(builder: keyof typeof remedies, signal: AbortSignal): Promise<CliError | undefined> {
  try {
    await runTool(builder, ['info'], { signal });
    return undefined;
  } catch (error) {
    if (signal.aborted) throw error;
    const absent = error instanceof Error && 'code' in error && error.code === 'ENOENT';
    const { [absent ? 'absent' : 'silent']: remedy } = remedies[builder];
    const engine = builder === 'docker' ? 'Docker’s engine does not answer' : 'buildah does not work here';
    const why = absent ? `there is no ${builder} on this machine` : engine;
    const others = builders.filter((name) => name !== builder).join(' or ');
    return new CliError(
      'failure',
      `The image cannot be built with ${builder}: ${why}.`,
      `${remedy}, or build with another: agentcore deploy --builder ${others} ("none" builds everything except RUN).`,
      { cause: error },
    );
  }
}

/**
 * Builds the project's Containerfile, pushes it into the platform's own registry and resolves with its name there.
 * `wanted` is the builder; by default the first one that works here.
 */
export async function packageImage(
  project: Project,
  connection: Connection,
  wanted: Builder | undefined,
  say: Say,
  signal: AbortSignal,
): Promise<PackagedImage> {
  const builder = wanted ?? (await findBuilder(signal));
  if (builder === 'none') return assembleImage(project, connection, say, signal);
  const trouble = wanted && (await notWorking(builder, signal));
  if (trouble) throw trouble;
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
    return { containerUri: `platform/${repository}@${digest}`, note: undefined };
  } catch (error) {
    if (!(error instanceof CliError) || signal.aborted) throw error;
    throw new CliError(error.reason, error.message, WITHOUT_BUILDER, { cause: error });
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
  // With the layer cache, as Docker does by default. So unchanged layers keep their digests.
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

// In a file of our own instead of `login`. So the user's configuration does not change, and no secret is on a command line.
async function writeAuth(connection: Connection, host: string, folder: string): Promise<void> {
  const { accessKeyId, secretAccessKey } = await credentialsOf(connection)();
  const auth = Buffer.from(`${accessKeyId}:${secretAccessKey}`).toString('base64');
  await writeFile(join(folder, 'config.json'), JSON.stringify({ auths: { [host]: { auth } } }), { mode: 0o600 });
}
