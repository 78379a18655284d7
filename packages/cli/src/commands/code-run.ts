import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CodeInterpreterResult, ToolArguments } from '@aws-sdk/client-bedrock-agentcore';
import { harmless, type Terminal } from '../terminal/terminal.ts';

export const languages = ['python', 'javascript', 'typescript'] as const;
export type Language = (typeof languages)[number];

export interface CodeRunner {
  invoke(
    args: ToolArguments,
    options: { onOutput: (stream: 'stdout' | 'stderr', text: string) => void; signal: AbortSignal },
  ): Promise<CodeInterpreterResult>;
  /** Folder that pictures are saved in. */
  pictures: string;
}

export interface CodeOutcome {
  isError: boolean;
  stdout: string;
  stderr: string;
  /** Values and other results that are no pictures. */
  results: string[];
  /** Paths of the pictures that were saved. */
  pictures: string[];
}

const EXTENSIONS: Readonly<Record<string, string>> = {
  'image/gif': 'gif',
  'image/jpeg': 'jpg',
  'image/svg+xml': 'svg',
  'image/webp': 'webp',
};

/** Runs code, shows what it prints as it comes, then its results; saves its pictures under names that are free. */
export async function runCode(
  terminal: Terminal,
  runner: CodeRunner,
  { language, code, quiet }: { language: Language; code: string; quiet: boolean },
): Promise<CodeOutcome> {
  const result = await runner.invoke(
    { language, code },
    {
      signal: terminal.signal,
      onOutput: (stream, text) => {
        if (!quiet) terminal[stream].write(terminal[stream].isTTY ? harmless(text) : text);
      },
    },
  );
  const { stdout = '', stderr = '' } = result.structuredContent ?? {};
  const outcome: CodeOutcome = { isError: result.isError ?? false, stdout, stderr, results: [], pictures: [] };
  for (const block of result.content ?? []) {
    if (block.type === 'image' && block.data) {
      outcome.pictures.push(await save(runner.pictures, block.data, EXTENSIONS[block.mimeType ?? ''] ?? 'png'));
    } else if (block.type === 'text' && block.text && block.text !== stdout && block.text !== stderr) {
      outcome.results.push(block.text);
    }
  }
  if (!quiet) for (const text of outcome.results) terminal.stdout.write(`${harmless(text)}\n`);
  return outcome;
}

async function save(folder: string, data: Uint8Array, extension: string): Promise<string> {
  for (let i = 1; ; i++) {
    const path = join(folder, `picture-${i}.${extension}`);
    try {
      await writeFile(path, data, { flag: 'wx' });
      return path;
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST') || i >= 10_000) throw error;
    }
  }
}
