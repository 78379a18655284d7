import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pythonPackages } from '../../scripts/test/python-packages.ts';
import { type OwnedChild, startChild } from '../support/child.ts';
import { wireOf } from '../support/signed-requests.ts';
import { MCP_HEADERS } from './bench-gateways.ts';
import type { Contestant } from './contestants.ts';
import { answering, callOf, freePort, type OrdersApi, ordersDocument, TOOL } from './orders-api.ts';

/** Where a peer is started. */
interface Place {
  /** For PYTHONPATH. */
  packages: string;
  /** An empty folder. */
  home: string;
  port: number;
  api: OrdersApi;
}

/** Another gateway from PyPI, in front of the same API. */
interface Peer {
  name: string;
  /** What pip installs, in this folder. */
  requirements: string;
  /** Starts it; resolves with the tool's name once that can be called. */
  open(place: Place): Promise<[OwnedChild, string]>;
}

export interface OpenPeers {
  contestants: Contestant[];
  /** By their names. */
  versions: Record<string, string>;
  /** In words, why the others are not there. */
  missing: string[];
  end(): Promise<void>;
}

const ROOT = join(import.meta.dirname, '../..');
const PEERS: readonly Peer[] = [
  { name: 'ContextForge', requirements: 'contextforge-requirements.txt', open: openContextForge },
  { name: 'FastMCP', requirements: 'fastmcp-requirements.txt', open: openFastMcp },
];

/** All that can be installed and started here. */
export async function openPeers(api: OrdersApi): Promise<OpenPeers> {
  const contestants: Contestant[] = [];
  const versions: Record<string, string> = {};
  const missing: string[] = [];
  const ends: (() => Promise<void>)[] = [];
  for (const peer of PEERS)
    try {
      contestants.push(await openPeer(peer, api, ends));
      versions[peer.name] = await versionOf(peer);
    } catch (error) {
      missing.push(`${peer.name} is not measured: ${String(error).slice(0, 300)}.`);
    }
  return {
    ...{ contestants, versions, missing },
    async end() {
      for (const one of ends.toReversed()) await one();
    },
  };
}

async function versionOf({ requirements }: Peer): Promise<string> {
  const text = await readFile(join(import.meta.dirname, requirements), 'utf8');
  return text.trim().split('==')[1] ?? 'unknown';
}

async function openPeer(peer: Peer, api: OrdersApi, ends: (() => Promise<void>)[]): Promise<Contestant> {
  const packages = await pythonPackages(ROOT, join(import.meta.dirname, peer.requirements));
  if (packages === undefined) throw new Error('pip could not install it');
  const home = await mkdtemp(join(tmpdir(), 'bench-gateway-'));
  ends.push(() => rm(home, { recursive: true, force: true }));
  const port = await freePort();
  const [child, tool] = await peer.open({ packages, home, port, api });
  ends.push(() => child.end());
  const request = wireOf('/mcp', { host: `127.0.0.1:${port}`, ...MCP_HEADERS }, JSON.stringify(callOf(tool)));
  const { name } = peer;
  return { name, kind: 'peer', port, requests: async () => [request], settled: async () => undefined };
}

async function openFastMcp({ packages, home, port, api }: Place): Promise<[OwnedChild, string]> {
  const document = join(home, 'document.json');
  await writeFile(document, ordersDocument(api.url));
  const script = [join(import.meta.dirname, 'fastmcp_peer.py'), document, api.url, String(port)];
  const child = await startChild('env', ['-C', home, `PYTHONPATH=${packages}`, 'python3', ...script]);
  await answering(port).catch((error: unknown) => child.end().then(() => Promise.reject(error)));
  return [child, TOOL];
}

/** Nothing that is not needed here costs it time: nobody has to log in, nothing is counted, all caches are in memory. */
const CONTEXT_FORGE = {
  AUTH_REQUIRED: 'false',
  MCP_REQUIRE_AUTH: 'false',
  ALLOW_UNAUTHENTICATED_ADMIN: 'true',
  RATE_LIMITING_ENABLED: 'false',
  DB_METRICS_RECORDING_ENABLED: 'false',
  CACHE_TYPE: 'memory',
  SSRF_ALLOW_LOCALHOST: 'true',
  LOG_LEVEL: 'CRITICAL',
  PYTHONWARNINGS: 'ignore',
  // It does not start without secrets that look like some; nothing is kept under them.
  JWT_SECRET_KEY: 'bench-9f31c07ab25e64d8-of-nobody-0123456789',
  AUTH_ENCRYPTION_SECRET: 'bench-4e82d61bc90f57a3-of-nobody-9876543210',
};

/** A tool of integration type REST, registered by its admin API; nobody has to log in. */
async function openContextForge({ packages, home, port, api }: Place): Promise<[OwnedChild, string]> {
  const settings = { ...CONTEXT_FORGE, PYTHONPATH: packages, DATABASE_URL: `sqlite:///${home}/gateway.db` };
  const environment = Object.entries(settings).map(([name, value]) => `${name}=${value}`);
  const command = ['python3', '-m', 'mcpgateway.cli', '--port', String(port), '--log-level', 'critical'];
  const child = await startChild('env', ['-C', home, ...environment, ...command]);
  try {
    // It makes its tables first.
    await answering(port, 120);
    const tool = {
      ...{ name: TOOL, url: `${api.url}/orders/{id}`, integration_type: 'REST', request_type: 'GET' },
      input_schema: { type: 'object', properties: { id: { type: 'string' } }, required: ['id'] },
    };
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify({ tool });
    const answer = await fetch(`http://127.0.0.1:${port}/tools`, { method: 'POST', headers, body });
    const { name }: { name?: string } = JSON.parse(await answer.text());
    if (!answer.ok || name === undefined) throw new Error(`the tool cannot be registered: ${answer.status}`);
    return [child, name];
  } catch (error) {
    await child.end();
    throw error;
  }
}
