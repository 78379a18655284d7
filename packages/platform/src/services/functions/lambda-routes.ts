import { type DocumentValue, errors, holdsTooMuch } from '@agentplatform/contract';
import type { Logger } from 'pino';
import { isDeeperThan } from '../../kernel/depth.ts';
import { closeSignal, type KnownCall, type KnownRoute, type RouteSet } from '../../kernel/http/index.ts';
import { functionArn, functionName, LATEST, type PlatformFunction } from './function.ts';
import { MAX_CALL_BYTES } from './function-code.ts';
import { type FunctionEvents, MAX_PAYLOAD_BYTES } from './function-events.ts';
import { type Members, members, text } from './function-fields.ts';
import { architecture, type FunctionCallerContext, type Functions } from './functions.ts';
import { writeLambdaError } from './lambda-errors.ts';

export interface LambdaRoutesDeps {
  functions: Functions;
  events: FunctionEvents;
  region: string;
  log: Logger;
}

const ROOT = '/2015-03-31/functions';
const DEFAULT_PAGE = 50;
/** Levels of a call; those that are served have three. */
const MOST_DEPTH = 32;
/** Of a function's client context, in base64, as the original has it. */
const MAX_CONTEXT_CHARS = 3583;

/** Of one request: the account's function that it names, and who asks. */
interface Asked {
  call: KnownCall;
  name: string;
  caller: FunctionCallerContext;
}

/** The REST API of AWS Lambda as far as it is served: functions with one version each, code as zips, events that are waited for. */
export function lambdaRoutes({ functions, events, region, log }: LambdaRoutesDeps): RouteSet {
  const nameOf = ({ params, query, accountId }: KnownCall): string =>
    functionName(params.name ?? '', { region, accountId }, query.get('Qualifier') ?? undefined);
  const route = (
    method: KnownRoute['method'],
    path: string,
    action: string,
    answer: (asked: Asked) => unknown,
    { named = nameOf, ...rules }: { named?: (call: KnownCall) => string } & Pick<KnownRoute, 'body' | 'stores'> = {},
  ): KnownRoute => ({
    method,
    url: `${ROOT}${path}`,
    credentials: { kind: 'signature', service: 'lambda' },
    action: `lambda:${action}`,
    ...rules,
    ask(call) {
      const { accountId } = call;
      const name = named(call);
      const resource = name === '*' ? '*' : functionArn({ region, accountId }, name);
      const caller = { accountId, signal: closeSignal(call.reply.raw), require: requirement(call) };
      return { rights: { action: `lambda:${action}`, resource }, answer: () => answer({ call, name, caller }) };
    },
  });
  const created = (call: KnownCall): string =>
    functionName(text('FunctionName', bodyOf(call).FunctionName, 256) ?? '', { region, accountId: call.accountId });
  const list = route('GET', '', 'ListFunctions', (asked) => listed(asked, functions), { named: () => '*' });
  return {
    name: 'lambda',
    listeners: ['everybody', 'sandboxes'],
    headers: ({ requestId }) => ({ 'x-amzn-requestid': requestId }),
    writeError: (error, call) => writeLambdaError(error, call, log),
    routes: [
      list,
      // boto3 asks with the slash, or did.
      { ...list, url: `${ROOT}/` },
      route(
        'POST',
        '',
        'CreateFunction',
        async ({ call, name, caller }) => {
          const made = await functions.create(name, bodyOf(call), caller);
          return call.reply.code(201).send(view(made));
        },
        { body: MAX_CALL_BYTES, named: created, stores: true },
      ),
      route('GET', '/:name', 'GetFunction', async ({ name, caller }) => ({
        Configuration: view(await functions.get(name, caller.accountId)),
        Code: { RepositoryType: 'S3' },
      })),
      route('DELETE', '/:name', 'DeleteFunction', ({ name, caller }) => functions.delete(name, caller.accountId)),
      route('GET', '/:name/configuration', 'GetFunctionConfiguration', async ({ name, caller }) =>
        view(await functions.get(name, caller.accountId)),
      ),
      route(
        'PUT',
        '/:name/configuration',
        'UpdateFunctionConfiguration',
        async ({ call, name, caller }) => view(await functions.updateSettings(name, bodyOf(call), caller)),
        { stores: true },
      ),
      route(
        'PUT',
        '/:name/code',
        'UpdateFunctionCode',
        async ({ call, name, caller }) => view(await functions.updateCode(name, bodyOf(call), caller)),
        { body: MAX_CALL_BYTES, stores: true },
      ),
      route(
        'POST',
        '/:name/invocations',
        'InvokeFunction',
        async (asked) => invoked(asked, await functions.get(asked.name, asked.caller.accountId), events),
        { body: MAX_PAYLOAD_BYTES },
      ),
    ],
  };
}

function requirement(call: KnownCall): FunctionCallerContext['require'] {
  return async (action, resource) => call.require(action, resource);
}

function bodyOf({ body }: KnownCall): Members {
  if (holdsTooMuch(body)) throw errors.validation('The body has too many values.');
  let value: DocumentValue;
  try {
    value = JSON.parse(body.toString('utf8'));
  } catch (error) {
    throw errors.validation('The body is not JSON.', { cause: error });
  }
  // What walks through it would run out of stack.
  if (isDeeperThan(value, MOST_DEPTH)) throw errors.validation(`The body is nested deeper than ${MOST_DEPTH} levels.`);
  return members('The body', value);
}

async function listed({ call: { query }, caller }: Asked, functions: Functions) {
  const [version, marker, most] = ['FunctionVersion', 'Marker', 'MaxItems'].map((name) => query.get(name) ?? undefined);
  if (version !== undefined) throw errors.invalidField('FunctionVersion', 'is not offered: there is one version');
  const limit = most === undefined ? DEFAULT_PAGE : Number(most);
  if (!Number.isInteger(limit) || limit < 1 || limit > 10_000)
    throw errors.invalidField('MaxItems', 'must be from 1 to 10000');
  const page = { limit: Math.min(limit, DEFAULT_PAGE), ...(marker === undefined ? {} : { after: marker }) };
  const { items, next } = await functions.list(caller.accountId, page);
  return { Functions: items.map(view), ...(next !== undefined && { NextMarker: next }) };
}

async function invoked({ call, caller: { signal } }: Asked, fn: PlatformFunction, events: FunctionEvents) {
  const { request, reply, requestId, body } = call;
  const header = (name: string): string | undefined => {
    const value = request.headers[name];
    return typeof value === 'string' && value !== '' ? value : undefined;
  };
  const type = header('x-amz-invocation-type') ?? 'RequestResponse';
  if (type === 'DryRun') return reply.code(204).send();
  if (type !== 'RequestResponse')
    throw errors.invalidField('InvocationType', 'must be RequestResponse or DryRun: events are not queued');
  if ((header('x-amz-log-type') ?? 'None') !== 'None')
    throw errors.invalidField(
      'LogType',
      'must be None: the owner of a function reads its log (agentcore function logs)',
    );
  for (const name of ['DurableExecutionName', 'TenantId'])
    if (header(name === 'TenantId' ? 'x-amz-tenant-id' : 'x-amz-durable-execution-name') !== undefined)
      throw errors.invalidField(name, 'is not offered');
  const clientContext = header('x-amz-client-context');
  checkContext(clientContext);
  const result = await events.handle(fn, { payload: body, clientContext, requestId, signal });
  if (result.failed) reply.header('x-amz-function-error', 'Unhandled');
  return reply.header('x-amz-executed-version', LATEST).type('application/json').send(result.payload);
}

function checkContext(context: string | undefined): void {
  if (context === undefined) return;
  const problem = (message: string, cause?: unknown): Error => errors.invalidField('ClientContext', message, { cause });
  if (context.length > MAX_CONTEXT_CHARS) throw problem(`must be at most ${MAX_CONTEXT_CHARS} characters`);
  try {
    members('ClientContext', JSON.parse(Buffer.from(context, 'base64').toString('utf8')));
  } catch (error) {
    throw problem('must be a JSON object in base64', error);
  }
}

/** FunctionConfiguration. */
function view(fn: PlatformFunction) {
  const { arn, name, description, runtime, handler, role, timeoutSeconds, memoryMiB, environment, code } = fn;
  return {
    ...{
      FunctionName: name,
      FunctionArn: arn,
      Description: description,
      Runtime: runtime,
      Handler: handler,
      Role: role,
    },
    ...{ Timeout: timeoutSeconds, MemorySize: memoryMiB, CodeSize: code.bytes, CodeSha256: code.sha256 },
    ...(Object.keys(environment).length > 0 && { Environment: { Variables: environment } }),
    ...{ Version: LATEST, RevisionId: fn.revision, PackageType: 'Zip', Architectures: [architecture] },
    ...{ State: 'Active', LastUpdateStatus: 'Successful' },
    LastModified: new Date(fn.updatedAt).toISOString().replace('Z', '+0000'),
  };
}
