import { describe, expect, it } from 'vitest';
import { allows, BUILT_IN } from './allowed-tools.ts';

const SHELL = { server: BUILT_IN, name: 'shell' };
const FILES = { server: BUILT_IN, name: 'file_operations' };
const STATUS = { server: 'git', name: 'git_status' };
const READ = { server: 'git', name: 'read_file' };
const MINE = { server: undefined, name: 'approve' };
const ALL = [SHELL, FILES, STATUS, READ, MINE];

describe('allowedTools', () => {
  it.each<[pattern: string, allowed: object[]]>([
    ['*', ALL],
    ['shell', [SHELL]],
    ['file_*', [FILES]],
    ['approve', [MINE]],
    ['git_status', []],
    ['@builtin', [SHELL, FILES]],
    ['@builtin/shell', [SHELL]],
    ['@git', [STATUS, READ]],
    ['@git/git_status', [STATUS]],
    ['@git/read_*', [READ]],
    ['@*/git_status', [STATUS]],
    ['@g*/read_file', [READ]],
    ['@gitx', []],
    ['@git/', []],
  ])('%s', (pattern, allowed) => {
    expect(ALL.filter((tool) => allows([pattern], tool))).toEqual(allowed);
  });

  it('without a list is every tool, and with an empty one none', () => {
    expect(ALL.filter((tool) => allows(undefined, tool))).toEqual(ALL);
    expect(ALL.filter((tool) => allows([], tool))).toEqual([]);
  });
});
