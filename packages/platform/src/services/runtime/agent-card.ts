import { type data, errors } from '@agentplatform/contract';
import { requestUpstream } from '../../kernel/http/index.ts';
import type { RequestContext } from '../../kernel/service.ts';
import type { Lease } from '../../kernel/sessions/index.ts';
import { agentHeaders } from './agent-headers.ts';
import type { AgentTokens } from './agent-tokens.ts';
import type { InvocationTarget } from './catalogue.ts';

const CARD_PATH = '/.well-known/agent-card.json';
const MAX_CARD_BYTES = 1_000_000;
/** A card is at hand; an agent that dawdles over it must not hold its session. */
const CARD_TIMEOUT_MS = 30_000;

/** GetAgentCard: the card that an A2A container serves of itself. Rejects with RuntimeClientError when it serves none. */
export async function agentCard(
  lease: Lease,
  target: InvocationTarget,
  ctx: RequestContext,
  tokens: AgentTokens,
): Promise<data.GetAgentCardResponse['agentCard']> {
  const { sessionId } = lease.session.row;
  ctx.span.handTo(lease.session);
  const answer = await requestUpstream(lease.connection, {
    method: 'GET',
    path: CARD_PATH,
    headersTimeout: CARD_TIMEOUT_MS,
    bodyTimeout: CARD_TIMEOUT_MS,
    headers: agentHeaders(target, ctx, { tokens, sessionId, requestId: ctx.requestId, trace: ctx.span.context }),
  });
  const text = await answer.body.head(MAX_CARD_BYTES);
  if (answer.status !== 200)
    throw errors.runtimeClient(`The agent answered ${answer.status} to GET ${CARD_PATH}: ${text.slice(0, 500)}`);
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw errors.runtimeClient(`The agent's card is not JSON of at most ${MAX_CARD_BYTES} bytes.`, { cause });
  }
}
