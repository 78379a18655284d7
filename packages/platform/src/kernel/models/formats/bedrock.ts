import type { models, StreamingBlob } from '@agentplatform/contract';
import type { Logger } from 'pino';
import type { Clock } from '../../clock.ts';
import type { Span } from '../../telemetry/index.ts';
import type { Model, ModelAnswer, ModelEvent, ModelRequest } from '../model.ts';
import { converseEvents, converseOutput } from './converse-answer.ts';
import { converseRequest } from './converse-request.ts';
import { bodyOf, formatOf } from './invoke-body.ts';
import { serviceErrorOf } from './model-failure.ts';

/** What a call of a model is a part of. */
export interface AskingContext {
  requestId: string;
  /** Aborted when the client goes away. */
  signal: AbortSignal;
  span: Span;
  log: Logger;
}

export interface BedrockContext extends AskingContext {
  /** Takes memory for so much more of the body. Throws where there is none. */
  holdBody(bytes: number): void;
}

type Time = Pick<Clock, 'now' | 'monotonic'>;

/** The model's answer. Rejects with the wire's errors. */
export async function wholeAnswer(model: Model, request: ModelRequest, ctx: AskingContext): Promise<ModelAnswer> {
  try {
    return await model.generate({ ...request, span: ctx.span }, ctx.signal);
  } catch (error) {
    throw serviceErrorOf(error, { model: model.name, log: ctx.log, streaming: false });
  }
}

/** The model's answer as it comes, once there is something of it: what fails before that rejects, and what fails later is thrown by the stream; the wire's errors both. */
export async function streamedAnswer(
  model: Model,
  request: ModelRequest,
  ctx: AskingContext,
): Promise<AsyncIterable<ModelEvent>> {
  const events = eventsOf(model, request, ctx);
  const first = await events.next();
  return (async function* () {
    try {
      if (!first.done) yield first.value;
      yield* events;
    } finally {
      // Whoever stops at the first event ends the call, too.
      await events.return(undefined);
    }
  })();
}

async function* eventsOf(model: Model, request: ModelRequest, ctx: AskingContext): AsyncGenerator<ModelEvent, void> {
  let begun = false;
  try {
    for await (const event of model.stream({ ...request, span: ctx.span }, ctx.signal)) {
      begun = true;
      yield event;
    }
  } catch (error) {
    throw serviceErrorOf(error, { model: model.name, log: ctx.log, streaming: begun });
  }
}

/** Bedrock Runtime's operations that ask a model: decoded inputs in, outputs to encode. They reject with the wire's errors. */
export const BEDROCK = {
  async Converse(
    input: models.ConverseRequest,
    model: Model,
    ctx: BedrockContext,
    clock: Time,
  ): Promise<models.ConverseResponse> {
    const startedAt = clock.monotonic();
    const answer = await wholeAnswer(model, converseRequest(input), ctx);
    return converseOutput(answer, clock.monotonic() - startedAt);
  },

  async ConverseStream(input: models.ConverseStreamRequest, model: Model, ctx: BedrockContext, clock: Time) {
    const startedAt = clock.monotonic();
    const events = await streamedAnswer(model, converseRequest(input), ctx);
    return { stream: converseEvents(events, () => clock.monotonic() - startedAt) };
  },

  async InvokeModel(input: models.InvokeModelRequest, model: Model, ctx: BedrockContext, clock: Time) {
    const asked = await bodyOf(input, ctx);
    const format = formatOf(asked);
    const answer = await wholeAnswer(model, format.request(asked), ctx);
    const said = { id: ctx.requestId, model: input.modelId, seconds: clock.now() / 1000, asked };
    return { body: inOnePart(format.answer(answer, said)), contentType: 'application/json' };
  },

  async InvokeModelWithResponseStream(
    input: models.InvokeModelWithResponseStreamRequest,
    model: Model,
    ctx: BedrockContext,
    clock: Time,
  ) {
    const asked = await bodyOf(input, ctx);
    const format = formatOf(asked);
    const events = await streamedAnswer(model, format.request(asked), ctx);
    const said = { id: ctx.requestId, model: input.modelId, seconds: clock.now() / 1000, asked };
    return { body: chunks(format.events(events, said)), contentType: 'application/json' };
  },
};

async function* inOnePart(value: object): StreamingBlob {
  yield Buffer.from(JSON.stringify(value));
}

async function* chunks(events: AsyncIterable<object>): AsyncGenerator<{ chunk: { bytes: Uint8Array } }> {
  for await (const event of events) yield { chunk: { bytes: Buffer.from(JSON.stringify(event)) } };
}
