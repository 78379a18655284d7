import {
  type InputRequiredResult,
  type ListResourcesResult,
  type ListResourceTemplatesResult,
  type ReadResourceResult,
  ResourceNotFoundError,
} from '@modelcontextprotocol/server';
import type { Logger } from 'pino';
import { type OpenGateway, priorityOf } from '../gateway-tools.ts';
import type { LiveTarget } from '../targets/target.ts';
import type { Asking } from '../targets/target-kind.ts';
import { kindOf, type TargetKinds } from '../targets/target-kinds.ts';
import type { AskedTargets } from './asked-targets.ts';
import { failure } from './failures.ts';
import { pageOf } from './page.ts';
import { fits } from './uri-template.ts';

export interface ResourcesDeps {
  kinds: TargetKinds;
  asked: AskedTargets;
  log: Logger;
}

/** The resources of a gateway: those of its MCP servers, by their own URIs. */
export class Resources {
  readonly #deps: ResourcesDeps;

  constructor(deps: ResourcesDeps) {
    this.#deps = deps;
  }

  async list(open: OpenGateway, cursor: string | undefined, asking: Asking): Promise<ListResourcesResult> {
    const seen = await this.#deps.asked.seen(open, asking);
    const { items, ...next } = pageOf(seen.open.resources, cursor);
    return { resources: items.map(({ resource }) => resource), ...next };
  }

  async listTemplates(
    open: OpenGateway,
    cursor: string | undefined,
    asking: Asking,
  ): Promise<ListResourceTemplatesResult> {
    const seen = await this.#deps.asked.seen(open, asking);
    const { items, ...next } = pageOf(seen.open.templates, cursor);
    return { resourceTemplates: items.map(({ template }) => template), ...next };
  }

  /** Of several targets that have it, the one of the lowest priority is asked. Rejects with ResourceNotFound. */
  async read(open: OpenGateway, uri: string, asking: Asking): Promise<ReadResourceResult | InputRequiredResult> {
    const { kinds, asked, log } = this.#deps;
    const { gateway } = open;
    const target = targetOf(open, uri) ?? targetOf((await asked.seen(open, asking)).open, uri);
    if (!target) throw new ResourceNotFoundError(uri.slice(0, 2048));
    try {
      const answer = await kindOf(target.live, kinds).readResource?.({ ...asking, gateway, target }, uri);
      if (answer) return answer;
    } catch (error) {
      asking.signal.throwIfAborted();
      throw failure(error, { gateway, name: uri.slice(0, 2048), requestId: asking.caller.requestId }, log);
    }
    throw new ResourceNotFoundError(uri.slice(0, 2048));
  }
}

/** Who lists it, else who has a template that it fits. */
export function targetOf({ resources, templates }: OpenGateway, uri: string): LiveTarget | undefined {
  const listed = resources.find((one) => one.listed === uri);
  if (listed) return listed.target;
  const [first] = templates
    .filter((one) => fits(one.listed, uri))
    .sort((a, b) => priorityOf(a.target) - priorityOf(b.target));
  return first?.target;
}
