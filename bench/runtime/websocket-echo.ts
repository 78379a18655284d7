import { once } from 'node:events';
import { WebSocket } from 'ws';
import { StreamSigner } from '../../tests/support/websocket.ts';
import { median } from '../support/statistics.ts';
import type { BenchPlatform, LiveSession } from './bench-platform.ts';

export interface WebSocketEcho {
  /** Milliseconds there and back of a message of 1 KB on one connection, medians. */
  direct: number;
  platform: number;
}

const TURN = 50;

/** One message after the other to the agent's own WebSocket and through the platform, in turns. */
export async function webSocketEcho(
  bench: BenchPlatform,
  session: LiveSession,
  rounds: number,
): Promise<WebSocketEcho> {
  const signer = new StreamSigner(bench.platform);
  const through = new WebSocket(await signer.presigned({ arn: bench.arn }, session.sessionId));
  const direct = new WebSocket(`ws://${session.address.host}:${session.address.port}/ws`);
  const lanes = [
    { socket: direct, taken: [] as number[] },
    { socket: through, taken: [] as number[] },
  ] as const;
  try {
    await Promise.all(lanes.map(({ socket }) => once(socket, 'open', { signal: AbortSignal.timeout(10_000) })));
    const message = Buffer.alloc(1024, 'x');
    for (let round = -4 * TURN; round < rounds; round += TURN) {
      for (const { socket, taken } of lanes) {
        for (let i = 0; i < TURN; i += 1) {
          const begin = performance.now();
          const answered = once(socket, 'message', { signal: AbortSignal.timeout(10_000) });
          socket.send(message);
          await answered;
          if (round >= 0) taken.push(performance.now() - begin);
        }
      }
    }
    const [own, platform] = lanes;
    return { direct: median(own.taken), platform: median(platform.taken) };
  } finally {
    for (const { socket } of lanes) socket.terminate();
  }
}
