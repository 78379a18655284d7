// Runs the handler of one function for one event after the other. The platform starts it as the command of the function's sandbox, and asks it
// by HTTP: GET /ping, and POST /events with the event as its body. What it answers is the function's word.
import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { basename, dirname, join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';

const { AGENTPLATFORM_PORT: port = '8080', _HANDLER: handlerName = '' } = process.env;
const root = process.cwd();
const MAX_ANSWER_BYTES = 6_291_556;

class FunctionFailure extends Error {
  constructor(type, message) {
    super(message);
    this.name = type;
  }
}

/** As the original writes what a handler threw. */
function failureOf(error) {
  if (!(error instanceof Error)) return { errorType: typeof error, errorMessage: String(error), trace: [] };
  return { errorType: error.name, errorMessage: error.message, trace: (error.stack ?? '').split('\n') };
}

function fileOf(path) {
  const file = ['.js', '.mjs', '.cjs'].map((ending) => join(root, `${path}${ending}`)).find(existsSync);
  if (file) return file;
  throw new FunctionFailure('Runtime.ImportModuleError', `Error: Cannot find module '${path}'`);
}

async function load() {
  const folder = dirname(handlerName);
  const [file = '', ...names] = basename(handlerName).split('.');
  const path = fileOf(join(folder, file));
  let found;
  try {
    const loaded = await import(pathToFileURL(path).href);
    const pick = (from) => names.reduce((value, name) => value?.[name], from);
    found = pick(loaded) ?? pick(loaded.default);
  } catch (error) {
    console.error(error);
    if (error instanceof SyntaxError) throw new FunctionFailure('Runtime.UserCodeSyntaxError', `${error}`);
    if (/^(ERR_)?MODULE_NOT_FOUND$/.test(error?.code))
      throw new FunctionFailure('Runtime.ImportModuleError', `${error}`);
    throw error;
  }
  if (typeof found === 'function') return found;
  throw new FunctionFailure('Runtime.HandlerNotFound', `${handlerName} is undefined or not exported`);
}

function contextOf(headers, requestId) {
  const deadline = Date.now() + Number(headers['x-function-timeout-ms']);
  const given = headers['x-function-client-context'];
  return {
    awsRequestId: requestId,
    callbackWaitsForEmptyEventLoop: true,
    clientContext: given === undefined ? undefined : JSON.parse(Buffer.from(given, 'base64').toString('utf8')),
    functionName: process.env.AWS_LAMBDA_FUNCTION_NAME,
    functionVersion: process.env.AWS_LAMBDA_FUNCTION_VERSION,
    getRemainingTimeInMillis: () => Math.max(0, deadline - Date.now()),
    invokedFunctionArn: headers['x-function-arn'],
    logGroupName: `/aws/lambda/${process.env.AWS_LAMBDA_FUNCTION_NAME}`,
    logStreamName: process.env.AWS_LAMBDA_LOG_STREAM_NAME,
    memoryLimitInMB: process.env.AWS_LAMBDA_FUNCTION_MEMORY_SIZE,
  };
}

/** What the handler returns, resolves with or hands to its callback. */
function run(handler, event, context) {
  return new Promise((resolve, reject) => {
    const callback = (error, value) => (error ? reject(error) : resolve(value));
    const returned = handler(event, context, callback);
    const waits = handler.length > 2 && typeof returned?.then !== 'function';
    if (!waits) resolve(returned);
  });
}

function textOf(value) {
  let text;
  try {
    text = JSON.stringify(value) ?? 'null';
  } catch (error) {
    throw new FunctionFailure('Runtime.MarshalError', `Unable to stringify response body: ${error.message}`);
  }
  if (Buffer.byteLength(text) <= MAX_ANSWER_BYTES) return text;
  throw new FunctionFailure(
    'Function.ResponseSizeTooLarge',
    `Response payload size exceeded maximum allowed payload size (${MAX_ANSWER_BYTES} bytes).`,
  );
}

/** The answer to the event under way. */
let pending;

function answer(response, body, { failed = false, spent = false } = {}) {
  pending = undefined;
  response.writeHead(200, {
    'content-type': 'application/json',
    ...(failed && { 'x-function-error': 'Unhandled' }),
    // The platform ends this sandbox then.
    ...(spent && { 'x-function-sandbox': 'spent' }),
  });
  response.end(body);
}

function fail(error) {
  console.error(error);
  if (pending) answer(pending, JSON.stringify(failureOf(error)), { failed: true, spent: true });
  else process.exit(1);
}
process.on('uncaughtException', fail);
process.on('unhandledRejection', (reason) =>
  fail(new FunctionFailure('Runtime.UnhandledPromiseRejection', String(reason))),
);

async function handle(request, response) {
  let body;
  try {
    body = await buffer(request);
  } catch {
    // Whoever asked has gone before all of it was there: no event, and nobody to answer.
    return;
  }
  const requestId = request.headers['x-function-request-id'];
  let event;
  try {
    event = JSON.parse(body.toString('utf8') || '{}');
  } catch {
    response.writeHead(400).end();
    return;
  }
  pending = response;
  console.log(`START RequestId: ${requestId} Version: ${process.env.AWS_LAMBDA_FUNCTION_VERSION}`);
  try {
    const text = textOf(await run(await handler, event, contextOf(request.headers, requestId)));
    console.log(`END RequestId: ${requestId}`);
    if (pending === response) answer(response, text);
  } catch (error) {
    console.error(error);
    console.log(`END RequestId: ${requestId}`);
    if (pending === response) answer(response, JSON.stringify(failureOf(error)), { failed: true });
  }
}

const handler = load();
// What is wrong with it is the answer to each event.
handler.catch(() => undefined);
const server = createServer({ maxHeaderSize: 128 * 1024 }, (request, response) => {
  if (request.url === '/events') return handle(request, response);
  return handler.then(
    () => response.end('{"status":"Healthy"}'),
    () => response.end('{"status":"Healthy"}'),
  );
});
server.keepAliveTimeout = 0;
server.requestTimeout = 0;
server.on('error', (error) => {
  // One connection that could not be taken is no end of the others.
  console.error(error);
  if (!server.listening) process.exit(1);
});
server.listen(Number(port), '0.0.0.0');
