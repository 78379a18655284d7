import { type MemberDef, type Model, type OperationDef, type PlaneModel, planes, type ShapeDef } from '../model.ts';

/** The vendor's `service-2.json` as far as it is read here. */
export interface PublishedModel {
  metadata: { apiVersion: string; serviceId: string; protocol: string; signingName?: string; endpointPrefix: string };
  operations: Record<string, PublishedOperation>;
  shapes: Record<string, Record<string, unknown>>;
}

interface PublishedOperation {
  name: string;
  http: { method: string; requestUri: string; responseCode?: number };
  input?: { shape: string };
  output?: { shape: string };
  errors?: { shape: string }[];
  idempotent?: boolean;
  readonly?: boolean;
}

const memberTraits = [
  'shape',
  'location',
  'locationName',
  'timestampFormat',
  'idempotencyToken',
  'jsonvalue',
  'eventpayload',
  'eventheader',
] as const;

const shapeTraits = [
  'type',
  'required',
  'payload',
  'min',
  'max',
  'pattern',
  'enum',
  'timestampFormat',
  'document',
  'union',
  'sensitive',
  'streaming',
  'eventstream',
  'event',
  'exception',
  'fault',
  'retryable',
  'error',
] as const;

/** Traits that carry no rule of the wire; anything else unknown stops the update, so that no new rule is lost silently. */
const dropped = new Set(['documentation', 'box', 'deprecated', 'deprecatedMessage', 'deprecatedSince', 'synthetic']);

function pick(source: Record<string, unknown>, traits: readonly string[], nested: readonly string[], where: string) {
  for (const key of Object.keys(source)) {
    if (!traits.includes(key) && !nested.includes(key) && !dropped.has(key)) {
      throw new Error(`${where} has the trait "${key}", which the generator does not know`);
    }
  }
  return Object.fromEntries(traits.filter((t) => source[t] !== undefined).map((t) => [t, source[t]]));
}

function stripMember(source: unknown, where: string): MemberDef {
  return pick(source as Record<string, unknown>, memberTraits, [], where) as unknown as MemberDef;
}

function stripShape(name: string, source: Record<string, unknown>): ShapeDef {
  const shape = pick(source, shapeTraits, ['members', 'member', 'key', 'value'], name) as unknown as ShapeDef;
  if (source.members !== undefined) {
    shape.members = Object.fromEntries(
      Object.entries(source.members as Record<string, unknown>).map(([m, def]) => [
        m,
        stripMember(def, `${name}.${m}`),
      ]),
    );
  }
  for (const part of ['member', 'key', 'value'] as const) {
    if (source[part] !== undefined) shape[part] = stripMember(source[part], `${name}.${part}`);
  }
  return shape;
}

function stripOperation(source: PublishedOperation): OperationDef {
  if (source.input === undefined || source.output === undefined)
    throw new Error(`${source.name} lacks input or output`);
  return {
    http: {
      method: source.http.method,
      requestUri: source.http.requestUri,
      responseCode: source.http.responseCode ?? 200,
    },
    input: source.input.shape,
    output: source.output.shape,
    errors: (source.errors ?? []).map((e) => e.shape),
    ...(source.idempotent ? { idempotent: true } : {}),
    ...(source.readonly ? { readonly: true } : {}),
  };
}

const sorted = <T>(record: Record<string, T>): [string, T][] =>
  Object.entries(record).sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));

/** Only these operations, with the shapes that they reach. */
function restricted(published: PublishedModel, names: readonly string[]): PublishedModel {
  const operations = Object.fromEntries(
    names.map((name) => {
      const operation = published.operations[name];
      if (operation === undefined) throw new Error(`${published.metadata.serviceId} has no operation ${name}`);
      return [name, operation];
    }),
  );
  const shapes: PublishedModel['shapes'] = {};
  const visit = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    const { shape } = value as { shape?: unknown };
    const reached = typeof shape === 'string' ? published.shapes[shape] : undefined;
    if (typeof shape === 'string' && reached !== undefined && shapes[shape] === undefined) {
      shapes[shape] = reached;
      visit(reached);
    }
    for (const part of Object.values(value)) visit(part);
  };
  visit(operations);
  return { ...published, operations, shapes };
}

/**
 * Reduces a published model to names, routes, shapes and constraints, of all its operations or of these `only`; throws on a trait it does not
 * know.
 */
export function stripModel(whole: PublishedModel, only?: readonly string[]): PlaneModel {
  const published = only === undefined ? whole : restricted(whole, only);
  if (published.metadata.protocol !== 'rest-json') throw new Error(`Not rest-json: ${published.metadata.protocol}`);
  return {
    apiVersion: published.metadata.apiVersion,
    serviceId: published.metadata.serviceId,
    signingName: published.metadata.signingName ?? published.metadata.endpointPrefix,
    operations: Object.fromEntries(sorted(published.operations).map(([name, op]) => [name, stripOperation(op)])),
    shapes: Object.fromEntries(sorted(published.shapes).map(([name, shape]) => [name, stripShape(name, shape)])),
  };
}

/** JSON with one shape or operation per line, so that an update can be read as a diff. */
export function printModel(model: Model): string {
  const block = (record: Record<string, unknown>): string =>
    Object.entries(record)
      .map(([name, value]) => `        ${JSON.stringify(name)}: ${JSON.stringify(value)}`)
      .join(',\n');
  const plane = ({ operations, shapes, ...head }: PlaneModel): string =>
    `{\n      "apiVersion": ${JSON.stringify(head.apiVersion)},\n      "serviceId": ${JSON.stringify(head.serviceId)},\n` +
    `      "signingName": ${JSON.stringify(head.signingName)},\n` +
    `      "operations": {\n${block({ ...operations })}\n      },\n      "shapes": {\n${block({ ...shapes })}\n      }\n    }`;
  return (
    `{\n  "source": ${JSON.stringify(model.source)},\n  "version": ${JSON.stringify(model.version)},\n  "planes": {\n` +
    planes.map((name) => `    "${name}": ${plane(model.planes[name])}`).join(',\n') +
    '\n  }\n}\n'
  );
}
