import { Readable } from 'node:stream';
import fc from 'fast-check';
import { type OperationName, operations } from '../../packages/contract/src/index.ts';
import { type Plane, type PlaneModel, shapeIn } from '../../packages/contract/src/model.ts';
import { shapeArbitraries } from '../../packages/contract/test/arbitraries.ts';
import { comparable } from '../../packages/contract/test/comparable.ts';

type Members = Record<string, unknown>;

/** Generated inputs and outputs of operations, over the model that a client knows. */
export interface GeneratedCases {
  shape(plane: Plane, name: string): fc.Arbitrary<unknown>;
  input(name: OperationName): fc.Arbitrary<Members>;
  /** Where an output streams, it holds a plain list of what is streamed. */
  output(name: OperationName): fc.Arbitrary<Members>;
  /** The same output as a handler returns it: what streams is an async iterable. */
  streamed(name: OperationName, output: Members): Members;
  /** The member of an output that carries the HTTP status, which clients fill in. */
  status(name: OperationName): Record<string, number>;
  /** The events that an event stream's union allows. */
  event(plane: Plane, union: string): fc.Arbitrary<Members>;
  /** Union shape of an operation's event stream and the member that carries it. */
  eventStream(name: OperationName): { payload: string; union: string };
}

export function generatedCases(models: Record<Plane, PlaneModel>): GeneratedCases {
  const shapes = {
    data: shapeArbitraries(models.data),
    control: shapeArbitraries(models.control),
    models: shapeArbitraries(models.models),
  };
  const outputShape = (name: OperationName) => shapeIn(models[operations[name].plane], operations[name].output);

  function event(plane: Plane, union: string): fc.Arbitrary<Members> {
    const members = Object.entries(shapeIn(models[plane], union).members ?? {});
    const events = members.filter(([, m]) => !shapeIn(models[plane], m.shape).exception);
    return fc.oneof(...events.map(([name, m]) => shapes[plane](m.shape).map((value) => ({ [name]: value }))));
  }

  /** The member that is the whole body as bytes. */
  function blobPayload(plane: Plane, shape: string): string | undefined {
    const { payload, members = {} } = shapeIn(models[plane], shape);
    const isBlob = payload !== undefined && shapeIn(models[plane], members[payload]?.shape ?? '').type === 'blob';
    return isBlob ? payload : undefined;
  }

  function eventStream(name: OperationName): { payload: string; union: string } {
    const { payload = '', members = {} } = outputShape(name);
    return { payload, union: members[payload]?.shape ?? '' };
  }

  return {
    event,
    eventStream,
    shape: (plane, name) => shapes[plane](name),
    input(name) {
      const { plane, input } = operations[name];
      const whole = shapes[plane](input) as fc.Arbitrary<Members>;
      const payload = blobPayload(plane, input);
      if (payload === undefined) return whole;
      // No body and an empty one are one on the wire.
      return whole.map((given) => ({ ...given, [payload]: given[payload] ?? new Uint8Array() }));
    },
    output(name) {
      const { plane, output, responds } = operations[name];
      const whole = shapes[plane](output) as fc.Arbitrary<Members>;
      const bytes = blobPayload(plane, output);
      // Of an empty body the SDKs make nothing or no bytes, as they please.
      if (responds === 'json')
        return bytes === undefined
          ? whole
          : whole.filter(({ [bytes]: body }) => body instanceof Uint8Array && body.length > 0);
      const { payload, union } = eventStream(name);
      const part: fc.Arbitrary<unknown> =
        responds === 'events' ? event(plane, union) : fc.uint8Array({ minLength: 1, maxLength: 32 });
      const parts = fc.array(part, { minLength: 1, maxLength: 4 });
      return fc.tuple(whole, parts).map(([rest, streamed]) => ({ ...rest, [payload]: streamed }));
    },
    streamed(name, output) {
      const { payload } = eventStream(name);
      const parts = output[payload];
      return operations[name].responds !== 'json' && Array.isArray(parts)
        ? { ...output, [payload]: Readable.from(parts) }
        : output;
    },
    status(name) {
      const members = Object.entries(outputShape(name).members ?? {});
      const found = members.filter(([, member]) => member.location === 'statusCode');
      return Object.fromEntries(found.map(([member]) => [member, operations[name].status]));
    },
  };
}

/** What is compared of an input or output: streams as their bytes or events, the rest as it is. */
export async function settled(value: Members): Promise<unknown> {
  const { $metadata: _, ...members } = value;
  for (const [name, member] of Object.entries(members)) {
    if (typeof member !== 'object' || member === null || !(Symbol.asyncIterator in member)) continue;
    const items: unknown[] = [];
    for await (const item of member as AsyncIterable<unknown>) items.push(item);
    members[name] = items.every((item) => item instanceof Uint8Array) ? Buffer.concat(items) : items;
  }
  return comparable(members);
}
