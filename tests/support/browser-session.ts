import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import {
  StartBrowserSessionCommand,
  type StartBrowserSessionCommandInput,
  ThrottlingException,
} from '@aws-sdk/client-bedrock-agentcore';
import { SignatureV4 } from '@smithy/signature-v4';
import { WebSocket } from 'ws';
import { Sha256 } from '../../bench/support/signed-requests.ts';
import type { Clients } from './clients.ts';
import type { TestPlatform } from './platform-process.ts';

export const BUILT_IN = 'aws.browser.v1';

/** Chromium of the distribution, installed where it is missing: a test never passes for lack of a browser. */
export function needChromium(): void {
  if (existsSync('/usr/lib/chromium/chromium')) return;
  process.stderr.write(
    '\nbrowser tests: Chromium is missing; installing it with apt-get (this takes a minute or two)\n',
  );
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive' };
  const apt = (...args: string[]) => spawnSync('apt-get', args, { stdio: 'inherit', env });
  apt('update', '-q');
  const { status } = apt('install', '-y', '-q', '--no-install-recommends', 'chromium', 'fonts-liberation');
  if (status !== 0) throw new Error('Chromium could not be installed: run `apt-get install chromium` as root.');
}

/** A live session, and where programs drive it. */
export interface BrowserSession {
  id: string;
  automation: string;
}

/** Starts a session, waiting for the image where it is being made. */
export async function startBrowserSession(
  { data }: Clients,
  more: Partial<StartBrowserSessionCommandInput> = {},
): Promise<BrowserSession> {
  for (const until = performance.now() + 300_000; ; ) {
    try {
      const command = new StartBrowserSessionCommand({ browserIdentifier: BUILT_IN, ...more });
      const { sessionId, streams } = await data.send(command);
      const automation = streams?.automationStream?.streamEndpoint;
      if (sessionId === undefined || automation === undefined) throw new Error('no session id or stream');
      return { id: sessionId, automation };
    } catch (error) {
      const early = error instanceof ThrottlingException && error.message.includes('is being made');
      if (!early || performance.now() > until) throw error;
    }
  }
}

type Credentials = TestPlatform['credentials'];

function signing(platform: TestPlatform, address: string, credentials: Credentials) {
  const { host, hostname, port, pathname } = new URL(address);
  const region = platform.ready.region;
  const signer = new SignatureV4({ service: 'bedrock-agentcore', region, credentials, sha256: Sha256 });
  const request = { method: 'GET', protocol: 'http:', hostname, port: Number(port), path: pathname, headers: { host } };
  return { signer, request };
}

/** The headers of a handshake, signed by the official signer. */
export async function handshakeHeaders(
  platform: TestPlatform,
  address: string,
  credentials = platform.credentials,
): Promise<Record<string, string>> {
  const { signer, request } = signing(platform, address, credentials);
  return (await signer.sign(request)).headers;
}

/** The same address with the signature in its query. */
export async function presigned(platform: TestPlatform, address: string): Promise<string> {
  const { signer, request } = signing(platform, address, platform.credentials);
  const { query = {} } = await signer.presign(request, { expiresIn: 60 });
  return `${address}?${new URLSearchParams(query as Record<string, string>)}`;
}

/** The presigned address of a session's live view, as `generate_live_view_url` makes it. */
export async function liveViewUrl(
  platform: TestPlatform,
  { automation }: BrowserSession,
  options: { readOnly?: boolean; embed?: boolean; credentials?: Credentials } = {},
): Promise<string> {
  const address = automation.replace(/^ws/, 'http').replace(/automation$/, 'live-view');
  const { signer, request } = signing(platform, address, options.credentials ?? platform.credentials);
  const wish = { ...(options.readOnly ? { mode: 'read-only' } : {}), ...(options.embed ? { embed: '' } : {}) };
  const { query = {} } = await signer.presign({ ...request, query: wish }, { expiresIn: 300 });
  return `${address}?${new URLSearchParams(query as Record<string, string>)}`;
}

/** A client of the browser's protocol that adds nothing of its own. */
export class RawCdp {
  readonly socket: WebSocket;
  readonly closed: Promise<{ code: number; reason: string }>;
  readonly #waiting = new Map<number, (message: { result?: unknown; error?: unknown }) => void>();
  #last = 0;

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on('message', (text) => {
      const message = JSON.parse(String(text));
      this.#waiting.get(message.id)?.(message);
      this.#waiting.delete(message.id);
    });
    socket.on('error', () => undefined);
    this.closed = new Promise((resolve) => {
      socket.once('close', (code, reason) => resolve({ code, reason: String(reason) }));
    });
  }

  /** Rejects with the status of a handshake that is refused. */
  static async open(address: string, headers: Record<string, string>): Promise<RawCdp> {
    const socket = new WebSocket(address, { headers, maxPayload: 200 * 2 ** 20, perMessageDeflate: false });
    await new Promise<void>((resolve, reject) => {
      socket.once('open', resolve);
      socket.once('error', reject);
      socket.once('unexpected-response', (_request, response) => {
        reject(new Error(`status ${response.statusCode}`));
        response.destroy();
      });
    });
    return new RawCdp(socket);
  }

  // biome-ignore lint/suspicious/noExplicitAny: what the protocol answers is as various as its methods.
  async send(method: string, params: object = {}, sessionId?: string): Promise<any> {
    this.#last += 1;
    const id = this.#last;
    const answer = new Promise<{ result?: unknown; error?: unknown }>((resolve, reject) => {
      this.#waiting.set(id, resolve);
      void this.closed.then(({ code, reason }) => reject(new Error(`closed: ${code} ${reason}`)));
    });
    this.socket.send(JSON.stringify({ id, method, params, sessionId }));
    const { result, error } = await answer;
    if (error) throw new Error(JSON.stringify(error));
    return result;
  }

  /** The session of the protocol with the first page. */
  async page(): Promise<string> {
    const { targetInfos } = await this.send('Target.getTargets');
    const { targetId } = targetInfos.find((target: { type: string }) => target.type === 'page');
    return (await this.send('Target.attachToTarget', { targetId, flatten: true })).sessionId;
  }
}
