import { readFile } from 'node:fs/promises';
import type { AgentManagedRuntimeType, AgentRuntimeArtifact } from '@aws-sdk/client-bedrock-agentcore-control';
import type { S3Client } from '@aws-sdk/client-s3';
import type { CodePackage } from '../package/package-code.ts';

/** Where zips of code go. */
export const codeBucket = 'agentplatform-deploy';

/** Puts the zip of an agent where its runtime finds it. */
export async function uploadCode(
  client: S3Client,
  name: string,
  code: CodePackage,
  signal: AbortSignal,
): Promise<{ uploaded: boolean; artifact: AgentRuntimeArtifact }> {
  const { uploaded, key } = await uploadZip(client, name, code, signal);
  const artifact: AgentRuntimeArtifact = {
    codeConfiguration: {
      code: { s3: { bucket: codeBucket, prefix: key } },
      // The schema of agentcore.json holds the names; the platform says which of them it can serve.
      runtime: code.runtime as AgentManagedRuntimeType,
      entryPoint: [code.entryPoint],
    },
  };
  return { uploaded, artifact };
}

/** Puts a zip into the platform's object storage unless it is there already; the key is its content's hash. */
export async function uploadZip(
  client: S3Client,
  name: string,
  { zip, sha256 }: Pick<CodePackage, 'zip' | 'sha256'>,
  signal: AbortSignal,
): Promise<{ uploaded: boolean; key: string }> {
  const { HeadObjectCommand, PutObjectCommand, CreateBucketCommand } = await import('@aws-sdk/client-s3');
  const options = { abortSignal: signal };
  const place = { Bucket: codeBucket, Key: `${name}/${sha256}.zip` };
  const present = await client.send(new HeadObjectCommand(place), options).then(
    () => true,
    (error: unknown) => {
      if (statusOf(error) === 404) return false;
      throw error;
    },
  );
  if (present) return { uploaded: false, key: place.Key };
  // Whole, not as a stream: it is at most 250 MB, and only what can be sent twice can be retried.
  const body = await readFile(zip, { signal });
  const put = (): Promise<unknown> => client.send(new PutObjectCommand({ ...place, Body: body }), options);
  await put().catch(async (error: unknown) => {
    if (!(error instanceof Error) || error.name !== 'NoSuchBucket') throw error;
    await client.send(new CreateBucketCommand({ Bucket: codeBucket }), options);
    await put();
  });
  return { uploaded: true, key: place.Key };
}

function statusOf(error: unknown): number | undefined {
  const metadata = error instanceof Error && '$metadata' in error ? error.$metadata : undefined;
  const status =
    typeof metadata === 'object' && metadata !== null ? Reflect.get(metadata, 'httpStatusCode') : undefined;
  return typeof status === 'number' ? status : undefined;
}
