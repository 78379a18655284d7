import type { GatewayTool, OpenGateway } from '../gateway-tools.ts';
import { WordIndex } from './word-index.ts';

export interface Found {
  found: GatewayTool[];
  /** Nothing was compared by its meaning. */
  bywords: boolean;
}

/** Finds the tools of a gateway that fit a task. */
export class ToolSearch {
  readonly #indexes = new WeakMap<OpenGateway, WordIndex<GatewayTool>>();

  /** At most so many, best first. */
  async find(open: OpenGateway, query: string, limit: number): Promise<Found> {
    let index = this.#indexes.get(open);
    if (!index) {
      index = new WordIndex(open.tools, textsOf);
      this.#indexes.set(open, index);
    }
    return { found: index.find(query, limit), bywords: true };
  }
}

/** What is searched of a tool: its name most, then what it is for, then its parameters. */
function textsOf({ tool }: GatewayTool): [text: string, weight: number][] {
  const parameters = Object.entries(tool.inputSchema.properties ?? {}).map(([name, schema]) => {
    const { description } = typeof schema === 'object' ? schema : {};
    return `${name} ${typeof description === 'string' ? description : ''}`;
  });
  return [
    [`${tool.name} ${tool.title ?? ''}`, 3],
    [tool.description, 2],
    [parameters.join(' '), 1],
  ];
}
