import { describe, expect, it } from 'vitest';
import model from '../../../../contract/src/generated/model.json' with { type: 'json' };
import { refuseUnserved, UNSERVED } from './unserved.ts';

/** Members that have an effect, by the operation that takes them. */
const SERVED = {
  CreateBrowserRequest: [
    'name',
    'description',
    'executionRoleArn',
    'networkConfiguration',
    'clientToken',
    'tags',
    'recording',
  ],
  StartBrowserSessionRequest: [
    'traceId',
    'traceParent',
    'browserIdentifier',
    'name',
    'sessionTimeoutSeconds',
    'viewPort',
    'profileConfiguration',
    'clientToken',
  ],
} as const;
const shapes = {
  CreateBrowserRequest: model.planes.control.shapes.CreateBrowserRequest,
  StartBrowserSessionRequest: model.planes.data.shapes.StartBrowserSessionRequest,
};

describe('members of the wire', () => {
  it.each(['CreateBrowserRequest', 'StartBrowserSessionRequest'] as const)(
    'of %s have an effect or are refused by their name, all of them',
    (shape) => {
      for (const member of Object.keys(shapes[shape].members)) {
        const served = (SERVED[shape] as readonly string[]).includes(member);
        const refused = (UNSERVED as readonly string[]).includes(member);
        expect([member, served !== refused]).toEqual([member, true]);
      }
    },
  );

  it('that ask for nothing are taken', () => {
    refuseUnserved({ browserSigning: { enabled: false }, extensions: [] });
    refuseUnserved({});
    for (const member of UNSERVED)
      expect(() => refuseUnserved({ [member]: [{}] })).toThrow(
        expect.objectContaining({ message: expect.stringContaining(member) }),
      );
    expect(() => refuseUnserved({ browserSigning: { enabled: true } })).toThrow('browserSigning');
  });
});
