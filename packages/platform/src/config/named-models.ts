import { type ModelConfig, PROVIDER_URLS, PROVIDERS } from '../kernel/models/index.ts';
import { checkedUrl, type Setting, setting } from './setting.ts';

/** A member of a model's entry, decoded; throws an Error whose message completes `<name> …`. */
type Reader = (value: unknown) => unknown;

const NAME = /^[\w.:/-]{1,128}$/;

const READERS: Readonly<Record<string, Reader>> = {
  provider: (value) =>
    must(
      PROVIDERS.find((one) => one === value),
      `one of ${PROVIDERS.join(', ')}`,
    ),
  model: (value) => must(textIn(value), 'the id of a model'),
  url: (value) => checkedUrl(textIn(value) ?? '', 'a URL such as http://localhost:11434/v1'),
  key: (value) => must(textIn(value), 'a key without spaces'),
  maxTokens: (value) => must(numberIn(value, 1, 10_000_000), 'a whole number of tokens'),
  temperature: (value) => must(numberIn(value, 0, 2, false), 'a number from 0 to 2'),
  answersFor: (value) => must(listIn(value), 'a list of at most 100 model ids, where * stands for any text'),
};

/** Models by name, as an object or its JSON text; not on the command line, for it may hold keys. Values are in the order given. */
export const namedModels = (options: { about: string }): Setting<readonly ModelConfig[] | undefined> =>
  setting<readonly ModelConfig[] | undefined>('JSON', { ...options, secret: true, default: undefined }, (value) =>
    Object.entries(objectIn(typeof value === 'string' ? parsed(value) : value, '')).map(modelOf),
  );

function modelOf([name, entry]: [string, unknown]): ModelConfig {
  if (!NAME.test(name) || name === 'default') throw new Error(`must not name a model "${name.slice(0, 128)}"`);
  const given: Record<string, unknown> = { provider: 'openai', answersFor: [], ...objectIn(entry, `${name} `) };
  for (const [member, value] of Object.entries(given)) {
    const read = Object.hasOwn(READERS, member) ? READERS[member] : undefined;
    if (!read) throw new Error(`has ${name}.${member}, which is none of ${Object.keys(READERS).join(', ')}`);
    try {
      given[member] = read(value);
    } catch (error) {
      throw new Error(`has ${name}.${member}, which ${error instanceof Error ? error.message : error}`);
    }
  }
  // Each member came from its own reader.
  const config = given as Partial<ModelConfig> & Pick<ModelConfig, 'provider' | 'answersFor'>;
  const url = config.url ?? PROVIDER_URLS[config.provider];
  if (config.model === undefined) throw new Error(`must have ${name}.model, its id at the provider`);
  if (url === undefined) throw new Error(`must have ${name}.url, the address of the OpenAI-compatible service`);
  return { ...config, name, model: config.model, url };
}

/** No value is repeated: it may be a key at the wrong place. */
function must<T>(value: T | undefined, expected: string): T {
  if (value === undefined) throw new Error(`must be ${expected}`);
  return value;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function objectIn(value: unknown, of: string): object {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  throw new Error(
    `${of}must be an object, such as {"local": {"model": "llama3.2", "url": "http://localhost:11434/v1"}}`,
  );
}

function textIn(value: unknown): string | undefined {
  return typeof value === 'string' && /^\S{1,2048}$/.test(value) ? value : undefined;
}

function numberIn(value: unknown, min: number, max: number, whole = true): number | undefined {
  const fits = typeof value === 'number' && value >= min && value <= max && (!whole || Number.isInteger(value));
  return fits ? value : undefined;
}

function listIn(value: unknown): string[] | undefined {
  if (!Array.isArray(value) || value.length > 100) return undefined;
  const ids = value.map(textIn).filter((id) => id !== undefined);
  return ids.length === value.length ? ids : undefined;
}
