import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Boto, botoOf, python } from '../support/boto3.ts';
import { BUILT_IN, needChromium, startBrowserSession } from '../support/browser-session.ts';
import { clientsOf } from '../support/clients.ts';
import { startTestPlatform, type TestPlatform } from '../support/platform-process.ts';

let platform: TestPlatform;
let boto: Boto;

beforeAll(async () => {
  needChromium();
  platform = await startTestPlatform({ env: { AGENTPLATFORM_BROWSER_WARM_SESSIONS: '0' } });
  boto = botoOf(platform);
  // The first session of a platform waits until its image is made, which is not what the client's time is for.
  const clients = clientsOf(platform);
  await startBrowserSession(clients);
  clients.close();
}, 400_000);
afterAll(() => platform?.dispose());

describe.skipIf(!python)('boto3, unmodified', () => {
  it('drives every operation', async () => {
    const network = { networkMode: 'PUBLIC' };
    const roleArn = platform.ready.defaultRoleArn;
    const create = {
      name: 'from_boto3',
      description: 'of a test',
      executionRoleArn: roleArn,
      networkConfiguration: network,
    };
    const vpc = {
      networkMode: 'VPC',
      vpcConfig: { subnets: ['subnet-0123456789abcdef0'], securityGroups: ['sg-0123456789abcdef0'] },
    };
    const [made, again, inVpc, kept, listed] = await boto.control(
      ['CreateBrowser', { ...create, tags: { team: 'red' } }],
      ['CreateBrowser', create],
      ['CreateBrowser', { ...create, name: 'in_vpc', networkConfiguration: vpc }],
      ['DeleteBrowser', { browserId: BUILT_IN }],
      ['ListBrowsers', {}],
    );
    expect(made?.output.status).toBe('READY');
    expect([again?.error?.code, inVpc?.error?.code, kept?.error?.code]).toEqual([
      'ConflictException',
      'ValidationException',
      'ValidationException',
    ]);
    const names = listed?.output.browserSummaries.map(({ name }: { name: string }) => name);
    expect(names).toEqual([BUILT_IN, 'from_boto3']);
    const { browserId, browserArn } = made?.output ?? {};
    const [got, tags] = await boto.control(
      ['GetBrowser', { browserId }],
      ['ListTagsForResource', { resourceArn: browserArn }],
    );
    expect(got?.output).toMatchObject({ ...create, browserArn, status: 'READY' });
    expect(tags?.output.tags).toEqual({ team: 'red' });

    const of = { browserIdentifier: browserId };
    const [started, refused] = await boto.data(
      ['StartBrowserSession', { ...of, name: 'first', sessionTimeoutSeconds: 600 }],
      ['StartBrowserSession', { ...of, extensions: [{ location: { s3: { bucket: 'bucket', prefix: 'a.zip' } } }] }],
    );
    expect(refused?.error).toMatchObject({
      code: 'ValidationException',
      message: expect.stringContaining('extensions'),
    });
    const one = { ...of, sessionId: started?.output.sessionId };
    const off = { automationStreamUpdate: { streamStatus: 'DISABLED' } };
    const [about, ready, moved, shot, updated, stopped, ended, invoked, unknown] = await boto.data(
      ['GetBrowserSession', one],
      ['ListBrowserSessions', { ...of, status: 'READY' }],
      ['InvokeBrowser', { ...one, action: { mouseMove: { x: 1, y: 2 } } }],
      ['InvokeBrowser', { ...one, action: { screenshot: { format: 'PNG' } } }],
      ['UpdateBrowserStream', { ...one, streamUpdate: off }],
      ['StopBrowserSession', one],
      ['ListBrowserSessions', { ...of, status: 'TERMINATED' }],
      ['InvokeBrowser', { ...one, action: { mouseMove: { x: 1, y: 2 } } }],
      ['GetBrowserSession', { ...of, sessionId: 'nobody' }],
    );
    expect(about?.output).toMatchObject({
      name: 'first',
      status: 'READY',
      sessionTimeoutSeconds: 600,
      viewPort: { width: 1456, height: 819 },
    });
    expect(ready?.output.items).toMatchObject([{ sessionId: one.sessionId, status: 'READY' }]);
    expect(moved?.output).toMatchObject({ sessionId: one.sessionId, result: { mouseMove: { status: 'SUCCESS' } } });
    expect(Buffer.from(shot?.output.result.screenshot.data.$bytes, 'base64').toString('latin1', 1, 4)).toBe('PNG');
    expect(updated?.output.streams.automationStream.streamStatus).toBe('DISABLED');
    expect(stopped?.output.sessionId).toBe(one.sessionId);
    expect(ended?.output.items).toMatchObject([{ sessionId: one.sessionId, status: 'TERMINATED' }]);
    expect([invoked?.error?.code, unknown?.error?.code]).toEqual([
      'ResourceNotFoundException',
      'ResourceNotFoundException',
    ]);
    const [profile, sameName, profiles] = await boto.control(
      ['CreateBrowserProfile', { name: 'from_boto3', description: 'of a test', tags: { team: 'red' } }],
      ['CreateBrowserProfile', { name: 'from_boto3' }],
      ['ListBrowserProfiles', { maxResults: 1 }],
    );
    expect([profile?.output.status, sameName?.error?.code]).toEqual(['READY', 'ConflictException']);
    const { profileId, profileArn } = profile?.output ?? {};
    expect(profiles?.output.profileSummaries).toMatchObject([{ profileId, profileArn, name: 'from_boto3' }]);
    const [anew] = await boto.data([
      'StartBrowserSession',
      { ...of, profileConfiguration: { profileIdentifier: profileId } },
    ]);
    const at = { ...of, sessionId: anew?.output.sessionId };
    const [saved, of2, , nobody] = await boto.data(
      ['SaveBrowserSessionProfile', { ...at, profileIdentifier: profileId }],
      ['GetBrowserSession', at],
      ['StopBrowserSession', at],
      ['SaveBrowserSessionProfile', { ...at, profileIdentifier: 'nobody-0123456789' }],
    );
    expect(saved?.output).toMatchObject({ profileIdentifier: profileId, sessionId: at.sessionId });
    expect(of2?.output.profileConfiguration).toEqual({ profileIdentifier: profileId });
    expect(nobody?.error?.code).toBe('ResourceNotFoundException');
    const [seen, profileGone, noMore] = await boto.control(
      ['GetBrowserProfile', { profileId }],
      ['DeleteBrowserProfile', { profileId }],
      ['GetBrowserProfile', { profileId }],
    );
    expect(seen?.output).toMatchObject({ description: 'of a test', lastSavedBrowserSessionId: at.sessionId });
    expect([profileGone?.output.status, noMore?.error?.code]).toEqual(['DELETING', 'ResourceNotFoundException']);
    const [deleted, gone] = await boto.control(['DeleteBrowser', { browserId }], ['GetBrowser', { browserId }]);
    expect([deleted?.output.status, gone?.error?.code]).toEqual(['DELETING', 'ResourceNotFoundException']);
  });
});
