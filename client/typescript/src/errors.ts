/**
 * The base class of all errors of this package. No message contains a value that a person reported.
 */
export class HubbubError extends Error {
  override readonly name: string = "HubbubError";
}

/** A number or a name is outside its allowed values. */
export class BadParameter extends HubbubError {
  override readonly name = "BadParameter";
}

/** A part of this package that is loaded on demand could not be loaded. */
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

  /** missing: what the bundle has not by this name; undefined if this version cannot report it. */
  constructor(
    message: string,
    readonly missing?: "metric" | "model",
  ) {
    super(message);
  }
}

/** A value that the metric does not have. */
export class ValueOutOfDomain extends HubbubError {
  override readonly name = "ValueOutOfDomain";
}

/** A value that is not one of the metric's list. */
export class NotListed extends ValueOutOfDomain {}

/** A submission was not delivered; the same bytes may be delivered later. */
export class TryAgain extends HubbubError {
  override readonly name = "TryAgain";

  /**
   * reason: for counting. afterSeconds: the pause in seconds that the shuffler asked for, if any.
   */
  constructor(
    readonly reason: string,
    readonly afterSeconds?: number,
  ) {
    super(`the shuffler was not reached or is full: ${reason}`);
  }
}

/** The reason if no connection was possible: close() does not wait for a device that is offline. */
export const UNREACHABLE = "unreachable";

/** The error for an answer that did not come in time. */
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

/** The device's stored state cannot be read or written. */
export class StateUnusable extends HubbubError {
  override readonly name = "StateUnusable";
}
