import type { Plane } from './model.ts';

/** One place where this platform accepts more than the published model, and why. */
export interface Relaxation {
  readonly plane: Plane;
  readonly shapes: readonly string[];
  /** Accepted beside the shape's own pattern. */
  readonly alsoMatches: string;
  /** What a text must be, patterns of the model and this one together, for the error that refuses another: "must be …". */
  readonly expected: string;
  readonly reason: string;
}

const loopbackHttp = 'http://(?:localhost|127(?:\\.[0-9]{1,3}){3}|\\[::1\\])(?::[0-9]{1,5})?(?:/.*)?';

// As image references are usually read: a first part is a host only with a dot or a port, or as localhost.
const hostLabel = '[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?';
const registryHost = `(?:(?:localhost|${hostLabel}(?:\\.${hostLabel})+)(?::[0-9]{1,5})?|${hostLabel}:[0-9]{1,5})`;
const pathPart = '[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*';
const repository = `${pathPart}(?:/${pathPart})*`;

/** Every deviation of the validators from the model. Length limits are never relaxed. */
export const relaxations: readonly Relaxation[] = [
  {
    plane: 'control',
    shapes: ['RuntimeContainerUri'],
    alsoMatches: `(?:oci|oci-archive):/[^\\s]+|(?:${registryHost}/)?${repository}(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@sha256:[a-f0-9]{64})?`,
    expected:
      'the name of an image in lower case, such as ghcr.io/acme/agent:1.2, localhost:5000/agent@sha256:…, platform/my-agent:latest, oci:/path/of/layout or oci-archive:/path/of/file.tar',
    reason:
      'Images come from any OCI registry, from an OCI layout or archive on the server, and from the platform’s own store (platform/name), not only from one vendor’s registry.',
  },
  {
    plane: 'control',
    shapes: ['McpServerTargetConfigurationEndpointString', 'McpServerUrl', 'PassthroughEndpoint'],
    alsoMatches: loopbackHttp,
    expected: 'an https:// URL, or http:// on the loopback interface',
    reason:
      'On a laptop the server behind a target runs beside the platform, on the loopback interface and without TLS.',
  },
  {
    plane: 'control',
    shapes: ['Namespace'],
    alsoMatches: '[a-zA-Z0-9\\-_/]*(?:\\{[a-zA-Z][a-zA-Z0-9_]*\\}[a-zA-Z0-9\\-_/]*)*',
    expected: 'letters, digits, - _ / and variables such as {actorId}',
    reason: 'The specification writes the variables of namespace templates as {actor_id} and {session_id}.',
  },
  {
    plane: 'models',
    shapes: ['ConversationalModelId', 'InvokeModelIdentifier'],
    alsoMatches: '[a-zA-Z0-9_.:/-]{1,128}',
    expected:
      'the id of a model, such as us.anthropic.claude-sonnet-4-20250514-v1:0, qwen3:8b or meta-llama/Llama-3.1-8B',
    reason: 'Models that the configuration names are called as their own makers call them.',
  },
];
