import { errors } from '@agentplatform/contract';
import { type DialedStream, dialUpgrade, type UpgradeDial, UpgradeRefused } from '../../../kernel/http/index.ts';
import { describeExit, exitedSoon, type Lease } from '../../../kernel/sessions/index.ts';

export type AgentDial = Omit<UpgradeDial, 'address'>;

/** A WebSocket of an agent, and the subprotocol that it chose. */
export type AgentStream = DialedStream;

/** Opens a WebSocket of the agent, not reading yet. Rejects with RuntimeClientError and the agent's own words when it refuses. */
export async function dialAgent(lease: Lease, port: number, dial: AgentDial): Promise<AgentStream> {
  try {
    return await dialUpgrade({ ...dial, address: lease.sandbox.address(port) });
  } catch (error) {
    if (dial.signal.aborted) throw error;
    if (error instanceof UpgradeRefused) throw refusal(error, pathOf(dial));
    const ended = await endingOf(lease);
    throw errors.runtimeClient(ended ?? `The agent could not be reached on ${pathOf(dial)}: ${messageOf(error)}.`, {
      cause: error,
    });
  }
}

function pathOf({ path }: AgentDial): string {
  return path.split('?', 1)[0] ?? path;
}

function refusal({ status, said }: UpgradeRefused, path: string): Error {
  return errors.runtimeClient(`The agent answered a WebSocket with status ${status}${said ? `: ${said}` : ''}.`, {
    ...(status < 500 ? { remedy: `Serve WebSockets at ${path}.` } : {}),
    members: { agentStatusCode: status },
  });
}

/** Why the agent is gone, in a sentence; undefined while it is there. */
export async function endingOf(lease: Lease): Promise<string | undefined> {
  const reason = lease.session.endReason;
  if (reason !== undefined && reason !== 'exited') return `The session ended (${reason}).`;
  return (await exitedSoon(lease.sandbox)) ? describeExit(lease.sandbox) : undefined;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
