import type { ModelUsage } from './model.ts';

/** What calls have taken since the server started, by the name of the model in the configuration. */
export class ModelTokens {
  readonly input: Record<string, number> = {};
  readonly output: Record<string, number> = {};

  add(model: string, usage: ModelUsage): void {
    this.input[model] = (this.input[model] ?? 0) + usage.input;
    this.output[model] = (this.output[model] ?? 0) + usage.output;
  }
}
