/** What a device knows of a transparency log, and what a bundle's proof of one can be asked. */

/** A log: its name, and its key of Ed25519 in base64. */
export interface LogKey {
  readonly name: string;
  readonly key: string;
}

/** A log as it was last seen and believed: its size in entries, and its root in base64. */
export interface SeenLog extends LogKey {
  readonly size: number;
  readonly root: string;
}

/** That a bundle is in a log, which was checked. */
export interface LogProof {
  /**
   * The log as it is seen now. before: as it was, as a document told it; null for never.
   *
   * @throws BundleRefused it is another log, or did not grow from what it was.
   */
  after(before: unknown): SeenLog;
}
