import { harmless } from '../terminal/terminal.ts';
import { fieldOf, listIn, textIn } from './iam-request.ts';

/** A span in the order of the tree, and how deep it stands. */
export interface TraceLine {
  span: unknown;
  depth: number;
  /** Its parent is not there. */
  detached: boolean;
}

/** The nodes of a tree from top to bottom. */
export function flatten(roots: readonly unknown[]): TraceLine[] {
  const lines: TraceLine[] = [];
  const stack = roots.map((node) => ({ node, depth: 0 })).reverse();
  for (let next = stack.pop(); next; next = stack.pop()) {
    const { node, depth } = next;
    lines.push({ span: fieldOf(node, 'span'), depth, detached: fieldOf(node, 'detached') === true });
    for (const child of listIn(node, 'children').reverse()) stack.push({ node: child, depth: depth + 1 });
  }
  return lines;
}

const DEEPEST_INDENT = 20;

/** One line for a span: what it is, how long it took, what it used, whether it failed. */
export function spanLine({ span, depth, detached }: TraceLine): string {
  const indent = '  '.repeat(Math.min(depth, DEEPEST_INDENT));
  const [input, output] = [numberIn(span, 'inputTokens'), numberIn(span, 'outputTokens')];
  const model = textIn(span, 'model');
  const parts = [
    `${indent}${detached ? '? ' : ''}${textIn(span, 'name') || '(no name)'}`,
    durationOf(numberIn(span, 'durationUs')),
    ...(model === '' || textIn(span, 'name').includes(model) ? [] : [model]),
    ...(input + output > 0 ? [`${input}+${output} tokens`] : []),
    ...(numberIn(span, 'status') === 2 ? [`FAILED ${textIn(span, 'statusMessage')}`.trim()] : []),
  ];
  return harmless(parts.join('  ')).replaceAll('\n', ' ');
}

/** Microseconds as people read them. */
export function durationOf(micros: number): string {
  if (micros < 1_000) return `${micros} us`;
  if (micros < 1_000_000) return `${(micros / 1_000).toFixed(1)} ms`;
  return micros < 60_000_000 ? `${(micros / 1_000_000).toFixed(2)} s` : `${(micros / 60_000_000).toFixed(1)} min`;
}

export function numberIn(value: unknown, member: string): number {
  const found = fieldOf(value, member);
  return typeof found === 'number' ? found : 0;
}
