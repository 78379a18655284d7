/** Rights on a repository, as actions `agentplatform:…` of policies. */
export type RegistryAction = 'PullImage' | 'PushImage' | 'DeleteImage';

/** Somebody who has logged in. */
export interface RegistryLogin {
  /** Names who it is among all of the account: an upload is its own. */
  principal: string;
  /** Throws AccessDeniedException unless policies allow the action on the repository. */
  require(action: RegistryAction, repository: string): void;
}
