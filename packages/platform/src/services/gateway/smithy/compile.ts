import type { DocumentValue } from '@agentplatform/contract';
import { type Compiled, nothingOf } from '../http-tools/compiled.ts';
import type { HttpTool } from '../http-tools/http-tool.ts';
import { COMPILE_LIMITS, type CompileLimits } from '../openapi/limits.ts';
import { type ReadDocument, readDocument } from '../openapi/read-document.ts';
import { UnreadableDocumentError } from '../openapi/read-yaml.ts';
import { isObject, pointerTo } from '../tools/json-pointer.ts';
import type { Problem } from '../tools/problem.ts';
import { toolNames } from '../tools/tool-names.ts';
import { BrokenModelError, listOf, localName, Model, type ModelShape, targetOf } from './model.ts';
import { compileSmithyOperation, type SmithyOperationDeps } from './operation.ts';
import { protocolOf } from './protocols.ts';
import { SmithySchemas } from './schemas.ts';

export interface SmithyInput {
  /** A model in Smithy's JSON AST. */
  text: string;
}

export interface SmithyOptions {
  /** Name of the target, which is part of the names that its tools are listed by. */
  target: string;
  /** Address of the service. Without it, the host that AWS has for the model's endpoint prefix in `region`. */
  endpoint?: string;
  region?: string;
  limits?: Partial<CompileLimits>;
}

/** The vendor's own limit for models. */
const MODEL_BYTES = 10 * 1024 * 1024;

/**
 * Makes a tool of each operation of a Smithy model. It never throws for what a model holds: what is broken is a problem with its line and
 * costs the operations that need it. Models of anybody belong in `compileInWorker`.
 */
export function compileSmithy({ text }: SmithyInput, options: SmithyOptions): Compiled {
  const limits = { ...COMPILE_LIMITS, documentBytes: MODEL_BYTES, ...options.limits };
  let document: ReadDocument;
  try {
    document = readDocument(text, limits);
    return compileModel(document, options, limits);
  } catch (error) {
    if (error instanceof UnreadableDocumentError)
      return nothingOf([
        { severity: 'error', message: error.message, ...(error.line === undefined ? {} : { line: error.line }) },
      ]);
    if (error instanceof BrokenModelError) return nothingOf([{ severity: 'error', message: error.message }]);
    throw error;
  }
}

function compileModel(document: ReadDocument, options: SmithyOptions, limits: CompileLimits): Compiled {
  const model = new Model(document.value);
  const [first, ...others] = model.ofType('service');
  if (first === undefined) throw new BrokenModelError('The model has no service.');
  if (others.length > 0)
    throw new BrokenModelError(`The model has ${others.length + 1} services, and one target is one service.`);
  const service = model.shape(first);
  const protocol = protocolOf(service.traits);
  if (!protocol)
    throw new BrokenModelError('The service speaks none of restJson1, restXml, awsJson1_0, awsJson1_1 and awsQuery.');
  const deps: SmithyOperationDeps = {
    model,
    service,
    protocol,
    endpoint: endpointOf(service, options),
    signingName: signingName(service),
    input: new SmithySchemas(model, protocol, 'input', limits.description),
    output: new SmithySchemas(model, protocol, 'output', limits.description),
    limits,
  };
  const ids = operationsOf(service, model);
  const compiled: { id: string; tool: Omit<HttpTool, 'name'> }[] = [];
  const leftOut: Compiled['leftOut'] = [];
  for (const [index, id] of ids.entries()) {
    const result =
      index < limits.operations ? compiledOrWhy(id, deps) : `The model has more than ${limits.operations} operations.`;
    if (typeof result === 'string') leftOut.push({ operation: localName(id), why: result });
    else compiled.push({ id, tool: result });
  }
  const { names, problems } = toolNames(
    compiled.map(({ id }) => ({ key: id, name: localName(id) })),
    options.target,
  );
  const tools = compiled.flatMap(({ id, tool }): HttpTool[] => {
    const name = names.get(id);
    if (name !== undefined) return [{ ...tool, name }];
    leftOut.push({ operation: localName(id), why: 'The name of the target leaves no room for names of tools.' });
    return [];
  });
  return {
    tools,
    problems: [...document.problems, ...leftOutProblems(leftOut, ids, document), ...problems],
    operations: ids.length,
    leftOut,
    credentials: [],
  };
}

function compiledOrWhy(id: string, deps: SmithyOperationDeps): Omit<HttpTool, 'name'> | string {
  try {
    return compileSmithyOperation(id, deps);
  } catch (error) {
    if (error instanceof BrokenModelError) return error.message;
    if (error instanceof RangeError) return 'Its shapes are nested too deep.';
    throw error;
  }
}

function leftOutProblems(leftOut: Compiled['leftOut'], ids: readonly string[], document: ReadDocument): Problem[] {
  const pointers = new Map(ids.map((id) => [localName(id), pointerTo('/shapes', id)]));
  const lines = document.linesOf(leftOut.flatMap(({ operation }) => pointers.get(operation) ?? []));
  return leftOut.map(({ operation, why }) => {
    const pointer = pointers.get(operation) ?? '';
    const line = lines.get(pointer);
    return {
      severity: 'error',
      message: `${operation} is left out: ${why}`,
      where: `#${pointer}`,
      ...(line === undefined ? {} : { line }),
    };
  });
}

/** The operations of the service and of its resources, each once. */
function operationsOf(service: ModelShape, model: Model): string[] {
  const found = new Set<string>();
  const seen = new Set<string>();
  const left = [service];
  for (let next = left.pop(); next; next = left.pop()) {
    const { raw } = next;
    const lifecycle = ['create', 'put', 'read', 'update', 'delete', 'list'].map((name) => raw[name]);
    const all: (DocumentValue | undefined)[] = [
      ...listOf(raw.operations),
      ...lifecycle,
      ...listOf(raw.collectionOperations),
    ];
    for (const one of all) if (targetOf(one) !== '') found.add(targetOf(one));
    for (const id of listOf(raw.resources).map(targetOf)) {
      if (seen.has(id)) continue;
      seen.add(id);
      left.push(model.shape(id));
    }
  }
  return [...found].sort();
}

function signingName({ traits }: ModelShape): string | undefined {
  const sigv4 = traits['aws.auth#sigv4'];
  return isObject(sigv4) && typeof sigv4.name === 'string' ? sigv4.name : undefined;
}

function endpointOf(service: ModelShape, { endpoint, region }: SmithyOptions): string {
  const api = service.traits['aws.api#service'];
  const given = isObject(api) ? (api.endpointPrefix ?? signingName(service)) : signingName(service);
  const host =
    typeof given === 'string' && /^[a-z0-9.-]+$/i.test(given) && region !== undefined && /^[a-z0-9-]+$/.test(region)
      ? `https://${given}.${region}.amazonaws.com`
      : undefined;
  const url = endpoint ?? host;
  if (url === undefined || !URL.canParse(url))
    throw new BrokenModelError(
      'Where the service is, its model does not say: it has neither aws.api#service nor aws.auth#sigv4. Give an OpenAPI document with servers instead.',
    );
  const { origin, pathname } = new URL(url);
  return `${origin}${pathname.endsWith('/') ? pathname.slice(0, -1) : pathname}`;
}
