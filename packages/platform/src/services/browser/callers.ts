import { ServiceError } from '@agentplatform/contract';
import { ownerOf } from '../../kernel/auth/index.ts';
import type { RequestContext } from '../../kernel/service.ts';
import type { Browser } from './browser.ts';
import type { Caller } from './browser-sessions.ts';

/** To list, see, use and stop sessions that others have started; the right to the operation itself comes first. */
const ADMINISTER = 'agentplatform:AdministerBrowserSessions';

export const callerOf = ({ arn }: Browser, ctx: RequestContext): Caller => ({
  accountId: ctx.accountId,
  owner: ownerOf(ctx.principal),
  administers: () => mayAdminister((action, resource) => ctx.require(action, resource), arn),
});

/** Whether the caller may use what others have started. */
export async function mayAdminister(
  require: (action: string, resource: string) => Promise<void>,
  resource: string,
): Promise<boolean> {
  try {
    await require(ADMINISTER, resource);
    return true;
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'AccessDeniedException') return false;
    throw error;
  }
}
