import { expect, it } from 'vitest';
import { toolSchema } from '../src/index.ts';
import { toolsOf } from '../src/schema-text.ts';
import { gateway, targets } from './door.ts';

it('reads the types of tools that toolSchema has written, whatever their names are', () => {
  const [refund, approve] = toolsOf(toolSchema({ gatewayArn: gateway, targets }));
  expect(refund?.action).toBe('Refunds___refund');
  expect(refund?.input).toEqual({
    type: 'Record',
    fields: [
      { name: 'amount', required: true, shape: { type: 'Long' } },
      { name: 'rate', required: false, shape: { type: 'decimal' } },
      { name: 'reason', required: false, shape: { type: 'String' } },
      { name: 'items', required: false, shape: { type: 'Set', element: { type: 'String' } } },
      {
        ...{ name: 'customer', required: false },
        shape: { type: 'Record', fields: [{ name: 'name', required: true, shape: { type: 'String' } }] },
      },
    ],
  });
  expect(refund?.output).toMatchObject({ type: 'Record', fields: [] });
  expect(approve?.output).toMatchObject({ fields: [{ name: 'approved', shape: { type: 'Bool' } }] });
  const name = 'a"b\\c\u0000{}: ?';
  const inputSchema = { type: 'object', properties: { [name]: { type: 'boolean' } } };
  const [odd] = toolsOf(toolSchema({ gatewayArn: gateway, targets: [{ name: 'T', tools: [{ name, inputSchema }] }] }));
  expect(odd).toMatchObject({ action: `T___${name}`, input: { fields: [{ name, required: false }] } });
});
