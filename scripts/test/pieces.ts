import type { Tally } from './tally.ts';

/** A piece of the platform: which files test it, and how many minutes they may take, all of them together. */
interface Piece {
  name: string;
  files: RegExp;
  minutes: number;
}

/**
 * The first that a path matches has it. Three files run at a time, so 90 of these minutes are the 30 that the whole run may take.
 * Pieces to come have theirs already: who builds one knows what is left for it.
 */
export const PIECES: readonly Piece[] = [
  { name: 'handset', files: /^packages\/handset\//, minutes: 6 },
  { name: 'Memory', files: /memory|\/embeddings\//, minutes: 10 },
  { name: 'Code Interpreter', files: /code[-_]interpreter|\/interpreter/, minutes: 7 },
  { name: 'Identity', files: /identit|workload|\/auth\//, minutes: 4 },
  { name: 'Gateway', files: /gateway|\/search\//, minutes: 4 },
  { name: 'Policy', files: /services\/policy|policy-(?:engine|routes|check)|cedar/, minutes: 3 },
  { name: 'Browser', files: /browser/, minutes: 4 },
  { name: 'Harness', files: /harness|\/models\/|bedrock/, minutes: 4 },
  { name: 'Observability', files: /observability|telemetry/, minutes: 2 },
  { name: 'Evaluations', files: /evaluation/, minutes: 2 },
  { name: 'Payments', files: /payment/, minutes: 2 },
  { name: 'Registry', files: /(?:services|e2e|compat|faults)\/registry/, minutes: 2 },
  { name: 'sandboxes', files: /sandbox/, minutes: 18 },
  { name: 'faults and attacks', files: /^tests\/(faults|security)\//, minutes: 8 },
  { name: 'Runtime and the rest', files: /^/, minutes: 14 },
];

/** A line for each piece that has tests: what they took of what they may. `tallies`: by the path of a file. */
export function timesByPiece(tallies: ReadonlyMap<string, Tally>): string[] {
  const seconds = new Map(PIECES.map((piece) => [piece, 0]));
  for (const [file, tally] of tallies) {
    const piece = PIECES.find(({ files }) => files.test(file));
    if (piece) seconds.set(piece, (seconds.get(piece) ?? 0) + tally.seconds);
  }
  const lines = [...seconds].filter(([, taken]) => taken > 0).map(([piece, taken]) => timeOf(piece, taken));
  return ['', 'TIME of tests by piece, of what each may take:', ...lines];
}

function timeOf({ name, minutes }: Piece, seconds: number): string {
  const over = seconds > minutes * 60 ? '  over its budget' : '';
  return `  ${name.padEnd(22)}${(seconds / 60).toFixed(1).padStart(6)} of ${minutes} min${over}`;
}
