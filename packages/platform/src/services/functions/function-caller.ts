import type { DocumentValue } from '@agentplatform/contract';
import type { Caller } from '../../kernel/service.ts';

/** One event for a function. */
export interface FunctionCall {
  /** `arn:aws:lambda:{region}:{account}:function:{name}`; a qualifier behind it may be `$LATEST`. */
  arn: string;
  /** In whose name: needs `lambda:InvokeFunction` on the function. */
  caller: Caller;
  /** The event; at most 6 MiB as JSON. */
  payload: DocumentValue;
  /** What the function finds as `context.client_context.custom` (Python) and `context.clientContext.custom` (Node.js). */
  clientContext?: { custom: Readonly<Record<string, DocumentValue>> };
  /** Aborts when nobody waits for the answer any more. The function is then ended. */
  signal: AbortSignal;
}

/** What came of an event: what the handler returned, or how it failed (it threw, ended its process, or ran out of time). */
export type FunctionAnswer =
  | { outcome: 'returned'; value: DocumentValue }
  | { outcome: 'failed'; errorType: string; errorMessage: string };

/** How other services call functions. */
export interface FunctionCaller {
  /**
   * Rejects with AccessDeniedException for a caller without the right, ResourceNotFoundException for no such function, ThrottlingException where too
   * many events are under way, and ValidationException for what is no ARN of a function or too large an event.
   */
  invoke(call: FunctionCall): Promise<FunctionAnswer>;
}
