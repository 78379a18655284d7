import {
  type GetPromptResult,
  type InputRequiredResult,
  type ListPromptsResult,
  ProtocolError,
  ProtocolErrorCode,
} from '@modelcontextprotocol/server';
import type { Logger } from 'pino';
import type { OpenGateway } from '../gateway-tools.ts';
import type { LiveTarget } from '../targets/target.ts';
import type { AskedPrompt, Asking } from '../targets/target-kind.ts';
import { kindOf, type TargetKinds } from '../targets/target-kinds.ts';
import { splitName } from '../tools/index.ts';
import type { AskedTargets } from './asked-targets.ts';
import { failure } from './failures.ts';
import { pageOf } from './page.ts';

export interface PromptsDeps {
  kinds: TargetKinds;
  asked: AskedTargets;
  log: Logger;
}

/** The prompts of a gateway: those of its MCP servers, with the prefix of the target. */
export class Prompts {
  readonly #deps: PromptsDeps;

  constructor(deps: PromptsDeps) {
    this.#deps = deps;
  }

  async list(open: OpenGateway, cursor: string | undefined, asking: Asking): Promise<ListPromptsResult> {
    const seen = await this.#deps.asked.seen(open, asking);
    const { items, ...next } = pageOf(seen.open.prompts, cursor);
    return { prompts: items.map(({ listed, prompt }) => ({ ...prompt, name: listed })), ...next };
  }

  /** Rejects with InvalidParams for a prompt that there is not. */
  async get(open: OpenGateway, prompt: AskedPrompt, asking: Asking): Promise<GetPromptResult | InputRequiredResult> {
    const { kinds, log } = this.#deps;
    const { gateway } = open;
    const { target, name } = this.#find(open, prompt.name);
    try {
      const answer = await kindOf(target.live, kinds).getPrompt?.({ ...asking, gateway, target }, { ...prompt, name });
      if (answer) return answer;
    } catch (error) {
      asking.signal.throwIfAborted();
      throw failure(error, { gateway, name: prompt.name, requestId: asking.caller.requestId }, log);
    }
    throw unknown(prompt.name);
  }

  #find(open: OpenGateway, listed: string): { target: LiveTarget; name: string } {
    const found = open.prompts.find((one) => one.listed === listed);
    if (found) return { target: found.target, name: found.prompt.name };
    const split = splitName(listed);
    const target = this.#deps.asked.of(open).find(({ name }) => name === split?.target);
    if (split && target) return { target, name: split.name };
    throw unknown(listed);
  }
}

function unknown(name: string): ProtocolError {
  return new ProtocolError(ProtocolErrorCode.InvalidParams, `Unknown prompt: ${name.slice(0, 200)}`);
}
