import { list, type Shape, wire } from '../../../kernel/stored-shape.ts';
import type { Tool } from '../tools/index.ts';

/** A prompt of an MCP server, as MCP lists it. */
export interface Prompt {
  /** Without the target's prefix. */
  name: string;
  title?: string;
  description?: string;
  arguments?: { name: string; title?: string; description?: string; required?: boolean }[];
}

/** A resource of an MCP server, as MCP lists it. */
export interface Resource {
  uri: string;
  name: string;
  title?: string;
  description?: string;
  mimeType?: string;
  /** Bytes. */
  size?: number;
}

/** Resources of an MCP server, whose URIs are made of a template (RFC 6570). */
export interface ResourceTemplate {
  uriTemplate: string;
  name: string;
  title?: string;
  description?: string;
  mimeType?: string;
}

/** All that a target offers. */
export interface Offers {
  tools: Tool[];
  prompts: Prompt[];
  resources: Resource[];
  templates: ResourceTemplate[];
}

/** The offers as they are stored in the tables. */
export const storedOffers: { [Kind in keyof Offers]: Shape<Offers[Kind]> } = {
  ...{ tools: list(wire<Tool>()), prompts: list(wire<Prompt>()) },
  ...{ resources: list(wire<Resource>()), templates: list(wire<ResourceTemplate>()) },
};

export const NO_OFFERS: Offers = { tools: [], prompts: [], resources: [], templates: [] };
