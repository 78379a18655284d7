import { property } from '../records/json-path.ts';
import { networkPolicy, text, texts } from '../records/record-fields.ts';
import type { NetworkPolicy } from '../sandbox.ts';

/** What a later server must know of a container to take it over or to remove it; kept in the container's labels. */
export interface DockerRecord {
  id: string;
  labels: Record<string, string>;
  isolation: string;
  /** Number of its network within the platform's address range. */
  slot: number;
  ip: string;
  /** `uid:gid` that its processes have. */
  user: string;
  cwd: string;
  network: NetworkPolicy;
}

export const INSTANCE_LABEL = 'agentplatform.instance';
export const DATA_LABEL = 'agentplatform.data';
const RECORD_LABEL = 'agentplatform.sandbox';

export function recordLabels(record: DockerRecord): Record<string, string> {
  return { [RECORD_LABEL]: JSON.stringify(record) };
}

/** The record in a container's labels, or undefined when it is missing or incomplete: anybody may label a container. */
export function readLabels(labels: unknown): DockerRecord | undefined {
  const text = property(labels, RECORD_LABEL);
  if (typeof text !== 'string') return undefined;
  try {
    return decode(JSON.parse(text));
  } catch {
    return undefined;
  }
}

function decode(value: unknown): DockerRecord {
  const labels = property(value, 'labels');
  const slot = property(value, 'slot');
  if (typeof slot !== 'number' || typeof labels !== 'object' || labels === null) throw new TypeError('not a record');
  return {
    id: text(value, 'id'),
    labels: texts(labels),
    isolation: text(value, 'isolation'),
    slot,
    ip: text(value, 'ip'),
    user: text(value, 'user'),
    cwd: text(value, 'cwd'),
    network: networkPolicy(property(value, 'network')),
  };
}
