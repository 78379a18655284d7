import { createHash } from 'node:crypto';
import type { control } from '@agentplatform/contract';
import type { OpenGateway } from '../gateway-tools.ts';
import { meets, type RoutedRequest } from './meets.ts';
import type { Rule } from './rule.ts';
import { sessionOf } from './stickiness.ts';
import type { StickySession, StickySessions } from './sticky-sessions.ts';

/** The destination of a request. */
export type Route = Pick<control.StaticRoute, 'targetName' | 'model' | 'fallback'>;

/** The destination that a rule gives a request. */
export type Ruled =
  | { route: Route; choose?: undefined }
  /** To one of two: `choose` draws it, or finds that of the request's session. It writes nothing. */
  | { route?: undefined; choose(): Promise<Chosen> };

export interface Chosen {
  route: Route;
  /** To be called once the request goes there: its session stays. Absent where it is of none. */
  keep?(): Promise<void>;
  /** To be told the headers of the answer: a session that begins with it stays. Absent where the request is of a session already. */
  answered?(headers: Headers): Promise<void>;
}

type Headers = Readonly<Record<string, string | string[] | undefined>>;
type Split = readonly control.TargetTrafficSplitEntry[];

export interface RoutingDeps {
  sticky: Pick<StickySessions, 'nameOf' | 'keep' | 'begin'>;
  /** From 0 to 1. */
  random(): number;
}

/** Sessions that are known without a target that says where they are. */
const USUAL_SESSIONS = ['x-amzn-bedrock-agentcore-runtime-session-id', 'mcp-session-id'];
/** The default idle time of a session, which is also the longest. */
const LONGEST_SECONDS = 86_400;

/** Finds where the rules of a gateway send requests. */
export class Routing {
  readonly #deps: RoutingDeps;

  constructor(deps: RoutingDeps) {
    this.#deps = deps;
  }

  /** Where the first rule sends a request whose conditions it meets; undefined where none does. */
  find(
    { rules, targets }: Pick<OpenGateway, 'rules' | 'targets'>,
    request: RoutedRequest & { headers: Headers },
  ): Ruled | undefined {
    const rule = rules.find((one) => meets(request, one));
    const route = rule?.actions.find(({ routeToTarget }) => routeToTarget)?.routeToTarget;
    if (!rule || !route) return undefined;
    if (route.staticRoute) return { route: route.staticRoute };
    const split = route.weightedRoute?.trafficSplit ?? [];
    return split.length === 0 ? undefined : { choose: () => this.#choose(rule, split, targets, request.headers) };
  }

  async #choose(rule: Rule, split: Split, targets: OpenGateway['targets'], headers: Headers): Promise<Chosen> {
    const { sticky, random } = this.#deps;
    const session = sessionIn(rule, split, targets, headers);
    if (session) {
      const usual = drawn(split, shareOf(session.key)).name;
      const anew = (seenAt: string) => drawn(split, shareOf(`${session.key} ${seenAt}`)).name;
      const names = split.map(({ name }) => name);
      const name = await sticky.nameOf(session, { usual, anew, names });
      const route = split.find((one) => one.name === name) ?? drawn(split, random());
      return { route, keep: () => sticky.keep(session, name, names) };
    }
    const route = drawn(split, random());
    const answered = async (answer: Headers): Promise<void> => {
      const begun = sessionIn(rule, split, targets, { ...headers, ...answer });
      if (begun && drawn(split, shareOf(begun.key)) !== route) await sticky.begin(begun, route.name);
    };
    return { route, answered };
  }
}

/** That in whose part of the hundred a share falls. */
function drawn(split: Split, share: number): Split[number] {
  const [first, second] = split;
  const entry = first && (100 * share < first.weight || !second) ? first : second;
  if (!entry) throw new Error('a split without entries');
  return entry;
}

function sessionIn(
  { gatewayArn, id }: Rule,
  split: Split,
  targets: OpenGateway['targets'],
  headers: Headers,
): StickySession | undefined {
  const found = (session: string, timeoutSeconds = LONGEST_SECONDS): StickySession => ({
    ...{ key: JSON.stringify([gatewayArn, id, session]), timeoutSeconds },
  });
  for (const { live } of targets.filter(({ name }) => split.some(({ targetName }) => targetName === name))) {
    const { stickinessConfiguration: said } = live.targetConfiguration.http?.passthrough ?? {};
    const session = said && sessionOf(said, headers);
    if (session !== undefined) return found(session, said?.timeout);
  }
  const usual = USUAL_SESSIONS.map((name) => headers[name]).find((value) => typeof value === 'string');
  return usual === undefined ? undefined : found(String(usual));
}

/** From 0 to 1, the same for the same session. */
function shareOf(key: string): number {
  return createHash('sha256').update(key).digest().readUInt32BE(0) / 2 ** 32;
}
