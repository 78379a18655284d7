import { type ErrorKind, errorCatalogue, type OperationName } from '@agentplatform/contract';
import type { SettingTree } from './config/setting.ts';
import type { PassService, RouteSet, SocketService } from './kernel/http/index.ts';
import type { Sink } from './kernel/journal/index.ts';
import type { HandlersOf } from './kernel/service.ts';
import type { SessionKind } from './kernel/sessions/index.ts';
import type { Executor, Migration, RetentionRule } from './kernel/storage/index.ts';
import type { Gauge } from './kernel/telemetry/index.ts';
import type { Kernel } from './open-kernel.ts';

/** What each service lets the others use, by the service's name; each service adds its own entry beside its module. */
// biome-ignore lint/suspicious/noEmptyInterface: the modules of services add to it
export interface Ports {}

/** What a service says of itself before any of its code is loaded. */
export interface ServiceManifest<Settings extends SettingTree, Module> {
  name: string;
  /** Settings of its own, by group; they join those of the platform under the same names. */
  settings?: Settings;
  /** Names of errors that it answers beside those of the catalogue; the reference of errors lists them, and no two services share one. */
  errors?: Readonly<Record<string, ErrorKind>>;
  load(): Promise<{ module: Module }>;
}

/** Keeps the types of what is declared. */
export const declareService = <const Settings extends SettingTree, Module>(
  manifest: ServiceManifest<Settings, Module>,
): ServiceManifest<Settings, Module> => manifest;

/** How long things are kept that the configuration names, in milliseconds. */
export interface Keeping {
  auditMs: number;
  sessionsMs: number;
  usageMs: number;
}

/** One service of the platform: what it adds to the common parts, and how it is made. `Name` is that of its manifest. */
export interface ServiceModule<Name extends string, Names extends OperationName, Needs extends keyof Ports = never> {
  /** What it serves of the contract. */
  operations?: readonly Names[];
  /** Its tables, in the order in which they are made. */
  migrations?: readonly Migration[];
  /** What it keeps for a while only. */
  retention?(database: Executor, keeping: Keeping): RetentionRule[];
  /** Where records of its own kinds go that the journal carries to the database. */
  sinks?: Readonly<Record<string, AnySink>>;
  /** Services whose ports it uses; they are made before it and stopped after it. */
  needs?: readonly Needs[];
  create(
    kernel: Kernel,
    ports: Pick<Ports, Needs>,
  ): Promise<ServiceParts<Names, PortOf<Name>>> | ServiceParts<Names, PortOf<Name>>;
}

// biome-ignore lint/suspicious/noExplicitAny: a sink reads its own records itself; who lists sinks of all kinds cannot name the type
export type AnySink = Sink<any>;

type PortOf<Name extends string> = Name extends keyof Ports ? Ports[Name] : unknown;

/** A service that was made; whatever is absent it does not have. */
export interface ServiceParts<Names extends OperationName, Port = unknown> {
  operations: HandlersOf<Names>;
  /** What it serves beside the operations of the contract. */
  routes?: readonly RouteSet[];
  /** Requests below a path that it hands through, whatever they are. */
  passes?: readonly PassService[];
  /** WebSockets that it takes. */
  sockets?: SocketService;
  /** Sessions of its own kind. */
  sessionKind?: SessionKind;
  /** What it shows on `/metrics` beside what the kernel measures of every request and session. */
  metrics?: readonly Gauge[];
  /** Digests of the images that it still needs; all others may be collected. */
  imagesInUse?(): Promise<Iterable<string>>;
  /** What it keeps for a while only, where that takes more than the database to forget (`ServiceModule.retention`). */
  retention?: readonly RetentionRule[];
  /** What other services may use of it. */
  port: Port;
  /** Ends what WebSockets have left behind, once they are closed and before the server takes no more requests. */
  drain?(): Promise<void>;
  /** Called in the order of the services, once sessions of before are taken up. */
  start?(): Promise<void>;
  /** Called in the reverse order, while everything that it uses still works. */
  stop?(): Promise<void>;
}

type UnionToIntersection<U> = (U extends unknown ? (value: U) => void : never) extends (value: infer I) => void
  ? I
  : never;

/** The settings of all these services, as one tree. */
export function settingsOf<const Manifests extends readonly ServiceManifest<SettingTree, unknown>[]>(
  manifests: Manifests,
): UnionToIntersection<NonNullable<Manifests[number]['settings']>> {
  return Object.assign({}, ...manifests.map(({ settings }) => settings));
}

/** Every error that there is: those of the catalogue, and what services have beside it. Throws for a name that is declared twice. */
export function errorsOf(
  manifests: readonly Pick<ServiceManifest<SettingTree, unknown>, 'name' | 'errors'>[],
): Record<string, ErrorKind> {
  const all: Record<string, ErrorKind> = { ...errorCatalogue };
  for (const { name, errors = {} } of manifests)
    for (const [code, kind] of Object.entries(errors)) {
      if (code in all) throw new Error(`the error ${code} is declared twice, the second time by ${name}`);
      all[code] = kind;
    }
  return all;
}

/** A module of whatever service. */
// biome-ignore lint/suspicious/noExplicitAny: each knows its own names and needs
export type AnyModule = ServiceModule<any, any, any>;

/** A manifest of whatever service. */
export type AnyManifest = ServiceManifest<SettingTree, AnyModule>;
