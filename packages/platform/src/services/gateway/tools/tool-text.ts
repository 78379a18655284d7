import { createHash } from 'node:crypto';
import type { Tool } from './tool.ts';

/** What is searched of a tool, in the order of its weight. */
export interface ToolTexts {
  name: string;
  description: string;
  /** Names of parameters, with what is said of them. */
  parameters: string;
}

/** Characters. Models look at some 256 words of a text; what is beyond costs time and is not seen. */
const LONGEST = 2_000;

/** As much of a text as search looks at. */
export function searchedPart(text: string): string {
  return text.slice(0, LONGEST).toWellFormed();
}

export function toolTexts({ name, title = '', description, inputSchema }: Tool): ToolTexts {
  const parameters = Object.entries(inputSchema.properties ?? {}).map(([parameter, schema]) => {
    const said = typeof schema === 'object' ? schema.description : undefined;
    return typeof said === 'string' ? `${parameter} ${said}` : parameter;
  });
  return { name: `${name} ${title}`.trim(), description, parameters: parameters.join(', ') };
}

/** The text by which a model compares a tool; `digestOf` tells two apart. */
export function embeddedText(tool: Tool): string {
  const { name, description, parameters } = toolTexts(tool);
  const words = name.replace(/(\p{Ll}|\p{N})(\p{Lu})/gu, '$1 $2').replace(/[^\p{L}\p{N}]+/gu, ' ');
  return searchedPart(`${words}. ${description}. ${parameters}`);
}

/** Is another when the text is another. */
export function digestOf(tool: Tool): string {
  return createHash('sha256').update(embeddedText(tool)).digest('base64url');
}
