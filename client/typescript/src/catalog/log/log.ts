/** What a device remembers of a transparency log, and the proof in a bundle. */

/** A log: its name, and its key of Ed25519 in base64. */
export interface LogKey {
  readonly name: string;
  readonly key: string;
}

/** The last verified view of a log: its size in entries, and its root in base64. */
export interface SeenLog extends LogKey {
  readonly size: number;
  readonly root: string;
}

/** A verified proof that a log contains a bundle. */
export interface LogProof {
  /**
   * The current view of the log. before: the previous view, from a document; null if there is none.
   *
   * @throws BundleRefused it is another log, or does not extend the previous view.
   */
  after(before: unknown): SeenLog;
}
