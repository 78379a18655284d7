// Tools that do not run here: the platform calls them for the loop, or hands the call to the client.
import { JsonBlock, TextBlock, Tool, ToolResultBlock } from '@strands-agents/sdk';

class GivenTool extends Tool {
  constructor({ name, description, inputSchema }) {
    super();
    this.name = name;
    this.description = description;
    this.toolSpec = { name, description, inputSchema };
  }
}

/** A tool that the platform calls. */
export class PlatformTool extends GivenTool {
  #link;

  constructor(spec, link) {
    super(spec);
    this.#link = link;
  }

  // biome-ignore lint/correctness/useYield: a tool is a generator, and this one has nothing to say before its result
  async *stream({ toolUse: { toolUseId, name, input } }) {
    const { result } = await this.#link.askOnce({ type: 'tool', toolUseId, name, input });
    return resultBlock({ ...result, toolUseId });
  }
}

/** A function of the client: the turn pauses. */
export class InlineFunction extends GivenTool {
  // biome-ignore lint/correctness/useYield: as above
  async *stream(context) {
    context.interrupt({ name: context.toolUse.toolUseId });
    throw new Error('unreachable: the interrupt is never answered here');
  }
}

/** A stored result as the loop has it. */
export function resultBlock({ toolUseId, status, content }) {
  return new ToolResultBlock({
    toolUseId,
    status,
    content: content.map((one) => ('json' in one ? new JsonBlock(one) : new TextBlock(one.text))),
  });
}
