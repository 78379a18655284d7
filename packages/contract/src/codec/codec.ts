import { errors, type FieldProblem, type ServiceError } from '../errors.ts';
import { operations } from '../generated/operations.ts';
import type { Inputs, OperationName, Outputs } from '../generated/types.ts';
import type { OperationDef } from '../model.ts';
import { type BodyRule, bodyRuleOf } from './body-rule.ts';
import { type PlaneCodec, planeCodec } from './planes.ts';
import { type RequestDecoder, requestDecoder } from './request-decoder.ts';
import { type ClientRequest, type RequestEncoder, requestEncoder } from './request-encoder.ts';
import { type ReceivedResponse, type ResponseDecoder, responseDecoder } from './response-decoder.ts';
import { type ResponseEncoder, responseEncoder, type WireResponse } from './response-encoder.ts';
import { maxProblems, newWalk } from './walk.ts';
import type { WireRequest } from './wire-request.ts';

interface OperationCodec {
  plane: PlaneCodec;
  definition: OperationDef;
  decode: RequestDecoder;
  encode: ResponseEncoder;
  /** The client's half. */
  ask: RequestEncoder;
  read: ResponseDecoder;
  body: BodyRule;
}

const compiled = new Map<OperationName, OperationCodec>();

function codecOf(operation: OperationName): OperationCodec {
  const known = compiled.get(operation);
  if (known !== undefined) return known;
  const plane = planeCodec(operations[operation].plane);
  const definition = plane.model.operations[operation];
  if (definition === undefined) throw new Error(`The model has no operation ${operation}`);
  const codec: OperationCodec = {
    plane,
    definition,
    decode: requestDecoder(plane, definition),
    encode: responseEncoder(plane, definition),
    ask: requestEncoder(plane, definition),
    read: responseDecoder(plane, definition),
    body: bodyRuleOf(plane.model, definition),
  };
  compiled.set(operation, codec);
  return codec;
}

/** Whether the request body of `operation` streams, and how large it may be. */
export function bodyRule(operation: OperationName): BodyRule {
  return codecOf(operation).body;
}

/**
 * The input that a request carries, decoded and checked against every constraint of the model. Throws a
 * ValidationException that names all fields in the wrong, and nothing else.
 */
export function decodeRequest<K extends OperationName>(operation: K, request: WireRequest): Inputs[K] {
  const { plane, definition, decode } = codecOf(operation);
  const reading = newWalk();
  const input = decode(request, reading);
  const unreadable = reading.problems.map((problem) => problem.name);
  const checking = newWalk();
  if (!unreadable.includes('body')) plane.checker(definition.input)(input, checking);
  // A field that could not be read, and what holds it, is not called missing as well.
  const echoes = ({ name }: FieldProblem): boolean =>
    unreadable.some((u) => u === name || u.startsWith(`${name}.`) || u.startsWith(`${name}[`));
  const problems = [...reading.problems, ...checking.problems.filter((problem) => !echoes(problem))].slice(
    0,
    maxProblems,
  );
  if (problems.length > 0) throw invalid(problems);
  // Safe: the reader and the checker of this shape, made from the same model as the type, found nothing wrong.
  return input as unknown as Inputs[K];
}

function invalid(problems: FieldProblem[]): ServiceError {
  const sentences = problems.slice(0, 5).map(({ name, message }) => `${name || 'the request'} ${message}`);
  const more = problems.length > sentences.length ? `; and ${problems.length - sentences.length} more` : '';
  const count = problems.length === 1 ? 'One field is' : `${problems.length} fields are`;
  return errors.validation(`${count} not valid: ${sentences.join('; ')}${more}.`, { fieldList: problems });
}

/** The same check for callers that build inputs themselves. Throws as `decodeRequest` does. */
export function checkInput<K extends OperationName>(operation: K, input: Inputs[K]): void {
  const { plane, definition } = codecOf(operation);
  const walk = newWalk();
  plane.checker(definition.input)(input, walk);
  if (walk.problems.length > 0) throw invalid(walk.problems);
}

/** What of the model's constraints an output breaks; for tests, since a running server trusts its own types. */
export function outputProblems<K extends OperationName>(operation: K, output: Outputs[K]): FieldProblem[] {
  const { plane, definition } = codecOf(operation);
  const walk = newWalk();
  plane.checker(definition.output)(output, walk);
  return walk.problems;
}

/**
 * The response for an operation's output. Members that the model lacks are left out. `onStreamFailure` sees what an event
 * stream threw after the response had begun. Throws TypeError when the output has a value of the wrong type.
 */
export function encodeResponse<K extends OperationName>(
  operation: K,
  output: Outputs[K],
  onStreamFailure?: (error: unknown) => void,
): WireResponse {
  return codecOf(operation).encode(output as Record<string, unknown>, onStreamFailure);
}

/** The request that a client sends for an input, which is not checked. Throws TypeError when it has a value of the wrong type. */
export function encodeRequest<K extends OperationName>(operation: K, input: Inputs[K]): ClientRequest {
  return codecOf(operation).ask(input as Record<string, unknown>);
}

/**
 * The output that a client reads in a response; what streams is an iterable of what comes. Rejects with the ServiceError that the server sent, and
 * with Error where the answer cannot be read.
 */
export async function decodeResponse<K extends OperationName>(
  operation: K,
  response: ReceivedResponse,
): Promise<Outputs[K]> {
  // Written by a server of the same model; what a newer one adds is passed over.
  return (await codecOf(operation).read(response)) as Outputs[K];
}
