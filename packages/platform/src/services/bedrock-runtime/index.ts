import type { StreamingBlob } from '@agentplatform/contract';
import type { Clock } from '../../kernel/clock.ts';
import type { Model, ModelAnswer, ModelEvent, ModelRequest, Models } from '../../kernel/models/index.ts';
import type { RequestContext, Service } from '../../kernel/service.ts';
import { converseEvents, converseOutput } from './converse-answer.ts';
import { converseRequest } from './converse-request.ts';
import { bodyOf, dialectOf } from './invoke-body.ts';
import { serviceErrorOf } from './model-failure.ts';
import { modelArn, modelFor } from './model-ids.ts';
import type { ModelTokens } from './model-tokens.ts';

export type BedrockRuntimeOperation = 'Converse' | 'ConverseStream' | 'InvokeModel' | 'InvokeModelWithResponseStream';

export interface BedrockRuntimeDeps {
  models: Models;
  tokens: ModelTokens;
  clock: Clock;
}

/** Bedrock Runtime's four operations that ask a model, answered by the models of the configuration. */
export function createBedrockRuntimeService({
  models,
  tokens,
  clock,
}: BedrockRuntimeDeps): Service<BedrockRuntimeOperation> {
  const resource = ({ modelId }: { modelId: string }, { region }: RequestContext): string => modelArn(modelId, region);

  async function generate(model: Model, request: ModelRequest, ctx: RequestContext): Promise<ModelAnswer> {
    try {
      const answer = await model.generate({ ...request, span: ctx.span }, ctx.signal);
      tokens.add(model.name, answer.usage);
      return answer;
    } catch (error) {
      throw serviceErrorOf(error, { model: model.name, log: ctx.log, streaming: false });
    }
  }

  async function* eventsOf(model: Model, request: ModelRequest, ctx: RequestContext): AsyncGenerator<ModelEvent> {
    let begun = false;
    try {
      for await (const event of model.stream({ ...request, span: ctx.span }, ctx.signal)) {
        begun = true;
        if (event.type === 'end') tokens.add(model.name, event.usage);
        yield event;
      }
    } catch (error) {
      throw serviceErrorOf(error, { model: model.name, log: ctx.log, streaming: begun });
    }
  }

  return {
    operations: {
      Converse: {
        resource,
        async handle(input, ctx) {
          const startedAt = clock.monotonic();
          const request = converseRequest(input);
          const answer = await generate(modelFor(models, input.modelId), request, ctx);
          return converseOutput(answer, clock.monotonic() - startedAt);
        },
      },
      ConverseStream: {
        resource,
        async handle(input, ctx) {
          const startedAt = clock.monotonic();
          const request = converseRequest(input);
          const events = await begun(eventsOf(modelFor(models, input.modelId), request, ctx));
          return { stream: converseEvents(events, () => clock.monotonic() - startedAt) };
        },
      },
      InvokeModel: {
        resource,
        async handle(input, ctx) {
          const body = await bodyOf(input, ctx);
          const dialect = dialectOf(body);
          const answer = await generate(modelFor(models, input.modelId), dialect.request(body), ctx);
          const said = dialect.answer(answer, { id: ctx.requestId, model: input.modelId, seconds: clock.now() / 1000 });
          return { body: inOnePart(said), contentType: 'application/json' };
        },
      },
      InvokeModelWithResponseStream: {
        resource,
        async handle(input, ctx) {
          const body = await bodyOf(input, ctx);
          const dialect = dialectOf(body);
          const events = await begun(eventsOf(modelFor(models, input.modelId), dialect.request(body), ctx));
          const said = { id: ctx.requestId, model: input.modelId, seconds: clock.now() / 1000 };
          return { body: chunks(dialect.events(events, said)), contentType: 'application/json' };
        },
      },
    },
    port: undefined,
    start: async () => undefined,
    stop: async () => undefined,
  };
}

/** The same events once there is a first one: what fails before that is answered as an error, not as a stream. */
async function begun(events: AsyncGenerator<ModelEvent>): Promise<AsyncIterable<ModelEvent>> {
  const first = await events.next();
  return (async function* () {
    if (!first.done) yield first.value;
    yield* events;
  })();
}

async function* inOnePart(value: object): StreamingBlob {
  yield Buffer.from(JSON.stringify(value));
}

async function* chunks(events: AsyncIterable<object>): AsyncGenerator<{ chunk: { bytes: Uint8Array } }> {
  for await (const event of events) yield { chunk: { bytes: Buffer.from(JSON.stringify(event)) } };
}
