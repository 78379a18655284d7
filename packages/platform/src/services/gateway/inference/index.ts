export { inferenceKinds } from './inference-kinds.ts';
export { InferenceRequests } from './inference-requests.ts';
