import { contractModel, type Plane, type PlaneModel } from '../../packages/contract/src/model.ts';
import { sdkMembers } from './sdk-clients.ts';

/**
 * Members of the published model that the installed AWS SDK for JavaScript does not have yet (its releases trail the
 * model by some days); they are left out of the round trips with it and proven with boto3. A test holds this list exact.
 */
export const sdkGaps: readonly string[] = [
  'CreateGatewayTargetRequest.certificateConfigurations',
  'CreateGatewayTargetResponse.certificateConfigurations',
  'DeleteConfigurationBundleResponse.bundleArn',
  'GatewayTarget.certificateConfigurations',
  'GetGatewayTargetResponse.certificateConfigurations',
  'MCPGatewayConfiguration.disableMcpListToolsPagination',
  'UpdateGatewayTargetRequest.certificateConfigurations',
  'UpdateGatewayTargetResponse.certificateConfigurations',
];

/** `Shape.member` for every member that model and SDK do not share, of the structures that both have. */
export function differences(plane: Plane): { missing: string[]; extra: string[] } {
  const ofSdk = sdkMembers(plane);
  const missing: string[] = [];
  const extra: string[] = [];
  for (const [name, shape] of Object.entries(contractModel().planes[plane].shapes)) {
    const theirs = ofSdk.get(name);
    if (shape.type !== 'structure' || shape.document || theirs === undefined) continue;
    const ours = Object.keys(shape.members ?? {});
    missing.push(...ours.filter((member) => !theirs.includes(member)).map((member) => `${name}.${member}`));
    extra.push(...theirs.filter((member) => !ours.includes(member)).map((member) => `${name}.${member}`));
  }
  return { missing, extra };
}

/** The model as far as the SDK has it. */
export function modelOfSdk(plane: Plane): PlaneModel {
  const model = contractModel().planes[plane];
  const shapes = Object.entries(model.shapes).map(([name, shape]) => {
    if (shape.members === undefined) return [name, shape] as const;
    const members = Object.entries(shape.members).filter(([member]) => !sdkGaps.includes(`${name}.${member}`));
    return [name, { ...shape, members: Object.fromEntries(members) }] as const;
  });
  return { ...model, shapes: Object.fromEntries(shapes) };
}
