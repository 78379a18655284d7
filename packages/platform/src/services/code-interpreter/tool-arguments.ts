import { type data, errors } from '@agentplatform/contract';

/** What the call of one tool needs, checked: each tool with exactly its own arguments. */
export type ToolCall =
  | {
      tool: 'executeCode';
      code: string;
      language: data.ProgrammingLanguage;
      runtime: data.LanguageRuntime | undefined;
      clearContext: boolean;
    }
  | { tool: 'executeCommand' | 'startCommandExecution'; command: string }
  | { tool: 'getTask' | 'stopTask'; taskId: string }
  | { tool: 'writeFiles'; files: { path: string; bytes: Uint8Array }[] }
  | { tool: 'readFiles' | 'removeFiles'; paths: string[] }
  | { tool: 'listFiles'; path: string };

const MAX_FILES = 1000;
const TASK_ID = /^[0-9a-zA-Z-]{1,64}$/;

/** Throws ValidationException that names the argument. */
export function toolCall(tool: data.ToolName, args: data.ToolArguments = {}): ToolCall {
  switch (tool) {
    case 'executeCode': {
      const language =
        args.language ?? (args.runtime === undefined || args.runtime === 'python' ? 'python' : 'javascript');
      if ((language === 'python') !== ((args.runtime ?? 'python') === 'python') && args.runtime !== undefined)
        throw errors.invalidField('arguments.runtime', `${args.runtime} does not run ${language}`);
      const code = text(args.code, 'code');
      return { tool, code, language, runtime: args.runtime, clearContext: args.clearContext ?? false };
    }
    case 'executeCommand':
    case 'startCommandExecution':
      return { tool, command: filled(text(args.command, 'command'), 'command') };
    case 'getTask':
    case 'stopTask': {
      const taskId = text(args.taskId, 'taskId');
      if (!TASK_ID.test(taskId)) throw errors.invalidField('arguments.taskId', 'is not the id of a task');
      return { tool, taskId };
    }
    case 'writeFiles':
      return { tool, files: files(args.content) };
    case 'readFiles':
    case 'removeFiles':
      return { tool, paths: paths(args) };
    case 'listFiles':
      return { tool, path: path(args.directoryPath ?? args.path ?? '.', 'directoryPath') };
  }
}

function files(content: data.InputContentBlock[] | undefined): { path: string; bytes: Uint8Array }[] {
  if (content === undefined || content.length === 0) throw errors.invalidField('arguments.content', 'is required');
  atMost(content.length, 'content');
  return content.map((item, i) => {
    const field = `content[${i}]`;
    if ((item.text === undefined) === (item.blob === undefined))
      throw errors.invalidField(`arguments.${field}`, 'needs either text or blob');
    return {
      path: path(item.path, `${field}.path`),
      bytes: item.blob ?? Buffer.from(text(item.text, `${field}.text`, true), 'utf8'),
    };
  });
}

function paths(args: data.ToolArguments): string[] {
  const named = args.paths ?? (args.path === undefined ? [] : [args.path]);
  if (named.length === 0) throw errors.invalidField('arguments.paths', 'is required');
  atMost(named.length, 'paths');
  return named.map((one, i) => path(one, `paths[${i}]`));
}

function atMost(count: number, field: string): void {
  if (count > MAX_FILES)
    throw errors.invalidField(`arguments.${field}`, `names ${count} files; one call takes ${MAX_FILES}`);
}

function path(value: string, field: string): string {
  const given = filled(text(value, field), field);
  if (given.length > 4096) throw errors.invalidField(`arguments.${field}`, 'is longer than 4096 characters');
  return given;
}

function filled(value: string, field: string): string {
  if (value === '') throw errors.invalidField(`arguments.${field}`, 'must not be empty');
  return value;
}

/** Text that UTF-8 can carry; NUL only where `content` is meant. */
function text(value: string | undefined, field: string, content = false): string {
  if (value === undefined) throw errors.invalidField(`arguments.${field}`, 'is required');
  if (!value.isWellFormed())
    throw errors.invalidField(`arguments.${field}`, 'is not text: it holds half a character', {
      remedy: 'Send binary content as blob.',
    });
  if (!content && value.includes('\0'))
    throw errors.invalidField(`arguments.${field}`, 'must not hold a NUL character');
  return value;
}
