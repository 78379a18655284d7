import type { ProjectFile } from '../project/project.ts';

/** A variable with this value gets that secret's. */
const REFERENCE = 'secretref:';
/** The variable that names the services which the agent may reach besides. */
const ALLOW_EGRESS = 'AGENTPLATFORM_ALLOW_EGRESS';

type Variables = Record<string, string>;

/**
 * The environment variables of the runtime: plain ones, references to secrets, and the services that are opened. Each of the three is
 * replaced if `agentcore.json` names it, and else stays as it is in `live`. Undefined when nothing names any.
 */
export function agentEnvironment(
  { environment, secrets, egress }: Pick<ProjectFile, 'environment' | 'secrets' | 'egress'>,
  live: Variables = {},
): Variables | undefined {
  const kept = { plain: {} as Variables, secrets: {} as Variables, egress: {} as Variables };
  for (const [name, value] of Object.entries(live)) {
    const kind = name === ALLOW_EGRESS ? 'egress' : value.startsWith(REFERENCE) ? 'secrets' : 'plain';
    kept[kind][name] = value;
  }
  const all = {
    ...(environment ?? kept.plain),
    ...(secrets ? Object.fromEntries(secrets.map((name) => [name, `${REFERENCE}${name}`])) : kept.secrets),
    ...(egress ? opened(egress) : kept.egress),
  };
  return Object.keys(all).length > 0 ? all : environment;
}

function opened(egress: string[]): Variables {
  return egress.length > 0 ? { [ALLOW_EGRESS]: egress.join(',') } : {};
}
