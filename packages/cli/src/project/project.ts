import type { FilesystemConfiguration } from '@aws-sdk/client-bedrock-agentcore-control';

export type Language = 'typescript' | 'javascript' | 'python' | 'containerfile';

/** What `agentcore.json` says (schema/agentcore.schema.json is its definition). */
export interface ProjectFile {
  name: string;
  description?: string;
  language: Language;
  entrypoint?: string;
  runtime?: string;
  containerfile?: string;
  image?: string;
  environment?: Record<string, string>;
  secrets?: string[];
  egress?: string[];
  protocol?: 'HTTP' | 'MCP' | 'A2A' | 'AGUI';
  lifecycle?: { idleRuntimeSessionTimeout?: number; maxLifetime?: number };
  roleArn?: string;
  requestHeaders?: string[];
  authorizer?: { discoveryUrl: string; allowedAudience?: string[]; allowedClients?: string[] } | null;
  filesystems?: FilesystemConfiguration[];
  bundle?: { external?: string[] };
  exclude?: string[];
}

/** A project file and the folder that it describes. */
export interface Project {
  folder: string;
  file: ProjectFile;
}

/** What a runtime may be called, made of what a person calls it: `my-agent` becomes `my_agent`. */
export function runtimeName(text: string): string {
  return text
    .trim()
    .replace(/[^a-zA-Z0-9_]+/g, '_')
    .replace(/^[^a-zA-Z]+/, '')
    .replace(/_+$/, '')
    .slice(0, 48);
}
