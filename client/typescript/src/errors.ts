/** Every error of this package. None quotes a value that a person gave. */
export class HubbubError extends Error {
  override readonly name: string = "HubbubError";
}

/** A number or a name is not what it may be. */
export class BadParameter extends HubbubError {
  override readonly name = "BadParameter";
}

/** A part of this package, which is loaded where something needs it, cannot be had. */
export class NotLoaded extends HubbubError {
  override readonly name = "NotLoaded";
}

/** A bundle is unreadable, altered, or another operator's. */
export class BundleRefused extends HubbubError {
  override readonly name = "BundleRefused";
}

/** The bundle has no metric of this name, or one that this version cannot report. */
export class UnknownMetric extends HubbubError {
  override readonly name = "UnknownMetric";
}

/** A value that the metric does not have. */
export class ValueOutOfDomain extends HubbubError {
  override readonly name = "ValueOutOfDomain";
}

/** A submission did not get through; the same bytes may later. */
export class TryAgain extends HubbubError {
  override readonly name = "TryAgain";

  /** reason: for counting. afterSeconds: when to come back, where the shuffler said so. */
  constructor(
    readonly reason: string,
    readonly afterSeconds?: number,
  ) {
    super(`the shuffler was not reached or is full: ${reason}`);
  }
}

/** The reason where nobody could be connected to: who is offline does not wait for that as it closes. */
export const UNREACHABLE = "unreachable";

/** That an answer did not come in its time. */
export function tooLate(): TryAgain {
  return new TryAgain("deadline_exceeded");
}

/** The shuffler says that these bytes can never be taken. */
export class GivenUp extends HubbubError {
  override readonly name = "GivenUp";

  /** reason: for counting. */
  constructor(readonly reason: string) {
    super(`the shuffler can never take it: ${reason}`);
  }
}

/** What a device keeps cannot be read or written. */
export class StateUnusable extends HubbubError {
  override readonly name = "StateUnusable";
}
