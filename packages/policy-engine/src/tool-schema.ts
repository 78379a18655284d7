import type { Principal } from './types.ts';

export interface ToolTargets {
  gatewayArn: string;
  targets: { name: string; tools: { name: string; inputSchema: unknown; outputSchema?: unknown }[] }[];
  /** Who can call the gateway: users by a token, identities by a signature. Both if left out. */
  principals?: Principal['type'][];
}

/** The Cedar schema of a gateway's tools: one action each, typed by its input and output. */
export function toolSchema({ targets, principals = ['OAuthUser', 'IamEntity'] }: ToolTargets): string {
  const lines = [
    'namespace AgentCore {',
    '  entity OAuthUser = { id: String } tags String;',
    '  entity IamEntity = { id: String };',
    '  entity Gateway;',
    '  action Mcp;',
    '  action CallTool in [Mcp];',
  ];
  for (const { name: target, tools } of targets) {
    for (const { name, inputSchema, outputSchema } of tools) {
      const fields = [
        `input: ${record(inputSchema) ?? '{}'}`,
        `output?: ${record(outputSchema) ?? '{}'}`,
        'system: { now: datetime }',
      ];
      lines.push(
        `  action ${quoted(`${target}___${name}`)} in [CallTool] appliesTo {`,
        `    principal: [${principals.join(', ')}], resource: [Gateway], context: { ${fields.join(', ')} }`,
        '  };',
      );
    }
  }
  return `${[...lines, '}'].join('\n')}\n`;
}

type JsonSchema = Record<string, unknown>;
const deepest = 16;

function record(schema: unknown): string | undefined {
  return isObject(schema) ? typeOf({ type: 'object', ...schema }, schema, deepest) : undefined;
}

/** The Cedar type of a JSON Schema; undefined where Cedar has none: policies cannot speak of such a field. */
function typeOf(schema: unknown, root: JsonSchema, depth: number): string | undefined {
  if (!isObject(schema) || depth === 0) return undefined;
  const { $ref: reference } = schema;
  if (typeof reference === 'string') return typeOf(resolved(reference, root), root, depth - 1);
  const choices = schema['anyOf'] ?? schema['oneOf'];
  if (Array.isArray(choices)) {
    const types = new Set(choices.filter((choice) => !isNull(choice)).map((choice) => typeOf(choice, root, depth - 1)));
    return types.size === 1 ? [...types][0] : undefined;
  }
  switch (kindOf(schema)) {
    case 'string':
      return 'String';
    case 'integer':
      return 'Long';
    case 'boolean':
      return 'Bool';
    case 'number':
      return 'decimal';
    case 'array': {
      const element = typeOf(schema['items'], root, depth - 1);
      return element && `Set<${element}>`;
    }
    case 'object':
      return recordOf(schema, root, depth);
    default:
      return undefined;
  }
}

function recordOf(schema: JsonSchema, root: JsonSchema, depth: number): string | undefined {
  const properties = isObject(schema['properties']) ? schema['properties'] : {};
  const required = new Set(Array.isArray(schema['required']) ? schema['required'] : []);
  const fields = Object.entries(properties).flatMap(([name, property]) => {
    const type = typeOf(property, root, depth - 1);
    if (!type) return [];
    return [`${quoted(name)}${required.has(name) && !nullable(property) ? '' : '?'}: ${type}`];
  });
  return `{ ${fields.join(', ')} }`.replace('{  }', '{}');
}

/** The one type that a schema says or that all of its listed values have. */
function kindOf(schema: JsonSchema): string | undefined {
  const types = [schema['type']].flat().filter((type): type is string => typeof type === 'string' && type !== 'null');
  if (types.length === 1) return types[0];
  if (types.length > 1) return types.every((type) => type === 'integer' || type === 'number') ? 'number' : undefined;
  const values = Array.isArray(schema['enum']) ? schema['enum'] : 'const' in schema ? [schema['const']] : [];
  const kinds = new Set(values.filter((value) => value !== null).map(kindOfValue));
  if (kinds.size === 1) return [...kinds][0];
  return isObject(schema['properties']) ? 'object' : undefined;
}

function kindOfValue(value: unknown): string | undefined {
  if (typeof value === 'number') return Number.isInteger(value) ? 'integer' : 'number';
  return typeof value === 'string' || typeof value === 'boolean' ? typeof value : undefined;
}

function nullable(schema: unknown): boolean {
  if (!isObject(schema)) return false;
  const choices = schema['anyOf'] ?? schema['oneOf'];
  return [schema['type']].flat().includes('null') || (Array.isArray(choices) && choices.some(isNull));
}

function isNull(schema: unknown): boolean {
  return isObject(schema) && schema['type'] === 'null';
}

function resolved(reference: string, root: JsonSchema): unknown {
  if (!reference.startsWith('#/')) return undefined;
  let found: unknown = root;
  for (const part of reference.slice(2).split('/')) {
    const name = part.replaceAll('~1', '/').replaceAll('~0', '~');
    found = isObject(found) && Object.hasOwn(found, name) ? found[name] : undefined;
  }
  return found;
}

function isObject(value: unknown): value is JsonSchema {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A name as Cedar reads it between quotes. */
function quoted(name: string): string {
  const escaped = name.replace(/[\\"]|\p{Cc}|\p{Cf}|\p{Cs}/gu, (character) =>
    character === '"' || character === '\\' ? `\\${character}` : `\\u{${character.codePointAt(0)?.toString(16)}}`,
  );
  return `"${escaped}"`;
}
