import { type control, errors } from '@agentplatform/contract';
import type { Topics } from '../../../kernel/notifications/index.ts';
import type { ObjectWriter } from '../../../kernel/objects/index.ts';
import type { RequestContext } from '../../../kernel/service.ts';

export interface InvocationCheckDeps {
  objects: ObjectWriter;
  topics: Topics;
}

/** Where a request wants the batches of a self-managed strategy, and the field that says so. */
interface Wanted {
  field: string;
  invocation: Partial<control.InvocationConfigurationInput>;
}

/**
 * Refuses a self-managed strategy whose batches would reach nobody, and one that its author could not have fed himself: he
 * needs `s3:PutObject` for the bucket and `sns:Publish` for the topic.
 */
export async function checkInvocations(
  wanted: readonly Wanted[],
  ctx: Pick<RequestContext, 'accountId' | 'require'>,
  { objects, topics }: InvocationCheckDeps,
): Promise<void> {
  for (const { field, invocation } of wanted) {
    const { payloadDeliveryBucketName: bucket, topicArn } = invocation;
    if (bucket !== undefined) {
      await ctx.require('s3:PutObject', `arn:aws:s3:::${bucket}/*`);
      if (!(await objects.hasBucket(ctx.accountId, bucket))) {
        throw errors.invalidField(
          `${field}.payloadDeliveryBucketName`,
          `is ${bucket}, which is not a bucket of this account`,
          {
            remedy: 'Make it first: aws s3 mb s3://NAME.',
          },
        );
      }
    }
    if (topicArn !== undefined) {
      await ctx.require('sns:Publish', topicArn);
      if (!topics.arns.includes(topicArn)) {
        throw errors.invalidField(`${field}.topicArn`, `is ${topicArn}, to which nobody listens here`, {
          remedy: 'Set the webhook of the topic in notifications.webhooks.',
        });
      }
    }
  }
}

/** What strategies of CreateMemory, or `addMemoryStrategies`, want. */
export function wantedByNew(strategies: readonly control.MemoryStrategyInput[] | undefined, at: string): Wanted[] {
  return (strategies ?? []).flatMap((strategy, index) => {
    const invocation = strategy.customMemoryStrategy?.configuration?.selfManagedConfiguration?.invocationConfiguration;
    const path = 'customMemoryStrategy.configuration.selfManagedConfiguration.invocationConfiguration';
    return invocation ? [{ field: `${at}[${index}].${path}`, invocation }] : [];
  });
}

/** What UpdateMemory wants. */
export function wantedByChange(change: control.ModifyMemoryStrategies | undefined): Wanted[] {
  const modified = (change?.modifyMemoryStrategies ?? []).flatMap((strategy, index) => {
    const invocation = strategy.configuration?.selfManagedConfiguration?.invocationConfiguration;
    const path = 'configuration.selfManagedConfiguration.invocationConfiguration';
    return invocation ? [{ field: `memoryStrategies.modifyMemoryStrategies[${index}].${path}`, invocation }] : [];
  });
  return [...wantedByNew(change?.addMemoryStrategies, 'memoryStrategies.addMemoryStrategies'), ...modified];
}
