import { ServiceError } from '@agentplatform/contract';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { toolCall } from './tool-arguments.ts';

const refused = (run: () => unknown): string => {
  try {
    run();
  } catch (error) {
    if (error instanceof ServiceError && error.code === 'ValidationException') return error.message;
    throw error;
  }
  return 'accepted';
};

describe('arguments of a tool', () => {
  it('take the language from the runtime, and python when nothing is said', () => {
    expect(toolCall('executeCode', { code: '1' })).toMatchObject({ language: 'python', runtime: undefined });
    expect(toolCall('executeCode', { code: '1', runtime: 'deno' })).toMatchObject({ language: 'javascript' });
    expect(toolCall('executeCode', { code: '' })).toMatchObject({ code: '' });
  });

  it.each([
    ['executeCode', {}, 'arguments.code is required.'],
    ['executeCode', { code: '1', language: 'python', runtime: 'deno' }, 'arguments.runtime deno does not run python.'],
    [
      'executeCode',
      { code: '1', language: 'typescript', runtime: 'python' },
      'arguments.runtime python does not run typescript.',
    ],
    ['executeCode', { code: 'a\0' }, 'arguments.code must not hold a NUL character.'],
    ['executeCommand', { command: '' }, 'arguments.command must not be empty.'],
    ['getTask', { taskId: '../x' }, 'arguments.taskId is not the id of a task.'],
    ['writeFiles', { content: [] }, 'arguments.content is required.'],
    ['writeFiles', { content: [{ path: 'a' }] }, 'arguments.content[0] needs either text or blob.'],
    [
      'writeFiles',
      { content: [{ path: 'a', text: '', blob: new Uint8Array() }] },
      'arguments.content[0] needs either text or blob.',
    ],
    [
      'writeFiles',
      { content: [{ path: 'a\0', text: '' }] },
      'arguments.content[0].path must not hold a NUL character.',
    ],
    [
      'writeFiles',
      { content: [{ path: 'a', text: '\ud800' }] },
      'arguments.content[0].text is not text: it holds half a character.',
    ],
    ['readFiles', {}, 'arguments.paths is required.'],
    ['removeFiles', { paths: [''] }, 'arguments.paths[0] must not be empty.'],
    ['readFiles', { paths: Array(1001).fill('a') }, 'arguments.paths names 1001 files; one call takes 1000.'],
  ] as const)('%s %j is refused by name', (tool, args, message) => {
    expect(refused(() => toolCall(tool, args as never))).toBe(message);
  });

  it('are read or refused, whatever they are', () => {
    const tools = fc.constantFrom(
      ...([
        'executeCode',
        'executeCommand',
        'readFiles',
        'listFiles',
        'removeFiles',
        'writeFiles',
        'getTask',
        'stopTask',
      ] as const),
    );
    const text = fc.string({ unit: 'binary' });
    const args = fc.record(
      {
        code: text,
        command: text,
        path: text,
        directoryPath: text,
        taskId: text,
        paths: fc.array(text),
        content: fc.array(fc.record({ path: text, text, blob: fc.uint8Array() }, { requiredKeys: ['path'] })),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(tools, args, (tool, given) => {
        refused(() => {
          const call = toolCall(tool, given);
          for (const path of 'paths' in call
            ? call.paths
            : 'files' in call
              ? call.files.map((file) => file.path)
              : []) {
            expect(path).not.toContain('\0');
            expect(path.isWellFormed()).toBe(true);
          }
        });
      }),
    );
  });
});
