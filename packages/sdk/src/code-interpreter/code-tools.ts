import type { CodeInterpreterResult, ContentBlock, ToolArguments, ToolName } from '@aws-sdk/client-bedrock-agentcore';
import type { CodeInterpreter } from './code-interpreter.ts';

/** A tool that a model may call, for no framework in particular. */
export interface CodeTool {
  name: string;
  description: string;
  /** JSON Schema of what `run` takes. */
  inputSchema: { type: 'object'; properties: Record<string, object>; required: string[] };
  /** Code that fails is an outcome with `isError`; what the platform refuses throws. */
  run(input: Record<string, unknown>, signal?: AbortSignal): Promise<ToolOutcome>;
}

/** What the model gets. */
export interface ToolOutcome {
  text: string;
  isError: boolean;
  pictures: { mimeType: string; base64: string }[];
}

/** Characters of text that a model gets of one result: what is longer fills its context and tells it little. */
const MAX_TEXT = 30_000;
/** Pictures that models take. */
const PICTURES = new Set(['image/png', 'image/jpeg', 'image/gif', 'image/webp']);
const path = { type: 'string', description: 'Path below the working directory.' };

/** The tools of one session. The session is the caller's: opened by the first call, to be stopped by its owner. */
export function codeTools(interpreter: CodeInterpreter): CodeTool[] {
  const tool = (
    name: string,
    description: string,
    properties: Record<string, object>,
    required: string[],
    call: (input: Record<string, unknown>) => [ToolName, ToolArguments],
  ): CodeTool => ({
    name,
    description,
    inputSchema: { type: 'object', properties, required },
    run: async (input, signal) => shown(await interpreter.invoke(...call(input), signal ? { signal } : {})),
  });
  return [
    tool(
      'execute_code',
      'Runs code in an isolated session and returns what it prints, the value of its last expression and its pictures. ' +
        'Variables stay between calls, per language. Files are below the working directory.',
      {
        code: { type: 'string', description: 'What to run.' },
        language: {
          type: 'string',
          enum: ['python', 'javascript', 'typescript'],
          description: 'Its language; python when absent.',
        },
      },
      ['code'],
      ({ code, language }) => ['executeCode', { code, language: language ?? 'python' } as ToolArguments],
    ),
    tool(
      'execute_command',
      'Runs a shell command (bash) in the same session and returns its output.',
      { command: { type: 'string', description: 'The command.' } },
      ['command'],
      ({ command }) => ['executeCommand', { command } as ToolArguments],
    ),
    tool(
      'write_files',
      'Writes text files into the session.',
      {
        files: {
          type: 'array',
          description: 'The files.',
          items: {
            type: 'object',
            properties: { path, text: { type: 'string', description: 'The whole content.' } },
            required: ['path', 'text'],
          },
        },
      },
      ['files'],
      ({ files }) => ['writeFiles', { content: files } as ToolArguments],
    ),
    tool(
      'read_files',
      'Reads files of the session.',
      { paths: { type: 'array', items: { type: 'string' }, description: 'Paths below the working directory.' } },
      ['paths'],
      ({ paths }) => ['readFiles', { paths } as ToolArguments],
    ),
    tool(
      'list_files',
      'Lists a folder of the session.',
      { path: { type: 'string', description: 'Path below the working directory; that itself when absent.' } },
      [],
      ({ path: folder }) => ['listFiles', { directoryPath: folder ?? '.' } as ToolArguments],
    ),
  ];
}

/** The outcome of a call that could not be made: the model is told, and may try otherwise. */
export function refusedOutcome(error: unknown): ToolOutcome {
  return {
    text: error instanceof Error ? `${error.name}: ${error.message}` : String(error),
    isError: true,
    pictures: [],
  };
}

function shown(result: CodeInterpreterResult): ToolOutcome {
  const content = result.content ?? [];
  const pictures: ToolOutcome['pictures'] = [];
  let lines = content.map((block) => lineOf(block, pictures)).filter((line) => line !== '');
  // HTML stands beside text that says the same in fewer words, save where it stands alone.
  if (lines.length === 0) lines = content.filter(isHtml).map((block) => block.resource?.text ?? '');
  let text = lines.map((line) => line.replace(/\n$/, '')).join('\n');
  if (text.length > MAX_TEXT) {
    const half = MAX_TEXT / 2;
    const left = text.length - 2 * half;
    text = `${text.slice(0, half).toWellFormed()}\n[${left} characters are left out here]\n${text.slice(-half).toWellFormed()}`;
  }
  return { text: text || '(no output)', isError: result.isError ?? false, pictures };
}

function lineOf(block: ContentBlock, pictures: ToolOutcome['pictures']): string {
  if (block.type === 'image') return picture(block.mimeType, block.data, 'picture', pictures);
  if (block.type === 'resource_link')
    return `${block.name}${block.description === 'Directory' ? '/' : ` (${block.size} bytes)`}`;
  const { resource } = block;
  if (block.type !== 'resource' || resource === undefined) return block.text ?? '';
  const name = (resource.uri ?? '').replace(/^file:\/\//, '');
  if (resource.blob) return picture(resource.mimeType, resource.blob, name, pictures);
  if (isHtml(block)) return '';
  return name === '' ? (resource.text ?? '') : `${name}:\n${resource.text}`;
}

function isHtml({ resource }: ContentBlock): boolean {
  return resource?.mimeType === 'text/html' && resource.uri === undefined;
}

function picture(
  mimeType = 'unknown type',
  data: Uint8Array = new Uint8Array(),
  name: string,
  pictures: ToolOutcome['pictures'],
): string {
  if (!PICTURES.has(mimeType)) return `[${name}: ${data.length} bytes of ${mimeType}]`;
  pictures.push({ mimeType, base64: Buffer.from(data).toString('base64') });
  return '';
}
