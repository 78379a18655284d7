import { acceptUpgrade, type SocketOpening, SplicedStream } from '../../../kernel/http/index.ts';
import type { Lease } from '../../../kernel/sessions/index.ts';
import { type AgentStream, endingOf } from './agent-stream.ts';
import type { RuntimeSocketsDeps } from './runtime-sockets.ts';

export type SpliceDeps = Pick<RuntimeSocketsDeps, 'clock' | 'streams' | 'limits'>;

/** Answers the client and joins it with the agent; the session's lease is held until they part. */
export function spliceAgent(
  { socket, head, key, opened }: Pick<SocketOpening, 'socket' | 'head' | 'key' | 'opened'>,
  agent: AgentStream,
  lease: Lease,
  answer: { lines: string[]; protocol: string | undefined },
  { streams, clock, limits }: SpliceDeps,
): void {
  const chosen = answer.protocol === undefined ? [] : [`Sec-WebSocket-Protocol: ${answer.protocol}`];
  if (!acceptUpgrade(socket, key, [...answer.lines, ...chosen])) {
    agent.socket.destroy();
    lease.release();
    return;
  }
  const stream = new SplicedStream({
    client: { socket, head },
    agent,
    ...streams,
    clock,
    explain: async () => (await endingOf(lease)) ?? 'the agent broke the connection',
  });
  opened(stream);
  const stop = clock.after(limits.streamTimeoutMs, () => stream.close(1001, 'the stream has reached its time limit'));
  void stream.closed.then(() => {
    stop();
    lease.release();
  });
}
