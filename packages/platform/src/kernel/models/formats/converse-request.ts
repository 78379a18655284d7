import { errors, type models } from '@agentplatform/contract';
import type {
  AnswerPart,
  FilePart,
  JsonSchema,
  ModelMessage,
  ModelRequest,
  TextPart,
  ToolChoice,
  ToolDefinition,
  ToolResultPart,
  UserPart,
} from '../model.ts';
import { effortOf, membersOf } from './json-body.ts';

type Input = models.ConverseRequest | models.ConverseStreamRequest;

/** What a model is asked by a request of Converse. Throws ValidationException for what is not served and cannot be left out without changing what was meant. */
export function converseRequest(input: Input): ModelRequest {
  if (input.guardrailConfig)
    throw errors.invalidField('guardrailConfig', 'names a guardrail, and there are none on this platform');
  if (input.promptVariables) throw errors.invalidField('promptVariables', 'belongs to prompts, which are not served');
  if (input.outputConfig?.textFormat) throw errors.invalidField('outputConfig.textFormat', 'is not served');
  const { maxTokens, temperature, topP, stopSequences } = input.inferenceConfig ?? {};
  const { top_k: topK, thinking } = membersOf(input.additionalModelRequestFields);
  const system = (input.system ?? []).flatMap(systemText).join('\n\n');
  const reasoning =
    effortOf(input.outputConfig?.effort) ?? (membersOf(thinking).type === 'enabled' ? 'medium' : undefined);
  return {
    ...(system === '' ? {} : { system }),
    messages: (input.messages ?? []).map(messageOf),
    ...toolsOf(input.toolConfig),
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { topP }),
    ...(typeof topK === 'number' ? { topK } : {}),
    ...(stopSequences ? { stopSequences } : {}),
    ...(reasoning ? { reasoning } : {}),
  };
}

function systemText({ text, guardContent }: models.SystemContentBlock): string[] {
  if (guardContent) throw unserved('system', 'guardContent');
  return text === undefined ? [] : [text];
}

function toolsOf(config: models.ToolConfiguration | undefined): Pick<ModelRequest, 'tools' | 'toolChoice'> {
  if (!config) return {};
  const tools = config.tools.flatMap(({ toolSpec, systemTool }, index): ToolDefinition[] => {
    if (systemTool) throw unserved(`toolConfig.tools[${index}]`, 'systemTool');
    if (!toolSpec) return [];
    const { name, description, inputSchema } = toolSpec;
    // A document is a JSON schema as far as the client means one; the provider judges it.
    const schema = inputSchema.json as JsonSchema;
    return [{ name, schema, ...(description === undefined ? {} : { description }) }];
  });
  return { tools, ...(config.toolChoice ? { toolChoice: choiceOf(config.toolChoice) } : {}) };
}

function choiceOf({ any, tool }: models.ToolChoice): ToolChoice {
  return tool ? { name: tool.name } : any ? 'any' : 'auto';
}

function messageOf({ role, content }: models.Message, index: number): ModelMessage {
  const where = `messages[${index}]`;
  if (role === 'system')
    throw errors.invalidField(`${where}.role`, 'is served as user and assistant; use system instead');
  if (role === 'assistant') return { role, content: content.flatMap((block) => answerPart(block, where)) };
  return { role, content: content.flatMap((block) => userPart(block, where)) };
}

function answerPart(block: models.ContentBlock, where: string): AnswerPart[] {
  if (block.text !== undefined) return block.text === '' ? [] : [{ type: 'text', text: block.text }];
  if (block.toolUse) {
    const { toolUseId: id, name, input } = block.toolUse;
    return [{ type: 'tool-call', id, name, input }];
  }
  if (block.reasoningContent) {
    const { reasoningText } = block.reasoningContent;
    return reasoningText ? [{ type: 'reasoning', ...reasoningText }] : [];
  }
  if (block.citationsContent)
    return (block.citationsContent.content ?? []).flatMap(({ text }) => (text ? [{ type: 'text', text }] : []));
  if (block.cachePoint) return [];
  throw unserved(where, nameOf(block));
}

function userPart(block: models.ContentBlock, where: string): UserPart[] {
  if (block.toolResult) return [toolResult(block.toolResult, where)];
  if (block.cachePoint) return [];
  return [textOrFile(block, where)];
}

function toolResult({ toolUseId: id, content, status }: models.ToolResultBlock, where: string): ToolResultPart {
  return {
    type: 'tool-result',
    id,
    content: content.map((block) =>
      block.json === undefined ? textOrFile(block, where) : { type: 'json', value: block.json },
    ),
    ...(status === 'error' ? { failed: true } : {}),
  };
}

function textOrFile(block: models.ContentBlock | models.ToolResultContentBlock, where: string): TextPart | FilePart {
  if (block.text !== undefined) return { type: 'text', text: block.text };
  if (block.image) {
    const { format, source } = block.image;
    if (!source.bytes) throw unserved(where, 'image.source.s3Location');
    return { type: 'file', mediaType: `image/${format}`, data: source.bytes };
  }
  if (block.document) return documentPart(block.document, where);
  if (block.searchResult) {
    const { title, source, content } = block.searchResult;
    return { type: 'text', text: [title, source, ...content.map(({ text }) => text)].join('\n') };
  }
  throw unserved(where, nameOf(block));
}

const TEXT_FORMATS = ['txt', 'md', 'csv', 'html'];

/** A PDF as a file; what is text anyway as text, which every model takes. */
function documentPart({ name, format = 'txt', source }: models.DocumentBlock, where: string): TextPart | FilePart {
  const { bytes, text, content } = source;
  const said = text ?? content?.map((part) => part.text).join('\n');
  if (said !== undefined) return { type: 'text', text: `${name}:\n${said}` };
  if (!bytes) throw unserved(where, 'document.source.s3Location');
  if (TEXT_FORMATS.includes(format)) return { type: 'text', text: `${name}:\n${Buffer.from(bytes).toString('utf8')}` };
  if (format === 'pdf') return { type: 'file', mediaType: 'application/pdf', data: bytes, name };
  throw unserved(where, `document of the format ${format}`);
}

function nameOf(block: object): string {
  return Object.entries(block).find(([, value]) => value !== undefined)?.[0] ?? 'content';
}

function unserved(where: string, what: string): Error {
  return errors.invalidField(`${where}.content`, `has ${what}, which this platform does not pass on to a model`);
}
