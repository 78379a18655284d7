import type { ProbeReport, Sandbox, SandboxImage, SandboxProvider, SandboxSpec } from './sandbox.ts';

/** A provider that leaves everything to another one; a layer over it overrides what it adds to. */
export class ProviderLayer implements SandboxProvider {
  readonly name: SandboxProvider['name'];
  readonly #inner: SandboxProvider;

  constructor(inner: SandboxProvider) {
    this.name = inner.name;
    this.#inner = inner;
  }

  stage(image: SandboxImage, signal?: AbortSignal): Promise<void> {
    return this.#inner.stage(image, signal);
  }

  create(spec: SandboxSpec, signal?: AbortSignal): Promise<Sandbox> {
    return this.#inner.create(spec, signal);
  }

  async keepsSnapshots(): Promise<boolean> {
    return (await this.#inner.keepsSnapshots?.()) ?? false;
  }

  reattach(): AsyncIterable<Sandbox> {
    return this.#inner.reattach();
  }

  probe(): Promise<ProbeReport> {
    return this.#inner.probe();
  }

  sweep(keep?: ReadonlySet<string>): Promise<string[]> {
    return this.#inner.sweep(keep);
  }

  close(): Promise<void> {
    return this.#inner.close();
  }
}
