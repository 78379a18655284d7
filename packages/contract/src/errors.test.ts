import { describe, expect, it } from 'vitest';
import { encodeError } from './codec/error-encoder.ts';
import { errors, receivedError, ServiceError } from './errors.ts';

describe('errors on the wire', () => {
  it('carry code, message with remedy, and further members', () => {
    const error = errors.invalidField('qualifier', 'names no endpoint', {
      remedy: 'Use DEFAULT.',
      retryAfterSeconds: 1.2,
    });
    const { status, headers, body } = encodeError(error);
    expect(status).toBe(400);
    expect(headers).toEqual({
      'content-type': 'application/json',
      'x-amzn-errortype': 'ValidationException',
      'retry-after': '2',
    });
    expect(JSON.parse(String(body))).toEqual({
      message: 'qualifier names no endpoint. Use DEFAULT.',
      reason: 'FieldValidationFailed',
      fieldList: [{ name: 'qualifier', message: 'names no endpoint' }],
    });
  });

  it('tell nothing of a failure inside', () => {
    const { status, body } = encodeError(new Error('connect ECONNREFUSED 10.0.0.7:5432 password=hunter2'));
    expect(status).toBe(500);
    expect(String(body)).not.toMatch(/10\.0\.0\.7|hunter2/);
    expect(String(encodeError(errors.conflict('Busy.', { cause: new Error('hunter2') })).body)).not.toContain(
      'hunter2',
    );
  });

  it('keep a message that a member would overwrite', () => {
    const error = new ServiceError('ConflictException', 'Said.', { members: { message: 'Forged.' } });
    expect(JSON.parse(String(encodeError(error).body))).toEqual({ message: 'Said.' });
  });

  it('are read back as what was sent', () => {
    const received = receivedError('ConflictException', { message: 'Busy.', reason: 'ResourceConflict' });
    expect(received).toMatchObject({
      code: 'ConflictException',
      status: 409,
      message: 'Busy.',
      members: { reason: 'ResourceConflict' },
    });
    expect(receivedError('NewException', null)).toMatchObject({ code: 'InternalServerException' });
    expect(receivedError('NewException', { message: 'x' }).message).toBe('NewException: x');
  });

  it('name the operation that is not built yet', () => {
    expect(errors.notImplemented('CreateMemory')).toMatchObject({
      status: 501,
      members: { operation: 'CreateMemory' },
    });
  });
});
