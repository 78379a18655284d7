import type { WebSocket } from 'ws';
import { CliError } from '../cli-error.ts';
import { reasonOf } from '../explain.ts';
import { sign } from './admin.ts';
import type { Connection } from './connection.ts';

export interface ShellTarget {
  arn: string;
  sessionId: string;
  qualifier: string | undefined;
  signal: AbortSignal;
}

/** Opens an interactive shell in a session; rejects with a `CliError` that holds the platform's own words. */
export async function openShell(connection: Connection, target: ShellTarget): Promise<WebSocket> {
  const { WebSocket } = await import('ws');
  const url = new URL(`${connection.endpoint}/runtimes/${encodeURIComponent(target.arn)}/ws/shells`);
  if (target.qualifier) url.searchParams.set('qualifier', target.qualifier);
  const headers = await sign(connection, {
    method: 'GET',
    url,
    headers: { host: url.host, 'x-amzn-bedrock-agentcore-runtime-session-id': target.sessionId },
    body: undefined,
  });
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  const socket = new WebSocket(url, { headers, perMessageDeflate: false, maxPayload: 64 * 1024 });
  const onAbort = (): void => socket.terminate();
  target.signal.addEventListener('abort', onAbort, { once: true });
  socket.once('close', () => target.signal.removeEventListener('abort', onAbort));
  return new Promise((resolve, reject) => {
    socket.once('open', () => resolve(socket));
    socket.on('error', (cause) =>
      reject(
        new CliError('unreachable', `No shell could be opened at ${connection.endpoint}: ${cause.message}`, undefined, {
          cause,
        }),
      ),
    );
    socket.once('unexpected-response', (_request, response) => {
      let text = '';
      response.on('data', (part) => {
        if (text.length < 4096) text += part;
      });
      response.on('end', () => reject(refusal(response.statusCode ?? 0, text)));
    });
  });
}

function refusal(status: number, text: string): CliError {
  let message = text.slice(0, 500);
  try {
    message = String(Object(JSON.parse(text)).message ?? message);
  } catch {
    // Not JSON: the text itself is the best there is.
  }
  return new CliError(reasonOf(status), message || `The platform answered ${status}.`);
}
