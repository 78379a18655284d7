import type { Message, Route } from './messages.ts';
import type { Random } from './random.ts';
import type { Ending } from './rude-client.ts';

/** Where a message is cut: before or within its first byte, within its head, right behind that, within its body, or behind all of it. */
const PHASES = ['beginning', 'head', 'end of head', 'body', 'end'] as const;
const ENDINGS: readonly Ending[] = ['reset', 'half-close', 'stall', 'garbage'];

export interface DueCut {
  phase: (typeof PHASES)[number];
  ending: Ending;
}

/**
 * Of every route each place to cut × each rude ending, and which of these were not made yet. First each route has every place and every ending once, all
 * routes together every pair; then the rest.
 */
export class DueCuts {
  /** How many there are. */
  readonly all: number;
  readonly #due: ReadonlyMap<Route, { first: Set<DueCut>; rest: Set<DueCut> }>;

  constructor(routes: readonly Route[]) {
    this.all = routes.length * PHASES.length * ENDINGS.length;
    this.#due = new Map(
      routes.map((route, turn) => {
        const isFirst = ({ phase, ending }: DueCut): boolean =>
          (PHASES.indexOf(phase) + turn) % ENDINGS.length === ENDINGS.indexOf(ending);
        const each = PHASES.flatMap((phase) => ENDINGS.map((ending): DueCut => ({ phase, ending })));
        return [route, { first: new Set(each.filter(isFirst)), rest: new Set(each.filter((cut) => !isFirst(cut))) }];
      }),
    );
  }

  get made(): number {
    return [...this.#due.values()].reduce((left, { first, rest }) => left - first.size - rest.size, this.all);
  }

  /** Whether each route has had every place and every ending. */
  get everyRoute(): boolean {
    return [...this.#due.values()].every(({ first }) => first.size === 0);
  }

  /** Whether a route is to be cut within a body next. */
  wantsBody(route: Route): boolean {
    const { first } = this.#due.get(route) ?? {};
    return first !== undefined && first.size > 0 && [...first].every(({ phase }) => phase === 'body');
  }

  /** One that a message has room for and that its route did not have; undefined when there is none. */
  of(route: Route, message: Message): DueCut | undefined {
    const { head, all } = lengthsOf(message);
    const { first = [], rest = [] } = this.#due.get(route) ?? {};
    return [...first, ...rest].find(({ phase }) => phase !== 'body' || all > head + 1);
  }

  /** Has made it. */
  take(route: Route, cut: DueCut): void {
    const due = this.#due.get(route);
    due?.first.delete(cut);
    due?.rest.delete(cut);
  }
}

/** So much of the message goes out. */
export function bytesBefore(message: Message, { phase }: DueCut, random: Random): Buffer {
  const { head, all } = lengthsOf(message);
  const length = {
    beginning: random.below(2),
    head: 2 + random.below(head - 2),
    'end of head': head,
    body: head + 1 + random.below(Math.max(1, all - head - 1)),
    end: all,
  }[phase];
  return Buffer.concat(message.pieces.map(({ bytes }) => bytes)).subarray(0, length);
}

function lengthsOf({ pieces }: Message): { head: number; all: number } {
  let head = 0;
  let all = 0;
  for (const { kind, bytes } of pieces) {
    all += bytes.length;
    if (kind === 'end of headers' || kind === 'frame of head') head = all;
  }
  return { head, all };
}
