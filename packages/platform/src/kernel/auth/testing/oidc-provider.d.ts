/** The part of the package that tests use; it ships without types. */
declare module 'oidc-provider' {
  import type { RequestListener } from 'node:http';

  export default class Provider {
    constructor(issuer: string, configuration: Record<string, unknown>);
    callback(): RequestListener;
    use(
      middleware: (ctx: { path: string; body: Record<string, unknown> }, next: () => Promise<void>) => Promise<void>,
    ): void;
    registerGrantType(
      name: string,
      handler: (...given: never[]) => Promise<void>,
      parameters: readonly string[],
      repeatable?: readonly string[],
    ): void;
    interactionDetails(
      req: unknown,
      res: unknown,
    ): Promise<{ uid: string; prompt: { name: string }; params: Record<string, string> }>;
    interactionFinished(req: unknown, res: unknown, result: unknown): Promise<void>;
    readonly Grant: new (of: {
      clientId: string;
      accountId: string;
    }) => {
      addOIDCScope(scope: string): void;
      addResourceScope(resource: string, scope: string): void;
      save(): Promise<string>;
    };
    readonly AccessToken: new (
      of: Record<string, unknown>,
    ) => { scope?: string; save(): Promise<string> };
  }
}
