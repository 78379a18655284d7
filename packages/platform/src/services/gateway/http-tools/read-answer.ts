import type { DocumentValue } from '@agentplatform/contract';
import { isDeeperThan } from '../../../kernel/depth.ts';
import { compileArguments } from '../tools/arguments.ts';
import { isObject } from '../tools/json-pointer.ts';
import type { JsonObject, Tool } from '../tools/tool.ts';
import type { HttpTool } from './http-tool.ts';
import { createMask, type Mask } from './mask.ts';
import { AnswerTooLongError, readBody, UnreadableAnswerError } from './read-body.ts';
import { readXml } from './read-xml.ts';

/** What a backend answers. Names of headers in small letters. */
export interface HttpAnswer {
  status: number;
  headers: { [name: string]: string | string[] | undefined };
  body: AsyncIterable<Uint8Array>;
}

/** One piece of a result, as MCP has it. */
export type ToolContent =
  | { type: 'text'; text: string }
  | { type: 'image' | 'audio'; data: string; mimeType: string }
  | { type: 'resource'; resource: { uri: string; mimeType: string; blob: string } };

/** The result of a tool's call, in the form of MCP's `CallToolResult`. */
export interface ToolResult {
  content: ToolContent[];
  structuredContent?: JsonObject;
  isError?: true;
}

export interface ReadOptions {
  /** Bytes of the body that are read, decompressed. */
  maxBytes: number;
  /** Secrets that must not be in the result. */
  mask: readonly string[];
}

/** Characters of a backend's error that the result holds. */
const EXCERPT = 2_000;
/** Nesting of JSON that is handed on as structure. */
const MOST_DEPTH = 200;
/** The work of comparing an answer with the output schema; larger answers are not compared. */
const MOST_STEPS = 5_000_000;

/**
 * A backend's answer as the result of the tool. What it cannot be is an error of the tool, never an exception; only what the body itself
 * throws while it is read is thrown on.
 */
export async function readAnswer(
  tool: HttpTool,
  answer: HttpAnswer,
  { maxBytes, mask: secrets }: ReadOptions,
): Promise<ToolResult> {
  const mask = createMask(secrets);
  const type = contentType(answer);
  const failed = answer.status < 200 || answer.status > 299;
  let bytes: Buffer;
  try {
    bytes = await readBody(answer.body, header(answer, 'content-encoding'), maxBytes);
  } catch (error) {
    if (!(error instanceof AnswerTooLongError) && !(error instanceof UnreadableAnswerError)) throw error;
    return toolError(`The backend answered ${answer.status}, and its answer ${error.message}.`);
  }
  if (failed) return toolError(`The backend answered ${answer.status}${excerpt(mask.text(textOf(bytes, type)))}`);
  if (bytes.length === 0) return emptyResult(tool, answer.status);
  return isMedia(type.name)
    ? mediaResult(tool, bytes, type.name, mask)
    : textResult(tool, bytes, type, mask, answer.status);
}

interface ContentType {
  /** In small letters; empty where the answer does not say. */
  name: string;
  charset?: string;
}

function header({ headers }: HttpAnswer, name: string): string | undefined {
  const value = headers[name];
  return Array.isArray(value) ? value.join(', ') : value;
}

function contentType(answer: HttpAnswer): ContentType {
  const [name = '', ...parameters] = (header(answer, 'content-type') ?? '').toLowerCase().split(';');
  const charset = parameters.map((one) => one.trim()).find((one) => one.startsWith('charset='));
  return { name: name.trim(), ...(charset === undefined ? {} : { charset: charset.slice(8).replaceAll('"', '') }) };
}

const isJson = (name: string): boolean =>
  name.endsWith('+json') || /^(?:text\/json|application\/json|application\/x-amz-json-1\.[01])$/.test(name);
const isXml = (name: string): boolean => name === 'text/xml' || name === 'application/xml' || name.endsWith('+xml');
const TEXTS = [
  'application/javascript',
  'application/x-ndjson',
  'application/jsonl',
  'application/yaml',
  'application/x-yaml',
  'application/x-www-form-urlencoded',
  'application/graphql',
  'application/sql',
];

function isMedia(name: string): boolean {
  if (name === '' || name.startsWith('text/') || isJson(name) || (isXml(name) && name !== 'image/svg+xml'))
    return false;
  return !TEXTS.includes(name);
}

/** In the charset that it names, else UTF-8; an unknown charset is read as UTF-8. */
function textOf(bytes: Buffer, { charset }: ContentType): string {
  try {
    return new TextDecoder(charset ?? 'utf-8').decode(bytes);
  } catch (error) {
    if (error instanceof RangeError) return new TextDecoder().decode(bytes);
    throw error;
  }
}

function excerpt(text: string): string {
  if (text === '') return ' without a body.';
  return text.length > EXCERPT ? `: ${text.slice(0, EXCERPT)}…` : `: ${text}`;
}

const toolError = (text: string): ToolResult => ({ content: [{ type: 'text', text }], isError: true });

/** A tool with an output schema owes its client a structure even where the backend has nothing to say. */
function emptyResult(tool: HttpTool, status: number): ToolResult {
  const content: ToolContent[] = [{ type: 'text', text: `The backend answered ${status} without a body.` }];
  if (!tool.outputSchema) return { content };
  return { content, structuredContent: tool.http.answer.wrapped === true ? { result: null } : {} };
}

function mediaResult(tool: HttpTool, bytes: Buffer, mimeType: string, mask: Mask): ToolResult {
  if (tool.outputSchema) return notAsDocumented(`has the media type ${mimeType.slice(0, 100)}`, '');
  const data = mask.bytes(bytes).toString('base64');
  if (mimeType.startsWith('image/')) return { content: [{ type: 'image', data, mimeType }] };
  if (mimeType.startsWith('audio/')) return { content: [{ type: 'audio', data, mimeType }] };
  return { content: [{ type: 'resource', resource: { uri: `tool:${tool.name}/answer`, mimeType, blob: data } }] };
}

function textResult(tool: HttpTool, bytes: Buffer, type: ContentType, mask: Mask, status: number): ToolResult {
  const raw = textOf(bytes, type);
  const value = structureOf(tool, raw, type.name);
  if (value === undefined) {
    const text = mask.text(raw);
    return tool.outputSchema
      ? notAsDocumented(`is not JSON (its status is ${status})`, text)
      : { content: [{ type: 'text', text }] };
  }
  const masked = mask.value(value);
  // Numbers keep all their digits in the backend's own text; only where an escaped secret hid in it, it is written anew.
  const text = masked === value && !isXml(type.name) ? mask.text(raw) : JSON.stringify(masked);
  return structuredResult(tool, masked, { text, wrapped: tool.http.answer.wrapped === true });
}

/** JSON as a result: as its text and as a structure, which is wrapped where it is no object; an error where it breaks the tool's output schema. */
export function structuredResult(
  tool: Tool,
  value: DocumentValue,
  { text, wrapped }: { text: string; wrapped: boolean },
): ToolResult {
  const structured = wrapped || !isObject(value) ? { result: value } : value;
  const problem = tool.outputSchema && compileArguments(tool.outputSchema, { mostSteps: MOST_STEPS })(structured)[0];
  if (problem && !problem.message.startsWith('takes too long'))
    return notAsDocumented(`${problem.path} ${problem.message}`, text);
  return { content: [{ type: 'text', text }], structuredContent: structured };
}

/** The answer as JSON; undefined if it is not JSON, or nested too deeply for clients. */
function structureOf(tool: HttpTool, text: string, mediaType: string): DocumentValue | undefined {
  const { shape, within = [], unwrapped = false } = tool.http.answer;
  if (shape !== undefined && isXml(mediaType))
    return readXml(text, tool.http.shapes ?? {}, { shape, within, unwrapped });
  if (!isJson(mediaType) && mediaType !== '') return undefined;
  try {
    const value: DocumentValue = JSON.parse(text);
    return isDeeperThan(value, MOST_DEPTH) ? undefined : value;
  } catch {
    return undefined;
  }
}

/** Clients refuse a result that breaks the tool's output schema: it is told as an error, with the answer, and that it came after the fact. */
function notAsDocumented(how: string, text: string): ToolResult {
  const said = `The backend carried out the call, but its answer is not what its document says: ${how}.`;
  return toolError(text === '' ? said : `${said} It answered: ${text}`);
}
