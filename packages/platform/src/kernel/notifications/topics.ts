import { createHmac } from 'node:crypto';
import type { Clock } from '../clock.ts';
import type { Outbound } from '../outbound/index.ts';

export interface TopicsDeps {
  /** The URL behind each topic's ARN. */
  webhooks: ReadonlyMap<string, string>;
  /** Signs what is sent, so that a receiver knows where it comes from; unsigned without. */
  key?: string;
  outbound: Outbound;
  clock: Clock;
  newId(): string;
}

/** A topic's receiver was not there, or did not take the message. */
export class NotificationError extends Error {
  override name = 'NotificationError';
}

const TIMEOUT_MS = 15_000;

/** Messages to topics that a resource names by ARN: each goes to the webhook that the configuration puts behind the topic. */
export interface Topics {
  /** Whether somebody would get a message. */
  has(topicArn: string): boolean;
  /**
   * POSTs the message in the envelope that SNS sends to HTTP endpoints; resolves when the receiver has answered 2xx.
   * At least once: whoever repeats a call that failed may have been heard before. Throws `NotificationError`, `OutboundError`.
   */
  publish(topicArn: string, message: object, signal?: AbortSignal): Promise<void>;
}

export function createTopics({ webhooks, key, outbound, clock, newId }: TopicsDeps): Topics {
  return {
    has: (topicArn) => webhooks.has(topicArn),
    async publish(topicArn, message, signal) {
      const url = webhooks.get(topicArn);
      if (url === undefined)
        throw new NotificationError(`no webhook is set up for ${topicArn} (notifications.webhooks)`);
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
      answer.body.on('error', () => undefined).destroy();
      if (answer.status >= 300) throw new NotificationError(`the webhook of ${topicArn} answered ${answer.status}`);
    },
  };
}

/** What the receiver compares: HMAC-SHA-256 of the body as it came. */
export function signatureOf(body: string, key: string): string {
  return `sha256=${createHmac('sha256', key).update(body).digest('hex')}`;
}

/** `arn=URL[,arn=URL…]` as a map. */
export function webhookMap(text: string): Map<string, string> {
  const entries = text.split(/,(?=arn:)/).filter((entry) => entry !== '');
  return new Map(entries.map((entry) => [entry.slice(0, entry.indexOf('=')), entry.slice(entry.indexOf('=') + 1)]));
}
