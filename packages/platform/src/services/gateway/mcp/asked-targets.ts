import type { Logger } from 'pino';
import type { Clock } from '../../../kernel/clock.ts';
import { eachAtOnce } from '../../../kernel/each-at-once.ts';
import { type OpenGateway, openGateway } from '../gateway-tools.ts';
import type { Offers } from '../targets/offers.ts';
import type { LiveTarget } from '../targets/target.ts';
import type { Asking } from '../targets/target-kind.ts';
import { kindOf, type TargetKinds } from '../targets/target-kinds.ts';
import { ToolError } from '../tool-error.ts';
import { failureText } from './failures.ts';

export interface AskedTargetsDeps {
  kinds: TargetKinds;
  clock: Pick<Clock, 'after'>;
  log: Logger;
}

/** A gateway as one caller sees it at one moment. */
export interface Seen {
  open: OpenGateway;
  /** Targets that did not tell what they offer, each with the reason. */
  silent: { target: string; reason: string }[];
}

/** Asked at the same time for one request. */
const MOST_AT_ONCE = 16;
/** For all of them together: a client waits for the list. */
const LONGEST_MS = 20_000;
/** Of what all of them together offer, in characters of JSON: it is in memory for one request. */
const MOST_CHARACTERS = 64 * 1024 * 1024;

const TOO_LATE = new ToolError(`The targets of the gateway took more than ${LONGEST_MS / 1000} s together.`);
const TOO_MUCH = new ToolError(
  `The targets of the gateway that are asked offer more than ${MOST_CHARACTERS / 1024 / 1024} MiB together.`,
);

/** Targets whose offers are asked for with each request (listingMode DYNAMIC), in the name of who makes it. */
export class AskedTargets {
  readonly #deps: AskedTargetsDeps;

  constructor(deps: AskedTargetsDeps) {
    this.#deps = deps;
  }

  of({ targets }: OpenGateway): LiveTarget[] {
    return targets.filter((target) => kindOf(target.live, this.#deps.kinds).isAsked?.(target.live));
  }

  /** The gateway with what its dynamic targets offer, within limits of time and memory. A target that does not answer does not delay others. Rejects if a person has to consent first. */
  async seen(open: OpenGateway, asking: Asking): Promise<Seen> {
    const { kinds, clock, log } = this.#deps;
    const asked = this.of(open);
    if (asked.length === 0) return { open, silent: [] };
    const { gateway, targets } = open;
    const { requestId } = asking.caller;
    const offers = storedOffers(open);
    const silent: Seen['silent'] = [];
    const late = new AbortController();
    const cancel = clock.after(LONGEST_MS, () => late.abort(TOO_LATE));
    let left = MOST_CHARACTERS;
    const ask = async (target: LiveTarget, signal: AbortSignal): Promise<void> => {
      late.signal.throwIfAborted();
      if (left < 0) throw TOO_MUCH;
      const both = AbortSignal.any([signal, late.signal]);
      const made = await kindOf(target.live, kinds).ask?.({ ...asking, gateway, target, signal: both });
      left -= JSON.stringify(made ?? '').length;
      if (left < 0) throw TOO_MUCH;
      if (made) offers.set(target.arn, made);
    };
    await eachAtOnce(MOST_AT_ONCE, asked, asking.signal, async (target, signal) => {
      try {
        await ask(target, signal);
      } catch (error) {
        signal.throwIfAborted();
        const reason = failureText(error, { gateway, name: target.name, requestId }, log);
        silent.push({ target: target.name, reason });
      }
    }).finally(cancel);
    return { open: openGateway(gateway, targets, offers), silent };
  }
}

function storedOffers({ tools, prompts, resources, templates }: OpenGateway): Map<string, Partial<Offers>> {
  const offers = new Map<string, Offers>();
  const of = (arn: string): Offers => {
    const known = offers.get(arn) ?? { tools: [], prompts: [], resources: [], templates: [] };
    offers.set(arn, known);
    return known;
  };
  for (const { target, tool } of tools) of(target.arn).tools.push(tool);
  for (const { target, prompt } of prompts) of(target.arn).prompts.push(prompt);
  for (const { target, resource } of resources) of(target.arn).resources.push(resource);
  for (const { target, template } of templates) of(target.arn).templates.push(template);
  return offers;
}
