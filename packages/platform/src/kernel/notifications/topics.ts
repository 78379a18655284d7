import { createHmac } from 'node:crypto';
import type { Clock } from '../clock.ts';
import type { Outbound } from '../outbound/index.ts';

export interface TopicsDeps {
  /** The URL behind each topic's ARN. */
  webhooks: ReadonlyMap<string, string>;
  /** Signs what is sent, so that a receiver knows where it comes from; unsigned without. */
  key?: string;
  /** The operator's way out: he says where the receivers are. */
  outbound: Pick<Outbound, 'fetch'>;
  clock: Clock;
  newId(): string;
}

/** A topic's receiver was not there, or did not take the message. Users read the message: it does not say where the receiver is. */
export class NotificationError extends Error {
  override name = 'NotificationError';
}

const TIMEOUT_MS = 15_000;

/** Messages to topics that a resource names by ARN: each goes to the webhook that the configuration puts behind the topic. */
export interface Topics {
  /** Those that somebody gets messages of. */
  arns: readonly string[];
  /**
   * POSTs the message in the envelope that SNS sends to HTTP endpoints; resolves when the receiver has answered 2xx.
   * At least once: whoever repeats a call that failed may have been heard before. Throws `NotificationError`, or the signal's own reason.
   */
  publish(topicArn: string, message: object, signal?: AbortSignal): Promise<void>;
}

export function createTopics({ webhooks, key, outbound, clock, newId }: TopicsDeps): Topics {
  async function post(url: string, topicArn: string, message: object, signal: AbortSignal | undefined) {
    const id = newId();
    const body = JSON.stringify({
      Type: 'Notification',
      MessageId: id,
      TopicArn: topicArn,
      Message: JSON.stringify(message),
      Timestamp: new Date(clock.now()).toISOString(),
    });
    const answer = await outbound.fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        'x-amz-sns-message-type': 'Notification',
        'x-amz-sns-message-id': id,
        'x-amz-sns-topic-arn': topicArn,
        ...(key === undefined ? {} : { 'x-agentplatform-signature': signatureOf(body, key) }),
      },
      body,
      timeoutMs: TIMEOUT_MS,
      redirects: 0,
      ...(signal ? { signal } : {}),
    });
    // What else it says is nobody's business.
    answer.body.on('error', () => undefined).destroy();
    return answer.status;
  }

  return {
    arns: [...webhooks.keys()],
    async publish(topicArn, message, signal) {
      const url = webhooks.get(topicArn);
      if (url === undefined)
        throw new NotificationError(`no webhook is set up for ${topicArn} (notifications.webhooks)`);
      const status = await post(url, topicArn, message, signal).catch((cause: unknown) => {
        signal?.throwIfAborted();
        throw new NotificationError(`the webhook of ${topicArn} cannot be reached, or does not answer`, { cause });
      });
      if (status >= 300) throw new NotificationError(`the webhook of ${topicArn} answered ${status}`);
    },
  };
}

/** What the receiver compares: HMAC-SHA-256 of the body as it came. */
export function signatureOf(body: string, key: string): string {
  return `sha256=${createHmac('sha256', key).update(body).digest('hex')}`;
}
