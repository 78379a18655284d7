import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FastifyInstance } from 'fastify';
import { declarationOf } from '../../../packages/platform/src/kernel/http/routes/declared.ts';
import type { StartOptions } from '../platform-process.ts';

/** What a running platform serves beside the operations of the contract, as it declared it. */
export interface DeclaredRoute {
  /** The set of routes that it belongs to, or what hands requests through. */
  set: string;
  methods: string[];
  /** In the words of Fastify. */
  url: string;
  /** What requests are signed for, where they are. */
  service?: string;
}

/** Calls `tell` for each route that is declared in this process from now on; the function it gives ends that. */
export function hearRoutes(tell: (route: DeclaredRoute) => void): () => void {
  const channel = 'fastify.initialization';
  const onServer = (message: unknown): void => {
    const { fastify } = message as { fastify: FastifyInstance };
    fastify.addHook('onRoute', ({ method, url, handler }) => {
      const { set = '', credentials } = declarationOf(handler) ?? {};
      const service = credentials?.kind === 'signature' ? credentials.service : undefined;
      tell({ set, methods: [method].flat(), url, ...(service ? { service } : {}) });
    });
  };
  subscribe(channel, onServer);
  return () => unsubscribe(channel, onServer);
}

/** Has a platform tell its routes as it starts; `read` says them, on whichever of its listeners they are. */
export async function routesTold(): Promise<{
  options: Pick<StartOptions, 'nodeFlags' | 'env'>;
  read(): Promise<DeclaredRoute[]>;
}> {
  const directory = await mkdtemp(join(tmpdir(), 'rude-routes-'));
  const file = join(directory, 'routes.jsonl');
  return {
    options: {
      nodeFlags: ['--import', join(import.meta.dirname, 'tell-routes-child.ts')],
      env: { ROUTES_TOLD_TO: file },
    },
    async read() {
      const lines = (await readFile(file, 'utf8')).trim().split('\n');
      await rm(directory, { recursive: true });
      return [...new Set(lines)].map((line): DeclaredRoute => JSON.parse(line));
    },
  };
}

/** What is below a `*` that only its service can read; of others `BELOW_ANY`. */
const BELOW: Readonly<Record<string, readonly string[]>> = {
  '/v2/*': ['', 'rude/blobs/uploads/', 'rude/blobs/uploads/none', 'rude/manifests/latest', 'rude/tags/list'],
  '/s3/*': [
    'rude-bucket',
    'rude-bucket?list-type=2',
    'rude-bucket?delete',
    'rude-bucket/key',
    'rude-bucket/key?uploads',
    'rude-bucket/key?partNumber=1&uploadId=none',
  ],
};
const BELOW_ANY = ['rude', 'rude/key?x=1'];
/** Of what takes any method at all. */
const METHODS = new Set(['GET', 'HEAD', 'PUT', 'POST', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND']);

/** Paths with their query that ask for a route. */
export function pathsOf({ url }: DeclaredRoute): string[] {
  const filled = url.replace(/:[A-Za-z]+/g, 'rude');
  if (!filled.endsWith('*')) return [filled];
  return (BELOW[url] ?? BELOW_ANY).map((below) => `${filled.slice(0, -1)}${below}`);
}

export function methodsOf({ methods }: DeclaredRoute): string[] {
  return methods.filter((method) => METHODS.has(method));
}
