import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Member, Model, targetOf } from '../../packages/platform/src/services/gateway/smithy/model.ts';
import { type Node, readSmithy, type SmithyModel, type SmithyShape, type Traits } from './smithy-idl.ts';

/** One of the cases by which Smithy tests clients: what a request with these parameters is. */
export interface RequestCase {
  id: string;
  /** Its id. */
  operation: string;
  params?: { [name: string]: Node };
  method: string;
  uri: string;
  host?: string;
  resolvedHost?: string;
  queryParams?: string[];
  forbidQueryParams?: string[];
  requireQueryParams?: string[];
  headers?: { [name: string]: string };
  forbidHeaders?: string[];
  requireHeaders?: string[];
  body?: string;
  bodyMediaType?: string;
}

/** And what comes of an answer. */
export interface ResponseCase {
  id: string;
  operation: string;
  code: number;
  headers?: { [name: string]: string };
  body?: string;
  params?: { [name: string]: Node };
}

/** A service of the package with a model of its own, and the cases of its protocol. */
export interface ProtocolService {
  id: string;
  protocol: string;
  /** In the JSON AST. */
  text: string;
  requests: RequestCase[];
  responses: ResponseCase[];
}

const PROTOCOLS = ['restJson1', 'awsJson1_0', 'awsJson1_1', 'restXml', 'awsQuery'].map(
  (name) => `aws.protocols#${name}`,
);

/** The services that the models in this folder have for protocols which targets speak. */
export function protocolServices(folder: string): ProtocolService[] {
  const names = readFileSync(join(folder, 'manifest'), 'utf8').split('\n');
  const files = names.filter((name) => name.endsWith('.smithy'));
  const { smithy, shapes } = readSmithy(files.map((name) => readFileSync(join(folder, name), 'utf8')));
  return Object.entries(shapes).flatMap(([id, shape]) => {
    const protocol = PROTOCOLS.find((trait) => shape.type === 'service' && shape.traits[trait] !== undefined);
    if (protocol === undefined) return [];
    // A target is one service, whose host its prefix says.
    const api = { endpointPrefix: 'lab', ...Object(shape.traits['aws.api#service']) };
    const traits = { ...shape.traits, 'aws.api#service': api };
    const others = Object.entries(shapes).filter(([, { type }]) => type !== 'service');
    const model = { smithy, shapes: { ...Object.fromEntries(others), [id]: { ...shape, traits } } };
    const cases = <Case>(trait: string): (Case & { operation: string })[] =>
      operationsOf(model, id).flatMap((operation) =>
        listOf<Case & { protocol: string; appliesTo?: string }>(model.shapes[operation]?.traits, trait)
          .filter((one) => one.protocol === protocol && one.appliesTo !== 'server')
          .map((one) => ({ ...one, operation })),
      );
    return {
      ...{ id, protocol: protocol.slice(protocol.indexOf('#') + 1), text: JSON.stringify(model) },
      requests: cases<RequestCase>('smithy.test#httpRequestTests'),
      responses: cases<ResponseCase>('smithy.test#httpResponseTests'),
    };
  });
}

function listOf<Item>(traits: Traits | undefined, trait: string): Item[] {
  // As Smithy's own selectors have checked them.
  return (traits?.[trait] ?? []) as unknown as Item[];
}

const NONE: SmithyShape = { type: 'service', traits: {} };

function operationsOf({ shapes }: SmithyModel, service: string): string[] {
  const named = (value: unknown): string[] =>
    (Array.isArray(value) ? value : [value]).flatMap((one: { target?: string } | undefined) => one?.target ?? []);
  const found: string[] = [];
  const left = [service];
  for (let id = left.pop(); id !== undefined; id = left.pop()) {
    const { operations, resources, create, read, update, delete: remove, list } = shapes[id] ?? NONE;
    found.push(...[operations, create, read, update, remove, list].flatMap(named));
    left.push(...named(resources));
  }
  return [...new Set(found)];
}

const IN_HEADERS = ['httpHeader', 'httpPrefixHeaders', 'httpResponseCode'];

/** Parameters of a case as arguments of a tool: bytes in base64, names as JSON has them, times as their place writes them. */
export class CaseArguments {
  readonly #model: Model;
  readonly #protocol: string;

  constructor({ text, protocol }: ProtocolService) {
    this.#model = new Model(JSON.parse(text));
    this.#protocol = protocol;
  }

  of(operation: string, params: { [name: string]: Node }): { [name: string]: Node } {
    return this.#members(this.#structure(operation, 'input').members, params, true);
  }

  /** Parameters of a case as what is in the body of an answer says them. */
  answered(operation: string, params: { [name: string]: Node }): { [name: string]: Node } {
    const { members } = this.#structure(operation, 'output');
    const payload = members.find(({ traits }) => traits.httpPayload !== undefined);
    const inBody = members.filter(({ traits }) => IN_HEADERS.every((name) => traits[name] === undefined));
    const said = this.#members(payload ? [payload] : inBody, params, false);
    const whole = payload && said[payload.name];
    return typeof whole === 'object' && whole !== null && !Array.isArray(whole) ? whole : said;
  }

  #structure(operation: string, direction: 'input' | 'output') {
    return this.#model.shape(targetOf(this.#model.shape(operation).raw[direction]) || 'smithy.api#Unit');
  }

  #members(members: readonly Member[], params: { [name: string]: Node }, isTop: boolean): { [name: string]: Node } {
    return Object.fromEntries(
      members.flatMap((member): [string, Node][] => {
        const value = params[member.name];
        // Nothing is said by leaving a member out.
        if (value === undefined || value === null) return [];
        const { jsonName, httpHeader, httpQuery, httpLabel } = member.traits;
        const isRest = isTop && this.#protocol.startsWith('rest');
        const bound = isRest && [httpHeader, httpQuery, httpLabel].some((one) => one !== undefined);
        const inBody = this.#protocol === 'restXml' || this.#protocol === 'awsQuery' ? 'date-time' : 'epoch-seconds';
        const times = !bound ? inBody : httpHeader === undefined ? 'date-time' : 'http-date';
        const name = this.#protocol === 'restJson1' && !bound && typeof jsonName === 'string' ? jsonName : member.name;
        return [[name, this.#value(member, value, times)]];
      }),
    );
  }

  #value({ target, traits }: Pick<Member, 'target' | 'traits'>, value: Node, times: string): Node {
    const shape = this.#model.shape(target);
    if (value === null) return null;
    switch (shape.type) {
      case 'blob':
        return Buffer.from(String(value)).toString('base64');
      case 'timestamp':
        return timeText(Number(value), String(traits.timestampFormat ?? shape.traits.timestampFormat ?? times));
      case 'structure':
      case 'union':
        return this.#members(shape.members, value as { [name: string]: Node }, false);
      case 'list':
      case 'set': {
        const [member] = shape.members;
        return member && Array.isArray(value) ? value.map((one) => this.#value(member, one, times)) : value;
      }
      case 'map': {
        const member = shape.members.find(({ name }) => name === 'value');
        const entries = Object.entries(value as { [name: string]: Node });
        return Object.fromEntries(entries.map(([key, one]) => [key, member ? this.#value(member, one, times) : one]));
      }
      default:
        return value;
    }
  }
}

function timeText(seconds: number, format: string): Node {
  if (format === 'epoch-seconds') return seconds;
  const date = new Date(seconds * 1000);
  return format === 'http-date' ? date.toUTCString() : date.toISOString().replace('.000Z', 'Z');
}
