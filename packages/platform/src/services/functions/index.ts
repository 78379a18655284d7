import { errors } from '@agentplatform/contract';
import type { Logger } from 'pino';
import type { Clock } from '../../kernel/clock.ts';
import type { RouteSet } from '../../kernel/http/index.ts';
import type { Service } from '../../kernel/service.ts';
import type { LogArchive, Sessions } from '../../kernel/sessions/index.ts';
import type { Changes, Database } from '../../kernel/storage/index.ts';
import { answerOf } from './event-answer.ts';
import { FUNCTION_KIND, functionArn, functionName } from './function.ts';
import type { FunctionAnswer, FunctionCall, FunctionCaller } from './function-caller.ts';
import { FunctionImages, type FunctionImagesDeps } from './function-code.ts';
import { FunctionEvents, MAX_PAYLOAD_BYTES } from './function-events.ts';
import { functionLogRoutes } from './function-log-routes.ts';
import { type FunctionPlanDeps, functionPlan, mostMemoryMiB } from './function-plan.ts';
import { FunctionSandboxes } from './function-sandboxes.ts';
import { Functions } from './functions.ts';
import { lambdaRoutes } from './lambda-routes.ts';

export type { FunctionCaller } from './function-caller.ts';

export interface FunctionsServiceDeps extends FunctionImagesDeps, Omit<FunctionPlanDeps, 'stage'> {
  database: Database;
  changes: Changes;
  sessions: Sessions;
  archive: LogArchive;
  clock: Clock;
  /** Events of one function at once. */
  concurrency: number;
  defaultRoleArn: string;
  roleExists(arn: string): Promise<boolean>;
  newIdSuffix(): string;
  newRequestId(): string;
  log: Logger;
}

/** Functions: code that runs for each event, in sandboxes of its own, by the API of AWS Lambda. */
export function createFunctionsService(
  deps: FunctionsServiceDeps,
): Service<never, FunctionCaller> & { routes: readonly RouteSet[]; imagesInUse(): Promise<string[]> } {
  const images = new FunctionImages(deps);
  const functions = new Functions({ ...deps, images, mostMemoryMiB: mostMemoryMiB(deps.limits) });
  const sandboxes = new FunctionSandboxes({
    ...deps,
    planOf: (fn) => functionPlan(fn, { ...deps, stage: (wanted, signal) => images.stage(wanted, signal) }),
  });
  const events = new FunctionEvents({ ...deps, sandboxes });
  const settle = async (arn: string): Promise<void> => sandboxes.retain(arn, await functions.find(arn));
  // In the background: the feed waits for nobody.
  deps.changes.subscribe([FUNCTION_KIND], async (changed) => {
    const arns = changed === 'all' ? sandboxes.known() : changed.map(({ key }) => key);
    for (const arn of new Set(arns))
      settle(arn).catch((error: unknown) =>
        deps.log.warn({ err: error, arn }, 'a function that changed was not looked at'),
      );
  });
  return {
    operations: {},
    routes: [lambdaRoutes({ ...deps, functions, events }), functionLogRoutes({ ...deps, functions })],
    port: { invoke: (call) => invoke(call, { ...deps, functions, events }) },
    imagesInUse: () => functions.imageDigests(),
    start: async () => undefined,
    stop: async () => undefined,
  };
}

/** Of a client context, in base64: it travels in a header. */
const MAX_CONTEXT_CHARS = 48 * 1024;

async function invoke(
  { arn, caller, payload, clientContext, signal }: FunctionCall,
  {
    functions,
    events,
    region,
    newRequestId,
  }: Pick<FunctionsServiceDeps, 'region' | 'newRequestId'> & {
    functions: Functions;
    events: FunctionEvents;
  },
): Promise<FunctionAnswer> {
  const home = { region, accountId: caller.accountId };
  const name = functionName(arn, home);
  await caller.require('lambda:InvokeFunction', functionArn(home, name));
  const event = Buffer.from(JSON.stringify(payload));
  if (event.length > MAX_PAYLOAD_BYTES) throw errors.validation(`The event is larger than ${MAX_PAYLOAD_BYTES} bytes.`);
  const context = clientContext && Buffer.from(JSON.stringify(clientContext)).toString('base64');
  if (context !== undefined && context.length > MAX_CONTEXT_CHARS)
    throw errors.validation('The context of the event is too large.');
  const fn = await functions.get(name, caller.accountId);
  const result = await events.handle(fn, { payload: event, clientContext: context, requestId: newRequestId(), signal });
  return answerOf(result);
}
