import { type PatternNode, UnsupportedPatternError } from './pattern-syntax.ts';

/** A step of a nondeterministic automaton; numbers are the places of the steps that follow. */
export type Step =
  | { kind: 'char'; accepts: (char: string) => boolean; next: number }
  | { kind: 'start' | 'end'; next: number }
  | { kind: 'either'; next: number; other: number }
  | { kind: 'matched' };

/** Steps of one program at most, unless said otherwise: matching takes time by their number for each character. */
const MOST_STEPS = 1_000;

/** Turns a pattern into the automaton of Thompson's construction (CACM 11:6, 1968). Throws `UnsupportedPatternError` for one of more than `most` steps. */
export function programOf(pattern: PatternNode, most = MOST_STEPS): Step[] {
  const steps: Step[] = [];
  let visits = 0;

  function add(step: Step): number {
    if (steps.length >= most) throw new UnsupportedPatternError('is too large, its repetitions written out');
    return steps.push(step) - 1;
  }

  /** Builds from the back: the place where `node` begins, when `next` follows it. */
  function build(node: PatternNode, next: number): number {
    // A repetition of nothing adds no step, and still takes its time here.
    visits += 1;
    if (visits > 10 * most) throw new UnsupportedPatternError('is too large, its repetitions written out');
    switch (node.kind) {
      case 'char':
        return add({ kind: 'char', accepts: node.accepts, next });
      case 'start':
      case 'end':
        return add({ kind: node.kind, next });
      case 'sequence':
        return node.parts.reduceRight((after, part) => build(part, after), next);
      case 'choice':
        return node.options
          .map((option) => build(option, next))
          .reduce((other, first) => add({ kind: 'either', next: first, other }));
      case 'repeat':
        return repeat(node, next);
    }
  }

  function repeat({ body, min, max }: Extract<PatternNode, { kind: 'repeat' }>, next: number): number {
    let begin = max === Number.POSITIVE_INFINITY ? loop(body, next) : next;
    if (max !== Number.POSITIVE_INFINITY)
      for (let more = min; more < max; more++) begin = add({ kind: 'either', next: build(body, begin), other: next });
    for (let more = 0; more < min; more++) begin = build(body, begin);
    return begin;
  }

  function loop(body: PatternNode, next: number): number {
    const again: Step = { kind: 'either', next: 0, other: next };
    const place = add(again);
    again.next = build(body, place);
    return place;
  }

  const matched = add({ kind: 'matched' });
  const begin = build(pattern, matched);
  // The first step is where it begins.
  return [{ kind: 'either', next: begin + 1, other: begin + 1 }, ...steps.map(shifted)];
}

function shifted(step: Step): Step {
  if (step.kind === 'matched') return step;
  if (step.kind === 'either') return { ...step, next: step.next + 1, other: step.other + 1 };
  return { ...step, next: step.next + 1 };
}
